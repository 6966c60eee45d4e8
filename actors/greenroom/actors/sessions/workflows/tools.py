"""The tools of workflows: each finds out whose steps and which project are meant, and asks their actor."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import project_part, workflow_key
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState
from greenroom.actors.sessions.requests.requests import StatusOfSession
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.workflows import requests as schemas
from greenroom.actors.sessions.workflows.shapes import shape_of
from greenroom.runtime import Address, IndexReader, Query


class FoundProject(msgspec.Struct, frozen=True):
    """The project of a session, and whether the caller may see it."""

    project_id: str | None
    is_visible: bool


class FindProject(Query[FoundProject | None], frozen=True, kw_only=True):
    """Find the project of a session; None where there is no such session; internal."""

    session_id: str

    def run(self, reader: IndexReader) -> FoundProject | None:
        """Read the session's row."""
        address = Address("session", self.session_id)
        row = reader.get(directory.INDEX, directory.BASE, address, directory.BaseRow)
        if row is None:
            return None
        return FoundProject(row.project_id, policy.may_see_session(reader.principal, row.project_id))


class _Place(msgspec.Struct, frozen=True):
    """Whose steps are meant: the actor, its project, the session, and what tells its steps from others."""

    address: Address
    project_id: str | None
    session_id: str | None
    thread: str


async def _place(client: ClientSessionState, session_id: str | None) -> _Place:
    """Return whose steps are meant.

    Raises:
        Refusal: ``SESSION_NOT_FOUND``: a session is named that the client may not see.
    """
    project_id, thread = client.own_project, client.thread
    if session_id is not None and session_id != client.session_id:
        found = await client.runtime.query(FindProject(session_id=session_id), principal=client.principal)
        if found is None:
            raise auth_errors.session_not_found(session_id)
        if not found.is_visible:
            raise auth_errors.denial(auth_errors.session_not_found(session_id))
        project_id, thread = found.project_id, session_id
    key = workflow_key(client.principal, project_part(project_id))
    return _Place(Address(schemas.KIND, key), project_id, session_id or client.session_id, thread)


class RecordWorkflowStep(
    ClientOrchestration[schemas.StepRecorded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Record a step of work, so that what comes next can be suggested."""

    command: schemas.Command
    success: Annotated[bool, Meta(description="whether it did what it should")] = True
    duration_ms: schemas.Duration | None = None
    session_id: types.OrCurrent | None = None
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, client: ClientSessionState) -> schemas.StepRecorded:
        """Record it.

        Raises:
            Refusal: ``SESSION_NOT_FOUND``.
        """
        place = await _place(client, self.session_id)
        shape = shape_of(
            self.command, lambda _: False, passed=self.success
        ).text  # what is told leaves no trace
        said = (shape, self.success, self.duration_ms, self.session_id)
        step = schemas.RecordStep(
            command=self.command,
            passed=self.success,
            duration_ms=self.duration_ms,
            session_id=place.session_id,
            thread=place.thread,
            project_id=place.project_id,
        )
        once = client.idempotency("record_workflow_step", self.idempotency_key, said)
        return await client.ask(place.address, step, once)


class GetWorkflowPatterns(
    ClientOrchestration[schemas.PatternsFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find what is done again and again, or goes on from the commands so far."""

    writes: ClassVar[bool] = False

    context: schemas.Context = msgspec.field(default_factory=list)
    limit: schemas.Wanted = 5
    session_id: types.OrCurrent | None = None

    async def carry_out(self, client: ClientSessionState) -> schemas.PatternsFound:
        """Find them.

        Raises:
            Refusal: ``SESSION_NOT_FOUND``.
        """
        place = await _place(client, self.session_id)
        return await client.ask(place.address, schemas.FindPatterns(context=self.context, limit=self.limit))


class SuggestNextAction(
    ClientOrchestration[schemas.ActionsSuggested], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Suggest what may come next."""

    writes: ClassVar[bool] = False

    context: Annotated[
        schemas.Context | None,
        Meta(description="commands so far, oldest first; default the session's last ones"),
    ] = None
    limit: schemas.Wanted = 3
    session_id: types.OrCurrent | None = None

    async def carry_out(self, client: ClientSessionState) -> schemas.ActionsSuggested:
        """Ask for suggestions.

        Raises:
            Refusal: ``SESSION_NOT_FOUND``.
        """
        place = await _place(client, self.session_id)
        wanted = schemas.SuggestActions(context=self.context, limit=self.limit, thread=place.thread)
        return await client.ask(place.address, wanted)


class WorkflowCheckpoint(
    ClientOrchestration[schemas.CheckpointKept], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Save a point from which work can go on, or restore one."""

    name: schemas.CheckpointName
    state: schemas.State = msgspec.field(default_factory=types.no_fields)
    session_id: types.OrCurrent | None = None
    idempotency_key: types.IdempotencyKey | None = None

    async def carry_out(self, client: ClientSessionState) -> schemas.CheckpointKept:
        """Save it, or restore it.

        Raises:
            Refusal: ``CHECKPOINT_NOT_FOUND``, ``QUOTA_EXCEEDED``, ``SESSION_NOT_FOUND``, or
                ``VALIDATION_ERROR``: the state is too large.
        """
        place = await _place(client, self.session_id)
        members: dict[str, Any] = msgspec.json.decode(self.state)
        if members and place.session_id is not None:
            await client.ask(Address("session", place.session_id), StatusOfSession())
        request = schemas.KeepCheckpoint(
            name=self.name,
            state=self.state if members else None,
            session_id=place.session_id,
            thread=place.thread,
        )
        said = (self.name, members, self.session_id)
        once = client.idempotency("workflow_checkpoint", self.idempotency_key, said)
        return await client.ask(place.address, request, once)
