"""What a repair keeps of memories and sessions of which a part is damaged, and who sees it then."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pytest
from support.agents import FAST
from support.commands import run_on_store, serving

from bench.damaging import flipped_record, rewrite
from bench.salvage_store import pages_of
from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    ForgetMemory,
    GetMemory,
    GetMessages,
    ListMemories,
    MemorySearch,
    Principal,
    RateMemory,
    SetMemory,
    StoreMemory,
    UpdateMemory,
    open_greenroom,
    repair_greenroom,
)
from greenroom.runtime import Encryption, Refusal, restore
from greenroom.runtime.lmdb.key_blinding import NAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from greenroom.runtime import RepairInfo, RuntimeClient

pytestmark = [pytest.mark.promise("store.repair"), pytest.mark.slow]

ANN = Principal(agent_id="ann-agent", user="ann")
BOB = Principal(agent_id="bob-agent", user="bob")
SHARED = "birds:pond"
KEY = Encryption(lambda: bytes(range(32)), required=True)


def flip(path: Path, *words: bytes) -> None:
    """Flip a bit of words, in each copy that a file has of them."""
    content = path.read_bytes()
    for word in words:
        assert word in content
        content = content.replace(word, bytes((word[0] ^ 1,)) + word[1:])
    rewrite(path, content)


class Store:
    """A store that is filled, damaged, repaired and read.

    Args:
        folder: An empty folder.
        encryption: Has its key, if it is encrypted.
    """

    def __init__(self, folder: Path, encryption: Encryption | None = None) -> None:
        self.folder = folder
        self.encryption = encryption
        self.data = self.made = folder / "store"
        self.open = partial(open_greenroom, embedder="none", options=FAST, secrets=folder / "secrets")

    async def work(self, do: Any) -> Any:
        """Return what is done with the store open."""
        async with self.open(self.data, encryption=self.encryption) as runtime:
            return await do(runtime)

    def repaired(self, *words: bytes) -> RepairInfo:
        """Damage words in the file, and have what is saved be the store from now on."""
        flip(self.made / "greenroom.mdb", *words)
        number = len(list(self.folder.iterdir()))
        saved, self.data = self.folder / f"saved-{number}", self.folder / f"other-{number}"
        said = repair_greenroom(self.made, saved, encryption=self.encryption, now=1)
        restore(saved, self.data, encryption=self.encryption, secrets=self.folder / "secrets")
        return said


async def seen(agent: Agent, *roots: str) -> set[str]:
    """Return the contents of all memories that are listed or found; both must be the same."""
    listed: set[str | None] = set()
    for root in roots:
        listed |= {each.content for each in (await agent.ask(ListMemories(namespace=root))).memories}
    found = await agent.ask(MemorySearch(query="heron", limit=100))
    assert {each.content for each in found.memories if each.namespace in roots} <= listed
    return {content for content in listed if content is not None}


def test_of_sixty_messages_of_which_one_has_a_wrong_bit_the_others_come_back(tmp_path: Path) -> None:
    texts = [f"message {number:02} of the day" for number in range(60)]
    with serving(tmp_path) as server:
        server.call("create_session", session_id="talk", purpose="to talk")
        ids = [server.call("add_message", session_id="talk", content=text)["message_id"] for text in texts]
        assert server.end() == 0
    flip(tmp_path / "store" / "greenroom.mdb", b"message 31 of")
    done = run_on_store(tmp_path, "repair", str(tmp_path / "saved"), "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["left_out"]) == (65, [f"session/talk/message {ids[31]}"])
    assert run_on_store(tmp_path, "restore", str(tmp_path / "saved")).returncode == 0
    with serving(tmp_path) as server:
        answer = server.call("get_messages", session_id="talk", limit=100)
        assert [each["content"] for each in answer["messages"]] == texts[:31] + texts[32:]
        (listed,) = server.call("list_sessions")["sessions"]
        assert listed["message_count"] == 59
        added = server.call("add_message", session_id="talk", content="a new one")
        assert added["message_id"] > ids[-1]
        found = server.call("search_context", session_id="talk", query="message 59 of the day")["results"]
        assert found[0]["message"]["content"] == texts[59]
    assert run_on_store(tmp_path, "verify").returncode == 0


async def test_what_a_lost_memory_superseded_is_not_seen_again(tmp_path: Path) -> None:
    store = Store(tmp_path)

    async def fill(runtime: RuntimeClient) -> None:
        ann = Agent(runtime, ANN)
        first = await ann.ask(StoreMemory(key="first", content="the first heron", namespace=SHARED))
        second = await ann.ask(
            StoreMemory(
                key="second", content="the second heron", namespace=SHARED, supersedes=first.memory_id
            )
        )
        await ann.ask(
            StoreMemory(key="third", content="a last heron", namespace=SHARED, supersedes=second.memory_id)
        )
        await ann.ask(StoreMemory(key="other", content="another heron", namespace=SHARED))

    await store.work(fill)
    said = store.repaired(b"a last heron")
    assert said.left_out == tuple(f"memory/{SHARED}/{key}" for key in ("first", "second", "third"))
    assert await store.work(lambda runtime: seen(Agent(runtime, ANN), SHARED)) == {"another heron"}


async def test_nobody_sees_more_than_before_whichever_record_is_damaged(tmp_path: Path) -> None:
    """Of each letter of records one."""
    store = Store(tmp_path)
    roots = (SHARED, "user:ann")

    async def fill(runtime: RuntimeClient) -> None:
        ann, bob = Agent(runtime, ANN), Agent(runtime, BOB)
        places: list[tuple[Literal["private", "public"] | None, str]] = [
            ("private", SHARED),
            ("public", SHARED),
            (None, "user:ann"),
        ]
        for scope, root in places:
            ids: list[str] = []
            for number in range(3):
                made = StoreMemory(
                    key=f"{scope}-{number}",
                    content=f"heron {number}, {scope}",
                    namespace=root,
                    scope=scope,
                    supersedes=ids[-1] if number == 1 else None,
                )
                ids.append((await ann.ask(made)).memory_id)
            await ann.ask(UpdateMemory(memory_id=ids[2], content=f"heron 2, {scope}, anew"))
            await ann.ask(RateMemory(memory_id=ids[1], rating=1))
            gone = StoreMemory(
                key=f"{scope}-gone", content=f"heron gone, {scope}", namespace=root, scope=scope
            )
            await ann.ask(ForgetMemory(memory_id=(await ann.ask(gone)).memory_id))
        await bob.ask(StoreMemory(key="bobs", content="heron of bob", namespace=SHARED, scope="private"))

    async def told(runtime: RuntimeClient) -> list[set[str]]:
        answers = [await seen(Agent(runtime, ANN), *roots)]
        answers.append(await seen(Agent(runtime, BOB), SHARED))
        assert await seen(Agent(runtime, BOB), "user:ann") == set()
        return answers

    await store.work(fill)
    truth = await store.work(told)
    assert [len(each) for each in truth] == [6, 3]
    data = store.data / "greenroom.mdb"
    sound, page_of = data.read_bytes(), pages_of(data).page_of
    first = {record_of(key): key for key in sorted(page_of) if key.startswith(b"memory\0")}
    tried = set()
    for letter, key in first.items():
        rewrite(data, flipped_record(sound, page_of[key], key, 12))
        said = store.repaired()
        answers = await store.work(told)
        assert all(found <= known for found, known in zip(answers, truth, strict=True)), key
        if letter not in {b"e", b"v", b"k"}:
            assert answers == truth, (key, said.left_out)
        assert said.missing_rows == 1
        tried.add(letter)
    assert tried >= {b"e", b"v", b"k", b"s", b"a", b"o", b"u", b"i", b"q", b"r", b"t"}


def record_of(key: bytes) -> bytes:
    """Return the letter that tells what a record of a root is."""
    own = key.index(b"\0", key.index(b"\0") + 1) + 1
    return key[own + 1 : own + 2]


async def test_a_key_of_which_the_memory_is_lost_can_be_set_again(tmp_path: Path) -> None:
    store = Store(tmp_path)

    async def fill(runtime: RuntimeClient) -> None:
        for number in range(9):
            value = msgspec.Raw(b'"heron %d"' % number)
            await Agent(runtime, ANN).ask(SetMemory(key=f"key-{number}", value=value))

    async def again(runtime: RuntimeClient) -> tuple[int, bytes, bytes]:
        ann = Agent(runtime, ANN)
        with pytest.raises(Refusal):
            await ann.ask(GetMemory(key="key-4"))
        made = await ann.ask(SetMemory(key="key-4", value=msgspec.Raw(b'"new"')))
        others = [await ann.ask(GetMemory(key=f"key-{number}")) for number in (4, 5)]
        return made.version, bytes(others[0].value), bytes(others[1].value)

    await store.work(fill)
    assert store.repaired(b"heron 4").left_out == ("memory/ann-agent/key-4",)
    assert await store.work(again) == (2, b'"new"', b'"heron 5"')


@pytest.mark.promise("memory.versions")
@pytest.mark.parametrize("root", ["user:ann", SHARED])
@pytest.mark.parametrize("encryption", [None, KEY])
async def test_no_version_of_what_is_lost_is_given_again(
    tmp_path: Path, root: str, encryption: Encryption | None
) -> None:
    """Whether the row of what ended is damaged, the only row of an entry, or both."""
    store = Store(tmp_path, encryption)

    async def save(runtime: RuntimeClient, key: str) -> int:
        saved = await Agent(runtime, ANN).ask(StoreMemory(key=key, content=f"heron {key}", namespace=root))
        return saved.version

    async def fill(runtime: RuntimeClient) -> None:
        for key in ("lost", "lost", "lost", "lost", "other", "purged", "purged"):
            await save(runtime, key)
        purge = ForgetMemory(key="purged", namespace=root, purge=True, confirm=True)
        await Agent(runtime, ANN).ask(purge)

    async def again(runtime: RuntimeClient) -> list[int]:
        return [await save(runtime, key) for key in ("lost", "purged")]

    await store.work(fill)
    data = store.data / "greenroom.mdb"
    sound, page_of = data.read_bytes(), pages_of(data).page_of
    start = sorted(key for key in page_of if key.startswith(b"memory\0"))
    at = NAME_BYTES + len(b"memory\0") if encryption else start[0].index(b"\0", len(b"memory\0")) + 1
    rows = {letter: [key for key in start if key[at : at + 2] == b"u" + letter] for letter in (b"e", b"t")}
    assert (len(rows[b"e"]), len(rows[b"t"])) == (2, 1)
    for lost in ([rows[b"t"][0]], rows[b"e"], rows[b"e"] + rows[b"t"]):
        content = sound
        for key in lost:
            content = flipped_record(content, page_of[key], key, 12)
        rewrite(data, content)
        store.repaired()
        of_lost, of_purged = await store.work(again)
        assert of_lost >= 5
        assert of_purged >= 3


@pytest.mark.promise("runtime.exactly-once")
@pytest.mark.parametrize("encryption", [None, KEY])
async def test_a_repeat_brings_back_what_is_lost_and_does_nothing_else_twice(
    tmp_path: Path, encryption: Encryption | None
) -> None:
    """Whichever of its records is damaged; what had been forgotten or superseded stays away."""
    store = Store(tmp_path, encryption)
    names = ("lost", "kept", "gone", "old")

    def memory(name: str) -> StoreMemory:
        return StoreMemory(
            content=f"heron {name} of the pond", namespace=SHARED, idempotency_key=name, tags=[name]
        )

    def value(name: str) -> SetMemory:
        return SetMemory(key=name, value=msgspec.Raw(b'"heron"'), idempotency_key=name)

    def message(name: str) -> AddMessage:
        return AddMessage(session_id="talk", content=f"message {name}", idempotency_key=name)

    async def fill(runtime: RuntimeClient) -> list[str]:
        ann = Agent(runtime, ANN)
        await ann.ask(CreateSession(session_id="talk", purpose="to talk"))
        for name in names:
            await ann.ask(value(name))
            await ann.ask(message(name))
        await ann.ask(ForgetMemory(key="gone", namespace="agent:ann-agent"))
        ids = [(await ann.ask(memory(name))).memory_id for name in names]
        await ann.ask(ForgetMemory(memory_id=ids[2]))
        await ann.ask(StoreMemory(content="a heron anew", namespace=SHARED, supersedes=ids[3]))
        return ids

    async def again(runtime: RuntimeClient) -> tuple[set[str], int, set[str]]:
        ann = Agent(runtime, ANN)
        for name in names:
            await ann.ask(memory(name))
            await ann.ask(value(name))
            await ann.ask(message(name))
        listed = await ann.ask(ListMemories(namespace=SHARED))
        found = await ann.ask(GetMessages(session_id="talk"))
        keys = {each.key for each in (await ann.ask(ListMemories(namespace="agent:ann-agent"))).memories}
        return {str(each.content) for each in listed.memories}, len(found.messages), keys

    await store.work(fill)
    truth = await store.work(again)
    assert (len(truth[0]), truth[1], truth[2]) == (3, 4, {"lost", "kept", "old"})
    data = store.data / "greenroom.mdb"
    sound, page_of = data.read_bytes(), pages_of(data).page_of
    places = main_records(page_of, is_hidden=encryption is not None)
    assert len(places) == 9 + 9 + 4
    for key in places[:: 4 if encryption else 1]:
        rewrite(data, flipped_record(sound, page_of[key], key, 12))
        assert store.repaired().missing_rows == 1
        found = await store.work(again)
        assert (found[0] | {"a heron anew"}, found[1:]) == (truth[0], truth[1:]), key


def main_records(keys: Iterable[bytes], *, is_hidden: bool) -> list[bytes]:
    """Return the keys of entries, their versions and messages."""
    places = []
    for key in sorted(keys):
        kind = key.partition(b"\0")[0]
        at = len(kind) + 1 + NAME_BYTES if is_hidden else key.find(b"\0", len(kind) + 1) + 1
        if (kind, key[at : at + 2]) in {(b"memory", b"ue"), (b"memory", b"uv"), (b"session", b"um")}:
            places.append(key)
    return places


async def test_of_an_encrypted_store_entries_are_kept_as_well(tmp_path: Path) -> None:
    store = Store(tmp_path, KEY)

    async def fill(runtime: RuntimeClient) -> None:
        ann = Agent(runtime, ANN)
        await ann.ask(CreateSession(session_id="talk", purpose="to talk"))
        for number in range(40):
            await ann.ask(AddMessage(session_id="talk", content=f"message {number} " + "x" * 900))
            made = StoreMemory(key=f"key-{number}", content=f"heron {number}" + "x" * 900, namespace=SHARED)
            await ann.ask(made)

    async def counted(runtime: RuntimeClient) -> tuple[int, int]:
        ann = Agent(runtime, ANN)
        messages = await ann.ask(GetMessages(session_id="talk", limit=100))
        return len(messages.messages), len(await seen(ann, SHARED))

    await store.work(fill)
    assert await store.work(counted) == (40, 40)
    data = store.data / "greenroom.mdb"
    content, page_of = data.read_bytes(), pages_of(data).page_of
    for start, letters in ((b"memory\0", b"uv"), (b"session\0", b"um")):
        own = len(start) + NAME_BYTES
        mine = [key for key in sorted(page_of) if key.startswith(start) and key[own : own + 2] == letters]
        content = flipped_record(content, page_of[mine[20]], mine[20], 100)
    rewrite(data, content)
    said = store.repaired()
    assert (said.set_aside, len(said.left_out)) == ((), 2)
    assert await store.work(counted) == (39, 39)
