"""Confirmation of sensitive actions by a browser: new keys, impersonation and exports.

The server requires a code from the terminal that made the browser's link, or the key of the log-in. So with a
stolen cookie alone, no one can export contents or admit another program.

Invariants:

- The type of the request decides, directly before it reaches the agent, so no path avoids the check.
- One code or key confirms one request. A refused request does not consume the code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors import API_REQUESTS, MemoriesExported, ReadResource
from greenroom.actors.app.resources.kinds import find_kind
from greenroom.actors.core.auth.scopes import ADMIN, RESOURCES, allows, needed_for_request
from greenroom.runtime import Refusal
from greenroom.transports.auth.authenticator import AUTHORIZATION, AuditHook, Authenticator
from greenroom.transports.auth.caller import Caller, Headers
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.web.rest.browser_sessions import CONSOLE, BrowserSession, principal_for
from greenroom.transports.web.rest.impersonation import VisitorAgent

CONFIRMATION_HEADER: Final = "X-Confirmation"
CONFIRMATION_NEEDED: Final = "CONFIRMATION_NEEDED"
IMPERSONATION_SECONDS: Final = 1_800.0
"""A confirmed impersonation of one agent lasts this many seconds."""
_NOT_SENT: Final = frozenset({AUTHORIZATION, b"cookie"})

By = Literal["code", "key"]
Confirm = Callable[["Action"], Awaitable[Callable[[], None]]]
"""Checks the confirmation of a request; returns a function that restores it after a refusal."""


class Action(NamedTuple):
    """An action that needs a confirmation."""

    name: str  # the action's name in the audit log
    says: str  # the action's name for people: the subject of a sentence
    command: str  # the commands that do the same action
    needs: str


IMPERSONATE: Final = Action("see_as", "Seeing as another agent", "`greenroom console` in a terminal", ADMIN)
_ACTIONS: Final[Mapping[type[Any], Action]] = {
    API_REQUESTS[name]: Action(name, says, command, needed_for_request(name))
    for name, says, command in (
        ("create_api_key", "Making a key", "`greenroom keys create`"),
        ("rotate_api_key", "Making a key", "`greenroom keys rotate`"),
        ("export_memories", "Exporting memories", "`greenroom export`"),
        ("export_session", "Making a passport", "`greenroom passport export`"),
        ("export_audit_log", "Exporting the audit log", "`greenroom audit export`"),
    )
}
_RESOURCES: Final = {
    kind: Action(f"read_{kind}", says, command, RESOURCES[kind])
    for kind, says, command in (
        ("export", "Exporting memories", "`greenroom export`"),
        ("passport", "Reading a passport", "`greenroom passport export`"),
    )
}


def action_of(request: object) -> Action | None:
    """Return the action of a request that needs a confirmation; None for other requests."""
    if isinstance(request, ReadResource):
        found = find_kind(request.uri)
        return None if found is None else _RESOURCES.get(found[0].kind)
    return _ACTIONS.get(type(request))


class ConfirmationNeededError(HttpRefusedError):
    """An action is refused until the user confirms it; the browser may then repeat it."""

    def __init__(self, action: Action, by: By | None, *, is_wrong: bool = False) -> None:
        super().__init__(HTTPStatus.FORBIDDEN, _sentence(action, by, is_wrong=is_wrong))
        self.by = by
        self.is_wrong = is_wrong
        self.action = action
        self.details = {"action": action.name, "by": by, "is_wrong": is_wrong}


def _sentence(action: Action, by: By | None, *, is_wrong: bool) -> str:
    if by is None:
        return (
            f"{action.says} is confirmed in the terminal of `greenroom console`, and the link by which this "
            f"browser logged in was made in none; use {action.command} instead"
        )
    if by == "key":
        if is_wrong:
            return "This is not the key that this browser logged in by; show that one once more"
        return f"{action.says} needs the key once more that this browser logged in by"
    if is_wrong:
        return (
            "This is not the code that `greenroom console` printed last, or it was used or has ended; "
            "press Enter in that terminal for a new one"
        )
    return (
        f"{action.says} needs the code that `greenroom console` printed in its terminal; "
        "press Enter there for a new one"
    )


class Confirmations:
    """Checks the confirmations of browsers."""

    def __init__(self, authenticator: Authenticator, note: AuditHook) -> None:
        self._authenticator = authenticator
        self._note = note

    async def confirm(
        self, session: BrowserSession, caller: Caller, lines: Headers, shown: str | None, action: Action
    ) -> Callable[[], None]:
        """Check a browser's code or key; return a function that makes the code valid again."""
        by: By | None = "key" if not session.is_of_owner else None if session.codes is None else "code"
        if by is None or not shown:
            raise ConfirmationNeededError(action, by)
        undo = _nothing
        if session.codes is None:
            is_right = await self._is_own_key(session, caller, lines, shown)
        else:
            code = session.codes.take(shown)
            is_right = code is not None
            if code is not None:
                undo = partial(session.codes.give_back, code)
        principal = principal_for(caller, CONSOLE)
        outcome = "done" if is_right else "denied"
        self._note("confirm", principal=principal, outcome=outcome, target=action.name, by=by)
        if not is_right:
            raise ConfirmationNeededError(action, by, is_wrong=True)
        return undo

    async def _is_own_key(self, session: BrowserSession, caller: Caller, lines: Headers, shown: str) -> bool:
        """Return whether a text is the browser's key, or a token of the same holder."""
        ours = session.caller.credential
        try:
            found = await authenticate_key(self._authenticator, Caller(address=caller.address), lines, shown)
        except HttpRefusedError as error:
            if error.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        theirs = found.credential
        assert ours is not None, "a session has a credential"
        return theirs is not None and (theirs.id, theirs.holder) == (ours.id, ours.holder)


async def authenticate_key(authenticator: Authenticator, caller: Caller, lines: Headers, key: str) -> Caller:
    """Authenticate a caller by a key or token from outside the headers."""
    if not key.isascii() or not key.isprintable():
        raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "this is no key of this server")
    sent = [line for line in lines if line[0] not in _NOT_SENT]
    sent.append((AUTHORIZATION, b"Bearer " + key.encode()))
    return await authenticator.authenticate(caller, sent)


class ConfirmedAgent(VisitorAgent):
    """The agent of a browser; sensitive actions need a confirmation."""

    def __init__(
        self, agent: VisitorAgent, session: BrowserSession, scopes: frozenset[str], confirm: Confirm
    ) -> None:
        super().__init__(agent)
        self._session = session
        self._scopes = scopes
        self._confirm = confirm
        self._is_confirmed = False

    async def ask(self, request: Any, *, checked: bool = False) -> Any:
        """Return the reply to a request."""
        action = None if self._is_confirmed else action_of(request)
        if action is None or not allows(self._scopes, action.needs) or self._is_of_confirmed(request):
            return await super().ask(request, checked=checked)
        undo = await self._confirm(action)
        try:
            reply = await super().ask(request, checked=checked)
        except Refusal:
            undo()
            raise
        self._is_confirmed = True  # this agent also reads the next parts of the file
        if isinstance(reply, MemoriesExported):
            self._session.exported.extend(part.uri for part in reply.parts)
        return reply

    def _is_of_confirmed(self, request: Any) -> bool:
        """Return whether a request reads a part of an export that this browser has confirmed.

        The URIs of exports cannot be guessed. Those of passports are listed, so each needs a confirmation.
        """
        return isinstance(request, ReadResource) and request.uri in self._session.exported


def _nothing() -> None:
    """Do nothing: a key remains valid."""
