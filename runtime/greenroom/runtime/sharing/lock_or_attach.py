"""Own a shared folder, or attach to its owner and take over after it ends."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import trio

from greenroom.runtime.api.open import RuntimeFactory
from greenroom.runtime.api.runtime import Runtime
from greenroom.runtime.base import errors
from greenroom.runtime.base.unix_socket import peer_is_ours, socket_path
from greenroom.runtime.journal.secrets import Secret
from greenroom.runtime.kernel.callbacks import MessageSink
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.lmdb.encryption import check_mark
from greenroom.runtime.lmdb.files import folder_error, prepare_folder
from greenroom.runtime.lmdb.lock_file import FolderLock, ownership_error
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.attached_side import AttachedSide
from greenroom.runtime.sharing.framed_connection import FramedConnection, PeerError
from greenroom.runtime.sharing.owner_side import BEAT_SECONDS, SOCKET_NAME, OwnerSide
from greenroom.runtime.sharing.type_registry import TypeRegistry

RETRY_SECONDS: Final = 0.01
"""The pause between two attempts to own the folder or to reach its owner."""
START_SECONDS: Final = 5.0
"""An opening waits this long for an owner that holds the lock and does not answer."""
_SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a system without free descriptors; a later attempt may succeed."""
_NO_OWNER: Final = _SCARCE | {
    errno.ENOENT,
    errno.ECONNREFUSED,
    errno.ENOTSOCK,
    errno.EAGAIN,
    errno.ECONNRESET,
}


May = Literal["create", "own", "attach"]
"""What a process may do if there is no owner; each word includes the words after it."""


class SharedProcess:
    """One process among those on a folder.

    The ``sink`` of its messages is the attached side, and later its own kernel. Once ``has_secret`` is set,
    keys can be derived; the secret itself is only kept while the process is attached.
    """

    def __init__(self, factory: RuntimeFactory, types: TypeRegistry) -> None:
        self.factory = factory
        self.bus = Bus(lambda: False)
        self.attached_side = AttachedSide(types, self.bus)
        self.owner_side = OwnerSide(types, self._begin)
        self.sink: MessageSink = self.attached_side
        self.runtime: Runtime | None = None
        self.became_owner = trio.Event()
        self.is_closed = False
        self.secret: Secret | None = None
        self.has_secret = trio.Event()

    def check_open(self) -> None:
        """Raise the reason if the process no longer accepts requests."""
        if self.runtime is not None:
            self.runtime.check_open()
        elif self.is_closed:
            raise errors.RuntimeClosedError("the runtime is closed")

    def learn_secret(self, folder: Path, store_id: str, mark: str) -> None:
        """Find the owner's secret: a process with another secret could not take over."""
        if mark and (self.secret is None or self.secret.mark != mark):
            self.secret = self.factory.find_secret(folder, store_id, mark)
        self.has_secret.set()

    def check_key(self, folder: Path, mark: str | None) -> None:
        """Check the owner's store against the encryption of this process."""
        if self.factory.encryption is not None:
            check_mark(self.factory.encryption, mark, str(folder))

    def acquire(
        self, place: ExitStack, lock: FolderLock, identity: tuple[int, int] | None = None
    ) -> FolderLock:
        """Own the folder until the stack is closed, and let other processes attach."""
        with ExitStack() as stack:
            stack.callback(self.owner_side.close)  # this runs last, after the lock is released
            owner = stack.enter_context(lock)
            if identity is not None and identity_of(owner.folder) != identity:
                raise errors.StoreError(
                    f"{owner.folder} is not the folder that this process was attached to; start again"
                )
            stack.enter_context(self.owner_side.listen(owner.folder))
            place.push(stack.pop_all())
        return owner

    def run(self, owner: FolderLock) -> AbstractAsyncContextManager[Runtime]:
        """Run the actors on the folder that this process owns, until the block ends."""
        return self.factory.run(owner, self.owner_side, self.bus, self.attached_side.callbacks)

    def _begin(self, runtime: Runtime) -> None:
        """Take over: from now on this process answers its own pending requests."""
        self.runtime = runtime
        self.sink = kernel = runtime.parts()[0]
        self.owner_side.answer_own(self.attached_side.relay, self.attached_side.hand_over(kernel))
        if self.attached_side.attachments:
            self.attached_side.renew_subscriptions()
        self.has_secret.set()
        self.became_owner.set()


def identity_of(folder: Path) -> tuple[int, int]:
    """Return the identity of a folder, which a rename keeps."""
    status = folder.stat()
    return status.st_dev, status.st_ino


@asynccontextmanager
async def lock_or_attach(process: SharedProcess, path: Path, may: May = "create") -> AsyncIterator[None]:
    """Own the folder, or attach to its owner, while the block runs; see `open_shared_runtime`."""
    if may == "attach":
        folder = prepare_folder(path, create=False)
        owned = ownership_error(folder)
        if owned is None:
            raise errors.StoreIdleError(
                f"no process has {folder} open, and this one may only attach to one that has"
            )
        refused = owned
    else:
        with ExitStack() as place:
            try:
                owner = process.acquire(place, FolderLock(path, create=may == "create"))
            except errors.StoreOwnedError as error:
                refused = error
            else:
                if may == "own":
                    owner.store_file()
                async with process.run(owner):
                    yield
                return
    async with LockOrAttach(process, refused, may_own=may != "attach").run():
        yield


