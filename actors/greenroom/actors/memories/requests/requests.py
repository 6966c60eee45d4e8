"""Requests about the memories of a namespace; a field is a tool's parameter where there is a tool."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import QueryVectors, TimeSpan, Vectors
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.runtime import Message


class StoreMemory(Message[replies.MemorySaved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a memory, or a new version of the one that has the key: either ``content`` or ``value``.

    ``tags``, ``importance``, ``expiry`` and ``scope`` may be members of ``metadata``, too; what else that
    holds is kept. As arguments, null means not given; for ``value`` that is so beside ``content``.

    Attributes:
        author: Who writes this version; the agent unless given. The first version's is the memory's. Over a
            key without the scope ``admin`` it is the agent, and what is given is kept as ``imported``.
        supersedes: The memory that this one hides, as long as it is there, from all who see it.
        unreviewed: Whether nobody has looked at it; then it is found by searches, never given unasked, and
            hides nothing. Not given, a new version is as the one before.
    """

    content: kinds.MemoryContent | None = None
    value: types.GivenJson | UnsetType = UNSET
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    metadata: kinds.StoreMetadata = msgspec.field(default_factory=types.no_fields)
    tags: kinds.Tags | UnsetType | None = UNSET
    importance: kinds.Importance | UnsetType | None = UNSET
    expiry: kinds.Expiry | UnsetType | None = UNSET
    scope: kinds.AScope | UnsetType | None = UNSET
    kind: kinds.AKind | None = None
    author: kinds.Author | None = None
    conversation_id: kinds.ConversationId | None = None
    position: kinds.Position | None = None
    supersedes: Annotated[kinds.MemoryId | None, Meta(description="the memory it replaces")] = None
    unreviewed: Annotated[kinds.Unreviewed | UnsetType | None, types.RARE] = UNSET
    compress: Annotated[bool, Meta(description="when large")] = True
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class UpdateMemory(Message[replies.MemorySaved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a new version of a memory: new content, new metadata (merged by field), or both.

    ``tags``, ``importance``, ``expiry`` and ``scope`` may be members of ``metadata``, too, and are taken
    away there by null; as arguments, null means not given, also for ``value``.
    """

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    content: Annotated[kinds.MemoryContent | None, Meta(description="what is true now")] = None
    value: types.GivenJson | UnsetType = UNSET
    metadata: kinds.StoreMetadata = msgspec.field(default_factory=types.no_fields)
    tags: kinds.Tags | UnsetType | None = UNSET
    importance: kinds.Importance | UnsetType | None = UNSET
    expiry: kinds.Expiry | UnsetType | None = UNSET
    scope: kinds.AScope | UnsetType | None = UNSET
    kind: kinds.AKind | None = None
    supersedes: Annotated[kinds.MemoryId | None, Meta(description="the memory it replaces")] = None
    unreviewed: Annotated[kinds.Unreviewed | UnsetType | None, types.RARE] = UNSET
    compress: Annotated[bool, Meta(description="when large")] = True
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class ForgetMemory(Message[replies.MemoryForgotten], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Forget one memory by id or key, or all that fit the filters; several only with ``confirm``.

    Forgotten memories are gone from reads and searches, and their history stays until ``purge``. Purging a
    key ends what was forgotten under it before, too: these are several memories then. One call
    forgets 1,000 at most, in a full store fewer; call again while ``remaining`` is not 0.
    """

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    confirm: kinds.Confirm = False
    purge: kinds.Purge = False
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class MemoriesCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CountMemories`: how many, whether there are more, and what changed last and when."""

    count: int
    is_more: bool
    newest: str | None
    newest_at: int


class ListMemories(Message[replies.MemoryPage], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the memories below a namespace, newest update first, in pages."""

    namespace: kinds.NamespacePrefix | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None
    max_tokens: kinds.MaxTokens | None = None


class CountMemories(Message[MemoriesCounted], frozen=True, kw_only=True):
    """Count the memories of an actor that the caller may see, up to a number. Not a tool."""

    most: int


class ReadMemory(Message[replies.MemoryShown], frozen=True, kw_only=True):
    """Read a memory, or an older version of it, by id or key."""

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    version: types.OldVersion | None = None


class ListVersions(Message[replies.MemoryVersions], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the versions of a memory, also of a forgotten one, oldest first, without their contents."""

    deed: ClassVar[str] = "list_memory_versions"

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    limit: types.Limit1000 = 200
    cursor: types.Cursor | None = None
    max_tokens: types.Budget | None = None


class RateMemory(Message[replies.MemoryRated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Say how good a memory was; a second rating of the same rater replaces the first."""

    rating: kinds.Rating
    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    note: kinds.Note | None = None
    idempotency_key: types.IdempotencyKey | None = None


class MemoryStats(Message[replies.MemoryStatistics], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Count the memories below a namespace that the caller may see."""

    namespace: kinds.NamespacePrefix | None = None


# -- internal: the search, the service, the embedder ----------------------


class FindMemories(Message[replies.RootSearchResult], frozen=True, kw_only=True):
    """Find the best memories of one actor's namespaces. Not a tool: `MemorySearch` asks it of each.

    Attributes:
        text: The query; None without one: with vectors what is like them, else newest first.
        vectors: The query as the embedder sees it; None: words alone decide.
        times: When it was what is looked for, as far as the query says so in words that are not in ``text``.
        mode: How to match: ``exact`` looks for the text as it stands.
        quality_boost: 0-1, for ``hybrid``; in other modes it is ignored.
        min_relevance: The least relevance; None where it is said whether any hit can be an answer.
        min_score: The least match.
        filters: What narrows the candidates before anything is ranked.
        limit: Most hits.
        use: Whether the hits count as used.
        debug: Whether the hits carry their components.
        reasons: How many of the first hits carry them without ``debug``.
        decompress: Whether what is compressed comes as it was given.
    """

    text: kinds.SearchWords | None = None
    vectors: QueryVectors | None = None
    times: tuple[TimeSpan, ...] = ()
    mode: kinds.SearchMode = "semantic"
    quality_boost: kinds.Fraction = 0.0
    min_relevance: kinds.Fraction | None = 0.0
    min_score: kinds.Fraction = 0.0
    filters: MemoryFilters | None = None
    limit: types.Limit1000 = 10
    use: bool = True
    debug: bool = False
    reasons: int = 0
    decompress: bool = True


class LocateKey(Message[replies.KeyLocated], frozen=True, kw_only=True):
    """Say where below one root a key has memories. Not a tool: `PlacesOfKey` asks it of each.

    Attributes:
        key: The key itself.
        forgotten: Also those that were forgotten, as far as there are others beside them or at the root.
    """

    key: types.MemoryKey
    forgotten: bool = False


class FindNearKeys(Message[list[str]], frozen=True, kw_only=True):
    """Find the keys below one root that look like one that is not there. Not a tool.

    Attributes:
        key: That key.
        namespace: The namespace to look in; None: all of the root.
    """

    key: types.MemoryKey
    namespace: kinds.Namespace | None = None


class NoteUses(Message[None], frozen=True, kw_only=True):
    """Count these memories as used: a search over several owners has shown them. Not a tool."""

    memory_ids: list[str]


class LookUpMemories(Message[replies.MemoriesKnown], frozen=True, kw_only=True):
    """Say what is known by these ids, as far as the sender may see it; no use of it. Not a tool."""

    memory_ids: Annotated[list[str], Meta(max_length=5_000)]


class NoteHelp(Message[None], frozen=True, kw_only=True):
    """Count a memory as used, and rate it a little better: an agent that was given it used it. Not a tool.

    Attributes:
        event_id: By what it was seen; a repeat counts nothing.
    """

    memory_id: kinds.MemoryId
    event_id: str


class AddMemory(Message[replies.MemorySaved], frozen=True, kw_only=True):
    """Store the first version of a memory; a key that is there is refused. Not a tool."""

    namespace: kinds.Namespace
    key: types.MemoryKey
    value: types.JsonObject
    memory_type: kinds.MemoryKind
    created_by: kinds.Author
    task_id: kinds.TaskId
    metadata: types.JsonObject = msgspec.field(default_factory=types.no_fields)


class ReviseMemory(Message[replies.MemorySaved], frozen=True, kw_only=True):
    """Store the next version of a memory's value. Not a tool."""

    namespace: kinds.Namespace
    key: types.MemoryKey
    value: types.JsonObject
    updated_by: kinds.Author
    task_id: kinds.TaskId
    expected_version: kinds.ExpectedVersion | None = None


class DropMemory(Message[replies.MemoryForgotten], frozen=True, kw_only=True):
    """Delete a memory softly. Not a tool."""

    namespace: kinds.Namespace
    key: types.MemoryKey
    deleted_by: kinds.Author
    task_id: kinds.TaskId
    purge: bool = False


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of `ChangeMemories`.

    Attributes:
        value: What the key has from now on; not given, the memory goes for good, its history too.
        metadata: In the place of the metadata before.
        expires_in: When it ends, in seconds from now; None: never.
    """

    namespace: kinds.Namespace
    key: types.MemoryKey
    value: types.JsonObject | UnsetType = UNSET
    metadata: types.JsonObject = msgspec.field(default_factory=types.no_fields)
    expires_in: kinds.ExpiresIn | None = None


class ChangeMemories(Message[None], frozen=True, kw_only=True):
    """Store and remove several memories of one root in one commit, in this order. Not a tool."""

    changes: Annotated[list[MemoryChange], Meta(max_length=kinds.MAX_CHANGES)]


class MemoryLease(msgspec.Struct, frozen=True, kw_only=True):
    """Which memory is to be there how many seconds longer, from now."""

    namespace: kinds.Namespace
    key: types.MemoryKey
    expires_in: kinds.ExpiresIn


class ProlongMemories(Message[None], frozen=True, kw_only=True):
    """Let memories of one root that expire do so later, without a new version. Not a tool."""

    leases: Annotated[list[MemoryLease], Meta(max_length=kinds.MAX_CHANGES)]


class ListSubNamespaces(Message[replies.NamespacePage], frozen=True, kw_only=True):
    """List the namespaces below one that have memories, in no particular order, in pages. Not a tool."""

    namespace: kinds.NamespacePrefix
    limit: types.Limit1000 = 1_000
    cursor: types.Cursor | None = None


class TextsToEmbed(Message[replies.UnembeddedTexts], frozen=True, kw_only=True):
    """Hand over texts that have no vectors of this space yet. Not a tool."""

    space: str
    limit: int = 256


class StoreVectors(Message[replies.VectorsStored], frozen=True, kw_only=True):
    """Keep the vectors of these texts; of those that changed meanwhile nothing is kept. Not a tool."""

    space: str
    vectors: list[tuple[int, Vectors]]


class IndexVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found below one root.

    Attributes:
        memories: Memories that the index is to have.
        problems: How the index differs from them, a sentence each; empty when it does not.
        rebuilt: Whether the index was made anew because of that.
        unindexed: Memories of an older program that wait to be indexed; then nothing was compared.
    """

    memories: int
    problems: list[str]
    rebuilt: bool
    unindexed: int = 0


class VerifyIndex(Message[IndexVerified], frozen=True, kw_only=True):
    """Compare the index below one root with the memories, and make it anew if that is wanted and needed."""

    rebuild: bool = False
