"""HTTP/1.1 on one connection through hypercorn's trio worker, with an ASGI application behind it.

Only this module imports hypercorn. It does not use `hypercorn.trio.serve`, which does not suffice:

- A client that does not read keeps `serve` from ending (tested): writes are shielded from cancellation,
        and the connection cannot be reached from outside.
- After a disconnect, `serve` keeps the descriptor as long as an idle client may stay.
- It accepts HTTP/2, also without TLS, with limits of its own.

So the connection is ours (`TimedConnection`), and hypercorn handles the bytes above it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import h11
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import TrioSingleTask, WorkerContext
from hypercorn.typing import ConnectionState

from greenroom.transports.sockets.http.app import CONNECTION
from greenroom.transports.sockets.http.timed_connection import TimedConnection

READ_SIZE = 64 * 1024
HEAD_LIMIT = 32 * 1024  # bytes; a session's id and an identity need few of them

Application = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Any]


class _UpgradeAskedError(Exception):
    """The first request of a connection asks for WebSocket."""


class Worker:
    """The state that the connections of one server share.

    Args:
        application: Answers the requests.
        upgrades: Whether someone else serves a connection whose first request asks for WebSocket.
    """

    def __init__(self, application: Application, *, upgrades: bool = False) -> None:
        self._upgrades = upgrades
        config = Config()
        config.accesslog = None
        config.errorlog = logging.getLogger(__name__)
        config.h11_max_incomplete_size = HEAD_LIMIT
        config.include_server_header = False
        config.keep_alive_max_requests = 1 << 62
        self._config = config
        self._context = WorkerContext(None)
        self._application = ASGIWrapper(cast("Any", application))

    async def stop(self) -> None:
        """Let every connection end after its current response."""
        await self._context.terminated.set()

    async def serve(self, connection: TimedConnection) -> bytes | None:
        """Serve one connection until it ends, and close it.

        If it is to become a WebSocket, return its first bytes at once, and leave it open.
        """
        handler = _Connection(self._application, self._config, self._context, connection)
        return await handler.serve(upgrades=self._upgrades)


class _Connection(TCPServer):
    def __init__(
        self, application: ASGIWrapper, config: Config, context: WorkerContext, connection: TimedConnection
    ) -> None:
        super().__init__(application, config, context, {CONNECTION: connection}, connection)  # type: ignore[arg-type]
        self.idle_task = _IdleTask(connection)
        self._connection = connection

    async def serve(self, *, upgrades: bool) -> bytes | None:
        began = None
        try:
            async with TaskGroup() as tasks:
                self._task_group = tasks
                protocol = _Http11(
                    self.app,
                    self.config,
                    self.context,
                    tasks,
                    ConnectionState(self.state),
                    False,
                    None,
                    None,
                    self.protocol_send,
                )
                protocol.upgrades = upgrades
                self.protocol = protocol  # type: ignore[assignment]
                began = await self._read(protocol)
        finally:
            if began is None:
                await self._close()
        return began

    async def _read(self, protocol: _Http11) -> bytes | None:
        data = b"more"
        began = b""
        while data:
            try:
                data = await self._connection.receive_some(READ_SIZE)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break
            began = b"" if protocol.keep_alive_requests else began + data
            try:
                await protocol.handle(RawData(data))
            except _UpgradeAskedError:
                return began
        await protocol.handle(Closed())
        return None

    async def protocol_send(self, event: Event) -> None:
        """Handle the protocol's events about bytes; only writes take time."""
        if not (isinstance(event, RawData) and self._connection.keeps(event.data)):
            await super().protocol_send(event)


class _Http11(H11Protocol):
    upgrades = False

    async def _check_protocol(self, event: h11.Request) -> None:
        """Stay with HTTP/1.1 unless a first request asks for WebSocket: other upgrades are offers only."""
        if (
            self.upgrades
            and not self.keep_alive_requests
            and (b"upgrade", b"websocket") in {(name, value.strip().lower()) for name, value in event.headers}
        ):
            raise _UpgradeAskedError


class _IdleTask(TrioSingleTask):
    """Replaces hypercorn's task that ends a connection without a request."""

    def __init__(self, connection: TimedConnection) -> None:
        self._connection = connection

    async def restart(self, _task_group: Any, _action: Any) -> None:
        """Record that no request is in flight."""
        self._connection.rest()

    async def stop(self) -> None:
        """Record that a request is in flight."""
        self._connection.work()
