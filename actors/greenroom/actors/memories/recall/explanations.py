"""Replies that explain searches over memories to people."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.replies.results_explained import SignalPart
from greenroom.actors.memories.requests.replies import TermRead

ExplainedMode = Literal["semantic", "hybrid", "exact", "recall", "retrieve"]
"""The modes of `MemorySearch`, what `RecallContext` finds, and what `RetrieveMemory` does."""


class HitExplained(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was found, and why.

    Attributes:
        score: How well it matches, 0-1, as in the tool's reply.
        chance: Its probability against no answer, whatever else was found; null if nothing was ranked.
        weighed_as: The kind of memory and the vectors that chose its weights.
        quality_parts: What made its quality, by name.
    """

    memory_id: str
    key: str
    namespace: str
    version: int
    text: str
    created_at: datetime
    tags: list[str]
    score: float
    relevance: float
    chance: float | None
    quality: float | None
    weighed_as: tuple[str, str] | None
    signals: list[SignalPart]
    quality_parts: dict[str, float]


class ModeExplained(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one mode, best first.

    Attributes:
        places: The place of each of the first hundred, by its id, from 1.
        counts: How many candidates there were before and after each filter, in all namespaces together.
        model: The space of the query's vectors; ``words`` if words alone decided.
        without_vectors: Why the query had no vectors, if some were wanted.
        boost: The part of quality in the score.
        least: The least relevance of a hit; null if the list is only emptied when nothing is relevant.
        nothing_relevant: Whether it was emptied.
        partial: Why memories may be missing that a later search would find.
        error: Why this mode failed; then the other fields have no meaning.
    """

    mode: ExplainedMode
    hits: list[HitExplained] = msgspec.field(default_factory=list)
    places: dict[str, int] = msgspec.field(default_factory=dict)
    total: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    namespaces: int = 0
    milliseconds: float = 0.0
    timings: dict[str, float] = msgspec.field(default_factory=dict)
    model: str = "words"
    without_vectors: str | None = None
    boost: float = 0.0
    least: float | None = None
    nothing_relevant: bool = False
    partial: str | None = None
    failed: list[str] = msgspec.field(default_factory=list)
    error: str | None = None


class TimeRead(msgspec.Struct, frozen=True, kw_only=True):
    """A time that a query names in words: from when (included) until when (not included)."""

    after: datetime | None
    before: datetime | None


class WhyNotFound(msgspec.Struct, frozen=True, kw_only=True):
    """The place of one memory in a mode, or why it is missing.

    Attributes:
        place: Its place; null if it is not among the first hundred.
        reasons: Why it is missing, in words.
        hit: Its rank alone, without any filter.
    """

    mode: ExplainedMode
    place: int | None
    reasons: list[str]
    hit: HitExplained | None


class SearchExplained(Reply, frozen=True, kw_only=True):
    """Answers `ExplainSearch`.

    Attributes:
        text: The query without the times that it names.
        terms: How its words were understood.
        meanings: The purpose of each signal that counted, by its name.
    """

    query: str
    text: str
    times: list[TimeRead]
    terms: list[TermRead]
    window: TimeRead | None
    modes: list[ModeExplained]
    memory: list[WhyNotFound]
    meanings: dict[str, str]
