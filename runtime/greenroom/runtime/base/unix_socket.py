"""A folder's Unix sockets: their paths, binding, and the check of peers.

Only the holder of the folder's lock binds. So a file at the socket's path belongs to a dead process and is
removed. If the folder's path is too long for a socket, the folder gets a link to a short path.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from weakref import WeakSet

from greenroom.runtime.base.system import is_macos

TYPE_CHECKING = False  # see `lazy`: each hook imports this
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Final

    import trio

PATH_LIMIT: Final = 103  # bytes of a socket's path: macOS ends at 104 with the NUL, Linux at 108
_inherited: Final[WeakSet[socket.socket]] = WeakSet()

# Linux: SO_PEERCRED of <sys/socket.h>, and struct ucred: process, user, group.
_SO_PEERCRED: Final = getattr(socket, "SO_PEERCRED", 17)
_UCRED: Final = struct.Struct("=iII")

# macOS: LOCAL_PEERCRED of <sys/un.h>, at the level SOL_LOCAL, and struct xucred of <sys/ucred.h>: version of
# the layout, effective user, number of groups, groups.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED: Final = struct.Struct("=IIh2x16I")
_XUCRED_VERSION: Final = 0


def socket_path(folder: Path, name: str) -> Path:
    """Return the path of the socket of this name.

    The entry in the folder is the socket itself, or a link to it if the folder's path is too long.
    """
    entry = folder / name
    with contextlib.suppress(OSError):
        return folder / entry.readlink()
    return entry


@contextlib.contextmanager
def bind_socket(folder: Path, name: str, backlog: int) -> Iterator[socket.socket]:
    """Bind a socket that only this user can reach; remove it at the end.

    The caller holds the folder's lock. If another file has replaced the socket, it is not removed.
    """
    entry = folder / name
    place = entry if len(os.fsencode(entry)) <= PATH_LIMIT else _short_place(folder, name)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        close_in_children(listener)
        place.unlink(missing_ok=True)
        listener.bind(str(place))
        stack.callback(_remove_own, place, _identity(place))
        # Before `listen` no client can connect, so there is no moment with wider permissions.
        place.chmod(0o600)
        if place != entry:
            entry.unlink(missing_ok=True)
            entry.symlink_to(place)
            stack.callback(_remove_own, entry, _identity(entry))
        listener.listen(backlog)
        listener.setblocking(False)
        yield listener


def peer_is_ours(connection: socket.socket | trio.socket.SocketType) -> bool:
    """Return whether the other end belongs to this user, or to the superuser.

    The folder's permissions ensure that already, unless they were changed or the socket lies outside the
    folder.
    """
    return peer_user(connection) in {0, os.geteuid()}


def peer_user(connection: socket.socket | trio.socket.SocketType) -> int | None:
    """Return the user id of the other end; None if the kernel's layout is unknown."""
    if not is_macos():
        _process, user, _group = _UCRED.unpack(
            connection.getsockopt(socket.SOL_SOCKET, _SO_PEERCRED, _UCRED.size)
        )
        return int(user)
    reply = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size)
    if len(reply) != _XUCRED.size:
        return None
    version, user, *_groups = _XUCRED.unpack(reply)
    return int(user) if version == _XUCRED_VERSION else None


def _identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


def _remove_own(path: Path, identity: tuple[int, int]) -> None:
    with contextlib.suppress(OSError):
        if _identity(path) == identity:
            path.unlink()


def _short_place(folder: Path, name: str) -> Path:
    """Return a short path for the socket, in a folder private to this user."""
    import hashlib  # noqa: PLC0415 - hooks do without, as below
    import tempfile  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    short = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16] + "-" + name
    refused = "no place is short enough"
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"):  # noqa: S108 - see _make_private
        home = Path(base) / f"greenroom-{os.geteuid()}"
        if home.is_absolute() and len(os.fsencode(home / short)) <= PATH_LIMIT:
            try:
                _make_private(home)
            except OSError as error:
                refused = str(error)
            else:
                return home / short
    raise OSError(f"the path of {folder} is too long for a socket, and {refused}")


def _make_private(home: Path) -> None:
    """Create the folder, or check that it is this user's: anyone may write to /tmp."""
    with contextlib.suppress(FileExistsError):
        home.mkdir(mode=0o700)
    status = home.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(f"{home} is not a folder that only this user can enter")


def close_in_children(connection: socket.socket) -> None:
    """Make processes forked from now on close this socket; it stays open here.

    Otherwise the peers would not notice when this process ends.
    """
    _inherited.add(connection)


def _close_inherited() -> None:
    for connection in list(_inherited):
        connection.close()


os.register_at_fork(after_in_child=_close_inherited)
