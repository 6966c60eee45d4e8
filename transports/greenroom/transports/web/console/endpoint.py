"""The paths of the console: pages after log-in, the log-in page, downloads, script and styles.

Invariants:

- GET only reads. Changes are requests below `/api/v1`, or forms that a browser sends without a script. A form
  goes to its page with the CSRF token, as does the confirmation of a page or file.
- Without a session every path answers with the log-in page and reveals nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec

from greenroom.transports.auth.authenticator import Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.frames.calls import Limits
from greenroom.transports.mcp.server import McpServer
from greenroom.transports.mcp.tools.tool_errors import Failure
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.endpoint import Endpoint
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.sockets.http.responses import Header, Response
from greenroom.transports.web.console import static_files
from greenroom.transports.web.console.agent_names import AgentNames
from greenroom.transports.web.console.page_cache import PageCache, Turns
from greenroom.transports.web.console.rendering import name_of, render, render_long
from greenroom.transports.web.console.view import Entry, FileFunction, Form, Place, Reader, View, may_ask
from greenroom.transports.web.console.views.table import ENTRIES
from greenroom.transports.web.rest.browser_checks import NO_STORE, SAFE, SessionCookie, is_token
from greenroom.transports.web.rest.browser_path import MountedEndpoints
from greenroom.transports.web.rest.browser_sessions import CONSOLE, LINKS, BrowserSessions, LogIn, view_of
from greenroom.transports.web.rest.confirmation import ConfirmationNeededError
from greenroom.transports.web.rest.dispatch import Dispatcher, More
from greenroom.transports.web.rest.endpoint import ApiEndpoint
from greenroom.transports.web.rest.impersonation import PARAMETERS, VisitorAgent, parse_impersonation
from greenroom.transports.web.rest.problems import failure_response
from greenroom.transports.web.rest.request_data import any_query, check_method, form
from greenroom.transports.web.rest.visitors import Visitor, Visitors

HTML: Final = (b"content-type", b"text/html; charset=utf-8")
FORM_SIZE: Final = 262_144
"""The most bytes of a form: 20,000 characters of any language take at most 240,000."""
_LOG_IN: Final = "/login"
_LOG_OUT: Final = "/logout"


class ConsoleEndpoint:
    """Serves the pages of the console."""

    def __init__(self, visitors: Visitors, dispatcher: Dispatcher) -> None:
        self._visitors = visitors
        self._dispatcher = dispatcher
        self._entries = {entry.name: entry for entry in ENTRIES}
        self._kept = PageCache()
        self._turns = Turns()

    def serves(self, path: str) -> bool:
        """Return whether the console answers at a path, possibly with a refusal."""
        if path in {"/", _LOG_IN, _LOG_OUT} or path.startswith((LINKS, static_files.PREFIX)):
            return True
        first = path.removeprefix("/").partition("/")[0]
        return bool(first) and first in self._entries

    def refused(self, error: HttpRefusedError) -> Response:
        """Render a refusal as a page."""
        return _refusal_page("/", error)

    def stop(self) -> None:
        """Do nothing: pages are no streams."""

    def fail_open_requests(self) -> None:
        """Do nothing: `ApiEndpoint` cancels the requests that the two endpoints share."""

    async def serve(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request; see `http.endpoint.Endpoint`."""
        path = exchange.head.path
        exchange.extra = [*exchange.extra, *SAFE]
        if path.startswith(static_files.PREFIX):
            check_method(exchange.head, "GET")
            await exchange.discard()
            await exchange.reply(static_files.static_file(exchange.head))
            return
        exchange.extra = [*exchange.extra, NO_STORE]
        try:
            response = await self._answer(exchange, caller)
        except ConfirmationNeededError as error:
            response = self._confirmation_page(exchange.head, error)
        except HttpRefusedError as error:
            response = _refusal_page(path, error)
        if response is not None:
            await exchange.reply(response)

    async def _answer(self, exchange: Exchange, caller: Caller) -> Response | None:
        """Return the response, or None after a file was sent."""
        head = exchange.head
        if head.path == _LOG_IN and head.method == "POST":
            return await self._log_in(exchange, caller)
        if head.path == _LOG_OUT:
            check_method(head, "POST")
            return await self._log_out(exchange, caller)
        if head.method == "POST" and (taken := self._form_at(head)) is not None:
            return await self._take_form(exchange, caller, *taken)
        if head.method == "POST" and self._may_need_confirmation(head):
            return await self._answer_confirmation(exchange, caller)
        check_method(head, "GET")
        await exchange.discard()
        if head.path.startswith(LINKS):
            return _link_page(head.path)
        return await self._page(exchange, caller)

    # -- forms -------------------------------------------------------------------------------------

    def _form_at(self, head: RequestHead) -> tuple[Entry, Form] | None:
        """Return the form that is sent to an address, with its view."""
        first, _, rest = head.path.removeprefix("/").partition("/")
        entry = self._entries.get(first)
        found = None if entry is None else entry.forms.get(rest.rpartition("/")[2])
        if entry is None or found is None or parse_impersonation(head) is not None:
            return None
        return entry, found

    async def _take_form(self, exchange: Exchange, caller: Caller, entry: Entry, taken: Form) -> Response:
        """Carry out a form and redirect to the page that shows the result.

        So a reload repeats nothing.
        """
        sent = await form(exchange, "csrf_token", *taken.fields, most=FORM_SIZE)
        head = exchange.head
        if self._visitors.page_session(head) is None:
            raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "you are logged out")
        visitor = await self._visitors.let_in(exchange, caller, sent.pop("csrf_token", ""))
        place = _place(head)
        shell = _shell(visitor, entry, place)
        failed = partial(_failure_page, shell)
        limited = self._dispatcher.check_rate(visitor, failed)
        if limited is not None:
            return limited

        async def work(agent: VisitorAgent) -> Response:
            reader = Reader(agent, shell["who"])
            said = await taken.take(reader, place, sent)
            if isinstance(said, str):
                return Response(HTTPStatus.SEE_OTHER, [(b"location", f"{shell['root']}{said}".encode())], b"")
            values = {**_values(shell, said), "agents": reader.agent_names()}
            return Response(said.status, [HTML], await render_long(said.template, values, self._turns))

        return await self._dispatcher.answer(exchange, visitor, f"form {entry.name}", work, failed)

    # -- confirmations -----------------------------------------------------------------------------

    def _may_need_confirmation(self, head: RequestHead) -> bool:
        """Return whether a page or file may answer with a confirmation form."""
        first, _, rest = head.path.removeprefix("/").partition("/")
        entry = self._entries.get(first)
        return entry is not None and (rest in entry.files or parse_impersonation(head) is not None)

    async def _answer_confirmation(self, exchange: Exchange, caller: Caller) -> Response | None:
        """Answer the form of `_confirmation_page`; after it, redirect to an impersonation's page."""
        sent = await form(exchange, "csrf_token", "confirmation")
        if self._visitors.page_session(exchange.head) is None:
            raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "you are logged out")
        shown = sent.get("confirmation", "").strip()
        visitor = await self._visitors.let_in(exchange, caller, sent.get("csrf_token", ""), shown)
        if visitor.impersonation is None:
            return await self._respond(exchange, visitor)
        return Response(HTTPStatus.SEE_OTHER, [(b"location", f"?{exchange.head.query}".encode())], b"")

    def _confirmation_page(self, head: RequestHead, error: ConfirmationNeededError) -> Response:
        """Return a page with the form for a code or key."""
        session = self._visitors.page_session(head)
        if error.by is None or session is None:
            return _refusal_page(head.path, error)
        values = {"sentence": str(error), "by": error.by, "csrf_token": session.csrf_token}
        is_wrong = "yes" if error.is_wrong else ""
        return _plain_page("confirm.html", head.path, "Confirm it", error.status, is_wrong=is_wrong, **values)

    # -- pages -----------------------------------------------------------------------------------

    async def _page(self, exchange: Exchange, caller: Caller) -> Response | None:
        head = exchange.head
        if self._visitors.page_session(head) is None:
            return _plain_page(
                "log_in.html", head.path, "Log in", next=f"{head.path}?{head.query}"[1:].rstrip("?")
            )
        return await self._respond(exchange, await self._visitors.let_in(exchange, caller))

    async def _respond(self, exchange: Exchange, visitor: Visitor) -> Response | None:
        head = exchange.head
        first, _, rest = head.path.removeprefix("/").partition("/")
        if first not in self._entries:  # the log-in page, opened with a session
            return Response(HTTPStatus.SEE_OTHER, [(b"location", b"./")], b"")
        entry, place = self._entries[first], _place(head)
        shell = _shell(visitor, entry, place)
        failed = partial(_failure_page, shell)
        limited = self._dispatcher.check_rate(visitor, failed)
        if limited is not None:
            return limited
        if (file := entry.files.get(rest)) is not None:
            made = partial(_file, shell, file, place)
            return await self._dispatcher.download(exchange, visitor, f"page {first} {rest}", made, failed)
        work = partial(self._render, shell, entry, place, head.text(b"if-none-match"))
        return await self._dispatcher.answer(exchange, visitor, f"page {first or 'overview'}", work, failed)

    async def _render(
        self, shell: Mapping[str, Any], entry: Entry, place: Place, known: str | None, agent: VisitorAgent
    ) -> Response:
        """Return a page, or "not modified" if ``known`` is the page's tag."""
        reader = Reader(agent, shell["who"])
        view = await entry.show(reader, place)
        who = msgspec.structs.replace(reader.who, expires_in=None)  # it changes every second
        tag = self._kept.tag(who, place, read=reader.read)
        headers = [HTML, (b"etag", tag.encode())]
        if known is not None and known.removeprefix("W/") == tag and view.status == HTTPStatus.OK:
            return Response(HTTPStatus.NOT_MODIFIED, headers[1:], b"")
        values = {**_values(shell, view), "agents": reader.agent_names()}
        make = partial(render_long, view.template, values, self._turns)
        return Response(view.status, headers, await self._kept.page(tag, make))

    # -- logging in and out ----------------------------------------------------------------------

    async def _log_in(self, exchange: Exchange, caller: Caller) -> Response:
        caller = self._visitors.check_attempt(exchange, caller, by_form=True)
        shown = await form(exchange, "key", "link", "next")
        log_in = LogIn(key=shown.get("key"), link=shown.get("link"))
        _visitor, cookie = await self._visitors.log_in(exchange, caller, log_in)
        return _to(self._checked_next(shown.get("next", "")), cookie)

    def _checked_next(self, address: str) -> str:
        """Return a safe address for the time after log-in: only pages of the console."""
        first = address.partition("?")[0].partition("/")[0]
        is_ours = first and first in self._entries and address.isascii() and address.isprintable()
        return f"./{address}" if is_ours else "./"

    async def _log_out(self, exchange: Exchange, caller: Caller) -> Response:
        sent = await form(exchange, "csrf_token")
        visitor = await self._visitors.let_in(exchange, caller, sent.get("csrf_token", ""))
        return _to("./", self._visitors.log_out(exchange, visitor))


