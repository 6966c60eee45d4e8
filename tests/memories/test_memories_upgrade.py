"""A store of an older program: read as it is, and brought into the index by itself."""

from __future__ import annotations

import contextlib
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.agents import FAST, keep, keys, value_of
from support.commands import run_on_store

from greenroom.actors import ListMemory, MemoryFilters, VerifyMemories
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.memories.requests import requests
from greenroom.runtime import Actor, Address, Context, InlineCommitter, Message, handles, open_runtime
from greenroom.testing import START, VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter, House

    from greenroom.actors import Agent

SECOND = 1_000_000


class OldEntry(msgspec.Struct, frozen=True, array_like=True):
    """An entry as the program before wrote it."""

    key: str
    session_id: str | None
    number: int
    update: int
    version: int
    created_at: int
    updated_at: int
    expires_at: int | None
    value_size: int


class OldVersion(msgspec.Struct, frozen=True, array_like=True):
    """A version as the program before wrote it."""

    stored_at: int
    expires_at: int | None
    metadata: bytes
    value: bytes


class Write(Message[None], frozen=True, kw_only=True):
    """Write so many entries, each with two versions; every tenth expires, every seventh is a session's."""

    count: int


class OldMemory(Actor):
    """Writes as the program before did."""

    kind = "memory"

    @handles(Write)
    def write(self, request: Write, context: Context) -> None:
        update = 0
        for number in range(1, request.count + 1):
            session = "s" if number % 7 == 0 else None
            expires = START + 50 * SECOND if number % 10 == 0 else None
            scope = b"g" if session is None else b"ss\0"
            key = f"old{number}"
            where = b"e" + scope + blake2b(key.encode(), digest_size=32).digest()
            first = update + 1
            for version in (1, 2):
                update += 1
                value = msgspec.json.encode({"animal": f"okapi{number}", "version": version})
                stored = OldVersion(START + update, expires if version == 2 else None, b'{"m":1}', value)
                context.put(b"v" + first.to_bytes(8) + version.to_bytes(8), stored)
            context.put(
                where,
                OldEntry(key, session, first, update, 2, START + first, START + update, expires, len(value)),
            )
            context.put(b"o" + scope + update.to_bytes(8), where)
            context.put(b"a" + update.to_bytes(8), where)
            if expires is not None:
                row = b"x" + expires.to_bytes(8) + first.to_bytes(8) + (2).to_bytes(8)
                context.put(row, where)


async def old_store(folder: Path, clock: Any, count: int) -> None:
    async with open_runtime(
        folder, actors=[OldMemory], clock=clock, committer=InlineCommitter(), options=FAST
    ) as runtime:
        await runtime.ask(Address("memory", "planner"), Write(count=count))


async def found(at: House, agent: Agent, text: str | None, **more: Any) -> set[str]:
    request = requests.FindMemories(text=text, limit=1_000, **more)
    address = memory_address("agent:planner")
    reply = await at.runtime.ask(address, request, principal=agent.principal)
    return {hit.memory.key for hit in reply.hits}


@pytest.mark.promise("memory.upgrade")
async def test_an_old_store_is_read_as_it_is_and_found_at_once(
    folder: Path, enter: Enter, clock: Any
) -> None:
    await old_store(folder, clock, 60)
    async with enter(embedder="none") as at:
        planner = at.agent("planner")
        assert await value_of(planner, "old3") == '{"animal":"okapi3","version":2}'
        assert await value_of(planner, "old3", version=1) == '{"animal":"okapi3","version":1}'
        assert await value_of(planner, "old7", session_id="s") == '{"animal":"okapi7","version":2}'
        assert len(await keys(planner, session_id="all", limit=100)) == 60
        everything = {f"old{number}" for number in range(1, 61)}
        assert await found(at, planner, None) == everything
        assert await found(at, planner, "okapi5") == {"old5"}
        [memory] = (
            await planner.ask(
                requests.ListMemories(namespace="agent:planner", filters=MemoryFilters(key="old3"))
            )
        ).memories
        assert (memory.version, memory.id, memory.author, memory.scope) == (2, 6, "planner", "private")
        versions = (await planner.ask(requests.ListVersions(memory_id=memory.memory_id))).versions
        assert [(one.version, one.id) for one in versions] == [(1, 5), (2, 6)]
        stranger = at.agent("stranger")
        assert await found(at, stranger, None) == set()
        at.tick(51)
        live = {f"old{number}" for number in range(1, 61) if number % 10}
        assert await found(at, planner, None) == live
    async with enter(embedder="none") as at:
        await trio.sleep(200)
        planner = at.agent("planner")
        assert await found(at, planner, None) == live
        [again] = (
            await planner.ask(
                requests.ListMemories(namespace="agent:planner", filters=MemoryFilters(key="old3"))
            )
        ).memories
        assert again.memory_id == memory.memory_id


