"""Who comes: by a key in the head, or by the cookie of a browser that has logged in.

Invariants:

- Nobody is let in who has shown nothing, also where other transports let everybody in.
- A cookie counts for pages of this server alone, and whatever is posted with it shows the CSRF token.
- Attempts to log in that are wrong are counted by address, keys and links each for themselves. Before that
  nothing is done but to read a short body and to look what it shows up in memory.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.transports.auth.authenticator import AUTHORIZATION, Authenticator, unauthorized
from greenroom.transports.auth.caller import NAMELESS_AGENT, Caller
from greenroom.transports.base.errors import AccessDeniedError, HttpRefusedError
from greenroom.transports.sockets.http.asgi_exchange import Exchange
from greenroom.transports.sockets.http.endpoint import admit, authenticated
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.sockets.http.responses import Header
from greenroom.transports.web.rest.browser_checks import SessionCookie, comes_from_page, is_own_page, is_token
from greenroom.transports.web.rest.browser_sessions import (
    CONSOLE,
    CSRF_HEADER,
    BrowserSession,
    BrowserSessions,
    LogIn,
    principal_for,
)
from greenroom.transports.web.rest.confirmation import (
    CONFIRMATION_HEADER,
    SEE_AS,
    SEEING_SECONDS,
    Confirm,
    Confirmations,
    by_key,
)
from greenroom.transports.web.rest.impersonation import SeenAs, looking_on, seen_as

_CSRF: Final = CSRF_HEADER.lower().encode()
_CONFIRMATION: Final = CONFIRMATION_HEADER.lower().encode()
_READS: Final = frozenset({"GET", "HEAD"})


class Visitor(NamedTuple):
    """Somebody who was let in.

    Attributes:
        caller: Who it is, with a credential.
        session: The browser's session; None for who shows a key.
        looker: Who it is itself, where it looks on as another agent; then the caller is that one.
        confirm: Checks what the request shows to confirm something; None for who shows a key.
        seen: The agent as which it looks on.
    """

    caller: Caller
    session: BrowserSession | None = None
    looker: Principal | None = None
    confirm: Confirm | None = None
    seen: SeenAs | None = None

    @property
    def holder(self) -> str:
        """What it is counted under."""
        assert self.caller.credential is not None, "nobody is let in without anything"
        return self.caller.credential.holder

    @property
    def agent(self) -> str:
        """What its agent is called where neither its key nor it says so."""
        return NAMELESS_AGENT if self.session is None else CONSOLE

    def seeing_as(self, seen: SeenAs) -> Visitor:
        """Return the same as one who looks on as another agent, which reads what that one may.

        Whoever asks in its name, by `Asking.agent`, is refused all that writes, and is recorded.

        Raises:
            AccessDeniedError: it may not.
        """
        looker = principal_for(self.caller, self.agent)
        return self._replace(caller=looking_on(self.caller, looker, seen), looker=looker, seen=seen)


class Visitors:
    """Lets people and programs in.

    Args:
        authenticator: Knows keys and tokens.
        sessions: The browsers that have logged in.
        cookie: That of browsers; None lets programs in alone, by their keys.
        own_origin: The origin by which they reach this server, where that is known.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        sessions: BrowserSessions,
        *,
        cookie: SessionCookie | None,
        own_origin: str | None,
    ) -> None:
        self._authenticator = authenticator
        self._sessions = sessions
        self._confirmations = Confirmations(authenticator, sessions.note)
        self._cookie = cookie
        self._own_origin = own_origin

    @property
    def browsers_log_in(self) -> bool:
        """Whether browsers log in here."""
        return self._cookie is not None

    async def let_in(
        self,
        exchange: Exchange,
        caller: Caller,
        csrf_token: str | None = None,
        confirmation: str | None = None,
    ) -> Visitor:
        """Return who sends a request; where it says as whom it wants to look on, as `Visitor.seeing_as` does.

        Args:
            exchange: The request.
            caller: Whom its headers say it is.
            csrf_token: The token, where a form of ours sends it in its body.
            confirmation: A code or a key, likewise.

        Raises:
            HttpRefusedError: it has shown nothing right, or may not use what it has.
        """
        head = exchange.head
        session = None if AUTHORIZATION in head.headers else self._session(head)
        if session is not None:
            visitor = self._by_session(exchange, session, csrf_token)
            shown = confirmation if confirmation is not None else head.text(_CONFIRMATION)
            confirm = partial(self._confirmations.confirm, session, visitor.caller, head.lines, shown)
            return await self._seeing(head, visitor._replace(confirm=confirm))
        caller = await authenticated(exchange, caller, self._authenticator)
        if caller.credential is None:
            raise unauthorized("log in, or show a key, which `greenroom keys create` makes on the server")
        return await self._seeing(head, Visitor(caller))

    async def _seeing(self, head: RequestHead, visitor: Visitor) -> Visitor:
        seen = seen_as(head)
        if seen is None:
            return visitor
        try:
            looking = visitor.seeing_as(seen)
        except AccessDeniedError:
            self._authenticator.record_denial(visitor.caller, head.lines, HTTPStatus.FORBIDDEN, "see_as")
            raise
        if visitor.session is not None and visitor.confirm is not None and not visitor.session.sees(seen):
            await visitor.confirm(SEE_AS)
            visitor.session.begin_seeing(seen, SEEING_SECONDS)
        return looking

    def seen(self, head: RequestHead) -> BrowserSession | None:
        """Return the session of a browser that opens a page; None where it has none."""
        return self._session(head) if is_own_page(head, self._own_origin) else None

    def _session(self, head: RequestHead) -> BrowserSession | None:
        token = None if self._cookie is None else self._cookie.read(head)
        return None if token is None else self._sessions.find(token)

    def _by_session(self, exchange: Exchange, session: BrowserSession, csrf_token: str | None) -> Visitor:
        head, caller = exchange.head, msgspec.structs.replace(session.caller, address=exchange.address)
        self._check_page(head, caller, "use_session")
        if head.method not in _READS:
            shown = csrf_token if csrf_token is not None else head.text(_CSRF) or ""
            if not session.has_token(shown):
                sentence = f"a browser sends the token of its log-in in the header {CSRF_HEADER}"
                raise self._denied(head, caller, "use_session", sentence)
        caller = self._authenticator.readmit(caller, head.lines)
        admit(exchange, caller, self._authenticator)
        return Visitor(caller, session)

    # -- logging in and out ----------------------------------------------------------------------

    def check_attempt(self, exchange: Exchange, caller: Caller, *, by_form: bool) -> Caller:
        """Check where an attempt to log in comes from; return the caller with that address.

        Raises:
            HttpRefusedError: a page of another origin sent it.
        """
        head, caller = exchange.head, msgspec.structs.replace(caller, address=exchange.address)
        self._check_page(head, caller, "log_in")
        if by_form and not comes_from_page(head):
            raise self._denied(head, caller, "log_in", "no browser says that a page of this server sent this")
        return msgspec.structs.replace(caller, address=self._authenticator.address_of(caller, head.lines))

    async def log_in(self, exchange: Exchange, caller: Caller, shown: LogIn) -> tuple[Visitor, Header]:
        """Return who logs in, and the header with the cookie.

        Args:
            exchange: The request.
            caller: What `check_attempt` returned.
            shown: A key, or the token of a link.

        Raises:
            HttpRefusedError: what is shown opens nothing.
        """
        assert self._cookie is not None, "browsers do not log in here"
        if (shown.key is None) == (shown.link is None):
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "log in with one of: key, link")
        if shown.link is not None:
            known = is_token(shown.link)
            found = self._sessions.use_link(shown.link, caller.address) if known else None
            if found is None:
                self._authenticator.count_wrong(caller.address, "log_in")
                sentence = "there is no such link, or it was used, or has expired"
                raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, sentence)
            comes, codes = found
            token, session = self._sessions.begin(comes, by="link", codes=codes)
        else:
            caller = msgspec.structs.replace(caller, address=exchange.address)
            key = (shown.key or "").strip()
            comes = await by_key(self._authenticator, caller, exchange.head.lines, key)
            token, session = self._sessions.begin(comes, by="key")
        return Visitor(comes, session), self._cookie.setting(exchange.head, token)

    def log_out(self, exchange: Exchange, visitor: Visitor) -> Header:
        """End a browser's session; return the header that has it forget the cookie.

        Raises:
            HttpRefusedError: it has none, or looks on as somebody else.
        """
        if visitor.looker is not None:
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, "who looks on as another agent logs out as itself")
        if visitor.session is None:
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "only a browser that has logged in logs out")
        assert self._cookie is not None, "no browser has logged in here"
        self._sessions.log_out(visitor.session)
        return self._cookie.clearing(exchange.head)

    def _check_page(self, head: RequestHead, caller: Caller, action: str) -> None:
        if not is_own_page(head, self._own_origin):
            raise self._denied(head, caller, action, "a page of another origin may not use this log-in")

    def _denied(self, head: RequestHead, caller: Caller, action: str, sentence: str) -> AccessDeniedError:
        self._authenticator.record_denial(caller, head.lines, HTTPStatus.FORBIDDEN, action)
        return AccessDeniedError(HTTPStatus.FORBIDDEN, sentence)
