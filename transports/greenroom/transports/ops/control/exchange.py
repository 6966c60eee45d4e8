"""A request to the control socket and its reply, as lines.

The caller is plain blocking code without trio, because the import of an event loop would take most of the
time of a short command. Each hook imports this module, so it imports next to nothing.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

TYPE_CHECKING = False  # see `greenroom.runtime.base.lazy`
if TYPE_CHECKING:
    import socket
    from pathlib import Path
    from typing import Final

SOCKET_NAME: Final = "control.sock"
REQUEST_LIMIT: Final = 256 << 10
"""The most bytes of a request; a hook's prompt has up to 20,000 characters of up to 6 bytes each."""
ANSWER_LIMIT: Final = 4 << 20


class ControlSocketError(Exception):
    """The owner did not carry out the request, or its reply is invalid."""

    def __init__(self, sentence: str, code: int = 1) -> None:  # FAILED of `exit_codes`, which imports much
        super().__init__(sentence)
        self.code = code


class SilentOwnerError(ControlSocketError):
    """The owner did not answer in time."""


class NoOwnerError(Exception):
    """No process listens at the folder's control socket: the store is stopped, or just starting."""


def exchange(folder: Path | str, line: bytes, patience: float | None) -> bytes:
    """Send a line to the owner of a folder, and return its reply.

    Args:
        folder: The folder of the store.
        line: The request, with the end of its line.
        patience: Seconds to wait for the next sign of the owner; with None there is no limit.

    Raises:
        NoOwnerError: No process listens at the socket.
        ControlSocketError: The owner ended, or belongs to another user.
    """
    if len(line) > REQUEST_LIMIT:
        raise ControlSocketError(f"the request is {len(line):,} bytes; at most {REQUEST_LIMIT:,} are allowed")
    path = _locate(os.fspath(folder))
    import socket  # noqa: PLC0415 - takes long, and without an owner there is nothing to connect to

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience)
        _connect(connection, path)
        try:
            connection.sendall(line)
            return _receive_line(connection)
        except TimeoutError:
            raise SilentOwnerError(f"{_owner_of(folder)} has not answered for {patience:g} s") from None
        except OSError as error:
            raise ControlSocketError(f"the process that owns {folder} went away: {error.strerror}") from None


def _locate(folder: str) -> str:
    """Return the path of the socket, which a link in the folder may name.

    An owner makes a link if the folder's path is too long for a socket.
    """
    path = f"{folder}/{SOCKET_NAME}"
    try:
        return os.path.join(folder, os.readlink(path))  # noqa: PTH115, PTH118 - `pathlib` takes long to import
    except FileNotFoundError:
        raise NoOwnerError from None
    except OSError:  # no link
        return path


def _connect(connection: socket.socket, path: str) -> None:
    from greenroom.runtime.base.unix_socket import PATH_LIMIT, peer_is_ours  # noqa: PLC0415 - as above

    if len(os.fsencode(path)) > PATH_LIMIT:
        raise NoOwnerError
    try:
        connection.connect(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK}:
            raise NoOwnerError from None
        raise ControlSocketError(f"{path} cannot be reached: {error.strerror or error}") from None
    if not peer_is_ours(connection):
        raise ControlSocketError(f"{path} belongs to another user's process; nothing was sent to it")


def _receive_line(connection: socket.socket) -> bytes:
    received = bytearray()
    while not received.endswith(b"\n"):
        if len(received) > ANSWER_LIMIT:
            raise ControlSocketError(f"the answer is larger than {ANSWER_LIMIT:,} bytes")
        part = connection.recv(1 << 16)
        if not part:
            raise ControlSocketError("the process that owns the folder ended before it answered")
        received += part
    return bytes(received)


def _owner_of(folder: Path | str) -> str:
    from pathlib import Path  # noqa: PLC0415 - only needed without an answer, as below

    from greenroom.runtime.lmdb.lock_state import lock_state  # noqa: PLC0415

    with suppress(OSError):
        state = lock_state(Path(folder))
        if state is not None and state.owner:
            return f"process {state.owner}, which owns {folder},"
    return f"the process that owns {folder}"
