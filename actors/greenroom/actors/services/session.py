"""Sessions for a program that embeds Greenroom."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from anyio.lowlevel import checkpoint

from greenroom.actors.auth.policy import Visibility
from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.parse import parse_request
from greenroom.actors.schemas import sessions as requests
from greenroom.actors.schemas import sessions as tools
from greenroom.actors.schemas.sessions import EventType
from greenroom.actors.schemas.types import SessionStatus
from greenroom.actors.services.base import Askable, ServiceError, ServiceResult, from_json, plain, to_json
from greenroom.runtime import Address, Message, Refusal

R = TypeVar("R")

BYTES_A_SLICE = (
    65_536  # of JSON made into Python objects before others get the event loop: a millisecond or two
)
BYTES_AN_EVENT = 500  # what the rest of an event counts for besides its content


def new_event_id() -> str:
    """Return an id that no other event has."""
    return secrets.token_hex(16)


class Event(ServiceResult, frozen=True, kw_only=True):
    """Something that happened in a session.

    Attributes:
        event_type: ``message``, ``action``, ``tool_call`` or ``reflection``.
        actor: Whose doing it was: ``user``, ``agent:<id>`` or ``system``.
        content: A dictionary of what JSON can hold, up to 1 MB. ``{"text": "…"}`` is what agents see
            as a message with this text; they see any other content as JSON. In an event of type
            ``message`` the text obeys the ``content_limit`` of `open_greenroom`.
        event_id: 1-255 characters; the same event again is not appended, and another one with the same id is
            refused. An event that is made without one gets a random one, so that it can be appended again
            after an error.
        timestamp: When it happened, in UTC unless it has a time zone; None: when it is appended. An event
            that was read always has one.
        is_final_response: Whether it ends an agent's turn.
        visibility: Who sees it, as with a message of the service's principal.
    """

    event_type: EventType
    actor: str
    content: dict[str, Any]
    event_id: str = msgspec.field(default_factory=new_event_id)
    timestamp: datetime | None = None
    is_final_response: bool = False
    visibility: Visibility = "public"


class Session(ServiceResult, frozen=True, kw_only=True):
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


_EVENT_FIELDS = Event.__struct_fields__


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
        self.principal = Principal(agent_id="app") if principal is None else principal

    async def create_session(
        self,
        session_id: str,
        app_name: str,
        user_id: str,
        project_id: str | None = None,
        initial_state: Mapping[str, Any] | None = None,
    ) -> None:
        """Make a session; agents see ``app_name`` as its purpose.

        Raises:
            ServiceError: the id is taken or not 1-128 of ``A-Za-z0-9_.-``, or another argument breaks a rule.
        """
        await self._ask(
            tools.CreateSession,
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
        appended = await self._ask(
            requests.AppendEvent,
            session_id=session_id,
            state_delta={} if state_delta is None else plain(state_delta),
            **{"event_id": new_event_id(), **given},
        )
        return _event(appended)

    async def update_status(self, session_id: str, status: str) -> None:
        """Take a session from its status to another one.

        ``created``, ``active`` and ``paused`` may become ``active``, ``paused`` or ``terminated``, and
        ``terminated`` may become ``archived``. The first message makes a new session active. When it is
        terminated, the state loses its ``temp:`` keys.

        Raises:
            ServiceError: the session or the status is unknown, or there is no such step.
        """
        await self._ask(tools.UpdateSession, session_id=session_id, status=status)

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
        await self._ask(tools.UpdateSession, session_id=session_id, state={key: value})

    async def _events(self, session_id: str, newest_id: int) -> list[Event]:
        events: list[Event] = []
        after: int | None = 0
        size = 0
        while after is not None:
            page = await self._ask(
                requests.GetEvents, session_id=session_id, after_id=after, up_to_id=newest_id
            )
            for view in page.events:
                events.append(_event(view))
                size += len(bytes(view.content)) + BYTES_AN_EVENT
                if size > BYTES_A_SLICE:
                    size = 0
                    await checkpoint()
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
        try:
            request = parse_request(request_type, to_json(arguments))
            address = Address("session", arguments["session_id"])
            return await self._runtime.ask(address, request, principal=self.principal)
        except Refusal as refusal:
            raise ServiceError(refusal.code, refusal.sentence, **refusal.details) from None


def _event(view: requests.EventView) -> Event:
    return Event(**{**msgspec.structs.asdict(view), "content": from_json(view.content)})
