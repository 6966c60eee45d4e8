"""Seeing what another agent sees: as whom a visitor wants to look on, and the record of what was looked at.

Who holds the scope ``admin`` may read as any agent. Nothing is changed by that, and nothing counted as
that agent's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec
import trio

from greenroom.actors.core.audit.record import LONGEST
from greenroom.actors.core.auth.grants import Credential, Grant
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import ADMIN, allows
from greenroom.actors.core.keys.rate_limits import TokenBuckets
from greenroom.transports.auth.caller import Caller, header_values
from greenroom.transports.base.config.parsers import line, name
from greenroom.transports.base.errors import AccessDeniedError, HttpRefusedError, InvalidValueError
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.web.rest.browser_sessions import READ_ONLY
from greenroom.transports.web.rest.request_data import any_query

_READERS: Final = {"as": name(100), "as_type": name(100), "as_user": line(128), "as_project": name(128)}
PARAMETERS: Final[Mapping[str, str]] = {
    "as": "The agent as which it is read, with the scope `admin`; nothing is changed so.",
    "as_type": "The type of that agent.",
    "as_user": "The user whom that agent works for; empty for none. Your own unless given.",
    "as_project": "A project whose member that agent is; may be given several times. Your own unless given.",
}
"""The parameters of a URL that say as whom it is read, with their meaning; each may be a header instead."""
HEADERS: Final = {each: f"Greenroom-{each.title().replace('_', '-')}" for each in PARAMETERS}


class SeenAs(msgspec.Struct, frozen=True, kw_only=True):
    """As whom somebody looks on.

    Attributes:
        agent: The agent id, as messages have it.
        agent_type: The agent's type.
        user: The user whom it works for; empty for none, None for the looker's own.
        projects: The projects whose member it is; empty for the looker's own.
    """

    agent: str
    agent_type: str | None = None
    user: str | None = None
    projects: tuple[str, ...] = ()


def seen_as(head: RequestHead) -> SeenAs | None:
    """Return as whom a request is to be answered, by its URL or its headers; None where as its sender.

    Raises:
        HttpRefusedError: it says what cannot be, says it twice, or does not say which agent.
    """
    given = _given(head)
    if not given:
        return None
    for key, values in given.items():
        if len(values) > 1 and key != "as_project":
            raise HttpRefusedError(
                HTTPStatus.BAD_REQUEST, f"{key} is given {len(values)} times; give it once"
            )
    if "as" not in given:
        sentence = f"{next(iter(given))} is given without the agent that it belongs to: as=AGENT"
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, sentence)
    user = given.get("as_user", [None])[0]
    agent_type = given.get("as_type", [None])[0]  # a form sends an empty one where nothing was typed
    return SeenAs(
        agent=_checked("as", given["as"][0]),
        agent_type=_checked("as_type", agent_type) if agent_type else None,
        user=_checked("as_user", user) if user else user,
        projects=tuple(dict.fromkeys(_checked("as_project", each) for each in given.get("as_project", ()))),
    )


def _given(head: RequestHead) -> dict[str, list[str]]:
    """Return the values of each parameter; that of a header is written as in a URL."""
    given: dict[str, list[str]] = {}
    if "as" in head.query:  # most say nothing of the kind
        given = {key: values for key, values in any_query(head).items() if key in PARAMETERS}
    for key, header in HEADERS.items():
        for value in header_values(head.lines, header.lower().encode()):
            parts = value.split(",") if key == "as_project" else (value,)
            given.setdefault(key, []).extend(unquote(part.strip(), errors="replace") for part in parts)
    return given


def _checked(key: str, value: str) -> str:
    try:
        return _READERS[key](value)
    except InvalidValueError as error:
        raise HttpRefusedError(HTTPStatus.BAD_REQUEST, f"{key} is {value[:100]!r}, but {error}") from None


def looking_on(caller: Caller, looker: Principal, seen: SeenAs) -> Caller:
    """Return a caller who reads as another agent, by the credential of who looks on.

    Args:
        caller: Who looks on, authenticated.
        looker: The principal of the same.
        seen: As whom.

    Raises:
        AccessDeniedError: they may not.
    """
    assert caller.credential is not None, "nobody is let in without anything"
    if not allows(looker.scopes, ADMIN):
        sentence = (
            f"seeing what the agent {seen.agent!r} sees needs the scope {ADMIN!r}, which you were not given"
        )
        raise AccessDeniedError(HTTPStatus.FORBIDDEN, sentence)
    projects = frozenset(seen.projects) or looker.projects
    if looker.projects is not None and projects is not None and not projects <= looker.projects:
        strange = ", ".join(sorted(projects - looker.projects))
        raise AccessDeniedError(HTTPStatus.FORBIDDEN, f"you are no member of the project {strange}")
    grant = Grant(
        name=caller.credential.grant.name,
        scopes=READ_ONLY,
        agent=seen.agent,
        agent_type=seen.agent_type,
        user=looker.user if seen.user is None else seen.user or None,
        projects=projects,
        limits=caller.credential.grant.limits,
    )
    credential: Credential = msgspec.structs.replace(caller.credential, grant=grant, seen_by=looker.agent_id)
    return Caller(credential=credential, address=caller.address)


class Asked(Protocol):
    """The part of an agent that visitors use, see `AgentPort`."""

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Refuse a type of request that the agent's scopes do not open."""

    async def ask(self, request: Any, *, checked: bool = False) -> Any:
        """Return the reply to a request."""

    def subscriber(self, window: float) -> SubscriberPort:
        """Return a new subscriber, which merges changes within `window` seconds."""

    def close(self) -> None:
        """Let go what is held for the visitor, who is gone; a second time does nothing."""


