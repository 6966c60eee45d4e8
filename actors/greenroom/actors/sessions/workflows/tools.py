"""The tools of workflows, which query the actor of the owner and project."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import project_part, workflow_key
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import StatusOfSession
from greenroom.actors.sessions.requests.current_session import SessionClient
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.workflows import requests
from greenroom.actors.sessions.workflows.shapes import build_shape
from greenroom.runtime import Address, IndexReader, Procedure


class FoundProject(msgspec.Struct, frozen=True):
    """The project of a session, and whether the caller may see it."""

    project_id: str | None
    is_visible: bool


class FindProject(Procedure[FoundProject | None], frozen=True, kw_only=True):
    """Find the project of a session; None if there is no such session; internal."""

    runs = "snapshot"

    session_id: str

    def run(self, reader: IndexReader) -> FoundProject | None:
        """Read the session's row."""
        address = Address("session", self.session_id)
        row = reader.get(directory.INDEX, directory.BASE, address, directory.BaseRow)
        if row is None:
            return None
        return FoundProject(row.project_id, policy.may_see_session(reader.principal, row.project_id))


class _Place(msgspec.Struct, frozen=True):
    """The target of a request: actor, project, session, and the key of its steps."""

    address: Address
    project_id: str | None
    session_id: str | None
    thread: str


async def _place(client: SessionClient, session_id: str | None) -> _Place:
    project_id, thread = client.session.own_project, client.session.thread
    if session_id is not None and session_id != client.session.session_id:
        found = await client.runtime.query(FindProject(session_id=session_id), principal=client.principal)
        if found is None:
            raise auth_errors.session_not_found(session_id)
        if not found.is_visible:
            raise auth_errors.denial(auth_errors.session_not_found(session_id))
        project_id, thread = found.project_id, session_id
    key = workflow_key(client.principal, project_part(project_id))
    return _Place(Address(requests.KIND, key), project_id, session_id or client.session.session_id, thread)


@operation(
    "record_workflow_step",
    scope="sessions:write",
    tool=ToolText(
        title="Record a step",
        description="Record a command or tool that you ran and whether it worked, so that next "
        "steps can be suggested later. Arguments are kept as shapes, secrets never.",
    ),
    is_step=False,
)
class RecordWorkflowStep(
    Procedure[requests.StepRecorded], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Record a step, as a basis for suggestions."""

    runs = "here"
    command: requests.Command
    success: Annotated[bool, Meta(description="whether it did what it should")] = True
    duration_ms: requests.Duration | None = None
    session_id: types.OrCurrent | None = None
    idempotency_key: types.IdempotencyKey | None = None

    async def run(self, client: SessionClient) -> requests.StepRecorded:
        """Record the step."""
        place = await _place(client, self.session_id)
        shape = build_shape(
            self.command, lambda _: False, passed=self.success
        ).text  # idempotency must not store the command itself
        arguments = (shape, self.success, self.duration_ms, self.session_id)
        step = requests.RecordStep(
            command=self.command,
            passed=self.success,
            duration_ms=self.duration_ms,
            session_id=place.session_id,
            thread=place.thread,
            project_id=place.project_id,
        )
        once = client.idempotency("record_workflow_step", self.idempotency_key, arguments)
        return await client.ask(place.address, step, once)


@operation(
    "get_workflow_patterns",
    scope="sessions:read",
    tool=ToolText(
        title="Get workflow patterns",
        description="See which commands often follow one another here, or come after those so far: "
        "how sure, how successful, how long.",
        weight=1,
    ),
    is_step=False,
)
class GetWorkflowPatterns(
    Procedure[requests.PatternsFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find frequent patterns, or those that continue the commands so far."""

    runs = "here"

    context: requests.Context = msgspec.field(default_factory=list)
    limit: requests.Wanted = 5
    session_id: types.OrCurrent | None = None

    async def run(self, client: SessionClient) -> requests.PatternsFound:
        """Find the patterns."""
        place = await _place(client, self.session_id)
        return await client.ask(place.address, requests.FindPatterns(context=self.context, limit=self.limit))


@operation(
    "suggest_next_action",
    scope="sessions:read",
    tool=ToolText(
        title="Suggest next action",
        description="Ask which command or tool usually comes next; never one that failed every time.",
        weight=1,
    ),
    is_step=False,
)
class SuggestNextAction(
    Procedure[requests.ActionsSuggested], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Suggest the next command."""

    runs = "here"

    context: Annotated[
        requests.Context | None,
        Meta(description="commands so far, oldest first; default the session's last ones"),
    ] = None
    limit: requests.Wanted = 3
    session_id: types.OrCurrent | None = None

    async def run(self, client: SessionClient) -> requests.ActionsSuggested:
        """Ask for suggestions."""
        place = await _place(client, self.session_id)
        wanted = requests.SuggestActions(context=self.context, limit=self.limit, thread=place.thread)
        return await client.ask(place.address, wanted)


@operation(
    "workflow_checkpoint",
    scope="sessions:write",
    tool=ToolText(
        title="Workflow checkpoint",
        description="Save the state of your work under a name, or restore it by its name alone.",
        overwrites=True,
        repeatable=True,
        weight=1,
    ),
    is_step=False,
)
class WorkflowCheckpoint(
    Procedure[requests.CheckpointKept], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Save a checkpoint of the work, or restore one."""

    runs = "here"
    name: requests.CheckpointName
    state: requests.State = msgspec.field(default_factory=types.no_fields)
    session_id: types.OrCurrent | None = None
    idempotency_key: types.IdempotencyKey | None = None

    async def run(self, client: SessionClient) -> requests.CheckpointKept:
        """Save the checkpoint, or restore it."""
        place = await _place(client, self.session_id)
        members: dict[str, Any] = msgspec.json.decode(self.state)
        if members and place.session_id is not None:
            await client.ask(Address("session", place.session_id), StatusOfSession())
        request = requests.KeepCheckpoint(
            name=self.name,
            state=self.state if members else None,
            session_id=place.session_id,
            thread=place.thread,
        )
        arguments = (self.name, members, self.session_id)
        once = client.idempotency("workflow_checkpoint", self.idempotency_key, arguments)
        return await client.ask(place.address, request, once)


def record_step(client: SessionClient, tool: str, *, passed: bool, seconds: float) -> None:
    """Record a finished tool call as a step of the client's user."""
    session = client.session
    project_id = session.own_project
    key = workflow_key(client.principal, project_part(project_id))
    note = requests.NoteStep(
        tool=tool,
        passed=passed,
        duration_ms=round(seconds * 1_000, 3),
        session_id=session.session_id,
        thread=session.thread,
        project_id=project_id,
    )
    client.tell(Address(requests.KIND, key), note)
