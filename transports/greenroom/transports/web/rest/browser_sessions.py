"""Sessions of browsers that have logged in, and one-time login links for the folder's owner.

Invariants:

- Only digests of cookies and links are kept, in memory only. All of them end with the server.
- A link works once, and only within `LINK_SECONDS`.
- A session ends with its key, at log-out, after `IDLE` seconds without a request, and after `LIFETIME`.
  Its open requests and streams end with it.
"""

from __future__ import annotations

import hmac
import secrets
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec
import trio

from greenroom.actors.core.auth.grants import Credential, Grant, principal_of
from greenroom.actors.core.auth.principal import LINK, Principal
from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.transports.auth.authenticator import AuditHook, Authenticator
from greenroom.transports.auth.caller import Caller
from greenroom.transports.web.rest.link_files import LinkFiles
from greenroom.transports.web.rest.terminal_codes import TerminalCodes, Terminals, digest_of

CSRF_HEADER: Final = "X-CSRF-Token"
IDLE: Final = 1_800.0
LIFETIME: Final = 43_200.0
LINK_SECONDS: Final = 60.0
LINKS: Final = "/login/"
"""The part of a link's path before the token."""
MOST: Final = 1_024
"""The most sessions at once, and `MOST_OF_ONE` per key. A new one replaces the least recently used."""
MOST_OF_ONE: Final = 32
MOST_LINKS: Final = 64
MOST_IMPERSONATIONS: Final = 32
"""The most agents that one browser may impersonate without a new confirmation."""
MOST_EXPORTED: Final = 1_000
READ_ONLY: Final = frozenset({"*:read"})
CONSOLE: Final = "console"
"""The agent's name for a browser that has no other name."""
_FOREVER: Final = 1 << 62
_BYTES: Final = 32


class LogIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a log-in: exactly one of the two members.

    Attributes:
        key: An API key, or an access token.
        link: The token at the end of a link of `greenroom console`.
    """

    key: str | None = None
    link: str | None = None


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a caller.

    Attributes:
        agent: The agent id.
        agent_type: The agent type.
        user: The user.
        projects: The projects; None for every one.
        scopes: What they may do.
        seen_by: The agent that impersonates this one; None without impersonation.
        csrf_token: The value of ``X-CSRF-Token`` for a browser's POSTs; None for a caller with a key.
        expires_in: Seconds until a browser's session ends at the latest; None for a caller with a key.
    """

    agent: str
    agent_type: str | None
    user: str | None
    projects: list[str] | None
    scopes: list[str]
    seen_by: str | None = None
    csrf_token: str | None = None
    expires_in: int | None = None


class BrowserSession:
    """The session of one browser."""

    def __init__(self, digest: bytes, caller: Caller, codes: TerminalCodes | None = None) -> None:
        self.id = secrets.token_hex(8)  # public, since it grants no access
        self.caller = caller
        self.csrf_token = secrets.token_urlsafe(_BYTES)  # proves that a page of this server sent a request
        self.began = self.used = trio.current_time()  # times of the log-in and of the last request
        self.began_at = datetime.now(UTC)
        self.has_ended = False
        self.digest = digest
        self.codes = codes  # codes of the terminal that made the link; None without one, or for a key
        self.impersonations: dict[Hashable, float] = {}  # confirmed impersonations, and when each ends
        self.exported: deque[str] = deque(maxlen=MOST_EXPORTED)  # URIs of confirmed memory exports
        self.kept = ExitStack()
        self.open: set[Callable[[str], None]] = set()

    @property
    def is_of_owner(self) -> bool:
        """Whether the folder's owner logged in by a link, without a key."""
        return is_of_owner(self.caller)

    @property
    def ends_at(self) -> float:
        """The time at which the session ends if no further request comes."""
        return min(self.used + IDLE, self.began + LIFETIME)

    def may_impersonate(self, seen: Hashable) -> bool:
        """Return whether an impersonation is confirmed and has not expired."""
        return trio.current_time() < self.impersonations.get(seen, 0.0)

    def allow_impersonation(self, seen: Hashable, seconds: float) -> None:
        """Allow an impersonation for some seconds; if there are `MOST_IMPERSONATIONS`, end the oldest."""
        self.impersonations.pop(seen, None)
        while len(self.impersonations) >= MOST_IMPERSONATIONS:
            del self.impersonations[next(iter(self.impersonations))]
        self.impersonations[seen] = trio.current_time() + seconds

    def has_token(self, shown: str) -> bool:
        """Compare a text with the CSRF token in constant time."""
        return hmac.compare_digest(self.csrf_token.encode(), shown.encode())

    @contextmanager
    def hold(self, end: Callable[[str], None]) -> Iterator[None]:
        """Call ``end(reason)`` if the session ends during the block or has already ended."""
        self.open.add(end)
        if self.has_ended:
            end("the session has ended")
        try:
            yield
        finally:
            self.open.discard(end)


