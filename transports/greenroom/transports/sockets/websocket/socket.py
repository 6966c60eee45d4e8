"""One accepted WebSocket: messages in and out of a trio stream, keep-alive, and the close.

Invariants:

- A message is one line: line ends within it, which are blanks in JSON, become tabs, so that stored parts of
        it can be written on one line later.
- All bytes are written as whole messages under `_writing`, or at once while no task holds it. Bytes that did
        not fit are in `_rest`, which goes out before all others. A partial write breaks the socket: nothing
        is sent after it, not even a close.
- There is one slot for a pong and one for a ping, no queue: a client that pings and never reads costs one
        waiting task.
- The first reason to close counts (`fail`), and ends the serving task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from math import inf
from typing import Any

import trio
from wsproto.connection import Connection as Protocol
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage
from wsproto.frame_protocol import MAX_PAYLOAD_NORMAL, MAX_PAYLOAD_TWO_BYTE, CloseReason

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.base.net.bodies import BodyBudget, ReassemblyBuffer

READ_SIZE = 16 * 1024
WRITE_SIZE = 64 * 1024
EVENTS_AT_ONCE = 64
CLOSE_TIME = 1.0  # seconds for a client to answer a close

_LINE_ENDS = bytes.maketrans(b"\r\n", b"\t\t")
_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class Action(Enum):
    """The next action for a connection."""

    NOTHING = "nothing"
    PING = "ping"
    END = "end"


class Liveness:
    """The times of one connection, in trio's seconds, and the actions they require. No I/O.

    Any received bytes are a sign of life, even a part of a frame, because a client in the middle of a long
    frame cannot answer. While the server does not read from the client (at a limit), silence does not count.

    Attributes:
        heard: When bytes last arrived.
        pinged: When a ping was sent after which no bytes came; infinity if there is none.
        reading: The time since which the server reads; infinity while it does not read.
        writing: The time since which the client has taken no output; infinity without output.
    """

    __slots__ = ("heard", "pinged", "reading", "writing")

    def __init__(self, now: float) -> None:
        self.heard = now
        self.pinged = inf
        self.reading = inf
        self.writing = inf

    def record_received(self, now: float) -> None:
        """Record that bytes arrived."""
        self.heard = now
        self.pinged = inf

    def next_action(self, now: float, interval: float) -> Action:
        """Return the next action, given the seconds of silence before a ping and after it."""
        if now - self.writing >= interval:
            return Action.END
        if self.pinged != inf:  # reading since then: a pause in reading begins with received bytes
            return Action.END if now - self.pinged >= interval else Action.NOTHING
        return Action.PING if now - max(self.heard, self.reading) >= interval else Action.NOTHING


class WebSocket:
    """One client's WebSocket, as a source and a sink of messages.

    Args:
        spawn: Starts a task that outlives the call.
        body: The budget for the bytes of an incomplete message.

    Attributes:
        serving: The scope that serves this client; cancelled when there is nothing left to serve.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        protocol: Protocol,
        limit: int,
        spawn: Callable[..., Any],
        body: BodyBudget,
    ) -> None:
        self._body = body
        self.serving = trio.CancelScope()
        self._stream = stream
        self._protocol = protocol
        self._limit = limit
        self._spawn = spawn
        self._liveness = Liveness(trio.current_time())
        self._writing = trio.Lock()
        self._broken = False
        self._socket = stream.socket if isinstance(stream, trio.SocketStream) else None
        self._rest = b""
        self._reason: tuple[int, str] | None = None
        self._part = ReassemblyBuffer()
        self._messages: list[bytes] = []
        self._pong: bytes | None = None
        self._ping: bytes | None = None
        self._controlling = False

    # -- in --------------------------------------------------------------------------------------

    async def receive(self) -> list[bytes] | None:
        """Return the messages that the next bytes complete; None at the end."""
        if self._reason is not None:
            return None
        self._liveness.reading = trio.current_time()
        try:
            data = bytes(await self._stream.receive_some(READ_SIZE))
        except _GONE:
            data = b""
        finally:
            self._liveness.reading = inf
        if not data:
            self._broken = True
            self.fail(CloseReason.ABNORMAL_CLOSURE, "the client is gone")
            return None
        self._liveness.record_received(trio.current_time())
        self._protocol.receive_data(data)
        for count, event in enumerate(self._protocol.events()):
            self._take(event)
            if self._reason is not None:
                break
            if count % EVENTS_AT_ONCE == EVENTS_AT_ONCE - 1:  # a flood of pings, for example
                await trio.lowlevel.checkpoint()
        found, self._messages = self._messages, []
        return found

    def _take(self, event: Any) -> None:
        if isinstance(event, TextMessage):
            data = event.data.encode()
            self._part.add(data)
            if len(self._part) > self._limit:
                self.fail(CloseReason.MESSAGE_TOO_BIG, f"a message has at most {self._limit} bytes")
            elif not event.message_finished:
                self._keep(len(data))
            else:
                self._body.release()
                message = self._part.take()
                if b"\n" in message or b"\r" in message:
                    message = message.translate(_LINE_ENDS)
                self._messages.append(message)
        elif isinstance(event, BytesMessage):
            self.fail(CloseReason.UNSUPPORTED_DATA, "MCP is spoken in text messages")
        elif isinstance(event, Ping):
            self._pong = self._protocol.send(event.response())
            self._control()
        elif isinstance(event, CloseConnection):
            if self._protocol.state is ConnectionState.REMOTE_CLOSING:
                self.fail(event.code, "")
            else:  # an invalid WebSocket frame, or invalid UTF-8
                self.fail(event.code, event.reason or "")

    def _keep(self, size: int) -> None:
        try:
            self._body.reserve(size)
        except HttpRefusedError as refusal:
            self.fail(CloseReason.TRY_AGAIN_LATER, str(refusal))

    def _forget_part(self) -> None:
        self._part.clear()
        self._body.release()

    def fail(self, code: int, sentence: str) -> None:
        """End the connection for this reason, unless it is ending already."""
        if self._reason is None:
            self._reason = (code, sentence)
            self._forget_part()
            self.serving.cancel()

    # -- out -------------------------------------------------------------------------------------

    async def send(self, frames: Sequence[bytes]) -> None:
        """Write messages.

        Raises:
            trio.BrokenResourceError: The client has disconnected, or the connection is ending.
        """
        if self._reason is not None:
            raise trio.BrokenResourceError
        await self._write(b"".join(_text_message(frame.removesuffix(b"\n")) for frame in frames))

    def send_now(self, frame: bytes) -> bytes:
        """Write a message at once on a plain socket, if nothing is being written."""
        if self._socket is None or self._reason is not None or self._broken or self._writing.locked():
            return frame
        data = self._rest + _text_message(frame.removesuffix(b"\n"))
        try:
            self._rest = data[os.write(self._socket.fileno(), data) :]
        except OSError:  # full, or broken, which `send` will find
            return frame
        if self._rest:
            self._control()
        return b""

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            if self._broken:
                raise trio.BrokenResourceError
            whole, self._rest, self._broken = memoryview(self._rest + data), b"", True
            try:
                for start in range(0, len(whole), WRITE_SIZE):
                    self._liveness.writing = trio.current_time()
                    await self._stream.send_all(whole[start : start + WRITE_SIZE])
                self._broken = False
            except trio.ClosedResourceError:
                raise trio.BrokenResourceError from None
            finally:
                self._liveness.writing = inf

    def _control(self) -> None:
        if not self._controlling:
            self._controlling = True
            self._spawn(self._send_control)

    async def _send_control(self) -> None:
        try:
            while (data := self._next_control()) is not None and self._reason is None and not self._broken:
                with suppress(trio.BrokenResourceError):  # the reader will notice
                    await self._write(data)
        finally:
            self._controlling = False

    def _next_control(self) -> bytes | None:
        """Return the next control frame, or nothing if only old bytes are left."""
        if (data := self._pong) is not None:
            self._pong = None
        elif (data := self._ping) is not None:
            self._ping = None
        elif self._rest:
            data = b""
        return data

    def needs_keep_alive(self, now: float, interval: float) -> bool:
        """Return whether `keep_alive` would act."""
        return self._liveness.next_action(now, interval) is not Action.NOTHING

    def keep_alive(self, now: float, interval: float) -> None:
        """Ping a client after `interval` seconds of silence; disconnect it after as many more."""
        match self._liveness.next_action(now, interval):
            case Action.PING:
                self._liveness.pinged = now
                self._ping = self._protocol.send(Ping(payload=b"?"))
                self._control()
            case Action.END:
                self.fail(CloseReason.INTERNAL_ERROR, f"no sign of life for {interval:g} s after a ping")
            case Action.NOTHING:
                pass

    # -- the end ---------------------------------------------------------------------------------

    async def part(self, code: int, sentence: str) -> None:
        """Announce the end to the client, then cancel its serving; `close` does the rest.

        So a thousand clients learn of it early in the shutdown.
        """
        if self._reason is None:
            self._reason = (code, sentence)
            with suppress(trio.BrokenResourceError):
                await self._write(self._protocol.send(CloseConnection(code=code, reason=sentence)))
            self.serving.cancel()

    async def close(self, code: int, sentence: str, patience: float = CLOSE_TIME) -> None:
        """Send the reason for the end, wait for `patience` seconds, and disconnect.

        If the connection itself had an earlier reason, that reason is sent.
        """
        code, sentence = self._reason = self._reason or (code, sentence)
        self._forget_part()
        with trio.move_on_after(patience), suppress(*_GONE):
            if self._protocol.state in {ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING}:
                await self._write(self._protocol.send(CloseConnection(code=code, reason=sentence)))
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            # Closing with unread input would revoke the close frame (RST).
            while await self._stream.receive_some(READ_SIZE):
                pass
        await trio.aclose_forcefully(self._stream)


def _text_message(payload: bytes) -> bytes:
    """Encode UTF-8 as a server's WebSocket text message."""
    size = len(payload)
    if size <= MAX_PAYLOAD_NORMAL:
        return b"\x81%c%b" % (size, payload)
    if size <= MAX_PAYLOAD_TWO_BYTE:
        return b"\x81\x7e%b%b" % (size.to_bytes(2), payload)
    return b"\x81\x7f%b%b" % (size.to_bytes(8), payload)
