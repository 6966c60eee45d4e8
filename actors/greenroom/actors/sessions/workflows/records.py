"""Records of the workflow actor.

s number        a step
c name          a checkpoint
"""

from __future__ import annotations

from typing import Final

import msgspec

from greenroom.actors.sessions.workflows.timeline import Step

STEPS: Final = b"s"
CHECKPOINTS: Final = b"c"


class StoredStep(msgspec.Struct, frozen=True, array_like=True):
    """A step as it is stored; see `timeline.Step`."""

    command: str
    session: str
    passed: bool
    at: int
    duration_ms: float | None = None
    words: list[bytes] = []


class StoredCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint: the JSON of a state, unchanged, and the commands before it."""

    state: bytes
    at: int
    agent: str
    session: str | None
    steps: list[str]


class PatternRow(msgspec.Struct, frozen=True, array_like=True):
    """A pattern in listings."""

    id: str
    commands: list[str]
    last_seen: int


class WorkflowRow(msgspec.Struct, frozen=True, array_like=True):
    """The index row of one owner and project, most useful patterns first."""

    owner: str
    project: str
    patterns: list[PatternRow] = []


def step_key(number: int) -> bytes:
    """Return the record key of a step."""
    return STEPS + number.to_bytes(8)


def checkpoint_key(name: str) -> bytes:
    """Return the record key of a checkpoint."""
    return CHECKPOINTS + name.encode()


def to_record(step: Step) -> StoredStep:
    """Return the record of a step."""
    return StoredStep(step.command, step.session, step.passed, step.at, step.duration_ms, list(step.words))


def from_record(key: bytes, record: StoredStep) -> Step:
    """Return the step of a record."""
    return Step(
        int.from_bytes(key[len(STEPS) :]),
        record.command,
        session=record.session,
        passed=record.passed,
        at=record.at,
        duration_ms=record.duration_ms,
        words=record.words,
    )


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the span of a checkpoint's name in a key."""
    return ((1, len(key)),) if key.startswith(CHECKPOINTS) and len(key) > 1 else ()


def row_names(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the whole sort key as a name."""
    return ((0, len(key)),) if key else ()
