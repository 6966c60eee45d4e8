"""Replies of searches over memories. Field names are the wire's; times are aware and UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.grades import Grade, grade_of
from greenroom.actors.core.replies.replies import PartialReply, Reply, TooLarge
from greenroom.actors.core.replies.results_explained import SignalPart
from greenroom.actors.core.validation.types import BRIEF
from greenroom.actors.memories.requests.replies import (
    CompressedForm,
    FoundMemory,
    KeyPlace,
    MemoryView,
    TermRead,
)
from greenroom.runtime import Message

T = TypeVar("T")


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory that was found; its JSON has only the fields that have a value.

    Attributes:
        score: How well it matches, 0-1, whatever else was found: 95 of 100 right answers with half of the
            query's words have more than 0.7. In mode hybrid the order depends on quality as well.
        relevance: Measured: of memories with 0.3, three in ten were right.
        content: Its text, unless it has a ``value`` or is ``withheld``.
        withheld: Its content is too large for a list.
        compressed: Its compressed content, in place of either, if decompression was not wanted.
        imported: What the source says about its author, if it was imported.
        updated_by: The author of its newest version, if another one.
        rating: The mean of its ratings, -1 to 1, if it has any.
        unreviewed: True if a rule found it and no one has reviewed it since.
    """

    memory_id: str
    key: str
    namespace: str
    score: float
    relevance: float
    grade: Grade
    content: str | UnsetType = UNSET
    value: msgspec.Raw | UnsetType = UNSET
    withheld: bool | UnsetType = UNSET
    compressed: Annotated[CompressedForm, Meta(extra_json_schema=BRIEF)] | UnsetType = UNSET
    author: str | None = None
    imported: kinds.AnImportSource | UnsetType = UNSET
    updated_by: str | UnsetType = UNSET
    tags: list[str] = msgspec.field(default_factory=list)
    kind: kinds.MemoryKind
    importance: float
    scope: kinds.Scope
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    session_id: str | UnsetType = UNSET
    conversation_id: str | UnsetType = UNSET
    position: int | UnsetType = UNSET
    metadata: msgspec.Raw | UnsetType = UNSET
    rating: float | UnsetType = UNSET
    superseded_by: str | UnsetType = UNSET
    unreviewed: bool | UnsetType = UNSET


