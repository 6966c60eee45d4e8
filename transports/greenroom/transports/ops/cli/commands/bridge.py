"""`greenroom bridge`: MCP on standard input and output, carried to the server of another machine.

`websocket_client` reconnects and resumes; here messages only pass. If a connection is refused later, every
open request is answered with the reason, and the bridge ends.
"""

from __future__ import annotations

import argparse
import os
import select
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
import trio
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.mcp.frames.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    FrameError,
    Oversized,
    error_line,
    parse_frame,
)
from greenroom.transports.mcp.frames.line_io import LineSource
from greenroom.transports.ops.cli.output import complain
from greenroom.transports.ops.cli.support.error_report import leaf_errors, start_logging
from greenroom.transports.ops.cli.support.remote_server import (
    Place,
    RemoteServer,
    RemoteServerError,
    connect,
    load,
    place_of,
)
from greenroom.transports.ops.cli.support.terminal import printable
from greenroom.transports.sockets.stdio.pipe import claim_stdio, duplicate
from greenroom.transports.sockets.stdio.server import refuse_stdio
from greenroom.transports.sockets.websocket.client import encode_message
from greenroom.transports.sockets.websocket.resume_state import LISTEN

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream

    Inbound = ReadStream[SessionMessage | Exception]
    Outbound = WriteStream[SessionMessage]

_REFUSAL_SECONDS: Final = 5.0
"""Seconds in which a client may send its first request, if it only gets a refusal."""
_AHEAD: Final = 64
"""So many messages are read while there is no connection; more only after the end of input."""
_LOOK_SECONDS: Final = 1.0
"""Seconds between two looks for the end of an input that is not read."""
_HUNG_UP: Final = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
_LEFT: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, trio.BrokenResourceError)


