"""Authentication of visitors: by a key in the headers, or by a browser's session cookie.

Invariants:

- Every visitor has a key or a session, even if other transports accept unauthenticated clients.
- A cookie is valid only for pages of this server, and each POST also needs the CSRF token.
- Wrong log-ins are counted by address, separately for keys and links. Before it counts, the server only
  reads a short body and looks up the credential in memory.
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
    IMPERSONATE,
    IMPERSONATION_SECONDS,
    Confirm,
    Confirmations,
    authenticate_key,
)
from greenroom.transports.web.rest.impersonation import Impersonation, impersonate, parse_impersonation

_CSRF: Final = CSRF_HEADER.lower().encode()
_CONFIRMATION: Final = CONFIRMATION_HEADER.lower().encode()
_READS: Final = frozenset({"GET", "HEAD"})


class Visitor(NamedTuple):
    """An authenticated caller."""

    caller: Caller
    session: BrowserSession | None = None  # the browser's session; None for a caller with a key
    # The impersonator, if any; the caller is then the impersonated agent.
    impersonator: Principal | None = None
    confirm: Confirm | None = None  # checks the confirmation of the request; None for a caller with a key
    impersonation: Impersonation | None = None

    @property
    def holder(self) -> str:
        """The id under which the visitor's requests are counted."""
        assert self.caller.credential is not None, "a visitor has a credential"
        return self.caller.credential.holder

    @property
    def agent(self) -> str:
        """The default name of the visitor's agent."""
        return NAMELESS_AGENT if self.session is None else CONSOLE


class Visitors:
    """Authenticates people and programs."""

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
        """Whether browsers can log in here."""
        return self._cookie is not None

    async def let_in(
        self,
        exchange: Exchange,
        caller: Caller,
        csrf_token: str | None = None,
        confirmation: str | None = None,
    ) -> Visitor:
        """Authenticate the sender of a request, and apply an impersonation that it requests.

        Args:
            exchange: The request.
            caller: The caller that the headers claim.
            csrf_token: The token, if a form sent it in its body.
            confirmation: A code or a key, if a form sent it in its body.

        Raises:
            HttpRefusedError: the credential is missing, wrong, or not allowed here.
        """
        head = exchange.head
        session = None if AUTHORIZATION in head.headers else self._session(head)
        if session is not None:
            visitor = self._by_session(exchange, session, csrf_token)
            shown = confirmation if confirmation is not None else head.text(_CONFIRMATION)
            confirm = partial(self._confirmations.confirm, session, visitor.caller, head.lines, shown)
            return await self._apply_impersonation(head, visitor._replace(confirm=confirm))
        caller = await authenticated(exchange, caller, self._authenticator)
        if caller.credential is None:
            raise unauthorized("log in, or show a key, which `greenroom keys create` makes on the server")
        return await self._apply_impersonation(head, Visitor(caller))

    async def _apply_impersonation(self, head: RequestHead, visitor: Visitor) -> Visitor:
        seen = parse_impersonation(head)
        if seen is None:
            return visitor
        impersonator = principal_for(visitor.caller, visitor.agent)
        try:
            caller = impersonate(visitor.caller, impersonator, seen)
        except AccessDeniedError:
            self._authenticator.record_denial(visitor.caller, head.lines, HTTPStatus.FORBIDDEN, "see_as")
            raise
        if (
            visitor.session is not None
            and visitor.confirm is not None
            and not visitor.session.may_impersonate(seen)
        ):
            await visitor.confirm(IMPERSONATE)
            visitor.session.allow_impersonation(seen, IMPERSONATION_SECONDS)
        # The agent that `Dispatcher.agent` returns for this visitor refuses all writes and records all reads.
        return visitor._replace(caller=caller, impersonator=impersonator, impersonation=seen)

    def page_session(self, head: RequestHead) -> BrowserSession | None:
        """Return the session of a browser that opens a page; None if there is none."""
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
        """Check the origin of a log-in attempt; return the caller with the attempt's address."""
        head, caller = exchange.head, msgspec.structs.replace(caller, address=exchange.address)
        self._check_page(head, caller, "log_in")
        if by_form and not comes_from_page(head):
            raise self._denied(head, caller, "log_in", "no browser says that a page of this server sent this")
        return msgspec.structs.replace(caller, address=self._authenticator.address_of(caller, head.lines))

    async def log_in(self, exchange: Exchange, caller: Caller, shown: LogIn) -> tuple[Visitor, Header]:
        """Log a browser in; return the visitor, and the header with the cookie."""
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
            comes = await authenticate_key(self._authenticator, caller, exchange.head.lines, key)
            token, session = self._sessions.begin(comes, by="key")
        return Visitor(comes, session), self._cookie.header(exchange.head, token)

    def log_out(self, exchange: Exchange, visitor: Visitor) -> Header:
        """End a browser's session; return the header that deletes the cookie."""
        if visitor.impersonator is not None:
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, "end the impersonation first, then log out")
        if visitor.session is None:
            raise HttpRefusedError(HTTPStatus.BAD_REQUEST, "only a browser that has logged in logs out")
        assert self._cookie is not None, "no browser has logged in here"
        self._sessions.log_out(visitor.session)
        return self._cookie.header(exchange.head, None)

    def _check_page(self, head: RequestHead, caller: Caller, action: str) -> None:
        if not is_own_page(head, self._own_origin):
            raise self._denied(head, caller, action, "a page of another origin may not use this log-in")

    def _denied(self, head: RequestHead, caller: Caller, action: str, sentence: str) -> AccessDeniedError:
        self._authenticator.record_denial(caller, head.lines, HTTPStatus.FORBIDDEN, action)
        return AccessDeniedError(HTTPStatus.FORBIDDEN, sentence)
