"""Actors of several processes on one folder, and bare ends of the connection between two."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import trio
from support.actors import ACTORS, INDEXES, Read, Rows, Shelf

from greenroom.runtime import INDEXES as INDEX_TABLE
from greenroom.runtime import Address, Context, Message, handles
from greenroom.runtime.base.unix_socket import bind_socket, socket_path
from greenroom.runtime.lmdb.keys import RELAYED
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.framed_connection import FramedConnection
from greenroom.runtime.sharing.framed_connection import PeerError as PeerError
from greenroom.runtime.sharing.owner_side import SOCKET_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from greenroom.runtime import SharedRuntime

RELAY = b"a relay of tests"
VISITS = Address("counter", "visits")
LOG = Address("log", "log")
NEWS = Address("herald", "news")


class Publish(Message[int], frozen=True):
    """Put a record and publish it under a label."""

    label: str


class PublishAll(Message[None], frozen=True):
    """Publish under each number from one up to another."""

    first: int
    last: int


class Ask(Message[str], frozen=True):
    """Ask a counter first, and answer with what it says."""

    key: str

    def precheck(self) -> Any:
        return Address("counter", self.key), Read()


class Glance(Message[int], frozen=True):
    """Count the records, and leave a row that says so, which may be missing where there is no room."""

    row: str = ""


class Herald(Shelf):
    """Publishes its own key as the topic."""

    kind = "herald"

    @handles(Publish)
    def publish(self, message: Publish, context: Context) -> int:
        count = (context.get(b"count", int) or 0) + 1
        context.put(b"count", count)
        context.publish(context.address.key, message.label)
        return count

    @handles(PublishAll)
    def publish_all(self, message: PublishAll, context: Context) -> None:
        for number in range(message.first, message.last + 1):
            context.publish(context.address.key, str(number))

    @handles(Glance)
    def glance(self, message: Glance, context: Context) -> int:
        context.use_reserve(dispensable=bool(message.row))
        if message.row:
            context.put_row("shelves", message.row.encode(), "")
        return context.get(b"count", int) or 0

    @handles(Ask)
    def ask(self, _message: Ask, context: Context) -> str:
        return f"it says {context.precheck_answer}"


SHARED: dict[str, Any] = {
    "actors": (*ACTORS, Herald),
    "indexes": INDEXES,
    "queries": [Rows],
    "principal_type": str,
    "label_type": str,
}


class Join(Protocol):
    """`open_shared_runtime` on the test's folder with these actors, an inline committer, a virtual clock."""

    def __call__(self, **options: Any) -> AbstractAsyncContextManager[SharedRuntime]: ...


async def attached(join: Join, *, task_status: trio.TaskStatus[Any]) -> None:
    """Run a runtime that is attached, until it is cancelled."""
    async with join() as guest:
        assert guest.role == "attached"
        task_status.started(guest)
        await trio.sleep_forever()


def kept(runtime: SharedRuntime) -> list[int]:
    """Return the numbers of the relayed messages whose answers the owner keeps."""
    own = runtime._process.runtime
    assert own is not None, "only the owner has a store"
    store = own.parts()[3]
    return [int.from_bytes(row[-8:]) for row in store.keys(INDEX_TABLE, RELAYED)]


class Bare:
    """One side of a connection as bytes and words, without any of the manners of a relay."""

    def __init__(self, connection: socket.socket, decode: Any) -> None:
        self.socket = connection
        self.wire: FramedConnection[Any] = FramedConnection(connection, decode)
        self.wire.end_greeting()
        self.heard: list[Any] = []

    def say(self, *words: Any) -> None:
        for word in words:
            self.wire.send(word)
        self.wire.flush()

    async def say_all(self, *words: Any) -> None:
        """Say words that the socket may not take at once."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.wire.run_writer)
            self.say(*words)
            await self.wire.drain()
            nursery.cancel_scope.cancel()

    def send(self, data: bytes) -> None:
        self.socket.send(data)

    async def hear(self, kind: type[Any]) -> Any:
        """Return the next word of a kind; others but signs of life are kept in `heard`."""
        while True:
            for place, word in enumerate(self.heard):
                if isinstance(word, kind):
                    return self.heard.pop(place)
            self.heard += [
                word for word in await self.wire.receive() if not isinstance(word, frames.Heartbeat)
            ]


def hello(**other: Any) -> frames.Hello:
    plain = frames.Hello(1, 1, "0.0", frames.FORMAT_VERSION, RELAY, 1, [])
    return msgspec.structs.replace(plain, **other)


def welcome(**other: Any) -> frames.Welcome:
    plain = frames.Welcome(1, "0.0", frames.FORMAT_VERSION, os.getpid())
    return msgspec.structs.replace(plain, **other)


def add(number: int, **other: Any) -> frames.Request:
    """Return the word that asks a counter to add one."""
    return msgspec.structs.replace(
        frames.Request(number, "counter", "visits", "Add", b"{}", b"null"), **other
    )


@contextmanager
def bare_guest(folder: Path) -> Iterator[Bare]:
    """Connect to the owner of the folder."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(socket_path(folder, SOCKET_NAME)))
    bare = Bare(connection, frames.decode_from_owner)
    try:
        yield bare
    finally:
        bare.wire.close()


class BareHost:
    """A place where processes attach."""

    def __init__(self, listener: socket.socket, stack: ExitStack) -> None:
        self._listener = listener
        self._stack = stack

    async def accept(self) -> Bare:
        await trio.lowlevel.wait_readable(self._listener)
        bare = Bare(self._listener.accept()[0], frames.decode_from_attached)
        self._stack.callback(bare.wire.close)
        return bare


@contextmanager
def bare_host(folder: Path) -> Iterator[BareHost]:
    """Listen as the owner of the folder does; the caller holds the lock."""
    with bind_socket(folder, SOCKET_NAME, 8) as listener, ExitStack() as stack:
        yield BareHost(listener, stack)


class Cutter:
    """Stands between the owner and those who attach, and cuts the next connection when told.

    Attributes:
        after: How many more bytes pass before the cut: towards the owner, and from it. None: no cut.
    """

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.after: tuple[int | None, int | None] = (None, None)
        self.cuts = 0
        self._nursery = nursery
        place = folder / SOCKET_NAME
        self._real = place.with_name("real.sock")
        place.rename(self._real)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(place))
        self._listener.listen(8)
        self._listener.setblocking(False)

    async def run(self) -> None:
        listener = trio.socket.from_stdlib_socket(self._listener)
        with listener:
            while True:
                guest, _ = await listener.accept()
                self._nursery.start_soon(self._between, guest)

    async def _between(self, guest: trio.socket.SocketType) -> None:
        after, self.after = self.after, (None, None)
        owner = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with guest, owner:
            await owner.connect(str(self._real))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_on, guest, owner, after[0], nursery.cancel_scope)
                nursery.start_soon(self._pass_on, owner, guest, after[1], nursery.cancel_scope)

    async def _pass_on(
        self,
        source: trio.socket.SocketType,
        sink: trio.socket.SocketType,
        after: int | None,
        scope: trio.CancelScope,
    ) -> None:
        with suppress(OSError):
            while after is None or after > 0:
                data = await source.recv(65_536 if after is None else after)
                if not data:
                    break
                after = None if after is None else after - len(data)
                while data:
                    data = data[await sink.send(data) :]
            else:
                self.cuts += 1
        scope.cancel()
