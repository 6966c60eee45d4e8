"""Send words over a stream socket: buffered words become one frame, mostly one system call.

Sending never waits: bytes that the socket does not accept are buffered. Senders must check `unsent`.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
import trio

from greenroom.runtime.base.unix_socket import close_in_children
from greenroom.runtime.sharing import frames

READ_SIZE = 1 << 18

W = TypeVar("W")


class PeerError(Exception):
    """The other side sent invalid data, or has gone away."""


class FramedConnection(Generic[W]):
    """One side of a connection.

    `run_writer` must run to send what `send_soon` or a full socket buffered; ``unsent`` counts its bytes.
    """

    def __init__(self, connection: socket.socket, decode: Callable[[Any], list[W]]) -> None:
        connection.setblocking(False)
        close_in_children(connection)
        self._socket = connection
        self._decode = decode
        self._words: list[frames.RelayMessage] = []
        self._words_size = 0
        self._frames: deque[memoryview] = deque()
        self._received = bytearray()
        self._limit = frames.GREETING_LIMIT
        self._parked: trio.lowlevel.Task | None = None
        self._sent = trio.Event()
        self.unsent = 0
        self.is_closed = False

    def send(self, word: frames.RelayMessage, size: int = 0) -> None:
        """Send a word of about ``size`` bytes with the next `flush`."""
        self._words.append(word)
        self._words_size += size
        if self._words_size >= frames.FRAME_SIZE:
            self._wrap()

    def send_soon(self, word: frames.RelayMessage, size: int = 0) -> None:
        """Send a word after all ready tasks have run, or earlier with a `flush`."""
        self.send(word, size)
        self._wake()

    def flush(self) -> None:
        """Send buffered words, as far as the socket accepts them now."""
        if self._words:
            self._wrap()
            if len(self._frames) == 1:
                self._send()
            if self._frames:
                self._wake()

    def end_greeting(self) -> None:
        """Accept large frames from now on."""
        self._limit = frames.FRAME_LIMIT

    async def receive(self) -> list[W]:
        """Wait for words and return all that have arrived, in their order."""
        words: list[W] = []
        while not words:
            if self.is_closed:
                raise PeerError("the connection is closed")
            await trio.lowlevel.wait_readable(self._socket)
            try:
                received = self._socket.recv(READ_SIZE)
            except BlockingIOError:
                continue
            except OSError as error:
                raise PeerError(str(error)) from error
            if not received:
                raise PeerError("the other side has ended the connection")
            if self._received:
                self._received += received
                consumed = self._parse(self._received, words)
                del self._received[:consumed]
            else:
                consumed = self._parse(received, words)
                self._received += received[consumed:]
        return words

    async def run_writer(self) -> None:
        """Send the bytes that `flush` and `send_soon` left, forever."""
        while True:
            if self._words:
                self.flush()
            elif self._frames:
                await trio.lowlevel.wait_writable(self._socket)
                self._send()
            else:
                self._parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._unpark)
            if self.is_closed:
                raise PeerError("the connection is closed")

    async def drain(self) -> None:
        """Wait until the socket has accepted everything, or has ended."""
        self.flush()
        while self._frames and not self.is_closed:
            self._sent = trio.Event()
            await self._sent.wait()

    def close(self) -> None:
        """End the connection; a second call does nothing."""
        if not self.is_closed:
            self.is_closed = True
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
            self._frames.clear()
            self._words.clear()
            self._sent.set()
            self._wake()

    def _wrap(self) -> None:
        frame = frames.encode_frame(self._words)
        self._words.clear()
        self._words_size = 0
        self.unsent += len(frame)
        self._frames.append(memoryview(frame))

    def _send(self) -> None:
        try:
            while self._frames:
                sent = self._socket.send(self._frames[0])
                self.unsent -= sent
                if sent < len(self._frames[0]):
                    self._frames[0] = self._frames[0][sent:]
                    return
                self._frames.popleft()
        except BlockingIOError:
            return
        except OSError:  # `receive` reports it
            self._frames.clear()
            self.unsent = 0
        self._sent.set()

    def _parse(self, data: bytes | bytearray, words: list[W]) -> int:
        """Decode the complete frames at the beginning of ``data``; return their length."""
        end = 0
        with memoryview(data) as view:
            while len(data) - end >= frames.LENGTH_BYTES:
                begin = end + frames.LENGTH_BYTES
                size = int.from_bytes(view[end:begin])
                if size > self._limit:
                    raise PeerError(f"a frame of {size} bytes is too large")
                if len(data) - begin < size:
                    break
                try:
                    with view[begin : begin + size] as payload:
                        words += self._decode(payload)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise PeerError(f"a frame cannot be understood: {error}") from error
                end = begin + size
        return end

    def _wake(self) -> None:
        if self._parked is not None:
            parked, self._parked = self._parked, None
            trio.lowlevel.reschedule(parked)

    def _unpark(self, _: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED
