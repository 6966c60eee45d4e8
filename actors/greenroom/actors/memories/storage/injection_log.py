"""Messages to the injection log: which memories were put into a session's context."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from greenroom.runtime import Message

KIND = "hooks"
"""The kind of the actors that store the log."""
Beginning = Annotated[str, Meta(max_length=400)]


class GivenMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was put into a session's context.

    Attributes:
        score: The chance that it is relevant, 0 to 1; None if nothing was ranked.
        marks: Digests of its distinctive words, by which a use is detected.
    """

    memory_id: str
    version: int
    namespace: str
    key: str
    score: float | None = None
    signals: dict[str, float] = msgspec.field(default_factory=dict)
    marks: list[int] = msgspec.field(default_factory=list)


class NoteRecalled(Message[None], frozen=True, kw_only=True):
    """Log the answer of a recall.

    It is written later, and a crash before that loses it.

    Attributes:
        task: The beginning of the recall's task; secrets are masked before it is stored.
    """

    task: Beginning
    memories: list[GivenMemory]
    tokens: int
    partial: bool
    left_out: dict[str, int]
