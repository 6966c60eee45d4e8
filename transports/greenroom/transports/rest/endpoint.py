"""HTTP and JSON below `/api/v1`: each request of the domain a POST, reads of resources, changes as events.

A request goes the way of a tool call: the same checks, agent of the domain, limits and records.

Invariants:

- Nobody is answered below `/api` who has not shown a key or logged in, wherever they come from.
- Whatever is answered, no browser takes it for anything but what its head says (`pages.SAFE`).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import trio

from greenroom.actors import API_REQUESTS, ListResources, ReadResource, parse_request
from greenroom.actors.base.parse import check_request
from greenroom.transports.auth.caller import NAMELESS_AGENT, Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.http.asgi_exchange import Exchange
from greenroom.transports.http.request_head import CONTENT_TYPE, LAST_EVENT_ID, RequestHead
from greenroom.transports.http.responses import JSON, Response
from greenroom.transports.rest import openapi, pages
from greenroom.transports.rest.asking import Asking
from greenroom.transports.rest.browser_checks import is_token
from greenroom.transports.rest.browser_sessions import CONSOLE, LINKS, LogIn, view_of
from greenroom.transports.rest.events import MOST_TOPICS
from greenroom.transports.rest.problems import refusal_response
from greenroom.transports.rest.visitors import Visitor, Visitors

LOG_IN_SIZE: Final = 16_384
"""Bytes of a log-in's body; an access token may have thousands."""
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"
_API: Final = "/api"

Handler = Callable[[Exchange, Visitor], Awaitable[None]]
Page = Callable[[Exchange, Caller], Awaitable[Response]]


