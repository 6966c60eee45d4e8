"""Impersonation: reading as another agent, and the audit of these reads.

A caller with the scope ``admin`` may read as any agent. An impersonator cannot change data, and its reads do
not count as activity of the other agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
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
from greenroom.transports.mcp.agent_port import AgentPort, SubscriberPort
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.web.rest.browser_sessions import READ_ONLY
from greenroom.transports.web.rest.request_data import any_query

_READERS: Final = {"as": name(100), "as_type": name(100), "as_user": line(128), "as_project": name(128)}
PARAMETERS: Final[Mapping[str, str]] = {
    "as": "The agent to read as, with the scope `admin`; nothing is changed.",
    "as_type": "The type of that agent.",
    "as_user": "The user of that agent; empty for none. Your own unless given.",
    "as_project": "A project of that agent; may be given several times. Your own unless given.",
}
"""The URL parameters of an impersonation, with their meaning; a header may replace each."""
HEADERS: Final = {each: f"Greenroom-{each.title().replace('_', '-')}" for each in PARAMETERS}


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """The identity to impersonate.

    Attributes:
        agent: The agent id, as in messages.
        agent_type: The agent's type.
        user: The agent's user; empty for no user, None for the impersonator's user.
        projects: The agent's projects; empty for the impersonator's projects.
    """

    agent: str
    agent_type: str | None = None
    user: str | None = None
    projects: tuple[str, ...] = ()


def parse_impersonation(head: RequestHead) -> Impersonation | None:
    """Parse the impersonation of a request from its URL or headers; None without one.

    Raises:
        HttpRefusedError: a value is invalid, or is given twice or without the agent.
    """
    given = _parse_parameters(head)
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
    agent_type = given.get("as_type", [None])[0]  # a form sends an empty value if the field is empty
    return Impersonation(
        agent=_checked("as", given["as"][0]),
        agent_type=_checked("as_type", agent_type) if agent_type else None,
        user=_checked("as_user", user) if user else user,
        projects=tuple(dict.fromkeys(_checked("as_project", each) for each in given.get("as_project", ()))),
    )


def _parse_parameters(head: RequestHead) -> dict[str, list[str]]:
    """Return the values of each parameter; values in headers are percent-encoded as in URLs."""
    given: dict[str, list[str]] = {}
    if "as" in head.query:  # quick check: most requests have no such parameter
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


def impersonate(caller: Caller, impersonator: Principal, seen: Impersonation) -> Caller:
    """Return a caller that reads as another agent, with the credential of the impersonator."""
    assert caller.credential is not None, "a visitor has a credential"
    if not allows(impersonator.scopes, ADMIN):
        sentence = (
            f"seeing what the agent {seen.agent!r} sees needs the scope {ADMIN!r}, which you were not given"
        )
        raise AccessDeniedError(HTTPStatus.FORBIDDEN, sentence)
    projects = frozenset(seen.projects) or impersonator.projects
    if impersonator.projects is not None and projects is not None and not projects <= impersonator.projects:
        strange = ", ".join(sorted(projects - impersonator.projects))
        raise AccessDeniedError(HTTPStatus.FORBIDDEN, f"you are not a member of the project {strange}")
    grant = Grant(
        name=caller.credential.grant.name,
        scopes=READ_ONLY,
        agent=seen.agent,
        agent_type=seen.agent_type,
        user=impersonator.user if seen.user is None else seen.user or None,
        projects=projects,
        limits=caller.credential.grant.limits,
    )
    credential: Credential = msgspec.structs.replace(
        caller.credential, grant=grant, seen_by=impersonator.agent_id
    )
    return Caller(credential=credential, address=caller.address)


class VisitorAgent:
    """The part of an agent that visitors use."""

    def __init__(self, agent: AgentPort | VisitorAgent) -> None:
        self._agent = agent

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Refuse a type of request that the agent's scopes do not allow."""
        self._agent.check_scope(request, arguments)

    async def ask(self, request: Any, *, checked: bool = False) -> Any:
        """Return the reply to a request."""
        return await self._agent.ask(request, checked=checked)

    def subscriber(self, window: float) -> SubscriberPort:
        """Return a new subscriber, which merges changes within `window` seconds."""
        return self._agent.subscriber(window)

    def close(self) -> None:
        """Release what the agent holds for its visitor; a second call does nothing."""
        self._agent.close()


RecordRead = Callable[[str | None, str | None], None]
"""Records that an impersonator read a session or a resource."""


class ImpersonatedAgent(VisitorAgent):
    """The agent as which an impersonator reads; it refuses writes and records reads.

    A notification reveals no content, so a subscription is not recorded.
    """

    def __init__(self, agent: VisitorAgent, record: RecordRead) -> None:
        super().__init__(agent)
        self._record = record

    async def ask(self, request: Any, *, checked: bool = False) -> Any:
        """Return the reply to a request."""
        self._record(_text(request, "session_id"), _text(request, "uri"))
        return await super().ask(request, checked=checked)


class ImpersonationAudit:
    """Audits the reads of impersonators: who read, as which agent, and what.

    Each session or resource has at most one record a minute, and all other reads together have one: an open
    page repeats its requests every few seconds.
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self._noted = TokenBuckets(1, 1)

    def record(
        self, holder: str, impersonator: Principal, grant: Grant, session: str | None, target: str | None
    ) -> None:
        """Audit a read, unless the same read was audited less than a minute ago."""
        seen = (holder, grant.agent, grant.agent_type, grant.user, grant.projects, session, target)
        if self._noted.of(repr(seen)).take(trio.current_time()) > 0:
            return
        details: dict[str, Any] = {"agent": grant.agent, "agent_type": grant.agent_type, "user": grant.user}
        details["projects"] = None if grant.projects is None else ", ".join(sorted(grant.projects))[:LONGEST]
        details["target"] = target
        given = {key: value for key, value in details.items() if value is not None}
        self._note("see_as", principal=impersonator, session=session, **given)


def _text(request: Any, member: str) -> str | None:
    value = getattr(request, member, None)
    return value[:LONGEST] if isinstance(value, str) else None
