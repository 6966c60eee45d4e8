"""Replies about memories. Field names are the wire's; times are aware and UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.damage import Damaged
from greenroom.actors.core.replies.replies import ListReply, Reply, TooLarge
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.times import DAY, to_microseconds

_EVER = 1 << 62
"""In microseconds: more than any time of a memory."""


class MemoryFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filters of a search or a listing; all that are given must fit.

    Attributes:
        namespace: One or more whole segments at the start of the namespace.
        after: Created then or later.
        before: Created earlier.
        author: The author of the first version.
        superseded: Include memories that another visible memory supersedes.
        session_id: Only entries stored with `set_memory` for this session.
        unreviewed: Only unreviewed memories, or only the others; both unless given.
    """

    namespace: Annotated[kinds.NamespacePrefix | None, types.RARE] = None
    key: Annotated[types.MemoryKey | None, types.RARE] = None
    key_prefix: kinds.KeyPrefix | None = None
    tags: kinds.Tags | None = None
    tag_match: Annotated[kinds.TagMatch, types.RARE] = "any"
    kind: kinds.MemoryKind | None = None
    scope: Annotated[kinds.Scope | None, types.RARE] = None
    author: kinds.Author | None = None
    conversation_id: Annotated[kinds.ConversationId | None, types.RARE] = None
    after: types.Start | None = None
    before: types.End | None = None
    min_importance: Annotated[kinds.Fraction | None, types.RARE] = None
    max_age_days: Annotated[kinds.MaxAgeDays | None, types.RARE] = None
    superseded: Annotated[bool, types.RARE] = False
    session_id: Annotated[types.SessionId | None, types.RARE] = None
    unreviewed: Annotated[bool | None, types.RARE] = None

    def created_between(self, now: int) -> tuple[int, int]:
        """Return the first and last time of creation in microseconds; the last is excluded."""
        after = -_EVER if self.after is None else to_microseconds(self.after)
        if self.max_age_days is not None:
            after = max(after, now - int(min(self.max_age_days * DAY, _EVER)))
        return after, _EVER if self.before is None else to_microseconds(self.before)


class MemoryView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory as a caller gets it; empty fields are left out.

    Attributes:
        memory_id: Its UUID, the same for all versions.
        id: The number of this version within its namespace's root, for the memory service.
        content: The text, unless it is a ``value``, or ``withheld``.
        withheld: Its content is too large for this answer; read it alone.
        author: The author of the first version.
        imported: The author in the source, if the memory was imported.
        updated_by: The author of this version.
        supersedes: The memory that it supersedes, if that exists and the caller may see it.
        rating: The mean of ``ratings`` ratings, -1 to 1.
        unreviewed: A rule made it and no person has reviewed it: `greenroom review` lists these.
        size_bytes: The stored bytes of the content or the value's JSON.
    """

    memory_id: str
    id: int
    key: str
    namespace: str
    version: int
    created_at: datetime
    updated_at: datetime
    content: str | None = None
    value: msgspec.Raw | UnsetType = UNSET
    withheld: bool = False
    kind: kinds.MemoryKind = "semantic"
    tags: list[str] = msgspec.field(default_factory=list)
    importance: float = kinds.DEFAULT_IMPORTANCE
    scope: kinds.Scope = "private"
    author: str | None = None
    imported: kinds.AnImportSource | UnsetType = UNSET
    updated_by: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    position: int | None = None
    metadata: msgspec.Raw | UnsetType = UNSET
    expires_at: datetime | None = None
    size_bytes: int = 0
    compressed: bool = False
    uses: int = 0
    last_used: datetime | None = None
    rating: float = 0.0
    ratings: int = 0
    supersedes: str | None = None
    superseded_by: str | None = None
    deleted_at: datetime | None = None
    unreviewed: bool = False

    @property
    def text(self) -> str:
        """The content, or the JSON of a value; empty if it is withheld."""
        if self.content is not None:
            return self.content
        return "" if isinstance(self.value, UnsetType) else bytes(self.value).decode()


class CompressedForm(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's content or value as it is stored.

    Attributes:
        member: The ``content``, as UTF-8, or the ``value``, as JSON.
        data: The bytes, in JSON as base64.
    """

    format: Literal["zlib"] = "zlib"
    member: Literal["content", "value"]
    data: bytes


class SimilarMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A near-duplicate of a new memory, or a conflict with it; ``similarity`` is 0-1."""

    memory_id: str
    key: str
    namespace: str
    similarity: float
    preview: str


class MemorySaved(Reply, frozen=True, kw_only=True):
    """Answers `StoreMemory` and `UpdateMemory`.

    Attributes:
        created: Whether it is a new memory, not a new version.
        compression_ratio: Stored size divided by received size; 1 without compression.
        tokens: An estimate: the bytes of UTF-8, divided by 4.
        similar: Near-duplicates, most similar first.
        conflicts_with: Older memories that this one may replace, likeliest first, as ``similarity`` says.
            To hide one, update this memory (``update_memory``) with that one's id as ``supersedes``.
        supersedes: The memory that this one hides from search from now on.
    """

    memory_id: str
    id: int
    key: str
    namespace: str
    version: int
    created: bool
    stored_at: datetime
    expires_at: datetime | None
    size_bytes: int
    compressed: bool
    compression_ratio: float
    tokens: int
    tokens_saved: int
    similar: list[SimilarMemory] = msgspec.field(default_factory=list)
    conflicts_with: list[SimilarMemory] = msgspec.field(default_factory=list)
    supersedes: str | None = None


class ForgottenMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was or would be forgotten; ``size_bytes`` as in `MemoryView`."""

    memory_id: str
    key: str
    namespace: str
    version: int
    updated_at: datetime
    size_bytes: int


class MemoryForgotten(Reply, frozen=True, kw_only=True):
    """Answers `ForgetMemory`.

    Attributes:
        purged: Whether their history was deleted, too.
        confirm_needed: Nothing was done: ``memories`` would be forgotten with ``confirm``.
        matched: How many match.
        remaining: How many of these are left; one call forgets 1,000 at most, so call again.
        memories: The first ones, newest update first. A purge by key lists earlier forgotten ones last.
    """

    forgotten: int
    purged: bool
    confirm_needed: bool
    matched: int
    remaining: int
    memories: list[ForgottenMemory]


class MemoryPage(ListReply, frozen=True, kw_only=True):
    """Answers `ListMemories`.

    Attributes:
        tokens: With ``max_tokens``: an estimate of the cost of ``memories``, UTF-8 bytes divided by 4.
        left_out: How many did not fit into ``max_tokens``; ``next_cursor`` leads to them, except for
            single ones that are larger, which ``over_budget`` names.
        imitates: As in `MemoryStatistics`.
    """

    lists: ClassVar[tuple[str, ...]] = ("memories",)

    memories: list[MemoryView]
    count: int
    next_cursor: str | None
    imitates: str | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class MemoryShown(Reply, frozen=True, kw_only=True):
    """Answers `ReadMemory`."""

    memory: MemoryView


class VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """One version: number, author, time and size, as in `MemoryView`."""

    memory_id: str
    id: int
    version: int
    author: str | None
    imported: kinds.AnImportSource | UnsetType = UNSET
    stored_at: datetime
    expires_at: datetime | None
    size_bytes: int
    deleted_at: datetime | None
    task_id: str | None


class MemoryVersions(Reply, frozen=True, kw_only=True):
    """Answers `ListVersions`, oldest first."""

    versions: list[VersionView]
    count: int
    next_cursor: str | None
    left_out: int | UnsetType = UNSET
    over_budget: TooLarge | UnsetType = UNSET


class MemoryRated(Reply, frozen=True, kw_only=True):
    """Answers `RateMemory` with the mean and number of all ratings."""

    memory_id: str
    key: str
    namespace: str
    rating: float
    ratings: int


class UsedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory and its uses."""

    memory_id: str
    key: str
    namespace: str
    uses: int
    last_used: datetime | None


class MemoryStatistics(Reply, frozen=True, kw_only=True):
    """Answers `MemoryStats`, over what the caller may see.

    Attributes:
        bytes: Received contents and values, newest versions only.
        compression_ratio: ``stored_bytes`` by ``bytes``.
        by_namespace: The 100 largest namespaces; ``more_namespaces`` others have memories.
        by_tag: The 100 most frequent tags.
        by_age: Memories by age: ``day``, ``week``, ``month``, ``year``, ``older``.
        imitates: The reserved beginning that the namespace only imitates, such as ``user:`` for ``USER:``;
            the namespace is open to everyone.
        embedding_space: The vectors that are compared with a ``query_embedding``: the embedder, its
            version and their dimensions; null without vectors.
        embedding_waiting: About how many memories of the root have no such vectors yet.
    """

    namespace: str
    memories: int
    versions: int
    bytes: int
    stored_bytes: int
    compressed: int
    compression_ratio: float
    tokens: int
    tokens_saved: int
    superseded: int
    by_namespace: dict[str, int]
    more_namespaces: int
    by_tag: dict[str, int]
    by_kind: dict[str, int]
    by_scope: dict[str, int]
    by_author: dict[str, int]
    by_age: dict[str, int]
    top_used: list[UsedMemory]
    oldest: datetime | None
    newest: datetime | None
    embedding_space: str | None
    embedding_waiting: int = 0
    imitates: str | UnsetType = UNSET


# -- internal ----------------------------------------------------------


class FoundMemory(msgspec.Struct, frozen=True, kw_only=True):
    """One hit, with figures from 0 to 1.

    Attributes:
        score: The figure that orders the hits: relevance, and in a hybrid search also quality.
        relevance: Relative to the other hits; 1, like ``match``, if nothing was ranked.
        match: How well it matches the query, independent of other hits.
        odds: The odds of its relevance, independent of other hits; None if nothing was ranked.
        components: The parts of the score, with ``debug``.
        compressed: The content or value as stored, if that is requested; then the memory has neither.
        own: Whether it belongs to the caller's user, and that user's agents wrote the newest version.
        of_branch: The other branch on which it was noted, if that was looked up.
        weighed_as: With ``debug``: the kind of memory and the vectors by which the weights were chosen.
        nearness: For a hook: how much nearer the query is than ordinary prompts; None without vectors.
    """

    memory: MemoryView
    score: float
    quality: float | None
    relevance: float = 1.0
    match: float = 1.0
    odds: float | None = None
    components: dict[str, float] | None = None
    compressed: CompressedForm | UnsetType = UNSET
    own: bool = False
    of_branch: str = ""
    weighed_as: tuple[str, str] | None = None
    nearness: float | None = None


class TermRead(msgspec.Struct, frozen=True, kw_only=True):
    """A word of a query as a search interpreted it.

    Attributes:
        term: The term in the index, mostly the stem.
        meant: The terms searched in its place; empty if ``term`` itself was searched, or nothing.
        memories: How many memories have it, or the terms in its place.
        is_name: Whether it counts as part of an author's name.
    """

    word: str
    term: str
    meant: list[str]
    memories: int
    is_name: bool = False


class RootSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `FindMemories`, best first.

    Attributes:
        total: How many memories matched at all; with ``is_minimum``, there may be more.
        counts: The number of candidates before and after each filter, in order.
        model: The weights and vectors that ranked the hits.
        rivals: The sum of the odds of the best hits, which lowers the relevance of other owners' hits.
        is_nothing: Whether all hits are too weak to be an answer.
        terms: With ``debug``: how the query's words were interpreted, if any ranked.
        unread: If there was no time to read the index: how many of the newest memories were searched.
        cut: What a search for stop words left out, if it had no hits; empty if it read all memories.
        ordinary: For a hook: for each ordinary prompt, the nearness of the memory that is nearest to it.
        compared: The part of the memories that ``ordinary`` is about.
    """

    hits: list[FoundMemory]
    total: int
    counts: dict[str, int]
    model: str
    is_minimum: bool = False
    rivals: float = 0.0
    is_nothing: bool = False
    terms: list[TermRead] = msgspec.field(default_factory=list)
    unread: int | None = None
    cut: str = ""
    ordinary: list[float] = msgspec.field(default_factory=list)
    compared: float = 1.0
    damaged: Damaged | UnsetType = UNSET


class KnownMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The key, the newest version and the beginning of a memory."""

    key: str
    version: int
    text: str


class MemoriesKnown(Reply, frozen=True, kw_only=True):
    """Answers `LookUpMemories`: the memories that the caller may see, by id."""

    known: dict[str, KnownMemory]


class KeyPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The place of a memory with a key; ``session_id`` if `set_memory` bound it."""

    namespace: str
    memory_id: str
    session_id: str | None = None


class KeyLocated(Reply, frozen=True, kw_only=True):
    """Answers `LocateKey`."""

    places: list[KeyPlace]


class NamespacePage(Reply, frozen=True, kw_only=True):
    """Answers `ListSubNamespaces`."""

    namespaces: list[str]
    next_cursor: str | None
