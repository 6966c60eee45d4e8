"""Streamable HTTP as an ASGI application: route each request, with its caller.

Invariants:

- A host or an origin that is not allowed learns nothing about the server.
- In the later era a request has a client of its own, which ends with it. In the handshake era a session has
        a client, and a request outlives its connection.
- An invalid request is answered with the status of the SDK's server.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from http import HTTPStatus
from typing import Any, Final

import msgspec
import trio

from greenroom.actors.app.administration.health import serving_status
from greenroom.actors.core.auth.scopes import ADMIN, allows
from greenroom.actors.sessions.passports.claims import LINK_PATH
from greenroom.runtime import StoreFailedError
from greenroom.transports.auth.authenticator import OPEN_AUTHENTICATOR, Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.defaults import MAX_CONNECTIONS, SESSION_IDLE_SECONDS
from greenroom.transports.base.errors import AccessDeniedError, HttpRefusedError
from greenroom.transports.base.observability.request_log import HTTP, TRACEPARENT, trace_id_of
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.frames.versions import HANDSHAKE_VERSIONS
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.sockets.http.asgi_exchange import (
    ClientGoneError,
    Connection,
    Exchange,
    ForeignConnection,
    Receive,
    Send,
    StatusNoted,
)
from greenroom.transports.sockets.http.endpoint import Endpoint, HttpService, authenticated
from greenroom.transports.sockets.http.passport_links import OpenLink, serve_link
from greenroom.transports.sockets.http.request_head import VERSION, RequestHead, cors_headers, cors_preflight
from greenroom.transports.sockets.http.responses import JSON, Response, response_to, rpc_refusals
from greenroom.transports.sockets.http.sessions import Sessions
from greenroom.transports.sockets.http.stateful import StatefulEndpoint
from greenroom.transports.sockets.http.stateless import StatelessEndpoint

logger = logging.getLogger(__name__)

PATH: Final = "/mcp"
HEALTH_PATH: Final = "/healthz"
STOPPING: Final = "the server is stopping"
CONNECTION: Final = "greenroom.connection"
"""The key of a scope's ``state`` under which our own server puts the connection."""

SWEEPS: Final = 4  # checks in the lifetime of an idle session
_HANDSHAKE: Final = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)

