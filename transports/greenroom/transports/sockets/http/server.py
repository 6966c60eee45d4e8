"""Serve many HTTP connections with one `HttpApp`.

Each connection is a task, and each open request is another task. One task watches the clock for them all.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import msgspec
import trio

from greenroom.transports.base.defaults import MAX_CONNECTIONS, RETRY_SECONDS
from greenroom.transports.base.net.connection_limits import (
    ConnectionLimiter,
    ConnectionSlot,
    log_rejections,
    run_in_slices,
)
from greenroom.transports.base.net.listen import Listener
from greenroom.transports.sockets.http.app import HttpApp
from greenroom.transports.sockets.http.hypercorn import Worker
from greenroom.transports.sockets.http.timed_connection import TimedConnection, Timeouts

logger = logging.getLogger(__name__)

LOOKS = 4  # checks of the clock within the shortest timeout
FLUSH = 0.1  # seconds for the last output to arrive
FAREWELL = 1.0  # seconds for a refused client to read that there is no room
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    % RETRY_SECONDS
)


class HttpStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of connections and sessions.

    Attributes:
        overdue: Connections since the start that were closed for being too slow.
    """

    connections: int
    accepted: int
    refused: int
    overdue: int
    sessions: int


class HttpServer:
    """Serves HTTP clients.

    Args:
        stop: Seconds for open requests after a request to stop.
        upgrade: Serves a connection as a WebSocket until it ends, given its first bytes; the stream is closed
            afterwards. None: there is no WebSocket here.
    """

    def __init__(
        self,
        app: HttpApp,
        *,
        connections: int = MAX_CONNECTIONS,
        stop: float = 0.5,
        timeouts: Timeouts | None = None,
        upgrade: Callable[[trio.abc.Stream, bytes], Awaitable[None]] | None = None,
    ) -> None:
        self._app = app
        self._upgrade = upgrade
        self._worker = Worker(app, upgrades=upgrade is not None)
        self._stop = stop
        self._timeouts = timeouts if timeouts is not None else Timeouts()
        self._limiter = ConnectionLimiter(connections)
        self._connections: dict[TimedConnection, ConnectionSlot] = {}
        self._gone = trio.lowlevel.ParkingLot()
        self._accepted = 0
        self._refused = 0
        self._overdue = 0

    def statistics(self) -> HttpStatistics:
        """Return the counts of connections and sessions."""
        return HttpStatistics(
            connections=len(self._connections),
            accepted=self._accepted,
            refused=self._refused,
            overdue=self._overdue,
            sessions=len(self._app.sessions),
        )

    async def serve(
        self,
        listeners: Sequence[Listener],
        stop: trio.Event,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve connections until `stop` is set and open requests are answered."""
        async with self._app.running(), trio.open_nursery() as clients:
            clients.start_soon(self._hang_up_at_the_end)
            async with trio.open_nursery() as helpers:
                welcome = partial(trio.serve_listeners, handler_nursery=clients)
                await helpers.start(welcome, partial(self._handle, clients.start_soon), list(listeners))
                helpers.start_soon(self._watch)
                helpers.start_soon(log_rejections, self._limiter)
                task_status.started()
                await stop.wait()
                helpers.cancel_scope.cancel()
            await self._end()
            clients.cancel_scope.cancel()

    async def _end(self) -> None:
        await self._worker.stop()
        for connection in list(self._connections):
            if connection.resting:
                connection.abort()
        with trio.move_on_after(self._stop):
            await self._app.drain()
            await self._all_gone()
        self._app.fail_open_requests()
        with trio.move_on_after(FLUSH):
            await self._all_gone()

    async def _all_gone(self) -> None:
        while self._connections:
            await self._gone.park()

    async def _hang_up_at_the_end(self) -> None:
        # Writes are shielded: a cancelled task would stay in a write if its client does not read.
        try:
            await trio.sleep_forever()
        finally:
            for connection in self._connections:
                connection.abort()

    async def _watch(self) -> None:
        timeouts = self._timeouts
        while True:
            await trio.sleep(min(timeouts.head, timeouts.rest, timeouts.write) / LOOKS)
            await run_in_slices(self._late(timeouts))

    def _late(self, timeouts: Timeouts) -> Iterator[Callable[[], None]]:
        for connection, slot in list(self._connections.items()):
            if connection.overdue(trio.current_time(), timeouts):
                self._overdue += 1
                yield self._limiter.reject_slow(slot)

    async def _handle(self, hang_up: Callable[..., None], stream: trio.abc.Stream) -> None:
        """Serve one connection; `trio.serve_listeners` then closes its stream."""
        connection = TimedConnection(stream, partial(hang_up, trio.aclose_forcefully, stream))
        name = self._app.authenticator.address_group(connection.address)
        slot = self._limiter.arrive(name, trio.current_time(), connection.abort)
        if slot is None:
            self._refused += 1
            await _say_full(stream)
            return
        connection.accept = partial(self._limiter.accept, slot, name)
        self._connections[connection] = slot
        self._accepted += 1
        began = None
        try:
            if isinstance(stream, trio.SSLStream):
                await stream.do_handshake()
            began = await self._worker.serve(connection)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client is gone
        except Exception:
            logger.exception("an HTTP client could not be served")
        finally:
            del self._connections[connection]
            self._limiter.leave(slot)
            self._gone.unpark_all()
        if began is not None and self._upgrade is not None:  # with the limits of the other server
            await self._upgrade(stream, began)


async def _say_full(stream: trio.abc.Stream) -> None:
    if isinstance(stream, trio.SSLStream):
        return  # TLS would need its handshake first
    with trio.move_on_after(FAREWELL), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(FULL)
