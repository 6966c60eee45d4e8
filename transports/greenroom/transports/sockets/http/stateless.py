"""MCP's later era (2026-07-28) over HTTP: each POST is a request with its own client."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final

import msgspec
import trio

from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.frames.frames import (
    INVALID_REQUEST,
    NO_ID,
    Frame,
    FrameError,
    RequestError,
    parse_frame,
)
from greenroom.transports.mcp.frames.versions import Era, check_version
from greenroom.transports.mcp.tools.tools import Tool
from greenroom.transports.sockets.http.asgi_exchange import PING_INTERVAL, Exchange
from greenroom.transports.sockets.http.endpoint import ClientTasks, HttpService, one_line
from greenroom.transports.sockets.http.event_log import event
from greenroom.transports.sockets.http.request_head import VERSION, RequestHead
from greenroom.transports.sockets.http.responses import JSON, Header, Response, rpc_error
from greenroom.transports.sockets.http.stateless_rules import (
    HEADER_MISMATCH,
    STATUS,
    Rejection,
    rejection_of,
    status_of,
)

_NO_MESSAGE: Final = Rejection(
    INVALID_REQUEST, "Body must be a single JSON-RPC request or notification object"
)
_PARAMETER_HEADER: Final = b"mcp-param-"
_SDK_RULES: Final = "mcp.shared.inbound"


class StatelessResponse:
    """The response in the later era: JSON, or a stream after its first notification."""

    patience = PING_INTERVAL
    headers: Sequence[Header] = ()

    __slots__ = ("_done", "_events", "_exchange", "_limits", "_room", "_unsent", "line", "streams")

    def __init__(self, exchange: Exchange, limits: Limits) -> None:
        self.line: bytes | None = None
        self.streams = False
        self._done = False
        self._events: list[bytes] = []
        self._unsent = 0
        self._exchange = exchange
        self._limits = limits
        self._room: trio.Event | None = None

    # -- as a sink -----------------------------------------------------------------------------

    def send(self, line: bytes) -> None:
        """Take a notification."""
        self.streams = True
        self._events.append(event(line))
        self._unsent += len(line)
        if self._unsent > self._limits.unsent_bytes:
            self._exchange.abort()
        self._exchange.wake()

    def answer(self, line: bytes) -> None:
        """Take the answer."""
        self._done = True
        if self.streams:
            self._events.append(event(line))
        else:
            self.line = line
        self._exchange.wake()

    def unanswered(self) -> None:
        """End without an answer."""
        self._done = True
        self._exchange.wake()

    def close_stream(self) -> None:
        """Do nothing: streams of this era are not resumed."""

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all of its output."""
        while self._unsent > self._limits.unsent_notices:
            self._room = trio.Event()
            await self._room.wait()

    # -- as a response ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Become a stream."""
        self.streams = True

    def opening(self) -> bytes:
        """Return the first bytes of the stream."""
        return b""

    def take(self) -> bytes:
        """Return the new events."""
        events, self._events = self._events, []
        return b"".join(events)

    def mark_sent(self) -> None:
        """Record that the client has taken the events."""
        self._unsent = sum(map(len, self._events))
        if self._room is not None and self._unsent <= self._limits.unsent_notices:
            self._room.set()

    @property
    def over(self) -> bool:
        """Whether the stream ends after its new events."""
        return self._done


class StatelessEndpoint:
    """Serves requests of the later era."""

    def __init__(self, service: HttpService) -> None:
        self._service = service
        self._schemas = schemas_with_headers(service.server.tools)

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one HTTP request."""
        head = exchange.head
        if head.method != "POST":
            sentence = "this revision of the protocol has only POST"
            raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, sentence, Allow="POST")
        head.check_content_type()
        head.check_accept(json=True)
        body = await exchange.body(self._service.limits.max_message_bytes)
        try:
            frame = parse_frame(one_line(body))
        except FrameError as error:
            await exchange.reply(_rejected(Rejection(error.code, str(error)), error.id))
            return
        if frame is None or frame.is_response:
            await exchange.reply(_rejected(_NO_MESSAGE))
        elif frame.id is None:
            # This era has no notifications from clients, and no state that they could change.
            try:
                check_version(head.text(VERSION) or "")
            except RequestError as error:
                await exchange.reply(_rejected(Rejection(error.code, str(error), error.data)))
            else:
                await exchange.reply(Response(202, (), b""))
        else:
            await self._answer(exchange, caller, frame, frame.id)

    async def _answer(self, exchange: Exchange, caller: Caller, frame: Frame, id: bytes) -> None:
        rejection = rejection_of(exchange.head, frame)
        if rejection is None and self._schemas and frame.name in self._schemas:
            rejection = await _parameter_mismatch(exchange.head, frame, self._schemas[frame.name])
        if rejection is not None:
            await exchange.reply(_rejected(rejection, id))
            return
        wait = self._service.count_request(caller, frame)
        if (limited := self._service.rate_limited_response(frame, wait)) is not None:
            await exchange.reply(limited)
            return
        service = self._service
        tasks = ClientTasks(service.start)
        answer = StatelessResponse(exchange, service.limits)
        client = service.client(msgspec.structs.replace(caller, is_single_request=True), answer, tasks)
        client.identity.speak(Era.MODERN)
        service.clients.add(client)

        def lose(_: str) -> None:
            client.close()
            exchange.abort()

        try:
            with service.authenticator.hold_connection(caller, lose):
                exchange.is_recorded = True
                client.take(frame, answer, wait)
                await exchange.settle(answer, lambda line: Response(status_of(line, id), [JSON], line[:-1]))
        finally:
            service.clients.discard(client)
            client.close()
            tasks.cancel()


def schemas_with_headers(tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Return the schemas of tools that need some of their arguments in headers, too."""
    schemas = {name: tool.listing()["inputSchema"] for name, tool in tools.items()}
    return {
        name: schema for name, schema in schemas.items() if b'"x-mcp-header"' in msgspec.json.encode(schema)
    }


async def _parameter_mismatch(head: RequestHead, frame: Frame, schema: Any) -> Rejection | None:
    """Return the SDK's objection to the headers that repeat a call's arguments."""
    given = [name for name, _ in head.lines if name.startswith(_PARAMETER_HEADER)]
    for name in given:
        if given.count(name) > 1:
            return Rejection(HEADER_MISMATCH, f"{name.decode()} header appears more than once")
    if _SDK_RULES not in sys.modules:
        await trio.to_thread.run_sync(import_module, _SDK_RULES)
    rules = import_module(_SDK_RULES)
    headers = {name.decode(): value.decode("latin-1") for name, value in head.lines}
    found = rules.validate_mcp_param_headers(schema, msgspec.json.decode(frame.arguments), headers)
    return None if found is None else Rejection(found.code, found.message, found.data)


def _rejected(rejection: Rejection, id: bytes = NO_ID) -> Response:
    code, sentence, data = rejection
    return Response(STATUS.get(code, 200), [JSON], rpc_error(code, sentence, id=id, data=data))