class _Link(NamedTuple):
    until: float
    read_only: bool
    codes: TerminalCodes | None


class BrowserSessions:
    """The sessions of one server's browsers.

    Args:
        authenticator: Reports when keys end.
        owner: The grant of a caller who logged in by a link.
        note: Records links, log-ins, log-outs and other actions of browsers in the audit log.
        files: Files that redirect to links; None if links are only printed.
    """

    def __init__(
        self, authenticator: Authenticator, owner: Grant, note: AuditHook, files: LinkFiles | None = None
    ) -> None:
        self.files = files
        self._authenticator = authenticator
        self._owner = owner
        self.note = note
        self._sessions: dict[bytes, BrowserSession] = {}
        self._links: dict[bytes, _Link] = {}
        self._terminals = Terminals()
        self._one_ended = trio.Event()

    def __len__(self) -> int:
        return len(self._sessions)

    # -- links -----------------------------------------------------------------------------------

    def make_link(self, *, read_only: bool = False, terminal: str | None = None) -> str:
        """Make a one-time link and return its token; beyond `MOST_LINKS` links the oldest ends."""
        token = secrets.token_urlsafe(_BYTES)
        while len(self._links) >= MOST_LINKS:
            del self._links[next(iter(self._links))]
        codes = None if terminal is None else self._terminals.open(terminal)
        self._links[digest_of(token)] = _Link(trio.current_time() + LINK_SECONDS, read_only, codes)
        self.note("make_link", read_only=read_only)
        return token

    def use_link(self, token: str, address: str | None) -> tuple[Caller, TerminalCodes | None] | None:
        """Consume a link; return its caller, and the codes of the terminal that made it.

        Return None if the token is unknown, used or expired.
        """
        if self.files is not None:
            self.files.remove_used(token)
        link = self._links.pop(digest_of(token), None)
        if link is None or trio.current_time() >= link.until:
            self.note("log_in", outcome="denied", address=address, by="link")
            return None
        grant = msgspec.structs.replace(self._owner, scopes=READ_ONLY) if link.read_only else self._owner
        name = f"{LINK}{secrets.token_hex(8)}"
        credential = Credential(
            id=name, grant=grant, by_key=False, expires=_FOREVER, holder=name, is_limited=False
        )
        return Caller(credential=credential, address=address), link.codes

    def new_code(self, terminal: str) -> str | None:
        """Return a new code for a terminal's browser; None if the terminal is unknown."""
        return self._terminals.new_code(terminal)

    # -- sessions --------------------------------------------------------------------------------

    def begin(
        self, caller: Caller, *, by: str, codes: TerminalCodes | None = None
    ) -> tuple[str, BrowserSession]:
        """Begin a session; return the cookie's value and the session."""
        assert caller.credential is not None, "a log-in has a credential"
        self._make_room(caller.credential.holder)
        token = secrets.token_urlsafe(_BYTES)
        session = self._sessions[digest_of(token)] = BrowserSession(digest_of(token), caller, codes)
        self.note("log_in", address=caller.address, key_id=caller.credential.id, by=by)
        if not session.is_of_owner:
            hold = self._authenticator.hold_connection(caller, partial(self.end, session))
            session.kept.enter_context(hold)
            if session.has_ended:  # the key ended a moment ago
                session.kept.close()
        return token, session

    def find(self, token: str) -> BrowserSession | None:
        """Find the session of a cookie and mark it as used; None without a session."""
        session = self._sessions.get(digest_of(token))
        if session is None or self.end_if_expired(session):
            return None
        session.used = trio.current_time()
        return session

    def end_if_expired(self, session: BrowserSession) -> bool:
        """End a session if its time is over; return whether it has ended."""
        if trio.current_time() < session.ends_at:
            return session.has_ended
        self.end(session, "the session's time is over")
        return True

    def log_out(self, session: BrowserSession) -> None:
        """End a session at the request of its browser."""
        credential = session.caller.credential
        assert credential is not None, "a session has a credential"
        self.end(session, "logged out")
        self.note("log_out", address=session.caller.address, key_id=credential.id)

    def end_by_id(self, id: str) -> bool:
        """End the session with this public id; return whether it existed."""
        session = next((each for each in self._sessions.values() if each.id == id), None)
        if session is None:
            return False
        self.end(session, "an administrator has logged this browser out")
        return True

    def connected(self) -> Iterator[ConnectedClient]:
        """Yield each logged-in browser as a connected client."""
        for session in list(self._sessions.values()):
            if not self.end_if_expired(session):
                yield _describe(session)

    def end(self, session: BrowserSession, reason: str) -> None:
        """End a session and everything that it holds open; a second call does nothing."""
        if session.has_ended:
            return
        session.has_ended = True
        del self._sessions[session.digest]
        for end in list(session.open):
            end(reason)
        session.kept.close()
        self._one_ended.set()
        self._one_ended = trio.Event()

    async def wait_until_unused(self) -> None:
        """Wait until no browser is logged in and no link is valid."""
        while True:
            for session in list(self._sessions.values()):
                self.end_if_expired(session)
            ends = [session.ends_at for session in self._sessions.values()]
            ends += [link.until for link in self._links.values()]
            if max(ends, default=0.0) <= trio.current_time():
                return
            with trio.move_on_at(max(ends)):
                await self._one_ended.wait()

    def _make_room(self, holder: str) -> None:
        for session in list(self._sessions.values()):
            self.end_if_expired(session)
        own = [
            each
            for each in self._sessions.values()
            if each.caller.credential is not None and each.caller.credential.holder == holder
        ]
        crowds = (own, MOST_OF_ONE), (list(self._sessions.values()), MOST)
        for crowd, most in crowds:
            if len(crowd) >= most:
                self.end(min(crowd, key=lambda each: each.used), "others logged in after it")