def _place(head: RequestHead) -> Place:
    """Return the address of a page."""
    rest = head.path.removeprefix("/").partition("/")[2]
    return Place(head.path, "/".join(name_of(part) for part in rest.split("/")), any_query(head))


def _file(
    shell: Mapping[str, Any], file: FileFunction, place: Place, agent: VisitorAgent
) -> tuple[list[Header], More]:
    """Return the headers of a download, and the function that reads the next part."""
    name, content_type, more = file(Reader(agent, shell["who"]), place)
    disposition = f'attachment; filename="{name}"'
    return [(b"content-type", content_type.encode()), (b"content-disposition", disposition.encode())], more


def _shell(visitor: Visitor, entry: Entry, place: Place) -> Mapping[str, Any]:
    """Return the values that all pages have after log-in.

    `kept` has the parameters of an impersonation; every link of the page keeps them.
    """
    who = view_of(visitor.caller, CONSOLE, visitor.session)
    may = partial(may_ask, who)
    return {
        **_basis(place.path),
        "who": who,
        "own_browser": None if visitor.session is None else visitor.session.id,
        "may": may,
        "here": entry.name,
        "kept": {name: place.query[name] for name in PARAMETERS if name in place.query},
        "place": place,
        "agents": AgentNames(),
        "entries": [each for each in ENTRIES if each.needs is None or may(each.needs)],
    }


