"""Sockets that a forked child closes at once: otherwise its parent's peers do not see the parent end."""

from __future__ import annotations

import os
import socket
from typing import Final
from weakref import WeakSet

_sockets: Final[WeakSet[socket.socket]] = WeakSet()


def close_in_children(connection: socket.socket) -> None:
    """Have processes that are forked from now on close this socket; it stays open here."""
    _sockets.add(connection)


def _close_all() -> None:
    for connection in list(_sockets):
        connection.close()


os.register_at_fork(after_in_child=_close_all)