def view_of(caller: Caller, agent: str, session: BrowserSession | None = None) -> SessionView:
    """Describe the identity of a caller."""
    principal = principal_for(caller, agent)
    return SessionView(
        agent=principal.agent_id,
        agent_type=principal.agent_type,
        user=principal.user,
        projects=None if principal.projects is None else sorted(principal.projects),
        scopes=sorted(principal.scopes),
        seen_by=principal.seen_by,
        csrf_token=None if session is None else session.csrf_token,
        expires_in=None if session is None else round(session.ends_at - trio.current_time()),
    )


def principal_for(caller: Caller, agent: str) -> Principal:
    """Return the principal of a caller; ``agent`` is the default name of its agent."""
    assert caller.credential is not None, "a visitor has a credential"
    return principal_of(
        caller.credential,
        agent=caller.agent or agent,
        agent_type=caller.agent_type,
        projects=frozenset(caller.projects),
        address=caller.address,
    )


def _describe(session: BrowserSession) -> ConnectedClient:
    view = view_of(session.caller, CONSOLE)
    credential = session.caller.credential
    return ConnectedClient(
        name=None,
        tool=None,
        agent=view.agent,
        agent_type=view.agent_type,
        user=view.user,
        transport="browser",
        since=session.began_at,
        open_requests=len(session.open),
        key_id=None if credential is None else credential.id,
        address=session.caller.address,
        browser=session.id,
    )


def is_of_owner(caller: Caller) -> bool:
    """Return whether a caller logged in by a link; only the folder's owner makes links."""
    return caller.credential is not None and caller.credential.id.startswith(LINK)
