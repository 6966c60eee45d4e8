"""Requests of people who go through memories: to browse, inspect, restore, merge and compare them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.requests.replies import MemoryFilters, MemoryView, SimilarMemory
from greenroom.runtime import Message

Order = Literal["newest", "oldest", "untouched", "used", "worst", "expiring"]
"""By the newest version, either way; by the last use or version; by uses; by rating; by expiry."""
State = Literal["unused", "disliked", "expiring"]
"""Neither changed nor used for 90 days; rated below 0; gone within 7 days."""
Age = Literal["day", "week", "month", "year", "older"]
"""Since when there is a memory: less than a day, less than a week but a day, and so on."""
PairKind = Literal["duplicates", "conflicts"]
MAX_MERGED = 20
"""Memories that one merge hides."""


class ListedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in a list.

    Attributes:
        preview: The beginning of its text.
        tags: The first 50 of them.
        more_tags: How many it has besides.
        imported: As in `MemoryView`.
    """

    memory_id: str
    key: str
    namespace: str
    version: int
    preview: str
    kind: kinds.MemoryKind
    tags: list[str]
    more_tags: int
    importance: float
    scope: kinds.Scope
    author: str
    imported: kinds.ImportSource | UnsetType = UNSET
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    size_bytes: int
    uses: int
    last_used: datetime | None
    rating: float
    ratings: int
    unreviewed: bool
    superseded: bool


