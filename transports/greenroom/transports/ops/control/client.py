"""The control socket of a running store: its path, its protocol, and the client.

Each connection carries one request and one reply, each as one line of JSON. The caller keeps its end open
until the reply: if it closes its end or sends more, the request is cancelled. While the owner works, it sends
a blank each second before the line. The socket is only for the folder's own user, and not part of MCP. Both
ends are the same program, so the lines have no version.

`exchange` has the caller's side of the socket.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.requests.hook_events import HookEvent, HookName
from greenroom.runtime.base import unix_socket
from greenroom.transports.base import exit_codes
from greenroom.transports.ops.control.exchange import SOCKET_NAME, exchange
from greenroom.transports.ops.control.exchange import ControlSocketError as ControlSocketError
from greenroom.transports.ops.control.exchange import NoOwnerError as NoOwnerError


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


class RunHook(_Line, frozen=True, kw_only=True, tag="run_hook"):
    """Carry out a run of a hook in the name of `principal`.

    The result is the object for the client. `given` is the object from the client. What else the run depends
    on comes from the caller's process: the id of its event, its folder, its parent's number and the
    environment variables that locate transcripts, with the switch of the person.
    """

    principal: Principal
    name: HookName
    client: str
    given: dict[str, Any]
    event_id: Annotated[str, Meta(pattern="^[0-9a-f]{32}(?!\\n)$")]
    folder: str
    parent: int
    environment: dict[str, str]


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


Request = Backup | Verify | Stats | Readmit | Drain | Hook | RunHook | Link | Code


class Done(_Line, frozen=True, kw_only=True, tag="done"):
    """The request was carried out; `result` is JSON, whose shape depends on the request."""

    result: msgspec.Raw


class Failed(_Line, frozen=True, kw_only=True, tag="failed"):
    """The request failed: the reason, and the exit code `code` for it."""

    sentence: str
    code: int = exit_codes.FAILED


def socket_path(folder: Path) -> Path:
    """Return the path of a folder's control socket.

    The entry in the folder is the socket, or a link to it if the folder's path is too long for sockets.
    """
    return unix_socket.socket_path(folder, SOCKET_NAME)


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
    answer = exchange(folder, line, patience)
    try:
        reply = msgspec.json.decode(answer, type=Done | Failed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ControlSocketError(
            f"the process that owns {folder} gave no answer that can be understood"
        ) from None
    if isinstance(reply, Failed):
        raise ControlSocketError(reply.sentence, reply.code)
    return bytes(reply.result)


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