class FailedNamespace(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace that could not be searched, and why."""

    namespace: str
    error: str


class TimeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """The requested time of creation: from when (included) until when (not included)."""

    after: datetime | None
    before: datetime | None
    time_expr: str | None
    timezone: str


class SearchDebug(msgspec.Struct, frozen=True, kw_only=True):
    """How a search came to its results.

    Attributes:
        time_window: The resolved times; null if none was requested.
        mode: The mode that was carried out: a boost makes a semantic search hybrid.
        counts: How many candidates there were before and after each filter, in all namespaces together.
        timings: Milliseconds by stage; ``owners`` is the time of the slowest namespace.
        model: The space of the query's vectors; ``words`` if words alone decided.
        without_vectors: Why the query had no vectors, if some were wanted.
        scores: The components of each memory's score, by its id.
    """

    time_window: TimeWindow | None
    tags: list[str] | None
    tag_match: kinds.TagMatch
    mode: kinds.SearchMode
    quality_boost: float
    namespaces: int
    counts: dict[str, int]
    timings: dict[str, float]
    model: str
    without_vectors: str | None
    weights: list[str]
    scores: dict[str, dict[str, float]]


class MemoriesFound(PartialReply, frozen=True, kw_only=True):
    """Answers `MemorySearch` and `RetrieveMemory`, best first.

    Attributes:
        mode: The requested mode; ``debug`` names the one that was carried out.
        total_is_minimum: There may be more: an exact search ends when it has its hits and has read 10,000,
            and of more than 1,000 namespaces some are not searched.
        tokens: An estimate of the size of ``memories``, if ``max_tokens`` was given: bytes of UTF-8 by 4.
        left_out: How many of the best ``limit`` did not fit into ``max_tokens``.
        over_budget: How many of these are too large for ``max_tokens`` on their own.
        failed: Namespaces that could not be searched; their memories are missing here.
        weak: Present if the answer is hardly among them: fewer than one in four such lists had it.
    """

    lists: ClassVar[tuple[str, ...]] = ("memories",)

    memories: list[MemoryHit]
    total: int
    total_is_minimum: bool | UnsetType = UNSET
    query: str | None
    mode: kinds.SearchMode
    query_time_ms: float
    tokens: int | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET
    failed: list[FailedNamespace] = msgspec.field(default_factory=list)
    weak: bool | UnsetType = UNSET
    debug: Annotated[SearchDebug, Meta(extra_json_schema=BRIEF)] | UnsetType = UNSET


class RecalledMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory that helps with a task: a `MemoryHit` without what only programs need.

    Attributes:
        branch: The git branch on which it was noted, if that is not the present one nor merged into it.
    """

    memory_id: str
    key: str
    namespace: str
    score: float
    relevance: float
    grade: Grade
    created_at: datetime
    content: str | None = None
    value: msgspec.Raw | UnsetType = UNSET
    tags: list[str] = msgspec.field(default_factory=list)
    author: str | None = None
    imported: kinds.AnImportSource | UnsetType = UNSET
    updated_by: str | UnsetType = UNSET
    branch: str = ""
    unreviewed: bool = False


class ContextRecalled(PartialReply, frozen=True, kw_only=True):
    """Answers `RecallContext`, best first.

    Attributes:
        tokens: An estimate of the size of ``memories``: bytes of UTF-8 by 4; at most ``max_tokens``.
        left_out: How many memories that fit the task did not fit into ``max_tokens``.
    """

    lists: ClassVar[tuple[str, ...]] = ("memories",)

    memories: Annotated[list[RecalledMemory], Meta(extra_json_schema=BRIEF)]
    count: int
    tokens: int
    max_tokens: int
    left_out: int
    failed: list[FailedNamespace] = msgspec.field(default_factory=list)
    partial: bool | UnsetType = UNSET
    partial_reason: str | UnsetType = UNSET


class PlacesFound(Reply, frozen=True, kw_only=True):
    """Answers `PlacesOfKey`; ``failed`` are namespaces that could not be searched."""

    places: list[KeyPlace]
    failed: list[FailedNamespace]


def to_hit(found: FoundMemory) -> MemoryHit:
    """Return the search's view of a memory that an actor found."""
    memory = found.memory
    return MemoryHit(
        memory_id=memory.memory_id,
        key=memory.key,
        namespace=memory.namespace,
        score=round(found.match, 4),
        relevance=round(found.relevance, 4),
        grade=grade_of(found.relevance),
        content=_or_unset(memory.content),
        value=memory.value,
        withheld=True if memory.withheld and found.compressed is UNSET else UNSET,
        compressed=found.compressed,
        author=memory.author,
        imported=memory.imported,
        updated_by=kinds.changer(memory.author, memory.updated_by),
        tags=memory.tags,
        kind=memory.kind,
        importance=memory.importance,
        scope=memory.scope,
        version=memory.version,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        expires_at=memory.expires_at,
        session_id=_or_unset(memory.session_id),
        conversation_id=_or_unset(memory.conversation_id),
        position=_or_unset(memory.position),
        metadata=memory.metadata,
        rating=memory.rating if memory.ratings else UNSET,
        superseded_by=_or_unset(memory.superseded_by),
        unreviewed=memory.unreviewed or UNSET,
    )


def to_recalled(found: FoundMemory) -> RecalledMemory:
    """Return the short view of a recalled memory, for a model."""
    memory: MemoryView = found.memory
    return RecalledMemory(
        memory_id=memory.memory_id,
        key=memory.key,
        namespace=memory.namespace,
        score=round(found.match, 4),
        relevance=round(found.relevance, 4),
        grade=grade_of(found.relevance),
        created_at=memory.created_at,
        content=memory.content,
        value=memory.value,
        tags=memory.tags,
        author=memory.author,
        imported=memory.imported,
        updated_by=kinds.changer(memory.author, memory.updated_by),
        branch=found.of_branch,
        unreviewed=memory.unreviewed,
    )


def _or_unset(value: T | None) -> T | UnsetType:
    return UNSET if value is None else value


ExplainedMode = Literal["semantic", "hybrid", "exact", "recall", "retrieve"]
"""The modes of `MemorySearch`, and the searches of `RecallContext` and `RetrieveMemory`."""


class HitExplained(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was found, and why.

    Attributes:
        score: How well it matches, 0-1, as in the tool's reply.
        chance: Its probability to be the answer, whatever else was found; null if nothing was ranked.
        weighed_as: The kind of memory and the vectors that chose its weights.
        quality_parts: What made its quality, by name.
    """

    memory_id: str
    key: str
    namespace: str
    version: int
    text: str
    author: str | None
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
        weak: Whether the answer is hardly among what the tool returns.
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
    weak: bool = False
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
        hit: The memory as a hit when it alone is searched, without any filter.
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


HOOKS = "hooks"
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

    The log is written later; a crash before that loses the entry.

    Attributes:
        task: The beginning of the recall's task; secrets are masked before it is stored.
    """

    task: Beginning
    memories: list[GivenMemory]
    tokens: int
    partial: bool
    left_out: dict[str, int]
