"""Sessions for an embedding program."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from anyio.lowlevel import checkpoint

from greenroom.actors.app.services.base import (
    Askable,
    ServiceError,
    ServiceResult,
    from_json,
    plain,
    service_errors,
    to_json,
)
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES, invalid, too_large
from greenroom.actors.core.auth.policy import Visibility
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.core.validation.types import SessionStatus
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.requests.requests import EventType
from greenroom.runtime import Address, Message

R = TypeVar("R")
M = TypeVar("M", bound=Message[Any])

BYTES_A_SLICE = 65_536  # bytes of JSON that are decoded before other tasks run: a millisecond or two
MOST_BYTES_AT_ONCE = 16 << 20
"""The most bytes of JSON of the events in one call."""
BYTES_AN_EVENT = 500  # that count for an event besides its content


def new_event_id() -> str:
    """Return a unique event id."""
    return secrets.token_hex(16)


class Event(ServiceResult):
    """An event of a session.

    Attributes:
        event_type: ``message``, ``action``, ``tool_call`` or ``reflection``.
        actor: ``user``, ``agent:<id>`` or ``system``.
        content: A dictionary of JSON values, up to 1 MB. Agents see ``{"text": "…"}`` as a message with this
            text, other contents as JSON. The text of a ``message`` is limited by ``content_limit``.
        shown: What agents see and search instead of a content of more than 1 MB (up to 16 MB), which only
            this service returns; required for such a content.
        event_id: 1-255 characters, random by default. An event is appended once; another one with its id is
            refused.
        timestamp: When it happened, also as a text, UTC unless it has a time zone; by default when it is
            appended. In an event that was read, UTC and never None.
        is_final_response: Whether it ends an agent's turn.
        visibility: As of a message of the service's principal.
    """

    event_type: EventType
    actor: str
    content: dict[str, Any]
    shown: dict[str, Any] | None = None
    event_id: str = field(default_factory=new_event_id)
    timestamp: datetime | None = None
    is_final_response: bool = False
    visibility: Visibility = "public"


class Session(ServiceResult):
    """A snapshot of a session, with all events that the service's principal may see."""

    session_id: str
    app_name: str | None
    user_id: str | None
    project_id: str | None
    purpose: str
    status: SessionStatus
    created_at: datetime
    created_by: str
    updated_at: datetime
    terminated_at: datetime | None
    metadata: dict[str, Any]
    state: dict[str, Any]
    events: list[Event]


_EVENT_FIELDS = tuple(Event.__signature__.parameters)


