"""Sources and sinks of messages, independent of the transport.

A frame is the JSON of one message: a line on a pipe, a message on a WebSocket. `Connection` knows only
the two protocols here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import trio

from greenroom.transports.mcp.frames.frames import LineSplitter, Oversized

READ_SIZE = 64 * 1024


class FrameSource(Protocol):
    """A source of messages."""

    async def receive(self) -> Iterable[bytes | Oversized] | None:
        """Return the next messages, perhaps none yet; None at the end of input.

        A client that vanished counts as the end.
        """


class FrameSink(Protocol):
    """A sink of messages."""

    async def send(self, frames: Sequence[bytes]) -> None:
        """Write messages, each ending with a newline.

        Raises:
            trio.BrokenResourceError: The client has disconnected.
        """

    def send_now(self, frame: bytes) -> bytes:
        """Write as much of a message as possible without waiting; return the rest for `send`.

        Called only while no `send` runs. Returning the whole message is always correct.
        """


class LineSource:
    """Reads messages as the lines of a byte stream.

    Args:
        limit: The longest line, in bytes; a longer line comes as `Oversized`.
    """

    def __init__(self, stream: trio.abc.ReceiveStream, limit: int) -> None:
        self._stream = stream
        self._splitter = LineSplitter(limit)
        self._ended = False

    async def receive(self) -> Iterable[bytes | Oversized] | None:
        """Return the lines that the next bytes complete."""
        if self._ended:
            return None
        try:
            chunk = bytes(await self._stream.receive_some(READ_SIZE))
        except trio.BrokenResourceError:  # a reset socket, or a closed terminal
            chunk = b""
        if chunk:
            return self._splitter.feed(chunk)
        self._ended = True
        return self._splitter.finish()


class LineSink:
    """Writes messages as the lines of a byte stream.

    Args:
        descriptor: Returns the stream's descriptor, if writing need not wait; -1 once it is closed.
    """

    def __init__(self, stream: trio.abc.SendStream, descriptor: Callable[[], int] = lambda: -1) -> None:
        self._stream = stream
        self._descriptor = descriptor

    async def send(self, frames: Sequence[bytes]) -> None:
        """Write lines."""
        await self._stream.send_all(b"".join(frames))

    def send_now(self, frame: bytes) -> bytes:
        """Write as much of a line as the pipe takes."""
        if (descriptor := self._descriptor()) < 0:
            return frame
        try:
            return frame[os.write(descriptor, frame) :]
        except OSError:  # full, or broken, which `send` will find
            return frame
