"""A damaged record of memories costs its own entry: the others are given, and what is missing is named."""

from __future__ import annotations

import json
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import UNSET, UnsetType
from support.agents import house, moment
from support.commands import run_on_store, serving
from support.flipped import Record, Sound, chosen, flip, records_of

from greenroom.actors import GetMemory, ListMemories, MemoryFilters, MemoryLine, MemorySearch
from greenroom.actors.core.replies.damage import describe_damage
from greenroom.actors.memories.requests import requests
from greenroom.actors.memories.transfer.export_actor import export_lines
from greenroom.runtime import Encryption, RecordDamagedError, Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from pathlib import Path

    from support.agents import House
    from support.commands import Server

    from greenroom.actors import Agent
    from greenroom.actors.core.replies.damage import Damaged
    from greenroom.testing import VirtualClock

pytestmark = pytest.mark.slow

SHARED = "harbour:notes"
SOUND = {"user:alice": {f"m{number}" for number in range(8)} | {"new"}, SHARED: {"ours"}}
HIDDEN = {"old", "gone", "brief", "theirs"}
WORD = "zanzibar"


async def store(agent: Agent, key: str, **more: Any) -> str:
    content = f"{WORD}{key} {WORD} of the harbour: {key}"
    return (await agent.ask(requests.StoreMemory(content=content, key=key, **more))).memory_id


async def filled(folder: Path, clock: VirtualClock, *, is_plain: bool = False, **options: Any) -> list[str]:
    """Leave a store with a few memories of every kind, or with plain ones alone; return ids of those seen."""
    async with house(folder, clock, **options) as at:
        alice, bob = at.agent("a", user="alice"), at.agent("b", user="bob")
        ids = [await store(alice, f"m{number}", tags=["t"]) for number in range(8)]
        if is_plain:
            ids.append(await store(alice, "new"))
        else:
            old = await store(alice, "old")
            ids.append(await store(alice, "new", supersedes=old))
            await store(alice, "gone")
            await alice.ask(requests.ForgetMemory(key="gone"))
            await store(alice, "brief", expiry=str(moment(at.clock.now() + 60_000_000)))
            await store(bob, "theirs", namespace=SHARED, scope="private")
            await alice.ask(requests.RateMemory(key="m1", rating=1))
        ids.append(await store(alice, "ours", namespace=SHARED, scope="public"))
        await search(at, alice)
        at.tick(120)
        return ids


class Seen:
    """What one answer gave, and what it said of the rest."""

    def __init__(
        self, memories: Iterable[Any], damaged: Iterable[Damaged | UnsetType], failed: object = None
    ) -> None:
        self.keys = {each.key for each in memories}
        told = [each for each in damaged if each is not UNSET]
        self.is_told = bool(told or failed)
        self.names = {entry.get("key") for each in told for entry in each.entries}


async def search(_: House, agent: Agent) -> Seen:
    found = await agent.ask(MemorySearch(query=WORD, limit=50))
    return Seen(found.memories, [found.damaged], found.failed)


async def exact(_: House, agent: Agent) -> Seen:
    found = await agent.ask(MemorySearch(query=WORD, mode="exact", limit=50))
    return Seen(found.memories, [found.damaged], found.failed)


async def listing(_: House, agent: Agent) -> Seen:
    pages = [await agent.ask(ListMemories(namespace=each, limit=100)) for each in SOUND]
    return Seen([one for page in pages for one in page.memories], [page.damaged for page in pages])


async def export(at: House, agent: Agent) -> Seen:
    damage: list[Damaged] = []
    lines: list[MemoryLine] = []
    found = export_lines(at.runtime, agent.principal, None, MemoryFilters(), damage=damage)
    async with aclosing(found) as pages:
        async for page in pages:
            lines += [msgspec.json.decode(line, type=MemoryLine) for line in page]
    # An export has what is superseded, and the link.
    return Seen([each for each in lines if each.key != "old"], damage)