@pytest.mark.promise("memory.upgrade", "memory.verify")
async def test_what_an_old_store_holds_is_not_taken_for_compared(
    folder: Path, enter: Enter, clock: Any
) -> None:
    await old_store(folder, clock, 450)
    async with enter(embedder="none") as at:
        first = await at.runtime.query(VerifyMemories())
        assert (first.memories, first.unindexed, first.problems) == (0, 450, [])
        await keep(at.agent("coder"), "fresh", '"zebra"')
        second = await at.runtime.query(VerifyMemories())
        assert (second.memories, second.unindexed) == (1, 450)
        third = await at.runtime.query(VerifyMemories(rebuild=True))
        assert (third.memories, third.unindexed, third.problems, third.rebuilt) == (451, 0, [], [])
        assert await at.runtime.query(VerifyMemories()) == third
        assert await found(at, at.agent("planner"), "okapi3") == {"old3"}


@pytest.mark.promise("memory.verify")
def test_verify_says_what_it_could_not_compare(tmp_path: Path) -> None:
    trio.run(old_store, tmp_path / "store", VirtualClock(), 1_050)
    said = run_on_store(tmp_path, "verify")
    assert said.returncode == 0
    assert "1,050 memories of an older program are in no index yet" in said.stdout
    assert "says what the memories say" not in said.stdout
    assert "says what the memories say: 1,050" in run_on_store(tmp_path, "verify", "--rebuild").stdout


@pytest.mark.promise("memory.upgrade")
async def test_an_old_store_that_is_written_comes_into_the_index_by_itself(
    folder: Path, enter: Enter, clock: Any
) -> None:
    await old_store(folder, clock, 450)
    written: list[int] = []

    def weigh(store: Any, works: Any) -> None:
        written.extend(len(work.ops) for work in works)
        store.commit(works)

    async with enter(embedder="none", committer=InlineCommitter(weigh)) as at:
        planner = at.agent("planner")
        assert await keep(planner, "old3", '"quagga"') == 3
        assert await keep(planner, "fresh", '"zebra"') == 1
        assert max(written) < 30
        await trio.sleep(1)
        assert len([size for size in written if size > 100]) == 3  # three batches of entries
        assert await found(at, planner, "zebra") == {"fresh"}
        assert await found(at, planner, "quagga") == {"old3"}
        assert await found(at, planner, "okapi3") == set()
        assert len(await found(at, planner, None)) == 451
        page = await planner.ask(ListMemory(limit=2))
        assert [entry.key for entry in page.entries] == ["fresh", "old3"]


@pytest.mark.promise("memory.upgrade")
@pytest.mark.parametrize("at_commit", [1, 2, 3, 4])
async def test_an_upgrade_that_dies_goes_on(folder: Path, enter: Enter, clock: Any, at_commit: int) -> None:
    await old_store(folder, clock, 450)
    left = at_commit

    def die(store: Any, works: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise RuntimeError("the process died here")
        store.commit(works)

    with contextlib.suppress(BaseExceptionGroup, Exception):
        async with enter(embedder="none", committer=InlineCommitter(die)) as at:
            await keep(at.agent("planner"), "fresh", '"zebra"')
            await trio.sleep(1)
    async with enter(embedder="none") as at:
        planner = at.agent("planner")
        everything = await found(at, planner, None)
        assert {f"old{number}" for number in range(1, 451)} <= everything
        assert await found(at, planner, "okapi449") == {"old449"}
        assert len(await keys(planner, session_id="all", limit=200)) == 200
