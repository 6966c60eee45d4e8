"""The door for programs whose folder other processes use, too."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec
import trio

from greenroom.runtime._bus import WINDOW_SECONDS, Bus, Subscriber
from greenroom.runtime._doors import Acceptor, Doors
from greenroom.runtime._errors import (
    GreenroomError,
    RuntimeClosedError,
    StoreError,
    StoreOwnedError,
    StoreTooNewError,
)
from greenroom.runtime._owner import Owner
from greenroom.runtime._runtime import Recipe, Runtime
from greenroom.runtime._socket_place import peer_is_ours, socket_path
from greenroom.runtime._statistics import RelayStatistics, RuntimeStatistics
from greenroom.runtime.relay import _frames as frames
from greenroom.runtime.relay._guest import Guest
from greenroom.runtime.relay._host import BEAT_SECONDS, SOCKET_NAME, Host
from greenroom.runtime.relay._pending import AGAIN
from greenroom.runtime.relay._vocabulary import Vocabulary
from greenroom.runtime.relay._wire import Wire, WireError

if TYPE_CHECKING:
    from greenroom.runtime._actor import Actor
    from greenroom.runtime._address import Address
    from greenroom.runtime._backup import BackupInfo, VerifyReport
    from greenroom.runtime._clock import Clock
    from greenroom.runtime._codec import RecordCodec
    from greenroom.runtime._commit import Committer
    from greenroom.runtime._options import RuntimeOptions
    from greenroom.runtime._query import Query
    from greenroom.runtime._rows import Index
    from greenroom.runtime._supervision import Group

R = TypeVar("R")

RETRY_SECONDS: Final = 0.01
"""Between two attempts to own the folder or to reach its owner."""
START_SECONDS: Final = 5.0
"""How long the opening waits for an owner that holds the lock and does not answer."""
_NOBODY_THERE: Final = frozenset(
    {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK, errno.EAGAIN, errno.ECONNRESET}
)


class SharedRuntime(Doors):
    """A running set of actors on a folder that other processes use, too. `open_shared_runtime` makes it.

    One of the processes owns the folder and runs the actors; in the others every request is relayed to it.
    When it ends, another one takes over, and what was not answered is done then, once.
    """

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary) -> None:
        self._bus = Bus(lambda: False)
        self._guest = Guest(vocabulary, self._bus)
        self._kernel: Acceptor = self._guest
        self._runtime: Runtime | None = None
        self._is_closed = False
        self._owning = trio.Event()
        self._recipe = recipe
        self._host = Host(vocabulary, self._begin)

    @property
    def role(self) -> Literal["owner", "attached"]:
        """Whether this process owns the folder, or relays to the one that does."""
        return "attached" if self._runtime is None else "owner"

    async def owning(self) -> None:
        """Wait until this process owns the folder."""
        await self._owning.wait()

    def run_ready(self) -> None:
        """Do now what was posted, as `Runtime.run_ready` says."""
        if self._runtime is None:
            self._guest.flush()
        else:
            self._runtime.run_ready()

    async def query(self, query: Query[R], *, principal: Any = None) -> R:
        """Run a query over the shared indexes and return its answer, once what it saw is on disk."""
        if self._runtime is None:
            self._check_open()
            answer: Any = await self._guest.query(query, principal)
            if answer is not AGAIN:
                reply: R = answer
                return reply
        assert self._runtime is not None, "only the owner's is asked again"
        return await self._runtime.query(query, principal=principal)

    def subscriber(self, window: float = WINDOW_SECONDS) -> Subscriber:
        """Return a subscriber without topics, a context manager, as `Runtime.subscriber` does.

        It goes on when another process takes over, and then hears of each of its topics once.

        Raises:
            RuntimeClosedError: the runtime is closed.
        """
        self._check_open()
        return self._bus.subscriber(window)

    def statistics(self) -> RuntimeStatistics:
        """Return what every part says of itself; in an attached process the owner's, a second old at most.

        Raises:
            StoreError: no owner has been reached yet.
        """
        if self._runtime is not None:
            relay = RelayStatistics(
                role="owner",
                owner_pid=os.getpid(),
                attached_pids=sorted(attached.pid for attached in self._host.attached.values()),
                takeovers=self._guest.attachments,
            )
            return msgspec.structs.replace(self._runtime.statistics(), relay=relay)
        statistics = self._guest.statistics()
        if statistics is None:
            raise StoreError("the process that owns the folder has not answered yet")
        return statistics

    def readmit(self, address: Address) -> bool:
        """Let an actor that was set aside in again; return whether it was. For the owner alone."""
        return self._owned().readmit(address)

    async def backup(self, destination: Path) -> BackupInfo:
        """Write a copy of the store to a new file, as `Runtime.backup` does. For the owner alone."""
        return await self._owned().backup(destination)

    async def verify(self) -> VerifyReport:
        """Check the store, as `Runtime.verify` does. For the owner alone."""
        return await self._owned().verify()

    @property
    def is_sound(self) -> bool:
        """Whether every commit of this process so far ended as a commit can."""
        return self._runtime is None or self._runtime.is_sound

    @property
    def _ended(self) -> bool:  # type: ignore[override]  # here it is another's
        return self._is_closed if self._runtime is None else self._runtime.has_ended

    def _check_open(self) -> None:
        if self._runtime is not None:
            self._runtime.check_open()
        elif self._is_closed:
            raise RuntimeClosedError("the runtime is closed")

    def _owned(self) -> Runtime:
        if self._runtime is None:
            raise StoreError(
                f"process {self._guest.owner_pid} owns the folder, and only the owner can do this; ask there"
            )
        return self._runtime

    def _begin(self, runtime: Runtime) -> None:
        """Take over: what was asked so far is this process's own affair from now on."""
        self._runtime = runtime
        self._kernel = runtime.parts()[0]
        self._host.answer_own(self._guest.relay, self._guest.hand_over(self._kernel))
        if self._guest.attachments:
            self._guest.renew_subscriptions()
        self._owning.set()

    @asynccontextmanager
    async def _open(self, path: Path) -> AsyncIterator[None]:
        """Own the folder, or attach to its owner, while the block runs."""
        with ExitStack() as place:
            try:
                owner = _take(place, self._host, Owner(path))
            except StoreOwnedError as error:
                refused = error
            else:
                async with self._own(owner):
                    yield
                return
        keeper = _Keeper(self, refused)
        async with keeper.keeping():
            yield

    def _own(self, owner: Owner) -> AbstractAsyncContextManager[Runtime]:
        return self._recipe.run(owner, self._host, self._bus, self._guest.posts)


