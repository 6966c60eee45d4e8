"""Browsers that have logged in: their cookies' sessions, and links by which the folder's owner logs in.

Invariants:

- Of cookies and links digests alone are kept, in memory: none of them outlives the server.
- A link works once, within `LINK_SECONDS`.
- A session ends with its key, with log-out, after `IDLE` seconds without a request and after `LIFETIME`;
  what is open because of it ends with it.
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
"""The path of a link, before its token."""
MOST: Final = 1_024
"""Sessions at once; those of one key may be `MOST_OF_ONE`. The one that was used longest ago makes room."""
MOST_OF_ONE: Final = 32
MOST_LINKS: Final = 64
MOST_SEEN: Final = 32
"""Agents as which one browser may look on without being asked again."""
MOST_EXPORTED: Final = 1_000
READ_ONLY: Final = frozenset({"*:read"})
CONSOLE: Final = "console"
"""What a browser's agent is called where nothing else says so."""
_FOREVER: Final = 1 << 62
_BYTES: Final = 32


class LogIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a browser shows to log in: one of the two.

    Attributes:
        key: An API key, or an access token.
        link: What stands at the end of a link of `greenroom console`.
    """

    key: str | None = None
    link: str | None = None


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is.

    Attributes:
        agent: The agent id.
        agent_type: The agent type.
        user: The user.
        projects: The projects; None for every one.
        scopes: What they may do.
        seen_by: The agent that looks on as this one; None for who is it.
        csrf_token: What a browser sends in ``X-CSRF-Token`` with whatever it posts; None for who shows a key.
        expires_in: Seconds until a browser's session ends at the latest; None for who shows a key.
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
    """One browser that has logged in.

    Attributes:
        id: What people name it by, which opens nothing.
        caller: Who it is.
        csrf_token: What shows that a request was meant: no page of others knows it.
        began: When it logged in, on trio's clock.
        used: When it asked last.
        began_at: The same by the wall clock.
        has_ended: Whether it has.
        codes: Those of the terminal in which its link was made; None where there was none, or for a key.
        seeing: The agents as which it may look on, as was confirmed, and until when.
        exported: URIs of the parts of memories that it exported last, as was confirmed.
    """

    def __init__(self, digest: bytes, caller: Caller, codes: TerminalCodes | None = None) -> None:
        self.id = secrets.token_hex(8)
        self.caller = caller
        self.csrf_token = secrets.token_urlsafe(_BYTES)
        self.began = self.used = trio.current_time()
        self.began_at = datetime.now(UTC)
        self.has_ended = False
        self.digest = digest
        self.codes = codes
        self.seeing: dict[Hashable, float] = {}
        self.exported: deque[str] = deque(maxlen=MOST_EXPORTED)
        self.kept = ExitStack()
        self.open: set[Callable[[str], None]] = set()

    @property
    def is_of_owner(self) -> bool:
        """Whether whoever can ask at the folder's control socket logged in, without a key."""
        return is_of_owner(self.caller)

    @property
    def ends_at(self) -> float:
        """When it ends unless something is asked before."""
        return min(self.used + IDLE, self.began + LIFETIME)

    def sees(self, seen: Hashable) -> bool:
        """Return whether it was confirmed that it looks on so, not too long ago."""
        return trio.current_time() < self.seeing.get(seen, 0.0)

    def begin_seeing(self, seen: Hashable, seconds: float) -> None:
        """Have it look on so for a time; of too many the oldest ends."""
        self.seeing.pop(seen, None)
        while len(self.seeing) >= MOST_SEEN:
            del self.seeing[next(iter(self.seeing))]
        self.seeing[seen] = trio.current_time() + seconds

    def has_token(self, shown: str) -> bool:
        """Return whether a text is its CSRF token, in a time that tells nothing."""
        return hmac.compare_digest(self.csrf_token.encode(), shown.encode())

    @contextmanager
    def hold(self, end: Callable[[str], None]) -> Iterator[None]:
        """Call a function, with the reason, when the session ends while the block runs, or has ended."""
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
        authenticator: Says when keys end.
        owner: Who comes by a link.
        note: Notes in the audit log links, and who logs in and out.
        files: The files of links; None where links are only printed.

    Attributes:
        note: The same, for what else browsers do.
        files: The files.
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
        """Return the token of a new link; of too many the oldest works no more.

        Args:
            read_only: Whether who comes by it changes nothing.
            terminal: What the terminal names itself by where codes are printed; None where there is none.
        """
        token = secrets.token_urlsafe(_BYTES)
        while len(self._links) >= MOST_LINKS:
            del self._links[next(iter(self._links))]
        codes = None if terminal is None else self._terminals.open(terminal)
        self._links[digest_of(token)] = _Link(trio.current_time() + LINK_SECONDS, read_only, codes)
        self.note("make_link", read_only=read_only)
        return token

    def use_link(self, token: str, address: str | None) -> tuple[Caller, TerminalCodes | None] | None:
        """Use a link up; return who comes by it, and the codes of its terminal.

        None, whichever the reason, where it opens nothing.
        """
        if self.files is not None:
            self.files.used(token)
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
        """Return a new code for the browser of a terminal; None where that is unknown."""
        return self._terminals.new_code(terminal)

    # -- sessions --------------------------------------------------------------------------------

    def begin(
        self, caller: Caller, *, by: str, codes: TerminalCodes | None = None
    ) -> tuple[str, BrowserSession]:
        """Return the cookie's value of a new session, and the session.

        Args:
            caller: Who logs in, authenticated.
            by: What they showed: ``key`` or ``link``.
            codes: Those of the link's terminal.
        """
        assert caller.credential is not None, "nobody logs in without anything"
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
        """Return the session of a cookie, which it goes on with; None without one."""
        session = self._sessions.get(digest_of(token))
        if session is None or self.ended_by_time(session):
            return None
        session.used = trio.current_time()
        return session

    def ended_by_time(self, session: BrowserSession) -> bool:
        """Return whether a session's time is over; it is ended then."""
        if trio.current_time() < session.ends_at:
            return session.has_ended
        self.end(session, "the session's time is over")
        return True

    def log_out(self, session: BrowserSession) -> None:
        """End a session because its browser says so."""
        credential = session.caller.credential
        assert credential is not None, "nobody is logged in without anything"
        self.end(session, "logged out")
        self.note("log_out", address=session.caller.address, key_id=credential.id)

    def end_by_id(self, id: str) -> bool:
        """End the session that people name so; return whether there was one."""
        session = next((each for each in self._sessions.values() if each.id == id), None)
        if session is None:
            return False
        self.end(session, "an administrator has logged this browser out")
        return True

    def connected(self) -> Iterator[ConnectedClient]:
        """Yield every browser that is logged in."""
        for session in list(self._sessions.values()):
            if not self.ended_by_time(session):
                yield _seen(session)

    def end(self, session: BrowserSession, reason: str) -> None:
        """End a session, and what is open because of it; a second time does nothing."""
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
        """Wait until no browser is logged in and no link works, be it that nobody ever came by one."""
        while True:
            for session in list(self._sessions.values()):
                self.ended_by_time(session)
            ends = [session.ends_at for session in self._sessions.values()]
            ends += [link.until for link in self._links.values()]
            if max(ends, default=0.0) <= trio.current_time():
                return
            with trio.move_on_at(max(ends)):
                await self._one_ended.wait()

    def _make_room(self, holder: str) -> None:
        for session in list(self._sessions.values()):
            self.ended_by_time(session)
        own = [each for each in self._sessions.values() if _holder(each) == holder]
        crowds = (own, MOST_OF_ONE), (list(self._sessions.values()), MOST)
        for crowd, most in crowds:
            if len(crowd) >= most:
                self.end(min(crowd, key=lambda each: each.used), "others logged in after it")


def view_of(caller: Caller, agent: str, session: BrowserSession | None = None) -> SessionView:
    """Return who a caller is.

    Args:
        caller: The caller, authenticated.
        agent: What the agent is called where neither its key nor it says so.
        session: The browser's session, if it comes by one.
    """
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
    """Return the principal of a caller, whose agent is called so where neither its key nor it says so."""
    assert caller.credential is not None, "nobody is let in without anything"
    return principal_of(
        caller.credential,
        agent=caller.agent or agent,
        agent_type=caller.agent_type,
        projects=frozenset(caller.projects),
        address=caller.address,
    )


def _seen(session: BrowserSession) -> ConnectedClient:
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
    """Return whether a caller came by a link, which only the folder's owner can make."""
    return caller.credential is not None and caller.credential.id.startswith(LINK)


def _holder(session: BrowserSession) -> str | None:
    credential = session.caller.credential
    return None if credential is None else credential.holder
