"""The server of the control socket: backup, verify, stats and readmit of a running store, and its hooks.

Invariants:

* Only the holder of the folder's lock is here, so whatever lies at the socket's place
  when it comes is a dead process's and is removed.
* A request runs only as long as its caller's end stays open.
* A caller can cost the owner one of `CONNECTIONS` places for `LINE_SECONDS`, and one
  line of memory; nothing it sends can end more than its own connection.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec
import trio

from greenroom.actors import AnswerHook, VerifyMemories
from greenroom.actors.core.audit.actor import tell
from greenroom.actors.core.audit.record import LONGEST
from greenroom.actors.sessions.requests.hook_events import HookAnswer
from greenroom.runtime import Address, GreenroomError, RuntimeClient
from greenroom.runtime.base.unix_socket import listening, peer_is_ours
from greenroom.transports.base import exit_codes
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.ops.control.client import (
    REQUEST_LIMIT,
    SOCKET_NAME,
    Backup,
    Code,
    Done,
    Drain,
    Failed,
    Hook,
    Link,
    Readmit,
    Request,
    Stats,
    Verify,
    as_json,
    merge_verify_results,
)

CONNECTIONS: Final = 16  # callers at the same time; further ones wait to be let in
LINE_SECONDS: Final = 5.0  # for a caller to say its line, and again to take its answer
CATCH_UP_SECONDS: Final = 0.5  # for the start of a session to wait for what the one before told
NO_LINK: Final = (
    "the process that owns the folder serves no browser, or does not know at which URL: start it with "
    "`greenroom serve --http 127.0.0.1:8080`, and behind a proxy with --base-url"
)
NO_TERMINAL: Final = "the link of this terminal is not known here any more; run `greenroom console` again"
_RETRY_SECONDS: Final = 0.1  # when the process is out of descriptors

_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
logger = logging.getLogger(__name__)

CarryOut = Callable[[Request], Awaitable[bytes]]
CodeMaker = Callable[[str], str | None]
"""Returns a new code for the browser that came by a terminal's link; None where it is not known."""


class Linker(Protocol):
    """Makes links by which a browser logs in as the folder's owner."""

    def __call__(self, *, read_only: bool, terminal: str | None = None) -> str | None:
        """Return the URL of a new link; None where no browser reaches this process.

        Args:
            read_only: Whether who comes by it changes nothing.
            terminal: What the terminal names itself by that asks for codes.
        """


class LinkFiler(Protocol):
    """Writes files that lead to links."""

    def write(self, url: str) -> Path | None:
        """Return a new file that leads to a link; None where there can be none."""


class Drainer(Protocol):
    """Takes what hooks left in the folder's spool."""

    def poke(self) -> None:
        """Say that something may wait in the spool, and return at once."""

    async def caught_up(self) -> None:
        """Wait until nothing waits, or what does cannot be taken now."""


