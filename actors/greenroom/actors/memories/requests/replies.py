"""Replies about memories. Field names are the wire's; times are aware and UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.replies import ListReply, Reply, TooLarge
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.times import DAY, to_microseconds

_EVER = 1 << 62
"""Microseconds, more than any time of a memory has."""


class MemoryFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What narrows a search or a listing; every one that is given must fit.

    Attributes:
        namespace: Whole leading segments.
        key: The key itself.
        key_prefix: What the key begins with.
        tags: Tags; ``tag_match`` says whether any of them or all.
        after: Created then or later.
        before: Created earlier.
        max_age_days: Created no longer ago than this.
        min_importance: At least so important.
        author: Who wrote the first version.
        superseded: Also what another memory takes the place of that the reader sees; it is hidden otherwise.
        session_id: Only entries stored with `set_memory` for this session.
        unreviewed: Only what nobody has looked at, or only the rest; both unless given.
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
        """Return when the memories were created: from (included), until (not included).

        Args:
            now: The present, and like the result in microseconds since 1970.
        """
        after = -_EVER if self.after is None else to_microseconds(self.after)
        if self.max_age_days is not None:
            after = max(after, now - int(min(self.max_age_days * DAY, _EVER)))
        return after, _EVER if self.before is None else to_microseconds(self.before)


class MemoryView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory as a reader that may see it gets it; what it has not is left out.

    Attributes:
        memory_id: Its UUID, the same for all versions.
        id: The number of this version within its namespace's root, as the memory service has it.
        content: Its text, unless it is a ``value``, or ``withheld``.
        value: Its JSON, unless it is a ``content``, or ``withheld``.
        withheld: Its content is too large for this answer; read it alone.
        author: Who wrote the first version.
        imported: What the source says of that, where the author imported it.
        updated_by: Who wrote this one.
        supersedes: The memory that it takes the place of, if that is there and the reader may see it.
        superseded_by: The one that takes its place, likewise.
        rating: The mean of its ratings, -1 to 1; ``ratings`` says of how many.
        unreviewed: A rule found it and nobody has looked at it since: `greenroom review` shows these.
        size_bytes: Of what is stored: the content or the value's JSON as UTF-8, compressed where that is so.
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
        """Its content; of a value its JSON, and nothing where it is withheld."""
        if self.content is not None:
            return self.content
        return "" if isinstance(self.value, UnsetType) else bytes(self.value).decode()


class CompressedForm(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's content or value as it is stored.

    Attributes:
        format: How it is compressed.
        member: What it is: the ``content``, as UTF-8, or the ``value``, as JSON.
        data: The bytes, in JSON as base64.
    """

    format: Literal["zlib"] = "zlib"
    member: Literal["content", "value"]
    data: bytes


class SimilarMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that says nearly the same as the one just stored; ``similarity`` is 0-1."""

    memory_id: str
    key: str
    namespace: str
    similarity: float
    preview: str


class MemorySaved(Reply, frozen=True, kw_only=True):
    """Answers `StoreMemory` and `UpdateMemory`.

    Attributes:
        id: The number of this version.
        created: Whether it is a new memory, and no new version of one.
        size_bytes: As in `MemoryView`.
        compression_ratio: Size stored by size given; 1 when it is not compressed.
        tokens: An estimate: bytes of UTF-8 by 4.
        tokens_saved: The same estimate of what compression saved in the store.
        similar: Memories that say nearly the same, the most similar first.
        conflicts_with: Older memories that this one may replace, the likeliest first; ``similarity`` is how
            likely. To hide one, call ``update_memory`` with this ``memory_id`` and its as ``supersedes``.
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
    """One memory that was forgotten, or would be; ``size_bytes`` as in `MemoryView`."""

    memory_id: str
    key: str
    namespace: str
    version: int
    updated_at: datetime
    size_bytes: int