class ApiEndpoint:
    """Answers below `/api/v1`, and at the few pages for people.

    Args:
        visitors: Lets people and programs in.
        asking: Asks the domain.
        frame: The longest body of a request, in bytes.
    """

    def __init__(self, visitors: Visitors, asking: Asking, *, frame: int) -> None:
        self._visitors = visitors
        self._asking = asking
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
        self._pages: Mapping[str, tuple[str, Page]] = {
            "/": ("GET", self._start_page),
            "/login": ("POST", self._login_form),
            "/logout": ("POST", self._logout_form),
        }

    def serves(self, path: str) -> bool:
        """Return whether it answers at a path, be it with a refusal."""
        return path in self._pages or path == _API or path.startswith((f"{_API}/", LINKS))

    def refused(self, error: HttpRefusedError) -> Response:
        """Return the answer that a refusal stands for."""
        return refusal_response(error)

    def stop(self) -> None:
        """End the streams of changes."""
        self._asking.stop()

    def fail_open_requests(self) -> None:
        """Have the requests answered that are under way."""
        self._asking.fail_open_requests()

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request, see `http.endpoint.Endpoint`."""
        exchange.extra = [*exchange.extra, *pages.SAFE]
        path = exchange.head.path
        if path == f"{openapi.ROOT}/login":
            _check_method(exchange.head, "POST")
            await self._log_in(exchange, caller)
        elif path.startswith(_API):
            visitor = await self._visitors.let_in(exchange, caller)
            method, handler = self._routes.get(path, (None, None))
            if method is None or handler is None:
                sentence = f"there is no such path; {openapi.ROOT}/openapi.json has those that there are"
                raise HttpRefusedError(HTTPStatus.NOT_FOUND, sentence)
            _check_method(exchange.head, method)
            if method == "GET":
                await exchange.discard()  # what nobody reads would keep the answer waiting
            await handler(exchange, visitor)
        else:
            await exchange.reply(await self._page(exchange, caller))

    # -- requests --------------------------------------------------------------------------------

    async def _request(self, name: str, exchange: Exchange, visitor: Visitor) -> None:
        if _content_type(exchange.head) != _JSON:
            sentence = "the body is the request's arguments as JSON; say Content-Type: application/json"
            raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
        response = self._asking.limited(visitor)
        if response is None:
            body = await exchange.body(self._frame)
            parse = partial(parse_request, API_REQUESTS[name])
            response = await self._asking.answer(exchange, visitor, name, body, parse)
        await exchange.reply(response)

    async def _resources(self, exchange: Exchange, visitor: Visitor) -> None:
        given = _query(exchange.head, "uri", "cursor")
        if len(given) > 1 or any(len(values) > 1 for values in given.values()):
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "give uri or cursor, once")
        if "uri" in given:
            request: Any = ReadResource(uri=given["uri"][0])
        else:
            request = ListResources(cursor=given.get("cursor", [None])[0])
        response = self._asking.limited(visitor)
        if response is None:
            checked = partial(_checked, request)
            response = await self._asking.answer(exchange, visitor, "resources", b"", checked)
        await exchange.reply(response)

    async def _events(self, exchange: Exchange, visitor: Visitor) -> None:
        topics = tuple(dict.fromkeys(_query(exchange.head, "topic").get("topic", ())))
        if not 0 < len(topics) <= MOST_TOPICS:
            sentence = f"name 1 to {MOST_TOPICS} resources, each as topic=URI, and not {len(topics)}"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
        response = self._asking.limited(visitor)
        if response is None:
            comes_back = LAST_EVENT_ID in exchange.head.headers
            response = await self._asking.tell_changes(exchange, visitor, topics, comes_back=comes_back)
        if response is not None:
            await exchange.reply(response)

    async def _session(self, exchange: Exchange, visitor: Visitor) -> None:
        agent = NAMELESS_AGENT if visitor.session is None else CONSOLE
        view = view_of(visitor.caller, agent, visitor.session)
        await exchange.reply(Response(HTTPStatus.OK, [JSON], msgspec.json.encode(view)))

    async def _description(self, exchange: Exchange, _visitor: Visitor) -> None:
        for name in API_REQUESTS:  # 0.1 s when it is first asked for, in which others are served
            openapi.operation(name)
            await trio.lowlevel.checkpoint()
        await exchange.reply(Response(HTTPStatus.OK, [JSON], openapi.document()))

    # -- logging in and out ----------------------------------------------------------------------

    async def _log_in(self, exchange: Exchange, caller: Caller) -> None:
        caller = self._visitors.check_attempt(exchange, caller, by_form=False)
        if _content_type(exchange.head) != _JSON:
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

    # -- pages -----------------------------------------------------------------------------------

    async def _page(self, exchange: Exchange, caller: Caller) -> Response:
        path = exchange.head.path
        method, page = self._pages.get(path, ("GET", self._link_page))
        try:
            _check_method(exchange.head, method)
            return await page(exchange, caller)
        except HttpRefusedError as error:
            return pages.refusal_page(error)

    async def _start_page(self, exchange: Exchange, _caller: Caller) -> Response:
        session = self._visitors.seen(exchange.head)
        return pages.start_page(None if session is None else view_of(session.caller, CONSOLE, session))

    async def _link_page(self, exchange: Exchange, _caller: Caller) -> Response:
        link = exchange.head.path.removeprefix(LINKS)
        if not is_token(link):
            raise HttpRefusedError(HTTPStatus.NOT_FOUND, "there is no such link")
        return pages.link_page(link)

    async def _login_form(self, exchange: Exchange, caller: Caller) -> Response:
        caller = self._visitors.check_attempt(exchange, caller, by_form=True)
        shown = await _form(exchange, "key", "link")
        log_in = LogIn(key=shown.get("key"), link=shown.get("link"))
        _visitor, cookie = await self._visitors.log_in(exchange, caller, log_in)
        return pages.to_start(cookie)

    async def _logout_form(self, exchange: Exchange, caller: Caller) -> Response:
        sent = await _form(exchange, "csrf_token")
        visitor = await self._visitors.let_in(exchange, caller, sent.get("csrf_token", ""))
        return pages.to_start(self._visitors.log_out(exchange, visitor))


def _check_method(head: RequestHead, method: str) -> None:
    if head.method != method:
        sentence = f"this is asked with {method}"
        raise HttpRefusedError(HTTPStatus.METHOD_NOT_ALLOWED, sentence, Allow=method)


def _content_type(head: RequestHead) -> str:
    return (head.text(CONTENT_TYPE) or "").partition(";")[0].strip().lower()


def _checked(request: Any, _body: bytes) -> Any:
    return check_request(request)


def _query(head: RequestHead, *known: str) -> dict[str, list[str]]:
    """Return the values of each parameter of a URL."""
    return _fields(head.query, known, "the URL")


async def _form(exchange: Exchange, *known: str) -> dict[str, str]:
    """Return the fields of a form that a browser sent."""
    if _content_type(exchange.head) != _FORM:
        raise HttpRefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this is no form of a page of this server")
    text = (await exchange.body(LOG_IN_SIZE)).decode("latin-1")
    return {name: values[0] for name, values in _fields(text, known, "the form").items()}


def _fields(text: str, known: tuple[str, ...], where: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict")
    except ValueError:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, f"{where} cannot be read") from None
    for name, value in pairs:
        if name not in known:
            sentence = f"{where} has no parameter {json.dumps(name[:50])}; it takes {', '.join(known)}"
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
        found.setdefault(name, []).append(value)
    return found