async def serve_control(
    folder: Path,
    observed: ObservedServer,
    drain: Drainer | None = None,
    link: Linker | None = None,
    files: LinkFiler | None = None,
    new_code: CodeMaker | None = None,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer at the folder's control socket until it is cancelled.

    Args:
        folder: The folder of the store.
        observed: The server.
        drain: Takes what waits in the spool; None where nobody does.
        link: Makes links for browsers; None where nobody does.
        files: Writes files that lead to them.
        new_code: Makes codes for browsers, likewise.
        task_status: Told when it listens.

    Without a socket the server does its main job all the same, so a socket that cannot be
    bound is a logged warning and not an error. The caller holds the folder's lock.
    """
    with contextlib.ExitStack() as stack:
        try:
            listener = trio.socket.from_stdlib_socket(
                stack.enter_context(listening(folder, SOCKET_NAME, CONNECTIONS))
            )
        except OSError as error:
            logger.warning(
                "no control socket, so backup, verify and stats need this process to stop: %s", error
            )
            task_status.started()
            return
        task_status.started()
        places = trio.Semaphore(CONNECTIONS)
        carry_out = partial(perform, observed, drain=drain, link=link, files=files, new_code=new_code)
        async with trio.open_nursery() as nursery:
            while True:
                await places.acquire()
                nursery.start_soon(_attend, await _accept(listener), carry_out, places)


async def perform(
    observed: ObservedServer,
    request: Request,
    drain: Drainer | None = None,
    link: Linker | None = None,
    files: LinkFiler | None = None,
    new_code: CodeMaker | None = None,
) -> bytes:
    """Carry a request out on a server and return the result as JSON; for the rest see `serve_control`."""
    result: object
    runtime = observed.runtime
    match request:
        case Backup():
            destination = Path(request.destination)
            if not destination.is_absolute():
                raise GreenroomError(f"the destination {request.destination!r} is not an absolute path")
            result = await runtime.backup(destination)
            tell(runtime, "backup_store", to=request.destination[:LONGEST], bytes=result.file_bytes)
        case Verify():
            tell(runtime, "verify_store", rebuild=request.rebuild)
            result = merge_verify_results(
                await runtime.verify(), await runtime.query(VerifyMemories(rebuild=request.rebuild))
            )
        case Stats():
            result = await observed.figures(often=request.often)
        case Readmit():
            result = {"readmitted": runtime.readmit(Address(request.kind, request.key))}
            tell(runtime, "readmit_actor", target=f"{request.kind}/{request.key}"[:LONGEST])
        case Drain():
            if drain is not None:
                drain.poke()
            result = {"draining": True}
        case Hook():
            result = await _answer_hook(runtime, request, drain)
        case Link() | Code():
            result = _for_browser(request, link, files, new_code)
    return as_json(result)


def _for_browser(
    request: Link | Code, link: Linker | None, files: LinkFiler | None, new_code: CodeMaker | None
) -> dict[str, str | None]:
    if isinstance(request, Code):
        code = None if new_code is None else new_code(request.terminal)
        if code is None:
            raise GreenroomError(NO_TERMINAL)
        return {"code": code}
    url = None if link is None else link(read_only=request.read_only, terminal=request.terminal)
    if url is None:
        raise GreenroomError(NO_LINK)
    file = files.write(url) if files is not None and request.as_file else None
    return {"url": url, "file": None if file is None else str(file)}


async def _answer_hook(runtime: RuntimeClient, request: Hook, drain: Drainer | None) -> HookAnswer:
    """Answer a hook; a session's start once what the session before told is taken, if that is not long."""
    if drain is not None and request.event.name == "session-start":
        with trio.move_on_after(CATCH_UP_SECONDS):
            await drain.caught_up()
    return await runtime.query(AnswerHook(event=request.event), principal=request.principal)


async def _attend(connection: trio.socket.SocketType, carry_out: CarryOut, places: trio.Semaphore) -> None:
    try:
        # An OSError here is a caller that went away, which is the caller's affair.
        with connection, contextlib.suppress(OSError):
            if peer_is_ours(connection):
                await _converse(connection, carry_out)
    finally:
        places.release()


async def _converse(connection: trio.socket.SocketType, carry_out: CarryOut) -> None:
    line = b""
    with trio.move_on_after(LINE_SECONDS):
        line = await _receive_line(connection)
    if not line:
        return
    answer: Done | Failed | None
    try:
        request = msgspec.json.decode(line, type=Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        answer = Failed(sentence=f"the request cannot be understood: {error}")
    else:
        answer = await _answer_while_awaited(connection, carry_out, request)
    if answer is not None:
        with trio.move_on_after(LINE_SECONDS):
            await _send_all(connection, msgspec.json.encode(answer) + b"\n")


async def _answer_while_awaited(
    connection: trio.socket.SocketType, carry_out: CarryOut, request: Request
) -> Done | Failed | None:
    """Carry the request out unless its caller goes away meanwhile; then there is no answer."""
    answer: Done | Failed | None = None
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            with contextlib.suppress(OSError):
                await connection.recv(1)
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        answer = await _answer(carry_out, request)
        nursery.cancel_scope.cancel()
    return answer


async def _answer(carry_out: CarryOut, request: Request) -> Done | Failed:
    try:
        return Done(result=msgspec.Raw(await carry_out(request)))
    except Exception as error:
        verdict = exit_code_for([error])
        if verdict is None:
            logger.exception("the control request %s failed", type(request).__name__)
            verdict = exit_codes.INTERNAL, "the server failed to carry the request out; its log says why"
        return Failed(code=verdict[0], sentence=verdict[1])


async def _receive_line(connection: trio.socket.SocketType) -> bytes:
    """Return a line, or as much as the limit allows; nothing when the caller ended before that."""
    received = bytearray()
    while b"\n" not in received and len(received) <= REQUEST_LIMIT:
        part = await connection.recv(REQUEST_LIMIT)
        if not part:
            return b""
        received += part
    return bytes(received)


async def _send_all(connection: trio.socket.SocketType, data: bytes) -> None:
    with memoryview(data) as rest:
        sent = 0
        while sent < len(rest):
            sent += await connection.send(rest[sent:])


async def _accept(listener: trio.socket.SocketType) -> trio.socket.SocketType:
    while True:
        try:
            connection, _name = await listener.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTORS:
                logger.warning("the control socket cannot take a caller: %s", error)
                await trio.sleep(_RETRY_SECONDS)
            elif error.errno != errno.ECONNABORTED:  # the caller went away before it was taken
                raise
        else:
            return connection