class MemoryForgotten(Reply, frozen=True, kw_only=True):
    """Answers `ForgetMemory`.

    Attributes:
        forgotten: How many were forgotten; 0 when there was none, or ``confirm`` is missing.
        purged: Whether their history went as well.
        confirm_needed: Nothing was done: ``memories`` would be forgotten with ``confirm``.
        matched: How many fit.
        remaining: How many of these are still there; one call forgets 1,000 at most, so call again.
        memories: The first that fit, newest update first; of one key, what was forgotten before comes last.
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
        tokens: An estimate of what ``memories`` cost, where ``max_tokens`` was given: bytes of UTF-8 by 4.
        left_out: How many of this page did not fit into ``max_tokens``; ``next_cursor`` leads to them, but
            for those that alone are larger, which ``over_budget`` names.
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
    """One version: number, author, time and size, as in `MemoryView`.

    Attributes:
        imported: What its source says of the author, where the author imported it.
    """

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
    """Answers `RateMemory` with the mean of all ratings and how many there are."""

    memory_id: str
    key: str
    namespace: str
    rating: float
    ratings: int


class UsedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory and how often it was used."""

    memory_id: str
    key: str
    namespace: str
    uses: int
    last_used: datetime | None


class MemoryStatistics(Reply, frozen=True, kw_only=True):
    """Answers `MemoryStats`, over what the caller may see.

    Attributes:
        bytes: Contents and values as given, newest versions only.
        stored_bytes: The same as they lie in the store.
        compression_ratio: ``stored_bytes`` by ``bytes``.
        versions: All versions of these memories.
        by_namespace: The 100 namespaces that have most.
        more_namespaces: How many namespaces have memories besides these.
        by_tag: The 100 most frequent tags.
        by_age: Memories by when they were created: ``day``, ``week``, ``month``, ``year``, ``older``.
        top_used: The ten that were used most.
        imitates: What the namespace reads like, such as ``user:``, while it is open to everybody.
        embedding_space: Which vectors are compared with a ``query_embedding``: the embedder, its version and,
            last, their dimensions; null while there are none.
        embedding_waiting: How many memories of the root have no such vectors yet, about; older vectors
            serve as long as there are any.
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
    """One hit.

    Attributes:
        memory: The memory.
        score: What the order goes by, 0-1: relevance, and in a hybrid search quality.
        quality: 0-1; an exact search knows none.
        relevance: 0-1, beside the others that were found there; 1 where nothing was ranked.
        match: How well it matches the query, 0-1, whatever else was found; 1 where nothing was ranked.
        odds: Of it against nothing, whatever else was found; None where nothing was ranked.
        components: Why, with ``debug``.
        compressed: Its content or value as it is stored, where that is compressed and wanted so; the memory
            is without it then.
        own: Whether it is the asker's user's, and that user's agents wrote what it says now.
        weighed_as: With ``debug`` the kind of memory and the vectors that chose its weights, where it was
            ranked.
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
    weighed_as: tuple[str, str] | None = None


class TermRead(msgspec.Struct, frozen=True, kw_only=True):
    """A word of a query, as a search understood it.

    Attributes:
        word: As it was typed.
        term: What the index knows it by: mostly its stem.
        meant: What was looked for in its place; empty where it is the term itself, or where there is nothing.
        memories: How many memories have it, or what was looked for in its place.
        is_name: Whether it was taken for a part of an author's name.
    """

    word: str
    term: str
    meant: list[str]
    memories: int
    is_name: bool = False


class RootSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `FindMemories`, best first.

    Attributes:
        total: How many memories matched at all.
        is_minimum: Whether there may be more, since not all candidates were looked at.
        counts: How many candidates there were before and after each filter, in the order of filtering.
        model: Which weights, and which vectors, ranked.
        rivals: The odds of the best together, by which those of other owners are less likely.
        is_nothing: Whether all are so weak that none can be taken for an answer.
        terms: With ``debug`` how the query's words were understood, where any were ranked by.
        unread: How many of the newest memories were searched where there was no time to read the index; None
            where it was read.
        cut: What was not read of a search for stop words that found nothing; empty where all was.
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


class KnownMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in short: its key, its version now, and how its text begins."""

    key: str
    version: int
    text: str


class MemoriesKnown(Reply, frozen=True, kw_only=True):
    """Answers `LookUpMemories`: those that are there and that the sender may see, by their ids."""

    known: dict[str, KnownMemory]


class KeyPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a memory with a key lies; ``session_id`` is the one that `set_memory` bound it to."""

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


class UnembeddedText(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's text for the embedder."""

    id: int
    text: str


class UnembeddedTexts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `TextsToEmbed`; ``remaining`` is how many more there are, about."""

    texts: list[UnembeddedText]
    remaining: int


class VectorsStored(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `StoreVectors`."""

    stored: int
    remaining: int
