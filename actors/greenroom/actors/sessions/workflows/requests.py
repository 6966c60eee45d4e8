"""Requests about workflows: steps, patterns, suggestions, checkpoints."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies import memory_types
from greenroom.actors.core.replies.replies import ListReply, Reply
from greenroom.actors.core.resources.resources import Resource, ResourceInfo
from greenroom.actors.core.validation import types
from greenroom.runtime import Message

KIND: Final = "workflow"
MOST_CHECKPOINTS: Final = 100
MAX_STATE_BYTES: Final = 65_536

Command = Annotated[
    str, Meta(min_length=1, max_length=4_000, description="command line or tool name; kept without arguments")
]
Duration = Annotated[float, Meta(ge=0, le=31_536_000_000, description="how long it took")]
Context = Annotated[
    list[Annotated[str, Meta(max_length=4_000)]],
    Meta(max_length=100, description="commands so far, oldest first"),
]
Wanted = Annotated[int, Meta(ge=1, le=20, description="how many")]
CheckpointName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_.-]{1,100}(?!\n)$",
        description="its name",
        extra={"takes": "1 to 100 characters of A-Z, a-z, 0-9, _ . -"},
    ),
]
State = Annotated[
    msgspec.Raw,
    Meta(
        description="what to keep; without it the checkpoint is restored",
        extra_json_schema=types.OR_TEXT,
        extra=types.OBJECT,
    ),
]


class WorkflowPattern(msgspec.Struct, frozen=True, kw_only=True):
    """A frequent sequence of commands, perhaps with another command in between.

    Attributes:
        pattern_id: Its id; ``greenroom://workflows/{pattern_id}`` reads it.
        done: The number of its commands that the context has; without a context, all but the last.
        confidence: The probability that the other commands follow.
        success_rate: The share of occurrences in which all steps passed.
        average_duration_ms: The mean duration of all steps together; None if unknown.
    """

    pattern_id: str
    commands: list[str]
    done: int
    confidence: memory_types.Fraction
    success_rate: memory_types.Fraction
    average_duration_ms: float | None
    occurrences: int
    last_seen: datetime


class NextAction(msgspec.Struct, frozen=True, kw_only=True):
    """A command that may come next.

    Attributes:
        confidence: The probability that it comes next and passes.
        after: The last context commands that it followed before; empty if it is only frequent.
    """

    command: str
    confidence: memory_types.Fraction
    success_rate: memory_types.Fraction
    average_duration_ms: float | None
    last_seen: datetime
    after: list[str]


BriefPattern = Annotated[WorkflowPattern, Meta(extra_json_schema=types.BRIEF)]
BriefAction = Annotated[NextAction, Meta(extra_json_schema=types.BRIEF)]


class StepRecorded(Reply, frozen=True, kw_only=True):
    """Answers `RecordStep`."""

    command: str
    project_id: str | None
    steps: int
    recorded_at: datetime


class PatternsFound(ListReply, frozen=True, kw_only=True):
    """Answers `FindPatterns`; ``context`` has the shapes of the request's context."""

    lists: ClassVar[tuple[str, ...]] = ("patterns",)

    patterns: list[BriefPattern]
    total_found: int
    context: list[str]
    steps: int


class ActionsSuggested(ListReply, frozen=True, kw_only=True):
    """Answers `SuggestActions`; ``context`` has the shapes of the context in use."""

    lists: ClassVar[tuple[str, ...]] = ("suggestions",)

    suggestions: list[BriefAction]
    context: list[str]
    steps: int


class CheckpointKept(Reply, frozen=True, kw_only=True):
    """Answers `KeepCheckpoint`; ``steps``: the commands before it, as shapes, oldest first."""

    outcome: Literal["saved", "restored"]
    name: str
    state: types.JsonObject
    steps: list[str]
    session_id: str | None
    saved_at: datetime
    saved_by: str


# -- messages to the actor; its address has the owner and the project ---------------


class RecordStep(Message[StepRecorded], frozen=True, kw_only=True):
    """Record a step; ``thread`` (the session, or else the agent) links consecutive steps."""

    audit_action: ClassVar[str] = "record_workflow_step"

    command: Command
    passed: bool
    duration_ms: Duration | None
    session_id: str | None
    thread: str
    project_id: str | None


class NoteStep(Message[None], frozen=True, kw_only=True):
    """Report a finished tool call; the message may be lost."""

    tool: str
    passed: bool
    duration_ms: float
    session_id: str | None
    thread: str
    project_id: str | None


class FindPatterns(Message[PatternsFound], frozen=True, kw_only=True):
    """Find patterns that continue a context; an empty context matches all."""

    audit_action: ClassVar[str] = "get_workflow_patterns"

    context: Context
    limit: Wanted


class SuggestActions(Message[ActionsSuggested], frozen=True, kw_only=True):
    """Suggest commands after a context; without a context, after the last steps of the thread."""

    audit_action: ClassVar[str] = "suggest_next_action"

    context: Context | None
    limit: Wanted
    thread: str


class KeepCheckpoint(Message[CheckpointKept], frozen=True, kw_only=True):
    """Save a checkpoint, or restore it if the state is None."""

    audit_action: ClassVar[str] = "workflow_checkpoint"

    name: CheckpointName
    state: types.JsonObject | None
    session_id: str | None
    thread: str


class PatternResource(Resource, frozen=True, kw_only=True):
    """A pattern as a resource."""

    pattern: WorkflowPattern
    resource_info: ResourceInfo
