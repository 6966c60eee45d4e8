"""Workflows: what agents do step by step, what tends to come next, and where work can be taken up again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.replies import ListReply, Reply
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
    """Commands that come again and again in this order, maybe with another one in between.

    Attributes:
        pattern_id: Tells it from others; ``greenroom://workflows/{pattern_id}`` reads it.
        commands: Their shapes.
        done: How many of them the context has done; of no context all but the last.
        confidence: How probable it is that the others follow.
        success_rate: In how many of its occurrences every step passed.
        average_duration_ms: How long all steps took, on average; None where that is not known.
        occurrences: How often it came.
        last_seen: When it came last.
    """

    pattern_id: str
    commands: list[str]
    done: int
    confidence: kinds.Fraction
    success_rate: kinds.Fraction
    average_duration_ms: float | None
    occurrences: int
    last_seen: datetime


class NextAction(msgspec.Struct, frozen=True, kw_only=True):
    """A command that may come next.

    Attributes:
        command: Its shape.
        confidence: How probable it is that it comes next and passes.
        success_rate: How many of its steps passed.
        average_duration_ms: How long it took, on average; None where that is not known.
        last_seen: When it came last.
        after: The last commands of the context that it was seen after; empty where it is merely frequent.
    """

    command: str
    confidence: kinds.Fraction
    success_rate: kinds.Fraction
    average_duration_ms: float | None
    last_seen: datetime
    after: list[str]


BriefPattern = Annotated[WorkflowPattern, Meta(extra_json_schema=types.BRIEF)]
BriefAction = Annotated[NextAction, Meta(extra_json_schema=types.BRIEF)]


class StepRecorded(Reply, frozen=True, kw_only=True):
    """Answers `RecordStep`.

    Attributes:
        command: The shape that is kept of the command.
        project_id: The project whose steps it is among; None for none.
        steps: How many are remembered now.
        recorded_at: When it was recorded.
    """

    command: str
    project_id: str | None
    steps: int
    recorded_at: datetime


class PatternsFound(ListReply, frozen=True, kw_only=True):
    """Answers `FindPatterns`; ``context`` is the one that patterns go on from, as shapes."""

    lists: ClassVar[tuple[str, ...]] = ("patterns",)

    patterns: list[BriefPattern]
    total_found: int
    context: list[str]
    steps: int


class ActionsSuggested(ListReply, frozen=True, kw_only=True):
    """Answers `SuggestActions`; ``context`` is the one that they follow, as shapes."""

    lists: ClassVar[tuple[str, ...]] = ("suggestions",)

    suggestions: list[BriefAction]
    context: list[str]
    steps: int


class CheckpointKept(Reply, frozen=True, kw_only=True):
    """Answers `KeepCheckpoint`.

    Attributes:
        outcome: Whether it was saved or restored.
        name: Its name.
        state: What it keeps.
        steps: The commands before it, as shapes, oldest first.
        session_id: The session that it was saved in.
        saved_at: When it was saved.
        saved_by: By which agent.
    """

    outcome: Literal["saved", "restored"]
    name: str
    state: types.JsonObject
    steps: list[str]
    session_id: str | None
    saved_at: datetime
    saved_by: str


# -- messages to the actor: of whom and of which project it is, its address says --------------------


class RecordStep(Message[StepRecorded], frozen=True, kw_only=True):
    """Record a step.

    Attributes:
        session_id: The session that it belongs to.
        thread: What its neighbours are told by: the session, or the agent where there is none.
        project_id: The project of the actor, for the answer.
    """

    deed: ClassVar[str] = "record_workflow_step"

    command: Command
    passed: bool
    duration_ms: Duration | None
    session_id: str | None
    thread: str
    project_id: str | None


class NoteStep(Message[None], frozen=True, kw_only=True):
    """Word of a tool call that is over; it may be lost."""

    tool: str
    passed: bool
    duration_ms: float
    session_id: str | None
    thread: str
    project_id: str | None


class FindPatterns(Message[PatternsFound], frozen=True, kw_only=True):
    """Find patterns that go on from a context; of an empty one all."""

    deed: ClassVar[str] = "get_workflow_patterns"

    context: Context
    limit: Wanted


class SuggestActions(Message[ActionsSuggested], frozen=True, kw_only=True):
    """Suggest what may come next after a context; None for the last steps of the thread."""

    deed: ClassVar[str] = "suggest_next_action"

    context: Context | None
    limit: Wanted
    thread: str


class KeepCheckpoint(Message[CheckpointKept], frozen=True, kw_only=True):
    """Save a checkpoint, or restore one where the state is None."""

    deed: ClassVar[str] = "workflow_checkpoint"

    name: CheckpointName
    state: types.JsonObject | None
    session_id: str | None
    thread: str
