"""Sessions for a program that embeds Greenroom."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from anyio.lowlevel import checkpoint

from greenroom.actors.app.services.base import Askable, ServiceError, ServiceResult, from_json, plain, to_json
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES, invalid, too_large
from greenroom.actors.core.auth.policy import Visibility
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.core.validation.strict_json import check_json
from greenroom.actors.core.validation.types import SessionStatus
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.requests.requests import EventType
from greenroom.runtime import Address, Message, Refusal

R = TypeVar("R")
M = TypeVar("M", bound=Message[Any])

BYTES_A_SLICE = (
    65_536  # of JSON made into Python objects before others get the event loop: a millisecond or two
)
MOST_BYTES_AT_ONCE = 16 << 20
"""Bytes of JSON that the events of one call may have together."""
BYTES_AN_EVENT = 500  # what the rest of an event counts for besides its content


def new_event_id() -> str:
    """Return an id that no other event has."""
    return secrets.token_hex(16)


class Event(ServiceResult):
    """Something that happened in a session.

    Attributes:
        event_type: ``message``, ``action``, ``tool_call`` or ``reflection``.
        actor: Whose doing it was: ``user``, ``agent:<id>`` or ``system``.
        content: A dictionary of what JSON can hold, up to 1 MB. ``{"text": "…"}`` is what agents see
            as a message with this text; they see any other content as JSON. In an event of type
            ``message`` the text obeys the ``content_limit`` of `open_greenroom`.
        shown: What agents see and search in the place of a content of over 1 MB, which may then have up to
            16 MB and comes back whole from this service alone; such a content is refused without it.
        event_id: 1-255 characters; the same event again is not appended, and another one with the same id is
            refused. An event that is made without one gets a random one, so that it can be appended again
            after an error.
        timestamp: When it happened, in UTC unless it has a time zone; None: when it is appended. It may be
            given as text, reads in UTC, and is never None in an event that was read.
        is_final_response: Whether it ends an agent's turn.
        visibility: Who sees it, as with a message of the service's principal.
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
    """A session as it was at one moment, with all its events that the service's principal may see."""

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
    """Sessions with events and state, in Python objects: the same sessions that the MCP tools show.

    Events and messages are one log: agents read and search the service's events as messages, and a
    message of an agent is an event of type ``message`` with the id ``message_<message_id>``.

    A change is carried out whole or not at all, and is on disk when the method returns. A "no" is a
    `ServiceError`, which is a ``ValueError``.

    Args:
        runtime: What `open_greenroom` opened, or a `Database`.
        principal: In whose name the service asks; what this one may not see, the service does not
            return. Without one it is the agent ``app``, a member of every project.
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
        """Make a session; agents see ``app_name`` as its purpose.

        Without a ``user_id`` it is the principal's user's, if it has one.

        Raises:
            ServiceError: the id is taken or not 1-128 of ``A-Za-z0-9_.-``, or another argument breaks a rule.
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
        """Return a session with all its events, or None when there is none with this id.

        The events are fetched and converted in slices, so that a long session holds up nobody. What
        is appended meanwhile is not among them.
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

        An event that the session has already, as far as the principal sees, changes nothing: neither the
        log nor the state. That is no error, also when the session has ended since. It is the same event when
        all but ``timestamp`` is the same under its id; ``state_delta`` is not kept and not compared.

        Args:
            session_id: Which session.
            event: An `Event`, or a dictionary with the fields of one.
            state_delta: Keys and values that replace those of the state.

        Returns:
            The event as it is in the log; for a repeat the one that was there.

        Raises:
            ServiceError: the session is unknown or has ended, the event or the state breaks a rule, or the
                session has another event with this id (``IDEMPOTENCY_CONFLICT``).
        """
        changes = {} if state_delta is None else plain(state_delta)
        request = append_request(**_appending(session_id, event), state_delta=changes)
        return _event(await self._send(session_id, request))

    async def append_events(self, session_id: str, events: Iterable[Event | Mapping[str, Any]]) -> None:
        """Append events in their order: all of them or none, in one commit.

        Events that the session has already are passed over, as by `append_event`.

        Raises:
            ServiceError: as `append_event`, or they have more than 16 MB together.
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
        """Return the newest events, oldest of them first, without reading those before them.

        They are read from the end, by 500: whoever asks for more may get some that are removed meanwhile,
        and none that is appended meanwhile.

        Args:
            session_id: Which session.
            limit: How many at most, 1 or more; None: all.
            id_prefix: With what the ids of the events begin that count.

        Raises:
            ServiceError: the session is unknown, or the limit is none.
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
        """Remove the newest event that the principal may see, and return it; None where there is none.

        What the event has done to the state stays.

        Args:
            session_id: Which session.
            id_prefix: With what the ids of the events begin that count.

        Raises:
            ServiceError: the session is unknown or has ended.
        """
        removed = await self._ask(requests.RemoveEvents, session_id=session_id, limit=1, id_prefix=id_prefix)
        return None if removed.newest is None else _event(removed.newest)

    async def clear_events(self, session_id: str, id_prefix: str = "") -> int:
        """Remove all events that the principal may see, as `pop_event` does one; return how many.

        Raises:
            ServiceError: the session is unknown or has ended.
        """
        removed = await self._ask(requests.RemoveEvents, session_id=session_id, id_prefix=id_prefix)
        return removed.count

    async def delete_session(self, session_id: str) -> bool:
        """Delete a session with all that is in it, whoever wrote it; its id can be taken again.

        Its user deletes it, and where it names none the agent that made it. A principal without a user acts
        for every one.

        Returns:
            Whether there was one.

        Raises:
            ServiceError: it is somebody else's.
        """
        return await self._ask_if_known(requests.DeleteSession, session_id=session_id) is not None

    async def update_status(self, session_id: str, status: str) -> None:
        """Take a session from its status to another one.

        ``created``, ``active`` and ``paused`` may become ``active``, ``paused`` or ``terminated``, and
        ``terminated`` may become ``archived``. The status that it has already changes nothing. The first
        message makes a new session active. When it is terminated, the state loses its ``temp:`` keys.

        Raises:
            ServiceError: the session or the status is unknown, or there is no such step.
        """
        await self._ask(requests.UpdateSession, session_id=session_id, status=status)

    async def get_state(self, session_id: str, key: str) -> Any:
        """Return the value of one key of the state, or None when it is not set or the session is unknown.

        A prefix (``session:``, ``user:``, ``app:``, ``project:``, ``temp:``) is a part of the key.
        """
        state = await self._ask_if_known(requests.GetState, session_id=session_id, key=key)
        return None if state is None else from_json(state.value)

    async def set_state(self, session_id: str, key: str, value: Any) -> None:
        """Set one key of the state; it belongs to this session alone, whatever its prefix.

        Raises:
            ServiceError: the session is unknown or has ended, or the value is none of JSON's or too large.
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
        """Ask a session as `_ask` does; None when there is none with this id."""
        try:
            return await self._ask(request_type, **arguments)
        except ServiceError as error:
            if error.code == "SESSION_NOT_FOUND" or error.details.get("field") == "session_id":
                return None
            raise

    async def _ask(self, request_type: type[Message[R]], **arguments: Any) -> R:
        """Check the arguments as those of a tool, and ask the session.

        Raises:
            ServiceError: in the place of any `Refusal`.
        """
        return await self._send(arguments["session_id"], _checked(request_type, **arguments))

    async def _send(self, session_id: str, request: Message[R]) -> R:
        """Ask the session.

        Raises:
            ServiceError: in the place of any `Refusal`.
        """
        try:
            return await self._runtime.ask(Address("session", session_id), request, principal=self.principal)
        except Refusal as refusal:
            raise _error(refusal) from None


def _checked(request_type: type[M], **arguments: Any) -> M:
    """Return the request with these arguments, after the checks that a tool's have.

    Raises:
        ServiceError: in the place of any `Refusal`.
    """
    try:
        return parse_request(request_type, to_json(arguments))
    except Refusal as refusal:
        raise _error(refusal) from None


def append_request(*, shown: Any = None, **arguments: Any) -> requests.AppendEvent:
    """Return the request that appends an event.

    Args:
        shown: What agents see of a content that is too large for a message.
        arguments: Those of `AppendEvent`.

    Raises:
        ServiceError: in the place of any `Refusal`.
    """
    if shown is None:
        return _checked(requests.AppendEvent, **arguments)
    try:
        whole = to_json(arguments["content"])
        if len(whole) <= MAX_VALUE_BYTES:
            return _checked(requests.AppendEvent, **arguments)
        if len(whole) > MOST_BYTES_AT_ONCE:
            raise too_large("content", len(whole), MOST_BYTES_AT_ONCE)
        if not isinstance(check_json(whole), dict):
            raise invalid("content", "content: it takes an object")
    except Refusal as refusal:
        raise _error(refusal) from None
    request = _checked(requests.AppendEvent, **{**arguments, "content": shown})
    return msgspec.structs.replace(request, whole=whole)


def _error(refusal: Refusal) -> ServiceError:
    return ServiceError.of(refusal)


def _appending(session_id: str, event: Event | Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with which an event is appended.

    Raises:
        ServiceError: a field of it is unknown or missing.
    """
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
    """Return the events of a page, made in slices."""
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
