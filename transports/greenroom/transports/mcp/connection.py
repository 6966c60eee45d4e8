"""One client's connection: messages in and out, within their limits.

A `Connection` reads messages for a `Client`, and is the sink for all messages to it. Invariants:

- Nothing is read while the client has as many requests in flight as allowed, does not read its answers, or
        exceeds its rate limit.
- After the end of input, open requests may finish in time. Then streams end with their results, and written
        output gets a moment to arrive.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import NoReturn

import trio

from greenroom.transports.auth.caller import NO_CHOICE, RateLimit, ToolChoice
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Limits as Limits
from greenroom.transports.mcp.frames.frames import (
    INVALID_REQUEST,
    FrameError,
    Oversized,
    error_line,
    parse_frame,
)
from greenroom.transports.mcp.frames.line_io import FrameSink, FrameSource
from greenroom.transports.mcp.server import McpServer

WRITE_SIZE = 256 * 1024
FLUSH = 0.1  # seconds
SLICE = 0.002  # seconds that one client's messages may occupy the loop
SMALL_BATCH = 8  # messages after which the client probably waits for answers


class Connection:
    """The messages of one client, between source, client and sink."""

    def __init__(self, source: FrameSource, sink: FrameSink, limits: Limits) -> None:
        self.limits = limits
        self._source = source
        self._sink = sink
        self._client: Client | None = None
        self._lines: deque[bytes | Oversized] = deque()
        self._ended = False
        self._rate_limit: RateLimit | None = None
        self._pause = 0.0
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._mute = False
        self._idle_pump = False
        self._changed = trio.lowlevel.ParkingLot()
        self._has_read = trio.lowlevel.ParkingLot()
        self._reading = trio.CancelScope()
        self._drain_deadline = inf
        self._draining = trio.CancelScope()

    async def serve(
        self,
        server: McpServer,
        *,
        agent_for: Callable[[str], AgentPort] | None = None,
        stop: trio.Event | None = None,
        rate_limit: RateLimit | None = None,
        tools: ToolChoice = NO_CHOICE,
        folder_of: Callable[[str | None], str | None] = lambda _: None,
        transport: str = "stdio",
    ) -> None:
        """Serve the client until its input ends and its requests are answered.

        Once `stop` is set, nothing more is read, and open requests get `Limits.stop` seconds. A disconnect
        ends this without an error. Cancelling ends it at once.

        Raises:
            StoreFailedError: The store failed permanently; changes that are not durable were not answered.
        """
        self._rate_limit = rate_limit
        try:
            async with trio.open_nursery() as nursery:
                if stop is not None:
                    nursery.start_soon(self._stop_with, stop)
                if await self._wait_for_first_frame():
                    client = self._client = Client(
                        server,
                        server.agent_for if agent_for is None else agent_for,
                        self,
                        self.limits,
                        spawn=nursery.start_soon,
                        on_failure=partial(self._abort, nursery.cancel_scope),
                        has_room=self._has_room,
                        changed=self._changed,
                        rate_limit=rate_limit,
                        tools=tools,
                        transport=transport,
                    )
                    client.identity.folder_of = folder_of
                    nursery.start_soon(self._pump, nursery.cancel_scope)
                    nursery.start_soon(self._attend, client, nursery.cancel_scope)
                else:
                    nursery.cancel_scope.cancel()
        finally:
            if self._client is not None:
                self._client.close()
        if self._client is not None and self._client.domain.failed is not None:
            raise self._client.domain.failed

    @property
    def idle(self) -> bool:
        """Whether no request is open and no answer waits to be sent."""
        is_open = self._client is not None and self._client.open_requests
        return not (is_open or self._lines or self._unsent_bytes)

    def stop(self) -> None:
        """Stop reading, and give open requests the time of `Limits.stop`."""
        self._ended = True
        self._lines.clear()
        self._drain_deadline = min(self._drain_deadline, trio.current_time() + self.limits.stop)
        self._draining.deadline = min(self._draining.deadline, self._drain_deadline)
        self._reading.cancel()

    async def _stop_with(self, stop: trio.Event) -> None:
        await stop.wait()
        self.stop()

    def _abort(self, serving: trio.CancelScope) -> None:
        """Drop all output, even output that waits to be sent."""
        self._mute = True
        self._unsent.clear()
        self._unsent_bytes = 0
        serving.cancel()

    # -- in --------------------------------------------------------------------------------------

    async def _wait_for_first_frame(self) -> bool:
        """Wait for the first message; return whether there is one before the end of input.

        Before the first message, the client needs no other state, and costs no more.
        """
        with trio.CancelScope() as self._reading:
            while not self._lines and not self._ended:
                await self._receive()
        return bool(self._lines)

    async def _attend(self, client: Client, serving: trio.CancelScope) -> None:
        """Serve the client until the end, in a task of its own."""
        await self._read(client)
        await self._drain(client)
        serving.cancel()

    async def _read(self, client: Client) -> None:
        if self._ended and not self._lines:
            return
        with trio.CancelScope() as self._reading:
            while self._lines or not self._ended:
                await self._until(partial(self._may_read, client))
                if self._pause:
                    await trio.sleep(max(self._pause, SLICE))  # less may be below the clock's resolution
                if self._lines:
                    self._take_some(client)
                    await trio.lowlevel.checkpoint()
                else:
                    await self._receive()
                    self._take_some(client)

    async def _receive(self) -> None:
        frames = await self._source.receive()
        self._ended = self._ended or frames is None
        self._lines.extend(frames or ())

    def _may_read(self, client: Client) -> bool:
        return (self._ended and not self._lines) or (self._has_room() and not client.is_full)

    def _take_some(self, client: Client) -> None:
        """Take messages for a short time while there is room: one chunk may hold thousands."""
        if len(self._lines) > SMALL_BATCH:
            self._take(client)
            return
        with client.server.hold_dispatch():
            self._take(client)
            client.server.run_ready()

    def _take(self, client: Client) -> None:
        until = time.perf_counter() + SLICE
        while self._lines and self._may_read(client) and time.perf_counter() < until:
            if self._rate_limit is not None:
                self._pause = self._rate_limit.frame(trio.current_time())
                if self._pause:
                    return
            line = self._lines.popleft()
            try:
                frame = _refuse(line) if isinstance(line, Oversized) else parse_frame(line)
            except FrameError as error:
                client.server.record_unread(client.agent_id)
                self._put(error_line(error.id, error.code, str(error)))
            else:
                if frame is not None:
                    client.take(frame, self)

    # -- out: a sink for all messages ----------------------------------------------------------

    def send(self, line: bytes) -> None:
        """Queue a notification or a request of the server."""
        self._put(line)

    def answer(self, line: bytes) -> None:
        """Queue an answer; write it at once if no other answer can go with it."""
        if self._idle_pump and not self._unsent and not self._lines and self._is_last():
            line = self._sink.send_now(line)
        if line:
            self._put(line)

    def _is_last(self) -> bool:
        return self._client is not None and not self._client.open_requests

    def unanswered(self) -> None:
        """Do nothing: a cancelled request gets no answer here."""

    def close_stream(self) -> None:
        """Do nothing: the connection is the stream."""

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all of the output."""
        # Not `_until`: there may be a thousand streams, and every request would wake them.
        while self._unsent_bytes > self.limits.unsent_notices:
            await self._has_read.park()

    def _put(self, line: bytes) -> None:
        if not self._mute:
            self._unsent.append(line)
            self._unsent_bytes += len(line)
            if self._changed:
                self._changed.unpark_all()

    async def _pump(self, serving: trio.CancelScope) -> None:
        """Write the output to the client; stop serving when it has disconnected."""
        try:
            while True:
                self._idle_pump = True
                await self._until(lambda: bool(self._unsent))
                self._idle_pump = False
                batch, size = [], 0
                while self._unsent and size < WRITE_SIZE:
                    batch.append(self._unsent.popleft())
                    size += len(batch[-1])
                await self._sink.send(batch)
                self._unsent_bytes -= size
                if self._client is not None:
                    self._client.queue.advance()
                self._changed.unpark_all()
                if self._unsent_bytes <= self.limits.unsent_notices:
                    self._has_read.unpark_all()
        except trio.BrokenResourceError:
            serving.cancel()

    def _has_room(self) -> bool:
        return self._unsent_bytes <= self.limits.unsent_bytes

    # -- waiting ---------------------------------------------------------------------------------

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.park()

    async def _drain(self, client: Client) -> None:
        self._drain_deadline = min(self._drain_deadline, trio.current_time() + self.limits.drain)
        with trio.CancelScope(deadline=self._drain_deadline) as self._draining:
            await client.drain()
        client.fail_open_requests()
        # An answer at the very end of the time still gets a moment to be written.
        self._drain_deadline = max(self._drain_deadline, trio.current_time() + FLUSH)
        with trio.CancelScope(deadline=self._drain_deadline) as self._draining:
            await self._until(lambda: self._unsent_bytes == 0)


def _refuse(line: Oversized) -> NoReturn:
    raise FrameError(INVALID_REQUEST, f"the frame has {line.size} bytes; the limit is {line.limit}")
