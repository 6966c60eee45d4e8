"""The parts that the endpoints of one HTTP server share: interface, callers, clients and tasks."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
import trio

from greenroom.runtime import StoreFailedError
from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import UNCOUNTED, Limits, ResponseSink
from greenroom.transports.mcp.frames.frames import INTERNAL_ERROR, Frame
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.tools.tool_errors import rate_limit_refusal
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.responses import JSON, Response, rpc_error

logger = logging.getLogger(__name__)

_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"\t\t")


class Endpoint(Protocol):
    """Serves some paths, for allowed hosts and origins."""

    def serves(self, path: str) -> bool:
        """Return whether it serves a path, even if it answers with a refusal."""

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request.

        ``caller`` is what the headers claim; it is not authenticated yet.

        Raises:
            HttpRefusedError: The request is refused.
            ClientGoneError: The client disconnected.
            StoreFailedError: The store failed permanently; no further answer is allowed.
        """

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the response for a refusal."""

    def stop(self) -> None:
        """End everything that would not end by itself, because the server is stopping."""

    def fail_open_requests(self) -> None:
        """Answer the open requests, because the time to stop is over."""


async def authenticated(exchange: Exchange, caller: Caller, authenticator: Authenticator) -> Caller:
    """Authenticate the caller of a request, and return it with its credential."""
    caller = msgspec.structs.replace(caller, address=exchange.address)
    caller = await authenticator.authenticate(caller, exchange.head.lines)
    admit(exchange, caller, authenticator)
    return caller


def admit(exchange: Exchange, caller: Caller, authenticator: Authenticator) -> None:
    """Count a request, and the bytes of its body, for an authenticated caller."""
    # One connection of a proxy may carry several callers with several keys.
    credential = caller.credential if caller.address == exchange.address else None
    exchange.accept(None if credential is None else credential.holder)
    exchange.held = authenticator.body_budget(caller)


class HttpService:
    """The server of all HTTP clients, and their agents.

    Attributes:
        clients: The clients of open requests of the later era.
        start: Starts a task of the server.
        abort: Ends everything at once.
        failed: Why the store failed permanently; None if it did not.
    """

    def __init__(
        self,
        server: McpServer,
        agent_for: Callable[[Caller, str], AgentPort],
        limits: Limits,
        authenticator: Authenticator,
    ) -> None:
        self.server = server
        self.limits = limits
        self.authenticator = authenticator
        self.clients: set[Client] = set()
        self.start: Callable[..., None] = _not_running
        self.abort: Callable[[], None] = _not_running
        self.failed: StoreFailedError | None = None
        self._agent_for = agent_for

    def client(self, caller: Caller, sink: ResponseSink, tasks: ClientTasks, **options: Any) -> Client:
        """Return a new client with the identity of a caller."""
        client = Client(
            self.server,
            lambda name: self._agent_for(caller, name),
            sink,
            self.limits,
            spawn=tasks.spawn,
            on_failure=lambda: self.fail(client.domain.failed),
            tools=caller.tool_choice,
            transport="http",
            is_single_request=caller.is_single_request,
            **options,
        )
        return client

    def count_request(self, caller: Caller, frame: Frame) -> float:
        """Count a request; return the seconds that the rate limit requires to wait."""
        if frame.method in UNCOUNTED:
            return 0.0
        rate_limit = self.authenticator.rate_limit(caller)
        return 0.0 if rate_limit is None else rate_limit.request(trio.current_time())

    def rate_limited_response(self, frame: Frame, seconds: float) -> Response | None:
        """Return the refusal beyond the rate limit; None within the limit and for tool calls.

        A tool call is answered with a failed result, so that its client raises no exception.
        """
        if seconds <= 0 or frame.method == "tools/call":
            return None
        assert frame.id is not None, "it is a request"
        refusal = rate_limit_refusal(seconds)
        body = rpc_error(
            INTERNAL_ERROR, refusal.sentence, id=frame.id, data={"code": refusal.code, **refusal.details}
        )
        after = b"%d" % math.ceil(seconds)
        return Response(HTTPStatus.TOO_MANY_REQUESTS, [JSON, (b"retry-after", after)], body)

    def fail(self, error: StoreFailedError | None) -> None:
        """Answer no further request: the state on disk is unknown."""
        self.failed = error
        self.abort()


class ClientTasks:
    """The tasks of one client."""

    __slots__ = ("_scopes", "_start")

    def __init__(self, start: Callable[..., None]) -> None:
        self._start = start
        self._scopes: set[trio.CancelScope] = set()

    def spawn(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Start a task; an error in it is logged, and affects no other client."""
        scope = trio.CancelScope()
        self._scopes.add(scope)
        self._start(self._run, scope, work, args)

    async def _run(self, scope: trio.CancelScope, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            with scope:
                await work(*args)
        except Exception:
            logger.exception("a task of an HTTP client failed")
        finally:
            self._scopes.discard(scope)

    def cancel(self) -> None:
        """Cancel the tasks."""
        for scope in list(self._scopes):
            scope.cancel()


def one_line(body: bytes) -> bytes:
    """Return a body as one line: line ends, which are blanks in JSON, become tabs.

    So stored parts of it can be written on one line later.
    """
    return body.translate(_LINE_ENDS) if b"\n" in body or b"\r" in body else body


def _not_running(*_: object) -> None:
    raise AssertionError("the application's `running` is entered before it serves")
