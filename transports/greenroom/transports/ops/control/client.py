"""The control socket of a running store: its path, its protocol, and the client.

Each connection carries one request and one reply, each as one line of JSON. The caller keeps its end open
until the reply: if it closes its end or sends more, the request is cancelled. While the owner works, it sends
a blank each second before the line. The socket is only for the folder's own user, and not part of MCP. Both
ends are the same program, so the lines have no version.

The caller is plain blocking code without trio, because the import of an event loop would take most of the
time of a short command.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from pathlib import Path
from typing import Final

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.runtime.base.unix_socket import PATH_LIMIT, peer_is_ours
from greenroom.transports.base import exit_codes

SOCKET_NAME: Final = "control.sock"
REQUEST_LIMIT: Final = 256 << 10
"""The most bytes of a request; a hook's prompt has up to 20,000 characters of up to 6 bytes each."""
ANSWER_LIMIT: Final = 4 << 20


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="op"):
    """The base of all lines; the field ``op`` names the kind of the line."""


class Backup(_Line, frozen=True, kw_only=True, tag="backup"):
    """Copy the store while it is in use; `destination` is an absolute path."""

    destination: str


class Verify(_Line, frozen=True, kw_only=True, tag="verify"):
    """Check a copy of the store, and the indexes of memories; `rebuild` those that differ."""

    rebuild: bool = False


class Stats(_Line, frozen=True, kw_only=True, tag="stats"):
    """Return the runtime's statistics, and namespaces that look like a user's own.

    `often`: leave out these namespaces, since finding them reads every namespace.
    """

    often: bool = False


class Readmit(_Line, frozen=True, kw_only=True, tag="readmit"):
    """Readmit an actor that was quarantined."""

    kind: str
    key: str


class Drain(_Line, frozen=True, kw_only=True, tag="drain"):
    """Store the events in the spool; the reply comes before this is done."""


class Hook(_Line, frozen=True, kw_only=True, tag="hook"):
    """Answer a hook that waits, in the name of `principal`; the result is a `HookAnswer`."""

    principal: Principal
    event: HookEvent


class Link(_Line, frozen=True, kw_only=True, tag="link"):
    """Make a link that logs a browser in as the folder's owner; returns its `url`.

    `read_only`: the browser may not write. `as_file`: the result has the path of a `file` that redirects to
    the link, or null if there can be no file. `terminal`: the token of the terminal that will request codes;
    without a token the browser cannot confirm anything.
    """

    read_only: bool = False
    as_file: bool = False
    terminal: str | None = None


class Code(_Line, frozen=True, kw_only=True, tag="code"):
    """Make a code for the browser of a terminal's link; the result has the `code`."""

    terminal: str


Request = Backup | Verify | Stats | Readmit | Drain | Hook | Link | Code


class Done(_Line, frozen=True, kw_only=True, tag="done"):
    """The request was carried out; `result` is JSON, whose shape depends on the request."""

    result: msgspec.Raw


class Failed(_Line, frozen=True, kw_only=True, tag="failed"):
    """The request failed: the reason, and the exit code `code` for it."""

    sentence: str
    code: int = exit_codes.FAILED


class ControlSocketError(Exception):
    """The owner did not carry out the request, or its reply is invalid."""

    def __init__(self, sentence: str, code: int = exit_codes.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class NoOwnerError(Exception):
    """No process listens at the folder's control socket: the store is stopped, or just starting."""


def socket_path(folder: Path) -> Path:
    """Return the path of a folder's control socket.

    The entry in the folder is the socket, or a link to it if the folder's path is too long for sockets.
    """
    entry = folder / SOCKET_NAME
    with contextlib.suppress(OSError):
        return folder / entry.readlink()
    return entry


def call(folder: Path, request: Request, *, patience: float | None = None) -> bytes:
    """Send a request to the owner of a folder and return the result.

    Args:
        folder: The folder of the store.
        request: The request.
        patience: Seconds to wait for the next sign of the owner; with None there is no limit.

    Returns:
        The result as JSON.

    Raises:
        NoOwnerError: No process listens at the socket.
        ControlSocketError: The owner refused, failed, ended, or belongs to another user.
    """
    try:
        line = msgspec.json.encode(request) + b"\n"
    except UnicodeEncodeError:
        raise ControlSocketError(
            "a path that is no UTF-8 cannot be sent to the process that owns the folder"
        ) from None
    if len(line) > REQUEST_LIMIT:
        raise ControlSocketError(f"the request is {len(line):,} bytes; at most {REQUEST_LIMIT:,} are allowed")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience)
        _connect(connection, socket_path(folder))
        try:
            connection.sendall(line)
            answer = _receive_line(connection)
        except TimeoutError:
            raise ControlSocketError(f"{_owner_of(folder)} has not answered for {patience:g} s") from None
        except OSError as error:
            raise ControlSocketError(f"the process that owns {folder} went away: {error.strerror}") from None
    try:
        reply = msgspec.json.decode(answer, type=Done | Failed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ControlSocketError(
            f"the process that owns {folder} gave no answer that can be understood"
        ) from None
    if isinstance(reply, Failed):
        raise ControlSocketError(reply.sentence, reply.code)
    return bytes(reply.result)


def _owner_of(folder: Path) -> str:
    from greenroom.runtime.lmdb.lock_state import lock_state  # noqa: PLC0415 - only needed without an answer

    with contextlib.suppress(OSError):
        state = lock_state(folder)
        if state is not None and state.owner:
            return f"process {state.owner}, which owns {folder},"
    return f"the process that owns {folder}"


def as_json(result: object) -> bytes:
    """Encode a result of the runtime as JSON, with paths as texts."""

    def spell(value: object) -> str:
        if isinstance(value, os.PathLike):
            return os.fsencode(value).decode(errors="backslashreplace")
        raise TypeError(f"{type(value).__name__} is no part of a result")

    return msgspec.json.encode(result, enc_hook=spell)


def merge_verify_results(store: object, index: object) -> dict[str, object]:
    """Merge the two results of `greenroom verify`: of the store, and of the memories (``index``)."""
    found: dict[str, object] = msgspec.json.decode(as_json(store))
    return {**found, "index": index}


def _connect(connection: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) > PATH_LIMIT:  # too long for a socket: an owner makes a link to one
        raise NoOwnerError
    try:
        connection.connect(str(path))
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
