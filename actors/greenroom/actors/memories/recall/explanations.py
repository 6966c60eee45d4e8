"""Replies that explain searches over memories, for people."""

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
        text: How its text begins.
        score: How well it matches, 0-1, as the tool answers it.
        relevance: 0-1, beside the others that were found.
        chance: Of it against nothing, whatever else was found; null where nothing was ranked.
        quality: 0-1; null where it says nothing.
        weighed_as: The kind of memory and the vectors that chose its weights.
        signals: The strongest first.
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
    """What one mode finds, best first.

    Attributes:
        places: The place of each of the first hundred, by its id, from 1 on.
        total: How many memories match.
        counts: How many candidates there were before and after each filter, all namespaces together.
        namespaces: How many namespaces were asked.
        milliseconds: How long it took.
        timings: Milliseconds by stage.
        model: Which embedder's vectors the query had; ``words`` when words alone decided.
        without_vectors: Why it had none, where some were wanted.
        boost: The part of quality in the score.
        least: The least relevance of a hit; null where the list is only emptied if nothing of it is relevant.
        nothing_relevant: Whether it is empty for that.
        partial: Why memories may be missing that another time would be found.
        failed: Namespaces that could not be asked.
        error: Why this mode was not carried out; the rest says nothing then.
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
    """A time that a query names in its own words: from when (included) until when (not included)."""

    after: datetime | None
    before: datetime | None


class WhyNotFound(msgspec.Struct, frozen=True, kw_only=True):
    """Why one memory is where it is in a mode, or not there.

    Attributes:
        place: Its place; null where it is not among the first hundred.
        reasons: Why it is not there, in words.
        hit: How it is ranked by itself, without any filter.
    """

    mode: ExplainedMode
    place: int | None
    reasons: list[str]
    hit: HitExplained | None


class SearchExplained(Reply, frozen=True, kw_only=True):
    """Answers `ExplainSearch`.

    Attributes:
        text: The query without the times that it names.
        times: These times.
        terms: How its words were understood.
        window: The times within which memories must have been created, where that was asked for.
        modes: Every mode.
        memory: About the memory that was asked about, by mode.
        meanings: What each signal that counted is for, by its name.
    """

    query: str
    text: str
    times: list[TimeRead]
    terms: list[TermRead]
    window: TimeRead | None
    modes: list[ModeExplained]
    memory: list[WhyNotFound]
    meanings: dict[str, str]
