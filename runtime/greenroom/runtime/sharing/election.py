"""Staying on a folder whatever becomes of its owner: attached as long as there is one, then owning it."""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal

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
from greenroom.runtime.lmdb.lock_file import Owner, refused_to_own
from greenroom.runtime.sharing import frames
from greenroom.runtime.sharing.framed_connection import Wire, WireError
from greenroom.runtime.sharing.leader import BEAT_SECONDS, SOCKET_NAME
from greenroom.runtime.sharing.role import identity_of

if TYPE_CHECKING:
    from pathlib import Path

    from greenroom.runtime.sharing.role import Membership

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
async def joined(membership: Membership, path: Path, may: May = "create") -> AsyncIterator[None]:
    """Own the folder, or attach to its owner, while the block runs; see `open_shared_runtime`."""
    if may == "attach":
        refused = _attachable(path)
    else:
        with ExitStack() as place:
            try:
                owner = membership.take(place, Owner(path, create=may == "create"))
            except StoreOwnedError as error:
                refused = error
            else:
                if may == "own" and not (owner.folder / DATA_FILE).exists():
                    raise StoreError(f"there is no store in {owner.folder}")
                async with membership.run(owner):
                    yield
                return
    async with Keeper(membership, refused, may_own=may != "attach").keeping():
        yield


def _attachable(path: Path) -> StoreOwnedError:
    folder = prepare_folder(path, create=False)
    refused = refused_to_own(folder)
    if refused is None:
        raise StoreIdleError(f"no process has {folder} open, and this one may only attach to one that has")
    return refused


class Keeper:
    """Keeps a process attached until it owns the folder itself; then that until it leaves.

    Args:
        membership: The process's.
        refused: Why the process could not own the folder at first.
        may_own: Whether it takes over when the owner ends, and does not wait for another one.
    """

    def __init__(self, membership: Membership, refused: StoreOwnedError, *, may_own: bool = True) -> None:
        self._membership = membership
        self._guest = membership.guest
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
            self._membership.is_closed = True
            if self._membership.runtime is None:
                self._guest.close()
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
        with trio.move_on_after(self._membership.recipe.options.drain_seconds):
            await self._guest.emptied()
            await self._guest.wound_up()
        if self._membership.runtime is not None:
            self._leaving.set()
            await self._ended.wait()

    async def _run(self) -> None:
        try:
            with ExitStack() as place:
                async with self._membership.run(await self._attached(place)):
                    self._answered.set()
                    await self._leaving.wait()
        except GreenroomError as error:
            self._failure = error
            self._stop.cancel()
        finally:
            self._ended.set()

    async def _attached(self, place: ExitStack) -> Owner:
        """Relay until this process holds the lock."""
        failure: GreenroomError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._membership.bus.run)
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
            self._guest.beat()

    async def _until_owner(self, place: ExitStack) -> Owner:
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
                self._membership.learn_secret(self._folder, welcome.store_id, welcome.secret_mark)
                self._answered.set()
                await self._guest.serve(wire, welcome)
            except* (WireError, trio.ClosedResourceError):
                pass
            finally:
                wire.close()
            self._lost_at = trio.current_time()

    def _try_to_own(self, place: ExitStack) -> Owner | None:
        try:
            return self._membership.take(place, Owner(self._folder, create=False), self._identity)
        except StoreOwnedError:
            return None
        except StoreError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _SCARCE:
                return None
            raise

    def _connect(self) -> Wire[frames.FromHost] | None:
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


def _connected(place: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(place))
    except BaseException:
        connection.close()
        raise
    return connection