async def by_ids(ids: list[str], _: House, agent: Agent) -> Seen:
    found: list[Any] = []
    damage: list[Damaged] = []
    for memory_id in ids:
        try:
            found.append(await agent.ask(GetMemory(memory_id=memory_id)))
        except RecordDamagedError as error:
            damage.append(describe_damage([error]))
    return Seen(found, damage)


READS: dict[str, Callable[[House, Agent], Awaitable[Seen]]] = {
    "search": search,
    "exact": exact,
    "list": listing,
    "export": export,
}


async def problems_of(at: House, records: list[Record], ids: list[str]) -> list[str]:
    """Return what is wrong with what Alice is answered, whose store has some damaged records."""
    alice = at.agent("a", user="alice")
    found: list[str] = []
    keys = [record.key for record in records]
    reads = READS | {"ids": partial(by_ids, ids)}
    for turn in range(2):
        for name, read in reads.items():
            try:
                wrong = _wrong(await read(at, alice), records)
            except (RecordDamagedError, Refusal) as error:
                wrong = [] if any(map(_is_head, records)) else [f"refused whole: {error}"]
            found += [f"{keys}: {name} {turn}: {each}" for each in wrong]
    if at.runtime.statistics().actors.set_aside:
        found.append(f"{keys}: set aside")
    return found


def _wrong(seen: Seen, records: list[Record]) -> list[str]:
    wanted = set.union(*SOUND.values())
    wrong = [f"shows {seen.keys & HIDDEN}"] if seen.keys & HIDDEN else []
    if seen.keys != wanted and not seen.is_told:
        wrong.append(f"lacks {wanted - seen.keys} without a word")
    if len(wanted - seen.keys) > len(records) and not any(map(_is_head, records)):
        wrong.append(f"lacks {wanted - seen.keys}")
    if seen.names & (HIDDEN - {"old"}):
        wrong.append(f"names {seen.names}")
    return wrong


def _is_head(record: Record) -> bool:
    """Return whether a record says what holds for all memories of a root; an address may be hidden."""
    is_short = record.key.endswith(b"\0uk") or len(record.key) == len(b"memory\0uk") + 16
    return record.key.startswith(b"memory\0") and record.key.endswith(b"uk") and is_short


@pytest.mark.promise("store.entries")
@pytest.mark.parametrize(
    ("state", "damage"),
    [
        *(
            (state, damage)
            for state in ("cold", "warm", "sealed", "plain")
            for damage in ("value", "neighbours")
        ),
        *((state, "key") for state in ("cold", "sealed", "plain")),
    ],
)
async def test_no_single_record_costs_more_than_its_entry(
    tmp_path: Path, clock: VirtualClock, state: str, damage: str
) -> None:
    folder = tmp_path / "one"
    options = {"encryption": Encryption(key=lambda: bytes(32), required=True)} if state == "sealed" else {}
    ids = await filled(folder, clock, is_plain=state == "plain", **options)
    sound = Sound(folder)
    found: list[str] = []
    for records in chosen(records_of(folder, tmp_path), damage, f"{state} {damage}"):
        kinds = [record.key[len(b"memory\0") + 16 :][:2] for record in records]
        if state == "sealed" and kinds == [b"ua", b"ue"]:
            continue  # of the last row of an order and the entry behind it an export may still say nothing
        sound.bring_back()
        if damage == "key":  # found at the start: who looks for a key that is not there is told no more
            flip(folder, *records, in_key=True)
        async with house(folder, clock, **options) as at:
            if state == "warm":
                await search(at, at.agent("a", user="alice"))
            if damage != "key":
                flip(folder, *records)
            found += await problems_of(at, records, ids)
    assert not found, "\n".join(found)


@pytest.mark.promise("store.entries")
async def test_what_never_was_is_neither_damaged_nor_forgotten(tmp_path: Path, clock: VirtualClock) -> None:
    folder = tmp_path / "one"
    await filled(folder, clock, is_plain=True)
    entries = [
        each for each in records_of(folder, tmp_path) if each.key.startswith(b"memory\0user:alice\0ue")
    ]
    flip(folder, entries[4])
    async with house(folder, clock) as at:
        alice = at.agent("a", user="alice")
        for number in range(40):
            with pytest.raises(Refusal) as refused:
                await alice.ask(requests.ForgetMemory(key=f"never{number}"))
            assert refused.value.code == "MEMORY_NOT_FOUND"
            await store(alice, f"fresh{number}")