class _Keeper:
    """Keeps a process attached until it owns the folder itself; then that until it leaves.

    Args:
        shared: Whose process it is.
        refused: Why the process could not own the folder at first.
    """

    def __init__(self, shared: SharedRuntime, refused: StoreOwnedError) -> None:
        self._shared = shared
        self._guest = shared._guest
        self._refused = refused
        self._folder = refused.folder
        self._identity = _identity(refused.folder)
        self._stop = trio.CancelScope()
        self._failure: GreenroomError | None = None
        self._answered = trio.Event()
        self._connected = False
        self._may_own = True
        self._lost_at = trio.current_time()
        self._leaving = trio.Event()
        self._ended = trio.Event()

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Do so while the block runs, then answer what was asked; an error leaves in no group."""
        error: BaseException | None = None
        try:
            with self._stop:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._run)
                    try:
                        await self._settle_in()
                        yield
                    except BaseException as raised:  # noqa: BLE001  re-raised below, outside the nursery
                        error = raised
                    if not isinstance(error, trio.Cancelled):
                        try:
                            await self._leave()
                        except trio.Cancelled as cancelled:  # the block's own error, if any, goes first
                            error = error or cancelled
                    nursery.cancel_scope.shield = True  # as in Runtime
                    nursery.cancel_scope.cancel()
        finally:
            self._shared._is_closed = True
            if self._shared._runtime is None:
                self._guest.close()
        if self._failure is not None:
            raise self._failure from error
        if error is not None:
            raise error

    async def _settle_in(self) -> None:
        with trio.move_on_after(START_SECONDS):
            await self._answered.wait()
        if not self._connected and not self._answered.is_set():
            raise self._refused

    async def _leave(self) -> None:
        with trio.move_on_after(self._shared._recipe.options.drain_seconds):
            await self._guest.emptied()
            await self._guest.wound_up()
        if self._shared._runtime is not None:
            self._leaving.set()
            await self._ended.wait()

    async def _run(self) -> None:
        try:
            with ExitStack() as place:
                async with self._shared._own(await self._attached(place)):
                    self._answered.set()
                    await self._leaving.wait()
        except GreenroomError as error:
            self._failure = error
            self._stop.cancel()
        finally:
            self._ended.set()

    async def _attached(self, place: ExitStack) -> Owner:
        """Relay until this process holds the lock."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._shared._bus.run)
            nursery.start_soon(self._beat)
            owner = await self._until_owner(place)
            nursery.cancel_scope.cancel()
        return owner

    async def _beat(self) -> None:
        while True:
            await trio.sleep(BEAT_SECONDS)
            self._guest.beat()

    async def _until_owner(self, place: ExitStack) -> Owner:
        while True:
            if self._may_own:
                with suppress(StoreOwnedError):
                    return _take(place, self._shared._host, Owner(self._folder, create=False), self._identity)
            elif trio.current_time() - self._lost_at > START_SECONDS:
                raise StoreTooNewError(
                    f"the process that owned {self._folder} has ended, and it was a newer greenroom whose "
                    "store this one cannot open; upgrade this one"
                )
            wire = self._connect()
            if wire is None:
                patience = (
                    RETRY_SECONDS if trio.current_time() - self._lost_at < START_SECONDS else BEAT_SECONDS
                )
                await trio.sleep(patience)
                continue
            try:
                welcome = await self._greet(wire)
                self._may_own = welcome.store_format <= frames.FORMAT_VERSION
                self._answered.set()
                await self._guest.serve(wire, welcome)
            except* (WireError, trio.ClosedResourceError):
                pass
            finally:
                wire.close()
            self._lost_at = trio.current_time()

    def _connect(self) -> Wire[frames.FromHost] | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.connect(str(socket_path(self._folder, SOCKET_NAME)))
            if not peer_is_ours(connection):
                raise StoreError(f"the socket in {self._folder} belongs to another user's process")
        except BaseException as error:
            connection.close()
            if isinstance(error, OSError) and error.errno in _NOBODY_THERE:
                return None
            raise
        self._connected = True
        return Wire(connection, frames.decode_from_host)

    async def _greet(self, wire: Wire[frames.FromHost]) -> frames.Welcome:
        wire.say(self._guest.hello())
        wire.flush()
        word, *rest = await wire.hear()
        if isinstance(word, frames.Sorry):
            raise StoreOwnedError(self._folder, self._refused.pid, word.sentence)
        if not isinstance(word, frames.Welcome):
            raise WireError("the owner did not greet back")
        self._guest.hear(rest)
        return word


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _take(place: ExitStack, host: Host, lock: Owner, identity: tuple[int, int] | None = None) -> Owner:
    """Own the folder until the stack is closed, and have a place where others can attach.

    Raises:
        StoreOwnedError: another process owns it.
        StoreError: it cannot hold a store, or is not the one that it was.
    """
    with ExitStack() as stack:
        stack.callback(host.close)  # last, when the lock is free
        owner = stack.enter_context(lock)
        if identity is not None and _identity(owner.folder) != identity:
            raise StoreError(
                f"{owner.folder} is another folder than the one that this process was attached to; start again"
            )
        stack.enter_context(host.listening(owner.folder))
        place.push(stack.pop_all())
    return owner