def _basis(path: str) -> dict[str, Any]:
    """Return the values that all pages have: relative paths to root and static files."""
    root = "../" * (path.count("/") - 1) or "./"
    return {"root": root, "static": f"{root}static/{static_files.version()}"}


def _values(shell: Mapping[str, Any], view: View) -> Mapping[str, Any]:
    """Return the values for a view's template."""
    return {**shell, "title": view.title, "topics": view.topics, "every": view.every, **view.values}


def _failure_page(shell: Mapping[str, Any], failure: Failure) -> Response:
    answer = failure_response(failure)
    status = HTTPStatus(answer.status)
    retry = [header for header in answer.headers if header[0] == b"retry-after"]
    view = View("failure.html", status.phrase, {"sentence": failure.error})
    return Response(status, [HTML, *retry], render(view.template, _values(shell, view)))


def _refusal_page(path: str, error: HttpRefusedError) -> Response:
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()]
    page = _plain_page("refusal.html", path, error.status.phrase, error.status, sentence=str(error))
    return page._replace(headers=[*page.headers, *headers])


def _link_page(path: str) -> Response:
    """Return the page of a login link; only the page's form consumes the link."""
    link = path.removeprefix(LINKS)
    if not is_token(link):
        raise HttpRefusedError(HTTPStatus.NOT_FOUND, "there is no such link")
    return _plain_page("link.html", path, "Log in", link=link)