async def bridge(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Carry the messages of one client until its input ends; return the exit code."""
    settings = resolved.settings
    start_logging(settings.log_level)
    left: list[bytes] = []
    try:
        place = place_of(chosen.url)
        async with connect(place, _find_server(place, settings), settings) as (inbound, outbound):
            code = await _carry(inbound, outbound, settings, left)
        if code == exit_codes.OK or not left:
            return code
        sentence = f"the connection to {place.url} has ended, and this was not sent; start anew"
    except* RemoteServerError as group:
        sentence = str(leaf_errors(group)[0])
    if left:
        with claim_stdio() as pipe, suppress(OSError):
            os.write(pipe.output, b"".join(error_line(each, INVALID_REQUEST, sentence) for each in left))
    if not os.isatty(0):
        with trio.move_on_after(_REFUSAL_SECONDS):
            await refuse_stdio(sentence, limit=settings.max_frame)
    return complain("bridge", printable(sentence), exit_codes.FAILED)


def _find_server(place: Place, settings: Settings) -> RemoteServer:
    server = load(place, settings.secrets)
    if server is None:
        raise RemoteServerError(
            f"nothing is known of {place.url} here; `greenroom setup --url {place.url}` asks for its key"
        )
    return server


async def _carry(inbound: Inbound, outbound: Outbound, settings: Settings, left: list[bytes]) -> int:
    """Carry messages; at the end ``left`` has the ids of the requests without an answer."""
    with claim_stdio() as pipe:
        async with (
            trio.lowlevel.FdStream(duplicate(pipe.input)) as source,
            trio.lowlevel.FdStream(duplicate(pipe.output)) as sink,
        ):
            carrier = _Carrier(source, settings.max_frame, sink, inbound, outbound)
            try:
                return await carrier.run(settings.request_timeout)
            finally:
                left += carrier.unanswered()


class _Carrier:
    """The messages of one client, both ways."""

    def __init__(
        self,
        source: trio.lowlevel.FdStream,
        limit: int,
        sink: trio.abc.SendStream,
        inbound: Inbound,
        outbound: Outbound,
    ) -> None:
        self._source = LineSource(source, limit)
        self._end = select.poll()
        self._end.register(source.fileno(), _HUNG_UP)
        self._sink = sink
        self._inbound = inbound
        self._outbound = outbound
        self._writing = trio.Lock()
        self._open: set[RequestId] = set()
        self._answered = trio.lowlevel.ParkingLot()
        self._lines, self._queue = trio.open_memory_channel[bytes | Oversized](inf)

    async def run(self, patience: float) -> int:
        """Carry until all is answered after the input's end, or the connection is lost."""
        code = exit_codes.OK
        lines, queue = self._lines, self._queue
        async with trio.open_nursery() as nursery:

            async def in_and_end() -> None:
                nonlocal code
                code = await self._carry_in()
                nursery.cancel_scope.cancel()

            nursery.start_soon(in_and_end)
            nursery.start_soon(self._carry_out, queue)
            async with lines:
                while (received := await self._receive(queue)) is not None:
                    for line in received:
                        lines.send_nowait(line)
            with trio.move_on_after(patience):
                while self._open or queue.statistics().current_buffer_used:
                    await self._answered.park()
            nursery.cancel_scope.cancel()
        return code

    def unanswered(self) -> list[bytes]:
        """Return the ids of the requests that got no answer, as JSON."""
        return [*map(msgspec.json.encode, self._open), *_requests_in(self._queue)]

    async def _receive(
        self, queue: trio.MemoryReceiveChannel[bytes | Oversized]
    ) -> Iterable[bytes | Oversized] | None:
        """Return the next lines, once there is room for them.

        After the end of input there is: no more can come than a pipe holds.
        """
        while queue.statistics().current_buffer_used >= _AHEAD and not self._end.poll(0):
            with trio.move_on_after(_LOOK_SECONDS):
                await self._answered.park()
        return await self._source.receive()

    async def _carry_in(self) -> int:
        """Write the server's messages until there are no more; return the exit code."""
        try:
            async for received in self._inbound:
                if isinstance(received, Exception):  # it was logged
                    continue
                message = received.message
                await self._write(encode_message(message).encode() + b"\n")
                if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                    self._open.discard(message.id)
                    self._answered.unpark_all()
        except trio.BrokenResourceError:
            return exit_codes.OK  # the client has gone
        return exit_codes.FAILED

    async def _carry_out(self, queue: trio.MemoryReceiveChannel[bytes | Oversized]) -> None:
        async for line in queue:
            try:
                message = _parsed(line)
            except FrameError as error:
                await self._write(error_line(error.id, error.code, str(error)))
                continue
            except ValueError:  # what needs no answer, such as a notification with wrong parameters
                continue
            self._note(message)
            try:
                await self._outbound.send(SessionMessage(message))
            except _LEFT:
                return
            self._answered.unpark_all()

    def _note(self, message: JSONRPCMessage) -> None:
        """Record which requests get an answer.

        A cancelled one gets none, and a listen stream only at its end.
        """
        if isinstance(message, JSONRPCRequest) and message.method != LISTEN:
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            given_up = (message.params or {}).get("requestId")
            if isinstance(given_up, int | str):
                self._open.discard(given_up)

    async def _write(self, line: bytes) -> None:
        async with self._writing:
            await self._sink.send_all(line)


def _requests_in(queue: trio.MemoryReceiveChannel[bytes | Oversized]) -> Iterator[bytes]:
    """Yield the ids of the requests that still wait."""
    with suppress(trio.WouldBlock, trio.EndOfChannel):
        while True:
            line = queue.receive_nowait()
            with suppress(FrameError):
                frame = None if isinstance(line, Oversized) else parse_frame(line)
                if frame is not None and frame.is_request and frame.id is not None:
                    yield frame.id


def _parsed(line: bytes | Oversized) -> JSONRPCMessage:
    """Parse a message as a server on this machine would; raise what it would answer."""
    if isinstance(line, Oversized):
        raise FrameError(
            INVALID_REQUEST, f"a message has at most {line.limit} bytes, and this had {line.size}"
        )
    frame = parse_frame(line)
    try:
        return jsonrpc_message_adapter.validate_json(line.removeprefix(BOM_UTF8), by_name=False)
    except ValueError:
        if frame is None or not frame.is_request or frame.id is None:
            raise
        sentence = "the message cannot be carried: it holds a lone surrogate, or a number out of range"
        raise FrameError(INVALID_PARAMS, frame.problem or sentence, frame.id) from None
