"""Sources and sinks of frames, whatever carries them.

A frame is the JSON of one message. On a pipe frames are lines; on a WebSocket they are
messages. `Connection` knows only the two protocols here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import trio

from greenroom.transports.mcp.frames.frames import LineSplitter, Oversized

READ_SIZE = 64 * 1024


class FrameSource(Protocol):
    """Where frames come from."""

    async def receive(self) -> Iterable[bytes | Oversized] | None:
        """Return the next frames, perhaps none yet; None when there will be no more.

        A client that vanished counts as the end.
        """


class FrameSink(Protocol):
    """Where frames go."""

    async def send(self, frames: Sequence[bytes]) -> None:
        """Write frames, each ending with a newline.

        Raises:
            trio.BrokenResourceError: the client is gone.
        """

    def send_now(self, frame: bytes) -> bytes:
        """Write as much of a frame as can be written without waiting; return the rest, to be sent by `send`.

        Called when nothing else is being sent. To return the whole frame is always right.
        """


class LineSource:
    """Frames that are the lines of a byte stream.

    Args:
        stream: The bytes.
        limit: The longest line, in bytes; a longer one comes as `Oversized`.
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
        except trio.BrokenResourceError:  # a reset socket or a terminal that hung up
            chunk = b""
        if chunk:
            return self._splitter.feed(chunk)
        self._ended = True
        return self._splitter.finish()


class LineSink:
    """Frames as the lines of a byte stream.

    Args:
        stream: The bytes.
        descriptor: Gives the stream's, where it can be written to without waiting; -1 once it is closed.
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
        except OSError:  # it takes nothing now, or never again, which `send` will find
            return frame
