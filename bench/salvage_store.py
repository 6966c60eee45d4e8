"""A store to be damaged: memories and messages of three users, and which records each of them needs."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import lmdb
import msgspec
from msgspec.msgpack import decode

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    ForgetMemory,
    GetMemory,
    GetMessages,
    ListMemories,
    ListSessions,
    MemorySearch,
    Principal,
    RateMemory,
    SetMemory,
    StoreMemory,
    UpdateMemory,
    open_greenroom,
)
from greenroom.actors.core.auth.namespaces import memory_address, tag_of_root
from greenroom.actors.core.auth.policy import Visibility
from greenroom.actors.core.replies.memory_types import Scope
from greenroom.actors.memories.storage import records
from greenroom.runtime import Address, Refusal, RuntimeOptions
from greenroom.runtime.lmdb.codec import PlainCodec
from greenroom.runtime.store.page_proofs import Prover

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: Final = RuntimeOptions(durability="process")
READERS: Final = {
    name: Principal(agent_id=f"{name}-agent", agent_type=kind, user=name)
    for name, kind in (("ann", "coder"), ("bob", "coder"), ("eve", None))
}
SHARED: Final = "birds:pond"
ROOTS: Final = (SHARED, "user:ann", "user:bob", "agent:ann-agent")
SESSIONS: Final = 6
_TEXT: Final = " a heron at the pond in the morning" * 6
_SCOPES: Final[tuple[Scope, ...]] = ("public", "private", "private")
_SHOWN: Final[tuple[Visibility, ...]] = ("public", "private", "agent_only")
_OWN: Final = b"u"

Item = tuple[str, str]
"""A memory by its root and its id, or a message by its session and its id."""
Seen = dict[tuple[str, str, Item], object]
"""By reader, door and item what was told of the item."""


async def fill(folder: Path, memories: int, messages: int) -> None:
    """Make a store in which some things are superseded, forgotten, purged, private and hidden."""
    async with open_greenroom(folder, embedder="none", options=OPTIONS) as runtime:
        agents = {name: Agent(runtime, principal) for name, principal in READERS.items()}
        for name, root in (("ann", SHARED), ("bob", SHARED), ("ann", "user:ann"), ("bob", "user:bob")):
            await _remember(agents[name], name, root, memories)
        for number in range(memories):
            value = msgspec.Raw(b'"value %d of ann"' % number)
            await agents["ann"].ask(SetMemory(key=f"own-{number}", value=value))
        for number in range(SESSIONS):
            session = f"session-{number}"
            await agents["ann"].ask(CreateSession(session_id=session, purpose="to talk of birds"))
            for message in range(messages):
                name = ("ann", "bob")[message % 2]
                text = f"message {message} of {name} in {session}{_TEXT}"
                shown = _SHOWN[message % 3]
                await agents[name].ask(AddMessage(session_id=session, content=text, visibility=shown))


async def _remember(agent: Agent, name: str, root: str, count: int) -> None:
    ids: list[str] = []
    for number in range(count):
        scope = _SCOPES[number % 3] if root == SHARED else None
        later = ids[-1] if number % 4 == 1 else None
        made = StoreMemory(
            key=f"{name}-{number}",
            content=f"memory {number} of {name}{_TEXT}",
            namespace=root,
            scope=scope,
            supersedes=later,
            expiry="2999-01-01" if number % 6 == 0 else None,
        )
        ids.append((await agent.ask(made)).memory_id)
        if number % 5 == 0:
            await agent.ask(
                UpdateMemory(memory_id=ids[-1], content=f"memory {number} of {name}, anew{_TEXT}")
            )
        if number % 7 == 0:
            await agent.ask(RateMemory(memory_id=ids[-1], rating=0.5))
    for number, memory_id in enumerate(ids):
        if number % 9 in {1, 4}:  # of some what was superseded is to be seen again
            await agent.ask(ForgetMemory(memory_id=memory_id, purge=number % 2 == 0))


async def read(folder: Path, wanted: list[Item]) -> Seen:
    """Return what each reader is told, of all that is listed, found or wanted, by each door."""
    seen: Seen = {}
    # Without the secret of the store: nothing that is read needs it.
    async with open_greenroom(folder, embedder="none", options=OPTIONS, new_secret=True) as runtime:
        for name, principal in READERS.items():
            agent = Agent(runtime, principal)
            for root in ROOTS:
                with suppress(Refusal):
                    await _read_root(agent, name, root, seen)
            for number in range(SESSIONS):
                await _read_session(agent, name, f"session-{number}", seen)
            for place, memory_id in wanted:  # after its root was asked, which makes itself known
                if place in ROOTS:
                    with suppress(Refusal):
                        told = await agent.ask(GetMemory(memory_id=memory_id))
                        seen[name, "got", (place, memory_id)] = told.key, told.version, bytes(told.value)
            for each in (await agent.ask(ListSessions(limit=100))).sessions:
                seen[name, "listed", (each.session_id, "")] = each.purpose
    return seen


async def _read_root(agent: Agent, name: str, root: str, seen: Seen) -> None:
    cursor = None
    while True:
        page = await agent.ask(ListMemories(namespace=root, limit=200, cursor=cursor))
        for each in page.memories:
            seen[name, "listed", (root, each.memory_id)] = each.key, each.content, each.superseded_by
        cursor = page.next_cursor
        if cursor is None:
            break
    for mode in ("semantic", "exact"):
        search = MemorySearch(query="heron at the pond", namespace=root, mode=mode, limit=100)
        for found in (await agent.ask(search)).memories:
            seen[name, mode, (root, found.memory_id)] = found.key, found.content


async def _read_session(agent: Agent, name: str, session: str, seen: Seen) -> None:
    with suppress(Refusal):
        for each in (await agent.ask(GetMessages(session_id=session, limit=1_000))).messages:
            seen[name, "got", (session, str(each.message_id))] = each.sender, each.content


class TablePages(NamedTuple):
    """The pages of a store's tables of actors and of indexes.

    Attributes:
        leaves: Those that have rows.
        branches: Those that lead to others.
        page_of: On which leaf each record of an actor lies.
    """

    leaves: list[int]
    branches: list[int]
    page_of: dict[bytes, int]


def pages_of(path: Path) -> TablePages:
    """Return the pages of a sound store."""
    found = TablePages([], [], {})
    with closing(Prover(path, None)) as prover:
        actors, indexes, _ = prover.trees()
        waiting = [(actors, actors.root), (indexes, indexes.root)]
        while waiting:
            tree, number = waiting.pop()
            page = prover.page(number)
            if page.is_leaf:
                found.leaves.append(number)
                found.page_of.update(dict.fromkeys(page.keys if tree is actors else (), number))
            else:
                found.branches.append(number)
                waiting += ((tree, below) for below in page.values if isinstance(below, int))
    return found


class Rows:
    """The records of a sound store, and which of them each memory and message needs.

    Attributes:
        needs: The records of an item, and those that could say that it is gone, replaced or hidden.
    """

    def __init__(self, path: Path) -> None:
        self._payloads: dict[bytes, bytes] = {}
        with lmdb.open(str(path), subdir=False, lock=False, readonly=True, max_dbs=3) as environment:
            table = environment.open_db(b"actors", create=False)
            with environment.begin(db=table) as transaction:
                for key, record in transaction.cursor():
                    self._payloads[key] = PlainCodec().open(key, record)
        self.needs: dict[Item, set[bytes]] = {}
        for root in ROOTS:
            self._take_root(root, memory_address(root).prefix() + _OWN)
        for number in range(SESSIONS):
            session = f"session-{number}"
            own = Address("session", session).prefix() + _OWN
            for key in self._payloads:
                if key.startswith(own + b"m"):
                    item = session, str(int.from_bytes(key[-8:]))
                    self.needs[item] = {own + b"h", key}

    def _take_root(self, root: str, own: bytes) -> None:
        mine = {key[len(own) :]: record for key, record in self._payloads.items() if key.startswith(own)}
        header = decode(mine[records.HEADER], type=records.RootHeader)
        entries: dict[int, set[bytes]] = {}
        later: dict[int, set[int]] = {}
        for key, record in mine.items():
            if key.startswith(records.ENTRIES):
                entry = decode(record, type=records.Entry)
                newest = records.version_key(entry.number, entry.version)
                entries.setdefault(entry.number, set()).update(
                    {own + records.HEADER, own + key, own + newest}
                )
            elif key.startswith(records.SUCCESSORS):
                later.setdefault(int.from_bytes(key[1:9]), set()).add(int.from_bytes(key[-8:]))
                entries.setdefault(int.from_bytes(key[1:9]), set()).add(own + key)
        for number in entries:
            waiting, known = [number], {number}
            while waiting:
                fresh = later.get(waiting.pop(), set()) - known
                known |= fresh
                waiting += fresh
            tail = records.tail_of_number(header.secret, number)
            item = root, records.memory_id(tag_of_root(root), tail)
            self.needs[item] = set().union(*(entries[each] for each in known if each in entries))
