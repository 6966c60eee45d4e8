"""Serve many WebSocket clients with one `McpServer`.

Each connection is one task from its first byte to its last. The state of a client is made at its first
message. One more task does the keep-alive of all connections.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus

import msgspec
import trio
from wsproto.frame_protocol import CloseReason

from greenroom.runtime import StoreFailedError
from greenroom.transports.auth.authenticator import OPEN_AUTHENTICATOR, Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.defaults import MAX_CONNECTIONS, PING_SECONDS
from greenroom.transports.base.errors import AccessDeniedError, HttpRefusedError
from greenroom.transports.base.net.connection_limits import (
    ConnectionLimiter,
    ConnectionSlot,
    log_rejections,
    run_in_slices,
)
from greenroom.transports.base.net.listen import Listener, peer_of
from greenroom.transports.base.observability.request_log import WEBSOCKET, trace_id_of
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.connection import Connection, Limits
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.sockets.websocket.handshake import Handshake, check_upgrade
from greenroom.transports.sockets.websocket.socket import CLOSE_TIME, WebSocket

logger = logging.getLogger(__name__)

PARTING = 0.1  # seconds for a client to answer a close when the server ends
STOPPING = "the server is stopping"
BEYOND = 64  # so many connections above the limit get a refusal; further ones are disconnected


class WebSocketOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the WebSocket transport.

    Attributes:
        origins: Origins of web pages that may connect, besides pages of this machine.
        ping_interval: Seconds of silence before a ping; after as many more, the connection ends.
        handshake_time: Seconds from a client's arrival to the end of its handshake.
        any_host: Whether the server has names besides this machine's, so that any host is allowed.
    """

    limits: Limits
    connections: int = MAX_CONNECTIONS
    origins: frozenset[str] = frozenset()
    ping_interval: float = PING_SECONDS
    handshake_time: float = 10.0
    authenticator: Authenticator = OPEN_AUTHENTICATOR
    any_host: bool = False


class WebSocketStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of connections."""

    connections: int
    accepted: int
    refused: int


class WebSocketServer:
    """Serves WebSocket clients.

    Args:
        agent_for: Returns the agent of a client, given its caller and a valid agent id. Called once for each
            connection, at its first request that needs it.
    """

    def __init__(
        self, server: McpServer, agent_for: Callable[[Caller, str], AgentPort], options: WebSocketOptions
    ) -> None:
        self._server = server
        self._agent_for = agent_for
        self._options = options
        self._open: dict[WebSocket, Connection] = {}
        self._limiter = ConnectionLimiter(options.connections, BEYOND)
        self._shaking: set[trio.CancelScope] = set()
        self._welcomed = 0
        self._refused = 0
        self._stopping = False

    def statistics(self) -> WebSocketStatistics:
        """Return the current counts."""
        return WebSocketStatistics(
            connections=len(self._open), accepted=self._welcomed, refused=self._refused
        )

    async def serve(
        self,
        listeners: Sequence[Listener],
        stop: trio.Event,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve clients until `stop` is set, and tell every client of the end.

        Raises:
            StoreFailedError: The store failed permanently; the process should end.
        """
        async with trio.open_nursery() as clients, trio.open_nursery() as helpers:
            self._spawn = clients.start_soon
            if listeners:
                welcome = partial(trio.serve_listeners, handler_nursery=clients)
                await helpers.start(welcome, self._handle, list(listeners))
            helpers.start_soon(self._keep_alive)
            helpers.start_soon(self._hurry)
            helpers.start_soon(log_rejections, self._limiter)
            task_status.started()
            await stop.wait()
            helpers.cancel_scope.cancel()
            self._stopping = True
            for scope in self._shaking:
                scope.cancel()
            for websocket, connection in self._open.items():
                if connection.idle:
                    # The SDK's own way to an end would take another millisecond each.
                    clients.start_soon(websocket.part, CloseReason.GOING_AWAY, STOPPING)
                else:
                    connection.stop()

    async def take(self, stream: trio.abc.Stream, began: bytes) -> None:
        """Serve a client that came to another server, which read the beginning, until it ends."""
        if self._stopping:
            return
        ended = trio.Event()

        async def handle() -> None:
            try:
                await self._handle(stream, began)
            finally:
                ended.set()

        self._spawn(handle)
        with trio.CancelScope(shield=True):  # `serve` ends it in time
            await ended.wait()

    async def _keep_alive(self) -> None:
        interval = self._options.ping_interval
        while True:
            await trio.sleep(interval / 4)
            now = trio.current_time()
            due = [each for each in self._open if each.needs_keep_alive(now, interval)]
            await run_in_slices(partial(each.keep_alive, now, interval) for each in due)

    async def _hurry(self) -> None:
        """Disconnect newcomers with a handshake that takes too long, a few at a time."""
        patience = self._options.handshake_time
        while True:
            now = trio.current_time()
            await run_in_slices(self._limiter.overdue(now - patience))
            oldest = self._limiter.oldest()
            await trio.sleep_until((now if oldest is None else oldest) + patience)

    async def _handle(self, stream: trio.abc.Stream, began: bytes = b"") -> None:
        """Serve one client; `trio.serve_listeners` then closes its stream."""
        shaking = trio.CancelScope()
        came_from = self._options.authenticator.address_group(peer_of(stream))
        slot = self._limiter.arrive(came_from, trio.current_time(), shaking.cancel)
        if slot is None:
            return
        try:
            await self._come_and_gone(stream, slot, shaking, began)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client is gone
        except StoreFailedError:
            raise
        except Exception:
            logger.exception("a WebSocket client could not be served")
        finally:
            self._limiter.leave(slot)

    async def _come_and_gone(
        self, stream: trio.abc.Stream, slot: ConnectionSlot, shaking: trio.CancelScope, began: bytes
    ) -> None:
        found = await self._admitted(stream, slot, shaking, began)
        if found is None:
            return
        websocket, caller = found
        connection = Connection(websocket, websocket, self._options.limits)
        self._open[websocket] = connection
        if self._stopping:
            connection.stop()
        try:
            await self._served(websocket, connection, caller)
        finally:
            del self._open[websocket]

    async def _admitted(
        self, stream: trio.abc.Stream, slot: ConnectionSlot, shaking: trio.CancelScope, began: bytes
    ) -> tuple[WebSocket, Caller] | None:
        handshake, since = Handshake(stream, began), trio.current_time()
        self._shaking.add(shaking)
        try:
            with shaking:
                return await self._accepted(stream, handshake, slot, shaking)
        except HttpRefusedError as caught:
            refusal = caught
            if self._server.log is None:  # else it has a log line
                logger.info("a WebSocket client was refused with %d", refusal.status)
        else:
            sentence = f"the handshake took longer than {self._options.handshake_time:g} s"
            refusal = self._stopped() or HttpRefusedError(HTTPStatus.REQUEST_TIMEOUT, sentence)
        finally:
            self._shaking.remove(shaking)
        self._refused += 1
        if (log := self._server.log) is not None:
            log.record(
                WEBSOCKET, "refused", trio.current_time() - since, trace_id_of(), status=refusal.status
            )
        if slot.rejected_because == "made room" or (slot.rejected_because and not handshake.has_begun):
            return None  # no answer to a silent client: there may be thousands
        with trio.move_on_after(PARTING if self._stopping else CLOSE_TIME):
            await handshake.refuse(refusal)
        return None

    def _stopped(self) -> HttpRefusedError | None:
        if not self._stopping:
            return None
        return HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING)

    async def _accepted(
        self,
        stream: trio.abc.Stream,
        handshake: Handshake,
        slot: ConnectionSlot,
        shaking: trio.CancelScope,
    ) -> tuple[WebSocket, Caller] | None:
        asked = await handshake.receive_request()
        if asked is None:
            return None
        address = peer_of(stream)
        try:
            said = check_upgrade(asked, self._options.origins, any_host=self._options.any_host)
        except AccessDeniedError as denied:
            self._options.authenticator.record_denial(
                Caller(address=address), asked.headers, denied.status, "connect"
            )
            raise
        said = msgspec.structs.replace(said, address=address)
        caller = await self._options.authenticator.authenticate(said, asked.headers)
        if (stopped := self._stopped()) is not None:
            raise stopped
        holder = None if caller.credential is None else caller.credential.holder
        self._limiter.accept(slot, self._options.authenticator.address_group(caller.address), holder)
        shaking.deadline = slot.since + self._options.handshake_time
        protocol = await handshake.accept()
        self._welcomed += 1
        body = self._options.authenticator.body_budget(caller)
        return WebSocket(stream, protocol, self._options.limits.max_message_bytes, self._spawn, body), caller

    async def _served(self, websocket: WebSocket, connection: Connection, caller: Caller) -> None:
        try:
            lose = partial(websocket.fail, CloseReason.POLICY_VIOLATION)
            with websocket.serving, self._options.authenticator.hold_connection(caller, lose):
                await connection.serve(
                    self._server,
                    agent_for=partial(self._agent_for, caller),
                    rate_limit=self._options.authenticator.rate_limit(caller),
                    tools=caller.tool_choice,
                    transport="websocket",
                )
        except StoreFailedError:
            raise
        except Exception:
            logger.exception("a WebSocket connection failed")
            websocket.fail(CloseReason.INTERNAL_ERROR, "a fault of the server")
        if self._stopping:
            await websocket.close(CloseReason.GOING_AWAY, STOPPING, PARTING)
        else:
            await websocket.close(CloseReason.NORMAL_CLOSURE, "")