def _plain_page(
    template: str, path: str, title: str, status: HTTPStatus = HTTPStatus.OK, **values: str
) -> Response:
    """Return a page for a browser without a session."""
    return Response(status, [HTML], render(template, {**_basis(path), "title": title, **values}))


def _to(address: str, header: Header) -> Response:
    """Redirect a browser to a page; the header sets or clears the session cookie."""
    return Response(HTTPStatus.SEE_OTHER, [(b"location", address.encode()), header], b"")


class FrontPage:
    """Explains at `/` how to open a console that is below a secret path."""

    def serves(self, path: str) -> bool:
        """Return whether this endpoint answers at a path."""
        return path == "/" or path.startswith(static_files.PREFIX)

    def refused(self, error: HttpRefusedError) -> Response:
        """Render a refusal as a page."""
        return _refusal_page("/", error)

    def stop(self) -> None:
        """Do nothing: the page is no stream."""

    def fail_open_requests(self) -> None:
        """Do nothing: the page sends no requests."""

    async def serve(self, exchange: Exchange, caller: Caller) -> None:  # noqa: ARG002 - the same for all
        """Answer one request; see `http.endpoint.Endpoint`."""
        head = exchange.head
        exchange.extra = [*exchange.extra, *SAFE]
        check_method(head, "GET")
        await exchange.discard()
        if head.path != "/":
            await exchange.reply(static_files.static_file(head))
            return
        exchange.extra = [*exchange.extra, NO_STORE]
        await exchange.reply(_plain_page("how_to_open.html", "/", "Greenroom"))


def browser_endpoints(
    server: McpServer,
    agent_for: Callable[[Caller, str], AgentPort],
    authenticator: Authenticator,
    sessions: BrowserSessions,
    *,
    limits: Limits,
    base_url: str | None = None,
    path: str | None = None,
) -> tuple[Endpoint, ...]:
    """Return the endpoints of `/api` and of the console.

    The console is at `/`, or below the secret `path` if there is one. `agent_for` returns a caller's agent,
    given the caller and its sanitized name. Browsers reach the server at `base_url`, if that URL is known.
    """
    scheme, _, rest = (base_url or "").partition("://")
    authority, slash, above = rest.rstrip("/").partition("/")
    origin = None if base_url is None else f"{scheme}://{authority}".lower()
    dispatcher = Dispatcher(
        agent_for,
        authenticator,
        sessions,
        server.meter,
        server.log,
        request_timeout=server.request_timeout,
        debounce=server.debounce,
    )

    def visitors(cookie: SessionCookie | None) -> Visitors:
        return Visitors(authenticator, sessions, cookie=cookie, own_origin=origin)

    def api(comes: Visitors) -> Endpoint:
        return ApiEndpoint(comes, dispatcher, frame=limits.max_message_bytes)

    if path is None:
        people = visitors(SessionCookie(None))
        return api(people), ConsoleEndpoint(people, dispatcher)
    people = visitors(SessionCookie(f"{slash}{above}{path}"))
    below = MountedEndpoints(path, api(people), ConsoleEndpoint(people, dispatcher))
    return api(visitors(None)), FrontPage(), below
