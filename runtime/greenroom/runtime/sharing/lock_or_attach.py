"""Staying on a folder whatever becomes of its owner: attached as long as there is one, then owning it."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import trio

from greenroom.runtime.base.errors import (
    GreenroomError,
    StoreError,
    StoreIdleError,
    StoreOwnedError,
    StoreTooNewError,
)
from greenroom.runtime.base.unix_socket import peer_is_ours, socket_path
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error, prepare_folder
from greenroom.runtime.lmdb.lock_file import FolderLock, ownership_error
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.framed_connection import FramedConnection, PeerError
from greenroom.runtime.sharing.owner_side import BEAT_SECONDS, SOCKET_NAME
from greenroom.runtime.sharing.process import Member, identity_of

RETRY_SECONDS: Final = 0.01
"""Between two attempts to own the folder or to reach its owner."""
START_SECONDS: Final = 5.0
"""How long the opening waits for an owner that holds the lock and does not answer."""
_SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""How a system says that it has no more descriptors now; then the next attempt may do better."""
_NOBODY_THERE: Final = _SCARCE | {
    errno.ENOENT,
    errno.ECONNREFUSED,
    errno.ENOTSOCK,
    errno.EAGAIN,
    errno.ECONNRESET,
}


May = Literal["create", "own", "attach"]
"""How far a process may go when nobody owns the folder: each word allows what those after it do."""


@asynccontextmanager
async def joined(member: Member, path: Path, may: May = "create") -> AsyncIterator[None]:
    """Own the folder, or attach to its owner, while the block runs; see `open_shared_runtime`."""
    if may == "attach":
        refused = _attachable(path)
    else:
        with ExitStack() as place:
            try:
                owner = member.acquire(place, FolderLock(path, create=may == "create"))
            except StoreOwnedError as error:
                refused = error
            else:
                if may == "own" and not (owner.folder / DATA_FILE).exists():
                    raise StoreError(f"there is no store in {owner.folder}")
                async with member.run(owner):
                    yield
                return
    async with Election(member, refused, may_own=may != "attach").running():
        yield


def _attachable(path: Path) -> StoreOwnedError:
    folder = prepare_folder(path, create=False)
    refused = ownership_error(folder)
    if refused is None:
        raise StoreIdleError(f"no process has {folder} open, and this one may only attach to one that has")
    return refused


class Election:
    """Keeps a process attached until it owns the folder itself; then that until it leaves.

    Args:
        member: The process's.
        refused: Why the process could not own the folder at first.
        may_own: Whether it takes over when the owner ends, and does not wait for another one.
    """

    def __init__(self, member: Member, refused: StoreOwnedError, *, may_own: bool = True) -> None:
        self._member = member
        self._follower = member.follower
        self._refused = refused
        self._folder = refused.folder
        self._identity = identity_of(refused.folder)
        self._stop = trio.CancelScope()
        self._failure: GreenroomError | None = None
        self._answered = trio.Event()
        self._connected = False
        self._waits = not may_own
        self._may_own = may_own
        self._lost_at = trio.current_time()
        self._leaving = trio.Event()
        self._ended = trio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
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
            self._member.is_closed = True
            if self._member.runtime is None:
                self._follower.close()
        if self._failure is not None:
            raise self._failure from error
        if error is not None:
            raise error

    async def _settle_in(self) -> None:
        with trio.move_on_after(START_SECONDS):
            await self._answered.wait()
        if not self._connected and not self._answered.is_set():
            raise StoreOwnedError(self._folder, self._refused.pid, self._lets_nobody_in()) from self._refused

    def _lets_nobody_in(self) -> str:
        holder = f"process {self._refused.pid}" if self._refused.pid else "another process"
        return (
            f"{self._folder} is in use by {holder}, which lets no other attach: a backup, check or restore "
            "of a stopped store, or an older greenroom; wait until it has ended, or choose another folder "
            "with --data"
        )

    async def _leave(self) -> None:
        with trio.move_on_after(self._member.factory.options.drain_seconds):
            await self._follower.drain()
            await self._follower.aclose()
        if self._member.runtime is not None:
            self._leaving.set()
            await self._ended.wait()

    async def _run(self) -> None:
        try:
            with ExitStack() as place:
                async with self._member.run(await self._attached(place)):
                    self._answered.set()
                    await self._leaving.wait()
        except GreenroomError as error:
            self._failure = error
            self._stop.cancel()
        finally:
            self._ended.set()

    async def _attached(self, place: ExitStack) -> FolderLock:
        """Relay until this process holds the lock."""
        failure: GreenroomError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._member.bus.run)
            nursery.start_soon(self._beat)
            try:
                owner = await self._until_owner(place)
            except GreenroomError as error:  # which is to leave in no group
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return owner

    async def _beat(self) -> None:
        while True:
            await trio.sleep(BEAT_SECONDS)
            self._follower.beat()

    async def _until_owner(self, place: ExitStack) -> FolderLock:
        while True:
            if self._may_own:
                owner = self._try_to_own(place)
                if owner is not None:
                    return owner
            elif not self._waits and trio.current_time() - self._lost_at > START_SECONDS:
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
                self._may_own = not self._waits and welcome.store_format <= frames.FORMAT_VERSION
                self._member.check_key(self._folder, welcome.key_mark)
                self._member.learn_secret(self._folder, welcome.store_id, welcome.secret_mark)
                self._answered.set()
                await self._follower.serve(wire, welcome)
            except* (PeerError, trio.ClosedResourceError):
                pass
            finally:
                wire.close()
            self._lost_at = trio.current_time()

    def _try_to_own(self, place: ExitStack) -> FolderLock | None:
        try:
            return self._member.acquire(place, FolderLock(self._folder, create=False), self._identity)
        except StoreOwnedError:
            return None
        except StoreError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _SCARCE:
                return None
            raise

    def _connect(self) -> FramedConnection[frames.FromLeader] | None:
        try:
            connection = _connected(socket_path(self._folder, SOCKET_NAME))
        except OSError as error:
            if error.errno in _NOBODY_THERE:
                return None
            raise folder_error(error, f"the socket in {self._folder} cannot be reached") from error
        if not peer_is_ours(connection):
            connection.close()
            raise StoreError(f"the socket in {self._folder} belongs to another user's process")
        self._connected = True
        return FramedConnection(connection, frames.decode_from_leader)

    async def _greet(self, wire: FramedConnection[frames.FromLeader]) -> frames.Welcome:
        wire.send(self._follower.hello())
        wire.flush()
        word, *rest = await wire.receive()
        if isinstance(word, frames.Reject):
            raise StoreOwnedError(self._folder, self._refused.pid, word.sentence)
        if not isinstance(word, frames.Welcome):
            raise PeerError("the owner did not greet back")
        self._follower.receive(rest)
        return word


def _connected(place: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(place))
    except BaseException:
        connection.close()
        raise
    return connection
