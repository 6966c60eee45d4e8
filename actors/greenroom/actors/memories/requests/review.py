"""Requests of a review of memories: browse, inspect, restore, merge, move and compare."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.operations import operation
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
"""Neither changed nor used for 90 days; rated below 0; expiring within 7 days."""
Age = Literal["day", "week", "month", "year", "older"]
"""The age of a memory: less than a day, from a day to a week, and so on."""
PairKind = Literal["duplicates", "conflicts"]
MAX_MERGED = 20
"""One merge hides at most this many memories."""


class ListedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in a list: the beginning of its text, and 50 tags."""

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
    """The number of matching memories by namespace, tag, kind, author and age.

    It counts the 100 largest namespaces, 20 authors, and about 50 tags.
    """

    by_namespace: dict[str, int]
    by_tag: dict[str, int]
    by_kind: dict[str, int]
    by_author: dict[str, int]
    by_age: dict[str, int]


class MemoriesBrowsed(Reply, frozen=True, kw_only=True):
    """Answers `BrowseMemories`.

    Attributes:
        waiting: The number of memories below the namespace that need a review: ``unreviewed``, and each
            `State`.
        partial: Present if not all memories were searched for very frequent words.
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


@operation(
    "browse_memories",
    scope="memory:read",
    route="namespace",
)
class BrowseMemories(Message[MemoriesBrowsed], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the memories below a namespace in an order, with facets.

    Attributes:
        text: Words; a memory must have all of them.
        state: Only memories in this state.
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
    """One rating; ``by_use`` marks the rating by a detected use."""

    rater: str
    rating: float
    note: str | None
    rated_at: datetime
    by_use: bool


class NearMemory(SimilarMemory, frozen=True, kw_only=True):
    """A near-duplicate or a conflict, at its newest version."""

    version: int


class MemoryInspected(Reply, frozen=True, kw_only=True):
    """Answers `InspectMemory`.

    Attributes:
        memory: The memory at the requested version, by default the newest.
        quality: 0-1, as searches weigh it; None for a forgotten one.
        ratings: Newest first, at most 100.
        versions: Newest first, at most 200.
        superseded: Memories that it supersedes, directly or not, nearest first, at most 50.
        superseded_by: Memories that supersede it, likewise.
        replaces: Older memories that it may contradict, likeliest first.
        replaced_by: Newer memories that may contradict it, likewise.
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


@operation(
    "inspect_memory",
    scope="memory:read",
    route="namespace",
    by_memory_id=True,
)
class InspectMemory(Message[MemoryInspected], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Show everything about a memory, even a forgotten one; this is no use."""

    memory_id: kinds.MemoryId
    version: types.OldVersion | None = None


class KeptMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A forgotten memory that can be restored, in its state when it was forgotten.

    Attributes:
        forgotten_by: Who forgot it; None in records of older programs.
        key_is_taken: Whether another memory has its key now, which must be forgotten first.
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


@operation(
    "list_forgotten",
    scope="memory:read",
    route="namespace",
)
class ListForgotten(Message[ForgottenMemories], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List forgotten memories below a namespace that can be restored, last forgotten first.

    Purged and expired memories are gone.
    """

    namespace: kinds.NamespacePrefix | None = None
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None


@operation(
    "restore_memory",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
)
class RestoreMemory(Message[replies.MemorySaved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a new version with an older one's state; also restore a forgotten memory.

    Content, metadata, tags, kind, importance, expiry, and supersession are restored. The scope stays.

    Attributes:
        version: The version to restore; for a forgotten memory, by default the newest.
        expected_forgotten: Refuse unless it is (or, if false, is not) forgotten; forgetting makes no version.
    """

    memory_id: kinds.MemoryId
    version: types.OldVersion | None = None
    expected_forgotten: bool | None = None
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class ChangedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory with a new version, and the number of the version."""

    memory_id: str
    version: int


class MemoriesMerged(Reply, frozen=True, kw_only=True):
    """Answers `MergeMemories`.

    Attributes:
        changed: Every memory with a new version, in order; to undo the merge, restore the previous version of
            each, in reverse order.
    """

    memory_id: str
    version: int
    changed: list[ChangedMemory]


@operation(
    "merge_memories",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
)
class MergeMemories(Message[MemoriesMerged], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Let one memory supersede others of the same root, in one commit.

    It gets the tags of all, and the highest importance. It supersedes the first of the others, the first
    supersedes the next, and so on; the last supersedes what the memory superseded before.

    Attributes:
        others: The memories that it hides.
        content: The new content; unchanged unless given.
        expected_versions: Refuse unless these are the newest versions, by memory.
    """

    memory_id: kinds.MemoryId
    others: Annotated[list[kinds.MemoryId], Meta(min_length=1, max_length=MAX_MERGED)]
    content: kinds.MemoryContent | None = None
    expected_versions: dict[kinds.MemoryId, kinds.ExpectedVersion] = msgspec.field(default_factory=dict)
    idempotency_key: types.IdempotencyKey | None = None


class MemoryMoved(Reply, frozen=True, kw_only=True):
    """Answers `MoveMemory`; ``before`` is its former namespace."""

    memory_id: str
    key: str
    namespace: str
    before: str
    version: int


@operation(
    "move_memory",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
)
class MoveMemory(Message[MemoryMoved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Move a memory below the same root; its id, history and links stay."""

    memory_id: kinds.MemoryId
    to: kinds.Namespace
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


@operation(
    "withdraw_rating",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
)
class WithdrawRating(Message[replies.MemoryRated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Withdraw the caller's last rating of a memory; an earlier one counts again.

    Attributes:
        expected_rating: Refuse unless the last rating is this one.
    """

    memory_id: kinds.MemoryId
    expected_rating: kinds.Rating | None = None
    idempotency_key: types.IdempotencyKey | None = None


class MemoryPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two memories; ``similarity`` is 0-1, for a conflict its likelihood."""

    newer: ListedMemory
    older: ListedMemory
    similarity: float


class MemoryPairs(Reply, frozen=True, kw_only=True):
    """Answers `ListMemoryPairs`.

    Attributes:
        compared: The memories that were compared with older ones for this page; a page without pairs may be
            followed by others.
    """

    namespace: str
    pairs: list[MemoryPair]
    compared: int
    next_cursor: str | None


@operation(
    "list_memory_pairs",
    scope="memory:read",
    route="namespace",
)
class ListMemoryPairs(Message[MemoryPairs], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List memories with older near-duplicates or conflicts, newest first.

    A page ends after 100 compared memories. Each is compared with at most a dozen others, which share its
    rarest words. Accepted pairs are left out.
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


@operation(
    "settle_memory_pair",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
)
class SettleMemoryPair(Message[PairSettled], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Accept two memories of one root side by side, or withdraw that."""

    memory_id: kinds.MemoryId
    other_id: kinds.MemoryId
    settled: bool = True
    idempotency_key: types.IdempotencyKey | None = None


class NamespacesBrowsed(Reply, frozen=True, kw_only=True):
    """Answers `BrowseNamespaces`: roots in order; ``more`` is the number of further ones."""

    namespaces: list[str]
    more: int
