"""The server of the control socket: commands on the open store, and replies to hooks.

Invariants:

* Only the holder of the folder's lock runs this server, so an existing socket file belongs to a dead process
  and is removed.
* A request runs only while its caller keeps its end open.
* A caller that waits gets a blank each second, as a sign that the owner is alive.
* A caller can take only one of `CONNECTIONS` places for `LINE_SECONDS`, and the memory of one line. With
  anything that it sends, it can end only its own connection.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import trio

from greenroom.actors import VerifyMemories
from greenroom.actors.core.audit.actor import record_action
from greenroom.actors.core.audit.record import LONGEST
from greenroom.runtime import Address, GreenroomError
from greenroom.runtime.base.unix_socket import bind_socket, peer_is_ours
from greenroom.transports.base import exit_codes
from greenroom.transports.base.exit_codes import exit_code_for
from greenroom.transports.base.observability.snapshot import ObservedServer
from greenroom.transports.clients.hooks.drain import Drain as SpoolDrain
from greenroom.transports.ops.control.client import (
    Backup,
    Code,
    Done,
    Drain,
    Failed,
    Hook,
    Link,
    Readmit,
    Request,
    RunHook,
    Stats,
    Verify,
    as_json,
    merge_verify_results,
)
from greenroom.transports.ops.control.exchange import REQUEST_LIMIT, SOCKET_NAME
from greenroom.transports.ops.control.hook_runs import serve_hooks

if TYPE_CHECKING:
    from greenroom.transports.web.rest.link_files import LinkFiles

CONNECTIONS: Final = 16  # the most simultaneous callers; others wait
LINE_SECONDS: Final = 5.0  # time for a caller to send its line, and again to read the reply
NO_LINK: Final = (
    "the process that owns the folder serves no browser, or does not know at which URL: start it with "
    "`greenroom serve --http 127.0.0.1:8080`, and behind a proxy with --base-url"
)
NO_TERMINAL: Final = "the link of this terminal is not known here any more; run `greenroom console` again"
SIGN_SECONDS: Final = 1.0  # time between two signs to a caller that waits
_RETRY_SECONDS: Final = 0.1  # time until the next try when the process has no free descriptors

_NO_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
logger = logging.getLogger(__name__)

CarryOut = Callable[[Request], Awaitable[bytes]]
CodeMaker = Callable[[str], str | None]
"""Returns a new code for the browser of a terminal's link; None if the terminal is unknown."""


class Linker(Protocol):
    """Makes links that log a browser in as the folder's owner."""

    def __call__(self, *, read_only: bool, terminal: str | None = None) -> str | None:
        """Return the URL of a new link; None if browsers cannot reach this process."""


class Served(NamedTuple):
    """What the owner of a folder offers to callers of its control socket."""

    observed: ObservedServer
    drain: SpoolDrain | None = None  # stores the events in the spool; None without hooks
    link: Linker | None = None  # makes links for browsers; None without browsers
    files: LinkFiles | None = None  # writes files that redirect to the links
    new_code: CodeMaker | None = None


async def serve_control(
    folder: Path, served: Served, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve the folder's control socket until cancelled; the caller holds the folder's lock.

    The server's main task does not need the socket, so a failure to bind it is only logged, as a warning.
    """
    with contextlib.ExitStack() as stack:
        try:
            listener = trio.socket.from_stdlib_socket(
                stack.enter_context(bind_socket(folder, SOCKET_NAME, CONNECTIONS))
            )
        except OSError as error:
            logger.warning(
                "no control socket, so backup, verify and stats need this process to stop: %s", error
            )
            task_status.started()
            return
        task_status.started()
        places = trio.Semaphore(CONNECTIONS)
        carry_out = partial(perform, served)
        async with trio.open_nursery() as nursery:
            while True:
                await places.acquire()
                nursery.start_soon(_attend, await _accept(listener), carry_out, places)


async def perform(served: Served, request: Request) -> bytes:
    """Carry out a request and return the result as JSON."""
    result: object
    observed, drain = served.observed, served.drain
    runtime = observed.runtime
    match request:
        case Backup():
            destination = Path(request.destination)
            if not destination.is_absolute():
                raise GreenroomError(f"the destination {request.destination!r} is not an absolute path")
            result = await runtime.backup(destination)
            record_action(runtime, "backup_store", to=request.destination[:LONGEST], bytes=result.file_bytes)
        case Verify():
            record_action(runtime, "verify_store", rebuild=request.rebuild)
            result = merge_verify_results(
                await runtime.verify(), await runtime.query(VerifyMemories(rebuild=request.rebuild))
            )
        case Stats():
            result = await observed.figures(often=request.often)
        case Readmit():
            result = {"readmitted": runtime.readmit(Address(request.kind, request.key))}
            record_action(runtime, "readmit_actor", target=f"{request.kind}/{request.key}"[:LONGEST])
        case Drain() | Hook() | RunHook():
            result = await serve_hooks(runtime, request, drain)
        case Link() | Code():
            result = _for_browser(request, served)
    return as_json(result)


def _for_browser(request: Link | Code, served: Served) -> dict[str, str | None]:
    if isinstance(request, Code):
        code = None if served.new_code is None else served.new_code(request.terminal)
        if code is None:
            raise GreenroomError(NO_TERMINAL)
        return {"code": code}
    link = served.link
    url = None if link is None else link(read_only=request.read_only, terminal=request.terminal)
    if url is None:
        raise GreenroomError(NO_LINK)
    file = served.files.write(url) if served.files is not None and request.as_file else None
    return {"url": url, "file": None if file is None else str(file)}


async def _attend(connection: trio.socket.SocketType, carry_out: CarryOut, places: trio.Semaphore) -> None:
    try:
        # An OSError here means that the caller ended.
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
    """Carry out a request; if the caller ends, cancel the request and return None."""
    answer: Done | Failed | None = None
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            with contextlib.suppress(OSError):
                await connection.recv(1)
            nursery.cancel_scope.cancel()

        async def tell() -> None:
            with contextlib.suppress(OSError):
                while True:
                    await trio.sleep(SIGN_SECONDS)
                    await connection.send(b" ")

        nursery.start_soon(watch)
        nursery.start_soon(tell)
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
    """Receive a line, or as much as the limit allows; empty if the caller left."""
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
            elif error.errno != errno.ECONNABORTED:  # the caller left before it was accepted
                raise
        else:
            return connection
