"""The bytes of one connection: timed, and ended, from outside.

hypercorn shields its writes from cancellation, so a client that does not read would keep its
connection, and with it the whole process, for as long as it likes. Here nobody waits longer than
`Timeouts` allows: one task for all connections looks at the clock (`TimedConnection.overdue`) and hangs up.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import msgspec
import trio

from greenroom.transports.base.net.listen import peer_of

CLOSE_TIME = 1.0  # seconds that TLS has for its farewell


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long a client may let the server wait, in seconds.

    Attributes:
        head: From the first byte of a request to the end of its head. For the first one from the beginning of
            the connection, and with the handshake of TLS.
        rest: Between two requests.
        write: Without taking any of what is written to it.
    """

    head: float = 10.0
    rest: float = 75.0
    write: float = 20.0


class TimedConnection(trio.abc.HalfCloseableStream):
    """A connection's bytes.

    Args:
        stream: A socket, or TLS over one.
        hang_up: Closes what is below at once, whoever reads or writes.

    Attributes:
        resting: Whether no request is under way.
        gone: Whether the connection is over.
        address: Where it comes from, when known.
        accept: Called with whose key a request showed (None for none), whenever one is let in.
    """

    def __init__(self, stream: trio.abc.Stream, hang_up: Callable[[], None]) -> None:
        self.resting = True
        self.gone = False
        self.address = peer_of(stream)
        self._stream = stream
        self._hang_up = hang_up
        self.accept: Callable[[str | None], None] = _count_nobody
        self._since = trio.current_time()
        self._head_since = self._since
        self._writing_since = inf
        self._holding = False
        self._held = b""

    # -- what the server sees of it --------------------------------------------------------------

    def work(self) -> None:
        """Record that a request is under way."""
        self.resting = False
        self._head_since = inf

    def rest(self) -> None:
        """Record that the last request is answered."""
        self.resting = True
        self._since = trio.current_time()

    def hold(self) -> None:
        """Keep what is written next until something more is, so that both go out as one."""
        self._holding = True

    def overdue(self, now: float, timeouts: Timeouts) -> bool:
        """Return whether the client lets the server wait too long."""
        if now - self._writing_since >= timeouts.write:
            return True
        if not self.resting:
            return False
        return now - self._head_since >= timeouts.head or now - self._since >= timeouts.rest

    def abort(self) -> None:
        """Hang up, on whoever reads or writes, too."""
        self.gone = True
        self._hang_up()

    # -- what hypercorn sees of it ---------------------------------------------------------------

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what came; nothing at the end."""
        data = bytes(await self._stream.receive_some(max_bytes))
        if not data:
            self.gone = True
        elif self.resting and self._head_since == inf:
            self._head_since = trio.current_time()
        return data

    def keeps(self, data: bytes) -> bool:
        """Return whether this needs no write now: it is kept for the next one, or nothing."""
        if self._holding:
            self._holding, self._held = False, self._held + data
            return True
        return not data and not self._held

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write, after what was kept."""
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
        """Wait until something can be written."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Say that nothing more will be written, where that can be said."""
        if isinstance(self._stream, trio.abc.HalfCloseableStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Hang up, politely where that takes no time."""
        self.gone = True
        with trio.move_on_after(CLOSE_TIME):
            await self._stream.aclose()


def _count_nobody(_holder: str | None) -> None:
    """Accept everybody, where there is no server that counts."""
