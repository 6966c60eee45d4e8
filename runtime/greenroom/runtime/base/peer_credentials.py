"""The user at the other end of a Unix socket, from the kernel."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Final

from greenroom.runtime.base.system import is_macos

if TYPE_CHECKING:
    import trio

# Linux: SO_PEERCRED of <sys/socket.h>, and struct ucred: process, user, group.
_SO_PEERCRED: Final = getattr(socket, "SO_PEERCRED", 17)
_UCRED: Final = struct.Struct("=iII")

# macOS: LOCAL_PEERCRED of <sys/un.h>, at the level SOL_LOCAL, and struct xucred of <sys/ucred.h>: version of
# the layout, effective user, how many groups, groups.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED: Final = struct.Struct("=IIh2x16I")
_XUCRED_VERSION: Final = 0


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
