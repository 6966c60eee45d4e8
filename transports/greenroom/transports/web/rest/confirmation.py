"""What a browser confirms: making keys, seeing as another agent, and exports.

Each asks once more: for a code of the terminal whose link the browser came by, or for the key that it logged
in by. So with the cookie alone no contents leave and no other program is let in.

Invariants:

- The type of a request decides, on the way to the agent, so there is no path around it.
- One code or key confirms one request. What that was refused for has used no code up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple

from greenroom.actors import API_REQUESTS, MemoriesExported, ReadResource
from greenroom.actors.app.resources.kinds import find_kind
from greenroom.actors.core.auth.scopes import ADMIN, NEEDED, allows, needed_for_request
from greenroom.runtime import Refusal
from greenroom.transports.auth.authenticator import AUTHORIZATION, AuditHook, Authenticator
from greenroom.transports.auth.caller import Caller, Headers
from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.web.rest.browser_sessions import CONSOLE, BrowserSession, principal_for
from greenroom.transports.web.rest.impersonation import Asked

CONFIRMATION_HEADER: Final = "X-Confirmation"
CONFIRMATION_NEEDED: Final = "CONFIRMATION_NEEDED"
SEEING_SECONDS: Final = 1_800.0
"""How long a browser sees as one agent after that was confirmed."""
_NOT_SENT: Final = frozenset({AUTHORIZATION, b"cookie"})

By = Literal["code", "key"]
Confirm = Callable[["Action"], Awaitable[Callable[[], None]]]
"""Checks what a request shows; returns what has that hold again, where nothing was done by it."""


class Action(NamedTuple):
    """Something that asks for a confirmation.

    Attributes:
        name: What the audit log calls it.
        says: What people call it, as the subject of a sentence.
        command: The commands that do the same.
        needs: The scope that it needs.
    """

    name: str
    says: str
    command: str
    needs: str


SEE_AS: Final = Action("see_as", "Seeing as another agent", "`greenroom console` in a terminal", ADMIN)
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
    kind: Action(f"read_{kind}", says, command, NEEDED[f"resource {kind}"])
    for kind, says, command in (
        ("export", "Exporting memories", "`greenroom export`"),
        ("passport", "Reading a passport", "`greenroom passport export`"),
    )
}


def action_of(request: object) -> Action | None:
    """Return the action of a request that needs a confirmation; None for any other."""
    if isinstance(request, ReadResource):
        found = find_kind(request.uri)
        return None if found is None else _RESOURCES.get(found[0].kind)
    return _ACTIONS.get(type(request))


class ConfirmationNeededError(HttpRefusedError):
    """An action is refused until it is confirmed; it may then be asked for again.

    Args:
        action: What is refused.
        by: What would confirm it; None where nothing does.
        is_wrong: Whether something was shown, which was wrong.
    """

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
    """Checks confirmations of browsers.

    Args:
        authenticator: Knows keys and tokens.
        note: Notes in the audit log what was confirmed, and what was not.
    """

    def __init__(self, authenticator: Authenticator, note: AuditHook) -> None:
        self._authenticator = authenticator
        self._note = note

    async def confirm(
        self, session: BrowserSession, caller: Caller, lines: Headers, shown: str | None, action: Action
    ) -> Callable[[], None]:
        """Check what a browser shows for a action; return what has that hold again.

        Args:
            session: The browser's.
            caller: Who it is, with the address that the request comes from.
            lines: The headers of the request.
            shown: A code, or a key; None where nothing is shown.
            action: What it is to confirm.

        Raises:
            ConfirmationNeededError: it confirms nothing.
            HttpRefusedError: too many wrong keys came from the address.
        """
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
            found = await by_key(self._authenticator, Caller(address=caller.address), lines, shown)
        except HttpRefusedError as error:
            if error.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        theirs = found.credential
        assert ours is not None, "a browser logs in by something"
        return theirs is not None and (theirs.id, theirs.holder) == (ours.id, ours.holder)


async def by_key(authenticator: Authenticator, caller: Caller, lines: Headers, key: str) -> Caller:
    """Return who comes by a key or token outside of a request's head.

    Raises:
        HttpRefusedError: it opens nothing.
    """
    if not key.isascii() or not key.isprintable():
        raise HttpRefusedError(HTTPStatus.UNAUTHORIZED, "this is no key of this server")
    sent = [line for line in lines if line[0] not in _NOT_SENT]
    sent.append((AUTHORIZATION, b"Bearer " + key.encode()))
    return await authenticator.authenticate(caller, sent)


class ConfirmedAgent:
    """A browser's agent, which does what asks for a confirmation once that is shown.

    Args:
        agent: The agent.
        session: The browser's.
        scopes: What it may do: without the scope a request is denied, and no confirmation is asked for.
        confirm: Checks what the request shows.
    """

    def __init__(
        self, agent: Asked, session: BrowserSession, scopes: frozenset[str], confirm: Confirm
    ) -> None:
        self._agent = agent
        self._session = session
        self._scopes = scopes
        self._confirm = confirm
        self._is_confirmed = False

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Refuse a type of request that the agent's scopes do not open, see `Asked`."""
        self._agent.check_scope(request, arguments)

    async def ask(self, request: Any, *, checked: bool = False) -> Any:
        """Return the reply to a request."""
        action = None if self._is_confirmed else action_of(request)
        if action is None or not allows(self._scopes, action.needs) or self._is_of_confirmed(request):
            return await self._agent.ask(request, checked=checked)
        undo = await self._confirm(action)
        try:
            reply = await self._agent.ask(request, checked=checked)
        except Refusal:
            undo()
            raise
        self._is_confirmed = True  # the further parts of a file are asked by the same agent
        if isinstance(reply, MemoriesExported):
            self._session.exported.extend(part.uri for part in reply.parts)
        return reply

    def _is_of_confirmed(self, request: Any) -> bool:
        """Return whether a request reads a part of what this browser exported, which was confirmed.

        Who was not answered such a URI cannot know it; those of passports are listed.
        """
        return isinstance(request, ReadResource) and request.uri in self._session.exported

    def subscriber(self, window: float) -> SubscriberPort:
        """Return a new subscriber."""
        return self._agent.subscriber(window)

    def close(self) -> None:
        """Let go what is held, see `Asked`."""
        self._agent.close()


def _nothing() -> None:
    """Stand for what has nothing to give back."""
