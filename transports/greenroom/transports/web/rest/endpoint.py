"""HTTP and JSON below `/api/v1`: requests as POST, reads of resources, and changes as events.

A request is handled like a tool call: with the same checks, the same agent, limits and records.

Invariants:

- Below `/api`, a caller from any address needs a key or a session.
- Every response has the security headers (`SAFE`), so no browser treats it as another type than its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec
import trio

from greenroom.actors import API_REQUESTS, ListResources, ReadResource, parse_request
from greenroom.actors.core.validation.parse import check_request
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.request_head import LAST_EVENT_ID
from greenroom.transports.sockets.http.responses import JSON, Response
from greenroom.transports.web.rest import openapi
from greenroom.transports.web.rest.browser_checks import NO_STORE, SAFE
from greenroom.transports.web.rest.browser_sessions import CONSOLE, LogIn, view_of
from greenroom.transports.web.rest.dispatch import Dispatcher
from greenroom.transports.web.rest.events import MOST_TOPICS
from greenroom.transports.web.rest.impersonation import PARAMETERS
from greenroom.transports.web.rest.problems import refusal_response
from greenroom.transports.web.rest.request_data import LOG_IN_SIZE, check_method, content_type, query
from greenroom.transports.web.rest.visitors import Visitor, Visitors

_JSON: Final = "application/json"
_API: Final = "/api"

Handler = Callable[[Exchange, Visitor], Awaitable[None]]


class ApiEndpoint:
    """Answers below `/api/v1`."""

    def __init__(self, visitors: Visitors, dispatcher: Dispatcher, *, frame: int) -> None:
        self._visitors = visitors
        self._dispatcher = dispatcher
        self._frame = frame
        root = openapi.ROOT
        self._routes: Mapping[str, tuple[str, Handler]] = {
            **{f"{root}/{name}": ("POST", partial(self._request, name)) for name in API_REQUESTS},
            f"{root}/events": ("GET", self._events),
            f"{root}/logout": ("POST", self._log_out),
            f"{root}/openapi.json": ("GET", self._description),
            f"{root}/resources": ("GET", self._resources),
            f"{root}/session": ("GET", self._session),
        }

    def serves(self, path: str) -> bool:
        """Return whether this endpoint answers at a path, possibly with a refusal."""
        return path == _API or path.startswith(f"{_API}/")

    def refused(self, error: HttpRefusedError) -> Response:
        """Render a refusal."""
        return refusal_response(error)

    def stop(self) -> None:
        """End the streams of changes."""
        self._dispatcher.stop()

    def fail_open_requests(self) -> None:
        """Cancel the open requests; each of them gets a response."""
        self._dispatcher.fail_open_requests()

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request; see `http.endpoint.Endpoint`."""
        exchange.extra = [*exchange.extra, NO_STORE, *SAFE]
        path = exchange.head.path
        if path == f"{openapi.ROOT}/login" and self._visitors.browsers_log_in:
            check_method(exchange.head, "POST")
            await self._log_in(exchange, caller)
        else:
            visitor = await self._visitors.let_in(exchange, caller)
            method, handler = self._routes.get(path, (None, None))
            if method is None or handler is None:
                sentence = f"there is no such path; {openapi.ROOT}/openapi.json lists all paths"
                raise HttpRefusedError(HTTPStatus.NOT_FOUND, sentence)
            check_method(exchange.head, method)
            if method == "GET":
                await exchange.discard()  # an unread body would delay the response
            await handler(exchange, visitor)

    # -- requests --------------------------------------------------------------------------------

    async def _request(self, name: str, exchange: Exchange, visitor: Visitor) -> None:
        response = self._dispatcher.check_rate(visitor)
        if response is None:
            body = await exchange.body(self._frame)
            kind = API_REQUESTS[name]
            is_json = content_type(exchange.head) == _JSON
            parse: Callable[[bytes], Any] = partial(parse_request, kind) if is_json else _no_json
            response = await self._dispatcher.request(exchange, visitor, name, body, kind, parse)
        await exchange.reply(response)

    async def _resources(self, exchange: Exchange, visitor: Visitor) -> None:
        given = query(exchange.head, "uri", "cursor", beside=PARAMETERS)
        if len(given) > 1 or any(len(values) > 1 for values in given.values()):
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "give uri or cursor, once")
        if "uri" in given:
            request: Any = ReadResource(uri=given["uri"][0])
        else:
            request = ListResources(cursor=given.get("cursor", [None])[0])
        response = self._dispatcher.check_rate(visitor)
        if response is None:
            response = await self._dispatcher.request(
                exchange, visitor, "resources", b"", type(request), lambda _body: check_request(request)
            )
        await exchange.reply(response)

    async def _events(self, exchange: Exchange, visitor: Visitor) -> None:
        topics = tuple(dict.fromkeys(query(exchange.head, "topic", beside=PARAMETERS).get("topic", ())))
        if not 0 < len(topics) <= MOST_TOPICS:
            sentence = f"name 1 to {MOST_TOPICS} resources, each as topic=URI, and not {len(topics)}"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
        response = self._dispatcher.check_rate(visitor)
        if response is None:
            comes_back = LAST_EVENT_ID in exchange.head.headers
            response = await self._dispatcher.stream_changes(exchange, visitor, topics, comes_back=comes_back)
        if response is not None:
            await exchange.reply(response)

    async def _session(self, exchange: Exchange, visitor: Visitor) -> None:
        view = view_of(visitor.caller, visitor.agent, visitor.session)
        await exchange.reply(Response(HTTPStatus.OK, [JSON], msgspec.json.encode(view)))

    async def _description(self, exchange: Exchange, _visitor: Visitor) -> None:
        for name in API_REQUESTS:  # the first build takes 0.1 s; other requests run meanwhile
            openapi.operation(name)
            await trio.lowlevel.checkpoint()
        await exchange.reply(Response(HTTPStatus.OK, [JSON], openapi.document()))

    # -- logging in and out ----------------------------------------------------------------------

    async def _log_in(self, exchange: Exchange, caller: Caller) -> None:
        caller = self._visitors.check_attempt(exchange, caller, by_form=False)
        if content_type(exchange.head) != _JSON:
            sentence = "the body is JSON; say Content-Type: application/json"
            raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
        try:
            shown = msgspec.json.decode(await exchange.body(LOG_IN_SIZE), type=LogIn)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            sentence = 'the body is {"key": "gr_..."} or {"link": "..."}'
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence) from None
        visitor, cookie = await self._visitors.log_in(exchange, caller, shown)
        view = msgspec.json.encode(view_of(visitor.caller, CONSOLE, visitor.session))
        await exchange.reply(Response(HTTPStatus.OK, [JSON, cookie], view))

    async def _log_out(self, exchange: Exchange, visitor: Visitor) -> None:
        await exchange.discard()
        await exchange.reply(
            Response(HTTPStatus.NO_CONTENT, [self._visitors.log_out(exchange, visitor)], b"")
        )


def _no_json(_body: bytes) -> Any:
    """Refuse a body that is not JSON; callers without the scope were refused before this."""
    sentence = "the body is the request's arguments as JSON; say Content-Type: application/json"
    raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