Route = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the HTTP transport.

    Attributes:
        origins: Origins of web pages that may send requests, besides pages of this machine.
        session_idle: A session ends after this many seconds with nothing open.
        sound: Returns whether the store is reliable.
        routes: Further ASGI applications, by path; only for administrators if keys are required.
        documents: Public documents by path, as JSON.
        any_host: Whether the server has names besides this machine's, so that any host is allowed.
        open_link: Opens one-time links to passports; None if there are no links.
        endpoints: Endpoints at further paths, which authenticate callers themselves.
    """

    limits: Limits
    origins: frozenset[str] = frozenset()
    sessions: int = MAX_CONNECTIONS
    session_idle: float = SESSION_IDLE_SECONDS
    sound: Callable[[], bool] = lambda: True
    routes: Mapping[str, Route] = msgspec.field(default_factory=dict)
    authenticator: Authenticator = OPEN_AUTHENTICATOR
    documents: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    any_host: bool = False
    open_link: OpenLink | None = None
    endpoints: Sequence[Endpoint] = ()


class HttpApp:
    """MCP over Streamable HTTP, an ASGI application for trio.

    Args:
        agent_for: Returns the agent of a client, given its caller and a valid agent id.
    """

    def __init__(
        self, server: McpServer, agent_for: Callable[[Caller, str], AgentPort], options: HttpOptions
    ) -> None:
        self.sessions = Sessions(options.sessions, options.session_idle)
        self.authenticator = options.authenticator
        self._options = options
        self._service = HttpService(server, agent_for, options.limits, options.authenticator)
        self._modern = StatelessEndpoint(self._service)
        self._handshake = StatefulEndpoint(self._service, self.sessions)
        self._stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the tasks of requests while the block runs; cancel open requests at its end.

        Raises:
            StoreFailedError: The store failed permanently; changes that are not durable were not answered.
        """
        service = self._service
        async with trio.open_nursery() as nursery:
            service.start, service.abort = nursery.start_soon, nursery.cancel_scope.cancel
            nursery.start_soon(self._sweep)
            try:
                yield
            finally:
                for session in self.sessions:
                    self.sessions.end(session)
                nursery.cancel_scope.cancel()
        if service.failed is not None:
            raise service.failed

    async def _sweep(self) -> None:
        while True:
            await trio.sleep(self._options.session_idle / SWEEPS)
            self.sessions.sweep(trio.current_time())

    async def drain(self) -> None:
        """Accept no further request, end streams with their results, and wait for all answers."""
        self._stopping = True
        for endpoint in self._options.endpoints:
            endpoint.stop()
        async with trio.open_nursery() as nursery:
            for session in self.sessions:
                session.close_stream()
                nursery.start_soon(session.client.drain)
            for client in self._service.clients:
                nursery.start_soon(client.drain)

    def fail_open_requests(self) -> None:
        """Answer every open request with the error that the connection is closed."""
        for client in [*self._service.clients, *(session.client for session in self.sessions)]:
            client.fail_open_requests()
        for endpoint in self._options.endpoints:
            endpoint.fail_open_requests()

    # -- requests --------------------------------------------------------------------------------

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            NotImplementedError: The server requests something other than HTTP; it continues without that.
        """
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        head = RequestHead(scope)
        connection: Connection | None = scope.get("state", {}).get(CONNECTION)
        if connection is None:
            connection = ForeignConnection(str(scope["client"][0]) if scope.get("client") else None)
        log = self._service.server.log
        if log is None:
            await self._exchanged(Exchange(head, connection, receive, send), scope, receive, send)
            return
        began, noted = trio.current_time(), StatusNoted(send)
        exchange = Exchange(head, connection, receive, noted)
        TRACEPARENT.set(head.text(b"traceparent"))
        try:
            await self._exchanged(exchange, scope, receive, noted)
        finally:
            if not exchange.is_recorded:
                seconds = trio.current_time() - began
                log.record(HTTP, noted.outcome, seconds, trace_id_of(), status=noted.status)

    async def _exchanged(
        self, exchange: Exchange, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        head = exchange.head
        endpoint = next((each for each in self._options.endpoints if each.serves(head.path)), None)
        try:
            with self._denials_recorded(exchange):
                head.check_source(self._options.origins, any_host=self._options.any_host)
            exchange.extra = cors_headers(head)
            with rpc_refusals() if _is_at_mcp(head) else nullcontext(), self._denials_recorded(exchange):
                caller = head.caller(in_query=endpoint is None)
            if (reply := cors_preflight(head)) is not None:
                await exchange.reply(reply)
            elif endpoint is not None:
                self._check_not_stopping()
                await endpoint.serve(exchange, caller)
            else:
                await self._answer(exchange, caller, scope, receive, send)
        except HttpRefusedError as error:
            logger.debug("a request was refused with %d", error.status)
            exchange.drop()
            with suppress(ClientGoneError):
                await exchange.reply(response_to(error) if endpoint is None else endpoint.refused(error))
        except StoreFailedError as error:
            self._service.fail(error)
            exchange.abort()
        except ClientGoneError:
            pass
        finally:
            exchange.drop()

    @contextmanager
    def _denials_recorded(self, exchange: Exchange) -> Iterator[None]:
        try:
            yield
        except AccessDeniedError as denied:
            comes, lines = Caller(address=exchange.address), exchange.head.lines
            self._options.authenticator.record_denial(comes, lines, denied.status, "connect")
            raise

    async def _answer(
        self, exchange: Exchange, caller: Caller, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        head = exchange.head
        if _is_at_mcp(head):
            with rpc_refusals():
                self._check_not_stopping()
                caller = await authenticated(exchange, caller, self.authenticator)
            version = head.headers.get(VERSION)
            era = self._handshake if version is None or version in _HANDSHAKE else self._modern
            await era.serve(exchange, caller)
        elif head.path == HEALTH_PATH:
            await exchange.reply(self._health())
        elif (document := self._options.documents.get(head.path)) is not None:
            await exchange.reply(Response(HTTPStatus.OK, [JSON], document))
        elif LINK_PATH in head.path:  # below other paths as well, so that no other refusal repeats the token
            self._check_not_stopping()
            comes = Caller(address=exchange.address)
            await serve_link(exchange, comes, self._options.authenticator, self._options.open_link)
        elif (route := self._options.routes.get(head.path)) is not None:
            caller = await authenticated(exchange, caller, self.authenticator)
            await self._check_administrator(exchange, caller)
            await route(scope, receive, send)
        else:
            # The path may be a mistyped secret: it is neither repeated nor logged.
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, f"there is nothing at this path; MCP is at {PATH}")

    def _check_not_stopping(self) -> None:
        if self._stopping:
            raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, STOPPING, Connection="close")

    async def _check_administrator(self, exchange: Exchange, caller: Caller) -> None:
        """Refuse a caller who is not an administrator, and a request with a body."""
        try:
            check_administrates(caller)
        except AccessDeniedError as denied:
            lines = exchange.head.lines
            self._options.authenticator.record_denial(caller, lines, denied.status, "read_metrics")
            raise
        await exchange.discard()  # an unread body would keep the connection from ending
        if not exchange.whole:
            raise HttpRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "this path takes no body")

    def _health(self) -> Response:
        status = serving_status(is_sound=self._options.sound(), is_stopping=self._stopping)
        code = HTTPStatus.OK if status == "ok" else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(
            code, [JSON, (b"cache-control", b"no-store")], msgspec.json.encode({"status": status})
        )


def _is_at_mcp(head: RequestHead) -> bool:
    return head.path.removesuffix("/") == PATH


def check_administrates(caller: Caller) -> None:
    """Refuse a caller without the administrator's scope."""
    if caller.credential is not None and not allows(caller.credential.grant.scopes, ADMIN):
        raise AccessDeniedError(HTTPStatus.FORBIDDEN, f"this needs the scope {ADMIN!r}")
