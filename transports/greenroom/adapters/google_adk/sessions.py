"""The kit's sessions as sessions of Greenroom."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec
from anyio.lowlevel import checkpoint

from greenroom.actors import Database, Principal, ServiceError, SessionService, parse_request
from greenroom.actors.app.services.base import from_json, to_json
from greenroom.actors.app.services.session import append_request
from greenroom.actors.core.auth.policy import own_project
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.storage.directory import SessionsOfProgram
from greenroom.adapters.base.extras import needs
from greenroom.adapters.google_adk import names
from greenroom.adapters.google_adk.events import is_message, restore, time_of, to_append
from greenroom.runtime import Address, Message, Refusal

with needs("google-adk"):
    from google.adk.errors import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.platform import uuid
    from google.adk.sessions import BaseSessionService, Session, State
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
    from pydantic_core import to_jsonable_python

logger = logging.getLogger(__name__)

R = TypeVar("R")
M = TypeVar("M", bound=Message[Any])

EVENTS_A_SLICE: Final = 32
"""This many events are converted before the event loop gets a turn; they take 1 or 2 ms."""
OWN_ID: Final = "adk_session_id"
"""The member of a session's metadata that holds the session's id in the kit."""


class GreenroomSessionService(BaseSessionService):
    """Sessions of the kit in a `Database`, as ordinary sessions.

    Agents of the same user read and search them with the server's tools; a message that they add is an event.
    An event and its changes of the state are appended in one commit; ``app:`` and ``user:`` keys change after
    it. A session is stale if another writer has appended an event since it was read.

    Names of programs and users have 1 to 128 characters. An event has up to 16 MB as JSON; agents see only
    the text of one over 1 MB. The state of a session, of a user in a program, and of a program has up to 1 MB
    each.

    Args:
        database: The open database.
        agent_id: The agent that the service acts as, 1-100 of ``A-Za-z0-9_.-``.
    """

    def __init__(self, database: Database, agent_id: str = "adk") -> None:
        self._database = database
        self._agent_id = agent_id

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session, and return it with all of its state.

        The id is any text, stripped of blanks; empty or None for a new id. ``temp:`` keys are not stored.

        Raises:
            AlreadyExistsError: the user has a session of this id in the program.
            ServiceError: a name or the state is too large, or the state has no JSON form.
        """
        own_id = (session_id or "").strip() or uuid.new_uuid()
        given = to_jsonable_python(state or {}, inf_nan_mode="null", serialize_unknown=True)
        own, shared = _split(given)
        changes = self._shared_changes(app_name, user_id, shared)
        await self._check(user_id, changes)
        request = requests.CreateSharing(
            session=_parse(
                requests.CreateSession,
                session_id=names.session_name(app_name, user_id, own_id),
                purpose=app_name,
                app_name=app_name,
                user_id=user_id,
                project_id=own_project(user_id),
                metadata={OWN_ID: own_id},
                initial_state=own,
            ),
            shared=changes,
        )
        try:
            created = await self._ask(names.session_name(app_name, user_id, own_id), request, user_id)
        except ServiceError as error:
            if error.code != "KEY_EXISTS":
                raise
            raise AlreadyExistsError(
                f"the user {user_id!r} has a session {own_id!r} in {app_name!r} already; choose another id"
            ) from error
        session = Session(
            id=own_id,
            app_name=app_name,
            user_id=user_id,
            state={**own, **await self._shared_state(app_name, user_id), **shared},
            last_update_time=created.created_at.timestamp(),
        )
        _mark(session, "")
        return session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events; None if the user has no such session there."""
        name = names.session_name(app_name, user_id, session_id.strip())
        snapshot = await self._snapshot(name, user_id)
        if snapshot is None:
            return None
        session = await self._session(app_name, user_id, snapshot)
        config = config or GetSessionConfig()
        most, after = config.num_recent_events, config.after_timestamp
        if session is None or most == 0:
            return session
        limit = most if after is None else None
        events = await self._events(name, user_id, snapshot.newest_id, limit)
        if after is not None:
            events = [event for event in events if event.timestamp >= after]
        session.events = events if most is None else events[-most:]
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a program without their events, last changed last."""
        found = SessionsOfProgram(app_name=app_name, user_id=user_id)
        principal = Principal(agent_id=self._agent_id, user=user_id)
        sessions = []
        for name in await self._database.query(found, principal=principal):
            snapshot = await self._snapshot(name, user_id)
            owner = None if snapshot is None else snapshot.session.user_id
            if snapshot is not None and owner is not None:
                session = await self._session(app_name, owner, snapshot)
                if session is not None:
                    sessions.append(session)
        sessions.sort(key=lambda each: (each.last_update_time, each.user_id, each.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session and its events permanently; a missing session is no error."""
        service = SessionService(self._database, Principal(agent_id=self._agent_id, user=user_id))
        await service.delete_session(names.session_name(app_name, user_id, session_id.strip()))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the shared state of a user's sessions in a program, by keys without ``user:``."""
        project = own_project(user_id)
        return await self._state(names.user_state_name(app_name, user_id), user_id, user_id, project)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event once, to the store and to ``session``; partial events are not stored.

        Raises:
            SessionNotFoundError: the session does not exist.
            StaleSessionError: the stored session has a new event since ``session`` was read.
            ServiceError: a tool ended the session, it has another event of this id, or the event is too big.
        """
        if event.partial:
            return event
        name = names.session_name(session.app_name, session.user_id, session.id)
        fields, delta = to_append(event, lambda key: not key.startswith(State.TEMP_PREFIX))
        own, shared = _split(delta)
        changes = self._shared_changes(session.app_name, session.user_id, shared)
        await self._check(session.user_id, changes)
        appended = await self._append(session, {**fields, "session_id": name, "state_delta": own}, changes)
        if not appended.is_new and any(each.id == event.id for each in session.events):
            return event
        kept = await super().append_event(session=session, event=event)
        at = time_of(event)
        session.last_update_time = event.timestamp if at is None else at.timestamp()
        _mark(session, event.id)
        return kept

    async def _append(
        self, session: Session, event: dict[str, Any], changes: list[requests.SharedChange]
    ) -> requests.EventAppended:
        after = _marker(session)
        try:
            try:
                return await self._request_append(session, event, changes, after)
            except ServiceError as error:
                if not _may_be_too_long(error):
                    raise
            # Messages have a limit of characters, other events do not.
            return await self._request_append(session, {**event, "event_type": "action"}, changes, after)
        except ServiceError as error:
            if error.code == "SESSION_NOT_FOUND":
                raise SessionNotFoundError(
                    f"the user {session.user_id!r} has no session {session.id!r} in {session.app_name!r}"
                ) from error
            if error.code == "VERSION_CONFLICT":
                raise StaleSessionError(
                    f"the session {session.id!r} has got another event since it was read; read it anew by "
                    "get_session, then append yours"
                ) from error
            raise

    async def _request_append(
        self, session: Session, event: dict[str, Any], changes: list[requests.SharedChange], after: str
    ) -> requests.EventAppended:
        append = append_request(**event)
        request = requests.AppendSharing(event=append, shared=changes, after_event=after)
        return await self._ask(append.session_id, request, session.user_id)

    async def _session(self, app_name: str, user_id: str, snapshot: requests.Snapshot) -> Session | None:
        """Return a session without events; None if it belongs to another program or user."""
        kept = snapshot.session
        own_id = from_json(kept.metadata).get(OWN_ID)
        if not isinstance(own_id, str) or (kept.app_name, kept.user_id) != (app_name, user_id):
            return None
        updated_at = kept.created_at if snapshot.last_event_at is None else snapshot.last_event_at
        session = Session(
            id=own_id,
            app_name=app_name,
            user_id=user_id,
            state={**from_json(kept.state), **await self._shared_state(app_name, user_id)},
            last_update_time=updated_at.timestamp(),
        )
        _mark(session, snapshot.last_event_id or "")
        return session

    async def _events(self, name: str, user_id: str, newest_id: int, limit: int | None) -> list[Event]:
        """Return the last events up to ``newest_id``, oldest first; events before these are not read."""
        found: list[Event] = []
        before: int | None = newest_id + 1
        while before is not None and len(found) != limit:
            rest = None if limit is None else limit - len(found)
            request = requests.GetNewestEvents(session_id=name, before_id=before, limit=rest)
            page = await self._ask(name, request, user_id)
            for view in page.events:
                event = restore(view)
                if event is None:
                    logger.warning("the session %r came by a passport, which left an event out", name)
                    continue
                found.append(event)
                if len(found) % EVENTS_A_SLICE == 0:
                    await checkpoint()
            before = page.last_id
        return found[::-1]

    async def _shared_state(self, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the shared state of a user and a program, by full keys."""
        project = names.project_of_app(app_name)
        of_app = await self._state(names.app_state_name(app_name), user_id, None, project)
        of_user = await self.get_user_state(app_name=app_name, user_id=user_id)
        return {
            **{State.APP_PREFIX + key: value for key, value in of_app.items()},
            **{State.USER_PREFIX + key: value for key, value in of_user.items()},
        }

    async def _state(self, name: str, user_id: str, owner: str | None, project_id: str) -> dict[str, Any]:
        """Return the shared state in a session; empty if the owner or project is another."""
        snapshot = await self._snapshot(name, user_id)
        if snapshot is None:
            return {}
        if (snapshot.session.user_id, snapshot.session.project_id) != (owner, project_id):
            return {}
        state: dict[str, Any] = from_json(snapshot.session.state)
        return state

    def _shared_changes(
        self, app_name: str, user_id: str, shared: dict[str, Any]
    ) -> list[requests.SharedChange]:
        """Return the changes of ``app:`` and ``user:`` keys, by the sessions that have these keys."""
        changes = []
        for prefix, name, owner, project in (
            (State.APP_PREFIX, names.app_state_name(app_name), None, names.project_of_app(app_name)),
            (
                State.USER_PREFIX,
                names.user_state_name(app_name, user_id),
                user_id,
                own_project(user_id),
            ),
        ):
            delta = {
                key.removeprefix(prefix): value for key, value in shared.items() if key.startswith(prefix)
            }
            if delta:
                changes.append(
                    requests.SharedChange(
                        session_id=name,
                        app_name=app_name,
                        user_id=owner,
                        project_id=project,
                        changes=msgspec.Raw(_json(delta)),
                    )
                )
        return changes

    async def _check(self, user_id: str, changes: Iterable[requests.SharedChange]) -> None:
        """Refuse state that would be too large, before any change."""
        for change in changes:
            await self._ask(change.session_id, requests.CheckShared(change=change), user_id)

    async def _snapshot(self, name: str, user_id: str | None) -> requests.Snapshot | None:
        try:
            return await self._ask(name, requests.TakeSnapshot(session_id=name), user_id)
        except ServiceError as error:
            if error.code == "SESSION_NOT_FOUND":
                return None
            raise

    async def _ask(self, name: str, request: Message[R], user_id: str | None) -> R:
        principal = Principal(agent_id=self._agent_id, user=user_id)
        try:
            return await self._database.ask(Address("session", name), request, principal=principal)
        except Refusal as refusal:
            raise ServiceError.of(refusal) from None


def _split(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split state into the session's own state and the shared state; drop temporary keys."""
    own, shared = {}, {}
    for key, value in state.items():
        if key.startswith((State.APP_PREFIX, State.USER_PREFIX)):
            shared[key] = value
        elif not key.startswith(State.TEMP_PREFIX):
            own[key] = value
    return own, shared


def _parse(request_type: type[M], **arguments: Any) -> M:
    try:
        return parse_request(request_type, to_json(arguments))
    except Refusal as refusal:
        raise ServiceError.of(refusal) from None


def _json(value: dict[str, Any]) -> bytes:
    try:
        return to_json(value)
    except Refusal as refusal:
        raise ServiceError.of(refusal) from None


def _may_be_too_long(error: ServiceError) -> bool:
    """Return whether an event may be too long only for a message."""
    is_too_long = error.details.get("field") == "content" and error.details.get("unit") == "characters"
    return is_too_long or error.code == "IDEMPOTENCY_CONFLICT"


def _mark(session: Session, last_event_id: str) -> None:
    """Record the last event that the object has."""
    session._storage_update_marker = last_event_id  # noqa: SLF001  the kit's own field for that


def _marker(session: Session) -> str:
    """Return the last event that the object has, even if a program built the object."""
    marker = session._storage_update_marker  # noqa: SLF001  as in `_mark`
    if marker is not None:
        return marker
    return next((event.id for event in reversed(session.events) if not is_message(event.id)), "")
