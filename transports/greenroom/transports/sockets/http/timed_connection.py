"""The bytes of one connection, timed and ended from outside.

hypercorn shields its writes from cancellation, so a client that does not read would hold its connection, and
with it the process, without limit. Here no wait exceeds `Timeouts`: one task checks the clock for all
connections (`TimedConnection.overdue`) and disconnects.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import msgspec
import trio

from greenroom.transports.base.net.listen import peer_of

CLOSE_TIME = 1.0  # seconds for the closing message of TLS


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long the server waits for a client, in seconds.

    Attributes:
        head: From the first byte of a request to the end of its head; for the first request from the start of
            the connection, with the TLS handshake.
        rest: Between two requests.
        write: Until the client takes some of the output.
    """

    head: float = 10.0
    rest: float = 75.0
    write: float = 20.0


class TimedConnection(trio.abc.HalfCloseableStream):
    """The byte stream of one connection.

    Args:
        hang_up: Closes the socket at once, even during reads and writes.

    Attributes:
        resting: Whether no request is in flight.
        gone: Whether the connection is over.
        accept: Called for each accepted request with the owner of its key (None without a key).
    """

    def __init__(self, stream: trio.abc.Stream, hang_up: Callable[[], None]) -> None:
        self.resting = True
        self.gone = False
        self.address = peer_of(stream)
        self._stream = stream
        self._hang_up = hang_up
        self.accept: Callable[[str | None], None] = lambda _: None  # until a server counts
        self._since = trio.current_time()
        self._head_since = self._since
        self._writing_since = inf
        self._holding = False
        self._held = b""

    # -- for the server --------------------------------------------------------------------------

    def work(self) -> None:
        """Record that a request is in flight."""
        self.resting = False
        self._head_since = inf

    def rest(self) -> None:
        """Record that the last request is answered."""
        self.resting = True
        self._since = trio.current_time()

    def hold(self) -> None:
        """Hold the next write back until a further write, so that both go out together."""
        self._holding = True

    def overdue(self, now: float, timeouts: Timeouts) -> bool:
        """Return whether the client exceeds a timeout."""
        if now - self._writing_since >= timeouts.write:
            return True
        if not self.resting:
            return False
        return now - self._head_since >= timeouts.head or now - self._since >= timeouts.rest

    def abort(self) -> None:
        """Disconnect, even during reads and writes."""
        self.gone = True
        self._hang_up()

    # -- for hypercorn ---------------------------------------------------------------------------

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return received bytes; empty at the end."""
        data = bytes(await self._stream.receive_some(max_bytes))
        if not data:
            self.gone = True
        elif self.resting and self._head_since == inf:
            self._head_since = trio.current_time()
        return data

    def keeps(self, data: bytes) -> bool:
        """Return whether ``data`` needs no write now: it is empty, or kept for later."""
        if self._holding:
            self._holding, self._held = False, self._held + data
            return True
        return not data and not self._held

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write, after any kept bytes."""
        if self._held:
            data, self._held = self._held + bytes(data), b""
        self._writing_since = trio.current_time()
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError:
            self.gone = True
            raise
        finally:
            self._writing_since = inf

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the stream is writable."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Signal the end of the output, if the stream can."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Disconnect, with a proper close if that takes no time."""
        self.gone = True
        with trio.move_on_after(CLOSE_TIME):
            await self._stream.aclose()