class Looked(Protocol):
    """Records what somebody looked at."""

    def __call__(self, *, session: str | None, target: str | None) -> None:
        """Record it, unless that was recorded a moment ago."""


class Onlooker:
    """An agent that is asked by somebody else, who looks on: what is read is recorded.

    Args:
        agent: The agent; it refuses to change anything.
        looked: Records what is looked at.
    """

    def __init__(self, agent: Asked, looked: Looked) -> None:
        self._agent = agent
        self._looked = looked

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Refuse a type of request that the agent's scopes do not open, see `Asked`."""
        self._agent.check_scope(request, arguments)

    async def ask(self, request: Any, *, checked: bool = False) -> Any:
        """Return the reply to a request."""
        self._looked(session=_text(request, "session_id"), target=_text(request, "uri"))
        return await self._agent.ask(request, checked=checked)

    def subscriber(self, window: float) -> SubscriberPort:
        """Return a new subscriber; who hears that a resource changed has seen nothing of it yet."""
        return self._agent.subscriber(window)

    def close(self) -> None:
        """Let go what is held, see `Asked`."""
        self._agent.close()


class LookedAt:
    """Notes in the audit log who looked on as whom, and at what.

    Of the same session or resource there is one record a minute, and of all that is neither, one: a page that
    is looked at for long asks every few seconds.

    Args:
        note: Notes it: the looker, the action, and details.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self._noted = TokenBuckets(1, 1)

    def record(
        self, holder: str, looker: Principal, grant: Grant, *, session: str | None, target: str | None
    ) -> None:
        """Note it, unless the same was noted within a minute.

        Args:
            holder: What the looker, or its browser, is counted under.
            looker: Who looks on.
            grant: As whom.
            session: The session that is looked at, if it is one.
            target: The resource, if it is one.
        """
        seen = (holder, grant.agent, grant.agent_type, grant.user, grant.projects, session, target)
        if self._noted.of(repr(seen)).take(trio.current_time()) > 0:
            return
        details: dict[str, Any] = {"agent": grant.agent, "agent_type": grant.agent_type, "user": grant.user}
        details["projects"] = None if grant.projects is None else ", ".join(sorted(grant.projects))[:LONGEST]
        details["target"] = target
        told = {key: value for key, value in details.items() if value is not None}
        self._note("see_as", principal=looker, session=session, **told)


def _text(request: Any, member: str) -> str | None:
    value = getattr(request, member, None)
    return value[:LONGEST] if isinstance(value, str) else None