class LockOrAttach:
    """Keep a process attached until it owns the folder, then run it as the owner.

    When an owner ends, a process without ``may_own`` waits for another owner.
    """

    def __init__(
        self, process: SharedProcess, refused: errors.StoreOwnedError, *, may_own: bool = True
    ) -> None:
        self._process = process
        self._attached_side = process.attached_side
        self._refused = refused
        self._folder = refused.folder
        self._identity = identity_of(refused.folder)
        self._stop = trio.CancelScope()
        self._failure: errors.GreenroomError | None = None
        self._answered = trio.Event()
        self._connected = False
        self._waits = not may_own
        self._may_own = may_own
        self._lost_at = trio.current_time()
        self._leaving = trio.Event()
        self._ended = trio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Run while the block runs, then answer pending requests; errors are not grouped."""
        error: BaseException | None = None
        try:
            with self._stop:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._attach_then_own)
                    try:
                        await self._wait_for_owner()
                        yield
                    except BaseException as raised:  # noqa: BLE001  re-raised below, outside the nursery
                        error = raised
                    if not isinstance(error, trio.Cancelled):
                        try:
                            await self._leave()
                        except trio.Cancelled as cancelled:  # the block's own error, if any, has precedence
                            error = error or cancelled
                    nursery.cancel_scope.shield = True  # as in Runtime
                    nursery.cancel_scope.cancel()
        finally:
            self._process.is_closed = True
            if self._process.runtime is None:
                self._attached_side.close()
        if self._failure is not None:
            raise self._failure from error
        if error is not None:
            raise error

    async def _wait_for_owner(self) -> None:
        with trio.move_on_after(START_SECONDS):
            await self._answered.wait()
        if not self._connected and not self._answered.is_set():
            holder = f"process {self._refused.pid}" if self._refused.pid else "another process"
            raise errors.StoreOwnedError(
                self._folder,
                self._refused.pid,
                f"{self._folder} is in use by {holder}, which lets no other attach: a backup, check or "
                "restore of a stopped store, or an older greenroom; wait until it has ended, or choose "
                "another folder with --data",
            ) from self._refused

    async def _leave(self) -> None:
        with trio.move_on_after(self._process.factory.options.drain_seconds):
            await self._attached_side.drain()
            await self._attached_side.aclose()
        if self._process.runtime is not None:
            self._leaving.set()
            await self._ended.wait()

    async def _attach_then_own(self) -> None:
        try:
            with ExitStack() as place:
                async with self._process.run(await self._stay_attached(place)):
                    self._answered.set()
                    await self._leaving.wait()
        except errors.GreenroomError as error:
            self._failure = error
            self._stop.cancel()
        finally:
            self._ended.set()

    async def _stay_attached(self, place: ExitStack) -> FolderLock:
        """Relay until this process holds the lock."""
        failure: errors.GreenroomError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._process.bus.run)
            nursery.start_soon(self._beat)
            try:
                owner = await self._acquire_lock(place)
            except errors.GreenroomError as error:  # raised below, outside of the nursery's group
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return owner

    async def _beat(self) -> None:
        while True:
            await trio.sleep(BEAT_SECONDS)
            self._attached_side.beat()

    async def _acquire_lock(self, place: ExitStack) -> FolderLock:
        while True:
            if self._may_own:
                owner = self._try_to_own(place)
                if owner is not None:
                    return owner
            elif not self._waits and trio.current_time() - self._lost_at > START_SECONDS:
                raise errors.StoreTooNewError(
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
                self._process.check_key(self._folder, welcome.key_mark)
                self._process.learn_secret(self._folder, welcome.store_id, welcome.secret_mark)
                self._answered.set()
                await self._attached_side.serve(wire, welcome)
            except* (PeerError, trio.ClosedResourceError):
                pass
            finally:
                wire.close()
            self._lost_at = trio.current_time()

    def _try_to_own(self, place: ExitStack) -> FolderLock | None:
        try:
            return self._process.acquire(place, FolderLock(self._folder, create=False), self._identity)
        except errors.StoreOwnedError:
            return None
        except errors.StoreError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _SCARCE:
                return None
            raise

    def _connect(self) -> FramedConnection[frames.FromOwner] | None:
        try:
            connection = _connect_socket(socket_path(self._folder, SOCKET_NAME))
        except OSError as error:
            if error.errno in _NO_OWNER:
                return None
            raise folder_error(error, f"the socket in {self._folder} cannot be reached") from error
        if not peer_is_ours(connection):
            connection.close()
            raise errors.StoreError(f"the socket in {self._folder} belongs to another user's process")
        self._connected = True
        return FramedConnection(connection, frames.decode_from_owner)

    async def _greet(self, wire: FramedConnection[frames.FromOwner]) -> frames.Welcome:
        wire.send(self._attached_side.hello())
        wire.flush()
        word, *rest = await wire.receive()
        if isinstance(word, frames.Reject):
            raise errors.StoreOwnedError(self._folder, self._refused.pid, word.sentence)
        if not isinstance(word, frames.Welcome):
            raise PeerError("the owner did not greet back")
        self._attached_side.receive(rest)
        return word


def _connect_socket(place: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(place))
    except BaseException:
        connection.close()
        raise
    return connection