class SessionService:
    """Sessions with events and state, as Python objects: the MCP tools show the same sessions.

    Events and messages are one log. Agents read the service's events as messages; an agent's message is an
    event of type ``message`` with the id ``message_<message_id>``. A change is executed whole or not at all,
    and is durable when the method returns. A refusal is a `ServiceError`, which is a ``ValueError``.

    Args:
        runtime: The runtime of `open_greenroom`, or a `Database`.
        principal: The identity of the service, which limits what it returns; by default the agent ``app``, a
            member of every project.
    """

    def __init__(self, runtime: Askable, principal: Principal | None = None) -> None:
        self._runtime = runtime
        self.principal = Principal(agent_id="app") if principal is None else check_principal(principal)

    async def create_session(
        self,
        session_id: str,
        app_name: str,
        user_id: str | None,
        project_id: str | None = None,
        initial_state: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a session; agents see ``app_name`` as its purpose.

        Without a ``user_id`` it belongs to the principal's user, if any.

        Raises:
            ServiceError: The id is taken, or an argument breaks a rule.
        """
        await self._ask(
            requests.CreateSession,
            session_id=session_id,
            purpose=app_name,
            app_name=app_name,
            user_id=user_id,
            project_id=project_id,
            initial_state={} if initial_state is None else plain(initial_state),
        )

    async def get_session(self, session_id: str) -> Session | None:
        """Return a session with all its events, or None if the id is unknown.

        Events appended meanwhile are not included.
        """
        snapshot = await self._ask_if_known(requests.TakeSnapshot, session_id=session_id)
        if snapshot is None:
            return None
        fields = {name: getattr(snapshot.session, name) for name in snapshot.session.__struct_fields__}
        fields["metadata"] = from_json(fields["metadata"])
        fields["state"] = from_json(fields["state"])
        return Session(**fields, events=await self._events(session_id, snapshot.newest_id))

    async def append_event(
        self, session_id: str, event: Event | Mapping[str, Any], state_delta: Mapping[str, Any] | None = None
    ) -> Event:
        """Append an event and merge ``state_delta`` into the state by key: both or neither.

        If the session already has the event, nothing changes; that is no error, even after its end. Events
        with the same id are equal if everything except ``timestamp`` is; ``state_delta`` is not compared.

        Returns:
            The event in the log; for a repeat, the existing event.

        Raises:
            ServiceError: The session is unknown or has ended, the event or the state breaks a rule, or
                another event has this id (``IDEMPOTENCY_CONFLICT``).
        """
        changes = {} if state_delta is None else plain(state_delta)
        request = append_request(**_appending(session_id, event), state_delta=changes)
        return _event(await self._send(session_id, request))

    async def append_events(self, session_id: str, events: Iterable[Event | Mapping[str, Any]]) -> None:
        """Append events in order, in one commit; skip those that the session has.

        Raises:
            ServiceError: As for `append_event`; or the events exceed 16 MB together.
        """
        given: list[requests.AppendEvent] = []
        size = held = 0
        for event in events:
            given.append(append_request(**_appending(session_id, event)))
            size += len(bytes(given[-1].content)) + len(given[-1].whole) + BYTES_AN_EVENT
            if size > MOST_BYTES_AT_ONCE:
                sentence = f"events: in one call they may have {MOST_BYTES_AT_ONCE:,} bytes, and have more"
                raise ServiceError("VALIDATION_ERROR", sentence, field="events", limit=MOST_BYTES_AT_ONCE)
            if size - held > BYTES_A_SLICE:
                held = size
                await checkpoint()
        if given:
            await self._send(session_id, requests.AppendEvents(session_id=session_id, events=tuple(given)))

    async def get_events(self, session_id: str, limit: int | None = None, id_prefix: str = "") -> list[Event]:
        """Return the newest events, oldest first, without reading earlier events.

        A result of more than 500 may include events that are removed meanwhile, but none that are appended.

        Args:
            session_id: The session.
            limit: The most events, 1 or more; None means all.
            id_prefix: Only events with ids that begin with this text.

        Raises:
            ServiceError: The session is unknown, or the limit is invalid.
        """
        found: list[Event] = []
        before: int | None = None
        while True:
            page = await self._ask(
                requests.GetNewestEvents,
                session_id=session_id,
                before_id=before,
                limit=None if limit is None else limit - len(found),
                id_prefix=id_prefix,
            )
            found += await _converted(page)
            before = page.last_id
            if before is None:
                return found[::-1]

    async def pop_event(self, session_id: str, id_prefix: str = "") -> Event | None:
        """Remove and return the newest event that the principal may see, or return None.

        The event's effect on the state stays.

        Raises:
            ServiceError: The session is unknown or has ended.
        """
        removed = await self._ask(requests.RemoveEvents, session_id=session_id, limit=1, id_prefix=id_prefix)
        return None if removed.newest is None else _event(removed.newest)

    async def clear_events(self, session_id: str, id_prefix: str = "") -> int:
        """Remove all events that the principal may see, as `pop_event` does; return their number.

        Raises:
            ServiceError: The session is unknown or has ended.
        """
        removed = await self._ask(requests.RemoveEvents, session_id=session_id, id_prefix=id_prefix)
        return removed.count

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with all its content; return whether it existed.

        Its id can be reused. The session's user may delete it, or without one the agent that created it. A
        principal without a user acts for every user.

        Raises:
            ServiceError: It belongs to someone else.
        """
        return await self._ask_if_known(requests.DeleteSession, session_id=session_id) is not None

    async def update_status(self, session_id: str, status: str) -> None:
        """Change the status of a session.

        ``created``, ``active`` and ``paused`` may become ``active``, ``paused`` or ``terminated``, and that
        ``archived``. The first message makes a new session active. Termination removes the state's ``temp:``
        keys.

        Raises:
            ServiceError: The session or the status is unknown, or the change is not allowed.
        """
        await self._ask(requests.UpdateSession, session_id=session_id, status=status)

    async def get_state(self, session_id: str, key: str) -> Any:
        """Return the value of a key of the state; None if it is unknown.

        A prefix (``session:``, ``user:``, ``app:``, ``project:``, ``temp:``) is a part of the key.
        """
        state = await self._ask_if_known(requests.GetState, session_id=session_id, key=key)
        return None if state is None else from_json(state.value)

    async def set_state(self, session_id: str, key: str, value: Any) -> None:
        """Set one key of the state; it belongs only to this session, whatever its prefix.

        Raises:
            ServiceError: The session is unknown or has ended, or the value is no JSON or too large.
        """
        await self._ask(requests.UpdateSession, session_id=session_id, state={key: value})

    async def _events(self, session_id: str, newest_id: int) -> list[Event]:
        events: list[Event] = []
        after: int | None = 0
        while after is not None:
            page = await self._ask(
                requests.GetEvents, session_id=session_id, after_id=after, up_to_id=newest_id
            )
            events += await _converted(page)
            after = page.last_id
        return events

    async def _ask_if_known(self, request_type: type[Message[R]], **arguments: Any) -> R | None:
        """Ask a session as `_ask` does; return None if its id is unknown."""
        try:
            return await self._ask(request_type, **arguments)
        except ServiceError as error:
            if error.code == "SESSION_NOT_FOUND" or error.details.get("field") == "session_id":
                return None
            raise

    async def _ask(self, request_type: type[Message[R]], **arguments: Any) -> R:
        return await self._send(arguments["session_id"], _checked(request_type, **arguments))

    async def _send(self, session_id: str, request: Message[R]) -> R:
        with service_errors():
            return await self._runtime.ask(Address("session", session_id), request, principal=self.principal)


def _checked(request_type: type[M], **arguments: Any) -> M:
    with service_errors():
        return parse_request(request_type, to_json(arguments))


def append_request(*, shown: Any = None, **arguments: Any) -> requests.AppendEvent:
    """Build the request that appends an event.

    Agents see ``shown`` instead of a content that is too large for a message.
    """
    if shown is None:
        return _checked(requests.AppendEvent, **arguments)
    with service_errors():
        whole = to_json(arguments["content"])
        if len(whole) <= MAX_VALUE_BYTES:
            return _checked(requests.AppendEvent, **arguments)
        if len(whole) > MOST_BYTES_AT_ONCE:
            raise too_large("content", len(whole), MOST_BYTES_AT_ONCE)
        if not isinstance(check_json(whole), dict):
            raise invalid("content", "content: it takes an object")
    request = _checked(requests.AppendEvent, **{**arguments, "content": shown})
    return msgspec.structs.replace(request, whole=whole)


def _appending(session_id: str, event: Event | Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for appending an event, if they have the right names."""
    given = dict(event)
    unknown = [str(name) for name in given if name not in _EVENT_FIELDS]
    if unknown:
        sentence = f"{unknown[0][:100]}: unknown; the fields of an event are {', '.join(_EVENT_FIELDS)}"
        raise ServiceError("VALIDATION_ERROR", sentence, field=unknown[0][:100])
    if given.get("content") is None:
        raise ServiceError("VALIDATION_ERROR", "content: it is required", field="content")
    timestamp = given.get("timestamp")
    if isinstance(timestamp, datetime):
        given["timestamp"] = timestamp.isoformat()
    return {"session_id": session_id, "event_id": new_event_id(), **given}


async def _converted(page: requests.EventPage) -> list[Event]:
    events: list[Event] = []
    size = 0
    for view in page.events:
        events.append(_event(view))
        size += len(bytes(view.content)) + BYTES_AN_EVENT
        if size > BYTES_A_SLICE:
            size = 0
            await checkpoint()
    return events


def _event(view: requests.EventView) -> Event:
    return Event(
        event_type=view.event_type,
        actor=view.actor,
        content=from_json(view.content),
        shown=None,
        event_id=view.event_id,
        timestamp=view.timestamp,
        is_final_response=view.is_final_response,
        visibility=view.visibility,
    )