class MemoryFacets(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the memories that fit are of which namespace, tag, kind, author and age.

    Attributes:
        by_namespace: The 100 that have most.
        by_tag: Some 50 of the most frequent.
        by_author: The 20 that have most.
        by_age: As in `MemoryStatistics`.
    """

    by_namespace: dict[str, int]
    by_tag: dict[str, int]
    by_kind: dict[str, int]
    by_author: dict[str, int]
    by_age: dict[str, int]


class MemoriesBrowsed(Reply, frozen=True, kw_only=True):
    """Answers `BrowseMemories`.

    Attributes:
        total: How many fit, on all pages.
        facets: Of these.
        waiting: How many below the namespace want to be looked at: the ``unreviewed`` ones, and of each
            `State`.
        partial: Present when words that are nearly everywhere were not looked for in all memories.
        partial_reason: What was not read.
    """

    namespace: str
    memories: list[ListedMemory]
    total: int
    facets: MemoryFacets
    waiting: dict[str, int]
    next_cursor: str | None
    partial: bool | UnsetType = UNSET
    partial_reason: str | UnsetType = UNSET


class BrowseMemories(Message[MemoriesBrowsed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the memories below a namespace in an order, with how many there are of what.

    Attributes:
        text: Words that all stand in them.
        state: Only those of which this holds.
    """

    namespace: kinds.NamespacePrefix | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    text: kinds.SearchWords | None = None
    state: State | None = None
    age: Age | None = None
    order: Order = "newest"
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None


class RatingView(msgspec.Struct, frozen=True, kw_only=True):
    """One rating; ``by_use`` says that it was given for a use that was seen, not by a judgement."""

    rater: str
    rating: float
    note: str | None
    rated_at: datetime
    by_use: bool


class NearMemory(SimilarMemory, frozen=True, kw_only=True):
    """A memory that stands near one, at its newest version."""

    version: int


class MemoryInspected(Reply, frozen=True, kw_only=True):
    """Answers `InspectMemory`.

    Attributes:
        memory: As it was at the version that was asked for, else as it is.
        newest: The number of its newest version.
        quality: 0-1, as searches weigh it; None for a forgotten one.
        ratings: The newest first, at most 100.
        versions: The newest first, at most 200.
        superseded: What it takes the place of, directly or not, the nearest first, at most 50.
        superseded_by: What takes its place, directly or not, likewise.
        similar: What says nearly the same.
        replaces: Older ones that it may contradict, the likeliest first.
        replaced_by: Newer ones that may contradict it, likewise.
        may_change: Whether the caller may write into its namespace.
    """

    memory: MemoryView
    newest: int
    quality: float | None
    ratings: list[RatingView]
    versions: list[replies.VersionView]
    superseded: list[ListedMemory]
    superseded_by: list[ListedMemory]
    similar: list[NearMemory]
    replaces: list[NearMemory]
    replaced_by: list[NearMemory]
    may_change: bool


class InspectMemory(Message[MemoryInspected], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Show all that is known of a memory, also of a forgotten one; it does not count as a use."""

    memory_id: kinds.MemoryId
    version: types.OldVersion | None = None


class KeptMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was forgotten and is kept.

    Attributes:
        memory: As it was when it was forgotten.
        forgotten_by: Who forgot it; None where an older program did not say.
        key_is_taken: Whether another memory has its key now, which would have to be forgotten first.
        may_restore: Whether the caller may write into its namespace.
    """

    memory: ListedMemory
    forgotten_at: datetime
    forgotten_by: str | None
    key_is_taken: bool
    may_restore: bool


class ForgottenMemories(Reply, frozen=True, kw_only=True):
    """Answers `ListForgotten`."""

    namespace: str
    memories: list[KeptMemory]
    next_cursor: str | None


class ListForgotten(Message[ForgottenMemories], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List memories below a namespace that were forgotten and can be restored, the last one first.

    What was forgotten for good, or has expired since, is not there any more.
    """

    namespace: kinds.NamespacePrefix | None = None
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None


class RestoreMemory(Message[replies.MemorySaved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a new version that is as an older one was, and bring a forgotten memory back.

    Content, metadata, tags, kind, importance, expiry, and what it takes the place of are as they were. Who
    may see it stays as it is.

    Attributes:
        version: The version that it is to be like; the newest unless given, for a forgotten one.
        expected_forgotten: Refuse unless it is forgotten, or unless it is not; forgetting makes no version.
    """

    memory_id: kinds.MemoryId
    version: types.OldVersion | None = None
    expected_forgotten: bool | None = None
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class ChangedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that got a new version, and the number of that."""

    memory_id: str
    version: int


class MemoriesMerged(Reply, frozen=True, kw_only=True):
    """Answers `MergeMemories`.

    Attributes:
        changed: Every memory that got a new version, in this order; to take it back restore the version
            before of each, in the other order.
    """

    memory_id: str
    version: int
    changed: list[ChangedMemory]


class MergeMemories(Message[MemoriesMerged], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Let one memory take the place of others of the same namespace's root, in one commit.

    It has the tags of all then, and the importance of the most important. It takes the place of the first of
    the others, that one of the next, and so on, and the last of what the memory superseded before.

    Attributes:
        others: The memories that it hides.
        content: What it says from now on; as before unless given.
        expected_versions: Refuse unless these are the newest versions, by memory.
    """

    memory_id: kinds.MemoryId
    others: Annotated[list[kinds.MemoryId], Meta(min_length=1, max_length=MAX_MERGED)]
    content: kinds.MemoryContent | None = None
    expected_versions: dict[kinds.MemoryId, kinds.ExpectedVersion] = msgspec.field(default_factory=dict)
    idempotency_key: types.IdempotencyKey | None = None


class MemoryMoved(Reply, frozen=True, kw_only=True):
    """Answers `MoveMemory`; ``before`` is the namespace in which it was."""

    memory_id: str
    key: str
    namespace: str
    before: str
    version: int


class MoveMemory(Message[MemoryMoved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Move a memory to another namespace below the same root; its id, history and links stay."""

    memory_id: kinds.MemoryId
    to: kinds.Namespace
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class WithdrawRating(Message[replies.MemoryRated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Take back the caller's last rating of a memory; the one before it counts again, if there was one.

    Attributes:
        expected_rating: Refuse unless the last rating is this one, and not one that came after it.
    """

    memory_id: kinds.MemoryId
    expected_rating: kinds.Rating | None = None
    idempotency_key: types.IdempotencyKey | None = None


class MemoryPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two memories beside each other; ``similarity`` is 0-1, of a conflict how likely it is one."""

    newer: ListedMemory
    older: ListedMemory
    similarity: float


class MemoryPairs(Reply, frozen=True, kw_only=True):
    """Answers `ListMemoryPairs`.

    Attributes:
        compared: How many memories were compared with older ones for this page; there may be more of them
            behind it even where no pair was found.
    """

    namespace: str
    pairs: list[MemoryPair]
    compared: int
    next_cursor: str | None


class ListMemoryPairs(Message[MemoryPairs], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List memories with older ones that say nearly the same, or that they may contradict, newest first.

    A page ends after 100 memories that were compared, each with a dozen others at most, those that share its
    rarest words. Pairs that somebody settled are left out.
    """

    namespace: kinds.NamespacePrefix | None = None
    kind: PairKind = "duplicates"
    limit: types.Limit200 = 20
    cursor: types.Cursor | None = None


class PairSettled(Reply, frozen=True, kw_only=True):
    """Answers `SettleMemoryPair`."""

    memory_id: str
    other_id: str
    settled: bool


class SettleMemoryPair(Message[PairSettled], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Say that two memories of one root may stand beside each other, or take that back."""

    memory_id: kinds.MemoryId
    other_id: kinds.MemoryId
    settled: bool = True
    idempotency_key: types.IdempotencyKey | None = None


class NamespacesBrowsed(Reply, frozen=True, kw_only=True):
    """Answers `BrowseNamespaces`: roots in order; ``more`` says how many there are besides."""

    namespaces: list[str]
    more: int