@asynccontextmanager
async def open_shared_runtime(
    path: str | Path,
    *,
    actors: Iterable[type[Actor]],
    principal_type: Any,
    label_type: Any,
    indexes: Iterable[Index] = (),
    queries: Iterable[type[Query[Any]]] = (),
    groups: Iterable[Group] = (),
    options: RuntimeOptions | None = None,
    clock: Clock | None = None,
    committer: Committer | None = None,
    codec: RecordCodec | None = None,
) -> AsyncIterator[SharedRuntime]:
    """Run actors on a folder that other processes use, too, inside an ``async with`` block.

    The first process owns the folder, as with `open_runtime`; in the others everything is relayed to it.
    When the owner ends, in whichever way, another process takes over. All are to be given the same actors.

    Args:
        path: As in `open_runtime`.
        actors: As in `open_runtime`.
        principal_type: What the principals of messages and queries are; hashable, and known to msgspec.
        label_type: What the labels of publications are, likewise.
        indexes: As in `open_runtime`.
        queries: The queries that are asked here.
        groups: As in `open_runtime`.
        options: As in `open_runtime`.
        clock: As in `open_runtime`; it counts while this process owns the folder.
        committer: As in `open_runtime`; likewise.
        codec: As in `open_runtime`; likewise.

    Raises:
        StoreOwnedError: the process that owns the folder takes no others: it is another version, or busy
            with a backup, a check or a restore.
        StoreError: as `open_runtime`, at the opening or when this process is to take over; the folder
            was replaced.
    """
    recipe = Recipe(actors, indexes, groups, options, clock, committer, codec)
    shared = SharedRuntime(recipe, Vocabulary(recipe.kinds, queries, principal_type, label_type))
    async with shared._open(Path(path)):
        yield shared