# -- by the tools and commands -------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    """Give a server with ten memories, the fourth of which has a flipped bit."""
    with serving(tmp_path, "--user", "ann", "--tools", "all", "--embedder", "none") as server:
        for number in range(10):
            server.call("store_memory", key=f"k{number}", content=f"{WORD} number {number}")
        folder = tmp_path / "store"
        assert run_on_store(tmp_path, "verify").returncode == 0  # now the rows lie in their tables
        value = f"{WORD} number 4".encode()
        damaged = [each for each in records_of(folder, tmp_path) if value in each.raw and b"\0uv" in each.key]
        assert len(damaged) == 1
        flip(folder, damaged[0])
        yield server


SOUND_KEYS = {f"k{number}" for number in range(10)} - {"k4"}


@pytest.mark.promise("store.entries")
def test_one_flipped_bit_costs_one_memory(served: Server, tmp_path: Path) -> None:
    for _ in range(3):
        found = served.call("memory_search", query=WORD, limit=50)
        listed = served.call("list_memories", limit=50)
        for answer in (found, listed):
            assert {each["key"] for each in answer["memories"]} == SOUND_KEYS
            assert answer["damaged"]["count"] == 1
            assert answer["damaged"]["entries"][0]["key"] == "k4"
        assert found["partial"]
        refused = served.call("retrieve_memory", key="k4")
        assert "k4" in json.dumps(refused.get("damaged"))
    done = run_on_store(tmp_path, "export", str(tmp_path / "all.jsonl"), "--user", "ann", "--json")
    assert done.returncode == 3, done.stderr
    assert "'k4'" in done.stderr
    assert json.loads(done.stdout)["damaged"]["count"] == 1
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert {json.loads(line)["key"] for line in lines} == SOUND_KEYS


@pytest.mark.promise("store.entries")
@pytest.mark.parametrize("letter", [b"e", b"v"], ids=["entry", "value"])
def test_a_damaged_memory_can_be_forgotten_and_stored_anew(tmp_path: Path, letter: bytes) -> None:
    with serving(tmp_path, "--user", "ann", "--tools", "all", "--embedder", "none") as server:
        server.call("store_memory", key="kept", content=WORD)
        assert run_on_store(tmp_path, "verify").returncode == 0  # now the rows lie in their tables
        before = {each.key for each in records_of(tmp_path / "store", tmp_path)}
        server.call("store_memory", key="k4", content=f"{WORD} number 4")
        assert run_on_store(tmp_path, "verify").returncode == 0
        new = [each for each in records_of(tmp_path / "store", tmp_path) if each.key not in before]
        flip(tmp_path / "store", next(each for each in new if b"\0u" + letter in each.key))
        assert server.call("store_memory", key="other", content=f"{WORD} beside")["success"]
        listed = server.call("list_memories", limit=50)
        assert {each["key"] for each in listed["memories"]} == {"kept", "other"}
        assert listed["damaged"]["count"] == 1
        if letter == b"e":
            server.send_call("store_memory", key="k4", content="anew")
            refused = json.loads(server.receive()["result"]["content"][0]["text"])
            assert refused["code"] == "STORE_DAMAGED"
            assert refused["details"]["key"] == "k4"
        gone = server.call("forget_memory", key="k4")
        assert gone["forgotten"] == 1
        listed = server.call("list_memories", limit=50)
        assert {each["key"] for each in listed["memories"]} == {"kept", "other"}
        assert "damaged" not in listed
        assert server.call("store_memory", key="k4", content=f"{WORD} anew")["success"]
        found = server.call("memory_search", query=WORD, limit=50)
        assert {each["key"] for each in found["memories"]} == {"kept", "other", "k4"}
