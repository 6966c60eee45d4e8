"""Requests about the memories of a namespace; fields of operations are tool parameters."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.memory_types import TimeSpan
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.runtime import Message


@operation(
    "store_memory",
    scope="memory:write",
    route="namespace",
    tool=ToolText(
        title="Remember",
        description="Remember from now on, for every project and tool: note, put down or save a "
        "fact, date, rule, decision or preference that you learned or settled and "
        "should keep in mind for next time and not forget; for good or until it "
        "expires.",
        overwrites=True,
    ),
)
class StoreMemory(Message[replies.MemorySaved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a memory, or a new version of the key's memory: either ``content`` or ``value``.

    ``tags``, ``importance``, ``expiry`` and ``scope`` may be members of ``metadata``, too; its other members
    are kept. As arguments, null means not given; for ``value`` only beside ``content``.

    Attributes:
        author: The author of this version; by default the agent. The memory has the first version's author.
            If the key lacks the scope ``admin``, it is the agent; the argument is kept as ``imported``.
        supersedes: The memory that this one hides, while it exists, from all who see it.
        unreviewed: Whether no person has reviewed it; then searches find it, and it hides nothing. Hooks
            inject it only if they saw the user type it. By default a new version keeps the previous value.
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


@operation(
    "update_memory",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
    tool=ToolText(
        title="Update memory",
        description="Correct, edit or change a memory: fix or replace a fact or preference that "
        "you noted and that was wrong, is out of date or different now, add a tag to a "
        "note, raise how important it is.",
        overwrites=True,
        repeatable=True,
    ),
)
class UpdateMemory(Message[replies.MemorySaved], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Store a new version of a memory: content, metadata (merged by field), or both.

    ``tags``, ``importance``, ``expiry`` and ``scope`` may be members of ``metadata``, too, where null removes
    them; as arguments, null means not given, also for ``value``.
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


@operation(
    "forget_memory",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
    tool=ToolText(
        title="Forget",
        description="Forget or delete what should be held or known no longer: drop, erase or "
        "remove one note or entry, or all memories that fit filters (only listed "
        "first, until confirm). History stays unless purge.",
        overwrites=True,
        repeatable=True,
    ),
)
class ForgetMemory(Message[replies.MemoryForgotten], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Forget one memory by id or key, or all that match filters.

    To forget several, ``confirm`` is needed.

    Reads and searches do not find forgotten memories; their history stays until ``purge``. A purge of a key
    also removes memories that were forgotten under it before, so it may match several. One call forgets 1,000
    at most, in a full store fewer; call again while ``remaining`` is not 0.
    """

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    confirm: kinds.Confirm = False
    purge: kinds.Purge = False
    expected_version: kinds.ExpectedVersion | None = None
    idempotency_key: types.IdempotencyKey | None = None


class LatestMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was changed lately; ``text`` is its beginning, ``at`` in microseconds."""

    memory_id: str
    key: str
    namespace: str
    text: str
    author: str
    at: int
    unreviewed: bool = False


class MemoriesCounted(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CountMemories`: the count, whether there are more, and the last changes.

    Attributes:
        latest: The memories changed last, newest first.
        days: How many of the counted memories began on each day, as days since 1970.
    """

    count: int
    is_more: bool
    newest: str | None
    newest_at: int
    latest: list[LatestMemory] = []
    days: dict[int, int] = {}


@operation(
    "list_memories",
    scope="memory:read",
    route="namespace",
    tool=ToolText(
        title="List memories",
        description="Show everything that is kept in memory, all notes and facts page by page, "
        "newest first, or notes that were saved since a date or have a certain tag or "
        "kind.",
        weight=4,
    ),
)
class ListMemories(Message[replies.MemoryPage], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the memories below a namespace, newest update first, in pages."""

    namespace: kinds.NamespacePrefix | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    limit: types.Limit200 = 50
    cursor: types.Cursor | None = None
    max_tokens: kinds.MaxTokens | None = None


class CountMemories(Message[MemoriesCounted], frozen=True, kw_only=True):
    """Count an actor's visible memories, up to a maximum. Not a tool."""

    most: int


class ReadMemory(Message[replies.MemoryShown], frozen=True, kw_only=True):
    """Read a memory, or an older version of it, by id or key."""

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    version: types.OldVersion | None = None


@operation(
    "list_memory_versions",
    scope="memory:read",
    route="namespace",
    by_memory_id=True,
    tool=ToolText(
        title="List versions",
        description="See who changed a memory and when, oldest version first, without contents.",
        weight=1,
    ),
)
class ListVersions(Message[replies.MemoryVersions], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """List the versions of a memory, even forgotten, oldest first, without contents."""

    audit_action: ClassVar[str] = "list_memory_versions"

    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    limit: types.Limit1000 = 200
    cursor: types.Cursor | None = None
    max_tokens: types.Budget | None = None


@operation(
    "rate_memory",
    scope="memory:write",
    route="namespace",
    by_memory_id=True,
    tool=ToolText(
        title="Rate memory",
        description="Say whether a memory helped (1) or misled (-1); mode hybrid finds better ones first.",
        overwrites=True,
        repeatable=True,
    ),
)
class RateMemory(Message[replies.MemoryRated], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Rate a memory; a second rating by the same rater replaces the first."""

    rating: kinds.Rating
    memory_id: kinds.MemoryId | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.Namespace | None = None
    note: kinds.Note | None = None
    idempotency_key: types.IdempotencyKey | None = None


@operation(
    "memory_stats",
    scope="memory:read",
    route="namespace",
    tool=ToolText(
        title="Memory statistics",
        description="Count your user's memories, or a namespace's, by tag, kind, scope, age; the most used.",
    ),
)
class MemoryStats(Message[replies.MemoryStatistics], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Count the memories below a namespace that the caller may see."""

    namespace: kinds.NamespacePrefix | None = None


# -- internal: the search, the service, the embedder ----------------------


class FindMemories(Message[replies.RootSearchResult], frozen=True, kw_only=True):
    """Find the best memories of one root; `MemorySearch` sends it to each root.

    Attributes:
        text: The query. If None, find the memories most similar to the vectors; without vectors, the newest.
        vectors: The embeddings of the query; None: only words count.
        times: The times that the query names; ``text`` lacks the words that name them.
        mode: How to match: ``exact`` finds the exact text.
        quality_boost: 0-1, for ``hybrid``; other modes ignore it.
        min_relevance: The least relevance; if None, the search decides whether any hit can be an answer.
        reasons: How many of the first hits have ``components`` without ``debug``.
        unasked_for: The ids of the project for which a hook searches: then memories of other projects
            do not count, and the reply tells how near ordinary prompts come.
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
    unasked_for: list[str] | None = None


class LocateKey(Message[replies.KeyLocated], frozen=True, kw_only=True):
    """Find the places of a key below one root; `PlacesOfKey` sends it to each root."""

    key: types.MemoryKey
    forgotten: bool = False


class FindNearKeys(Message[list[str]], frozen=True, kw_only=True):
    """Find keys below a root or a namespace that are similar to a missing key."""

    key: types.MemoryKey
    namespace: kinds.Namespace | None = None


class NoteUses(Message[None], frozen=True, kw_only=True):
    """Count memories as used after a search over several owners. Not a tool."""

    memory_ids: list[str]


class LookUpMemories(Message[replies.MemoriesKnown], frozen=True, kw_only=True):
    """Look up memories by id; this does not count as a use. Not a tool."""

    memory_ids: Annotated[list[str], Meta(max_length=5_000)]


class NoteHelp(Message[None], frozen=True, kw_only=True):
    """Count a detected use of an injected memory, and rate it. Not a tool.

    Attributes:
        event_id: The hook event with the use; a repeat is not counted.
    """

    memory_id: kinds.MemoryId
    event_id: str


class AddMemory(Message[replies.MemorySaved], frozen=True, kw_only=True):
    """Store the first version of a memory; an existing key is refused. Not a tool."""

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
    """Forget a memory. Not a tool."""

    namespace: kinds.Namespace
    key: types.MemoryKey
    deleted_by: kinds.Author
    task_id: kinds.TaskId
    purge: bool = False


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of `ChangeMemories`.

    Attributes:
        value: The new value; without one the memory is removed with its history.
        metadata: Replaces the metadata.
        expires_in: The expiry, in seconds from now; None: never.
    """

    namespace: kinds.Namespace
    key: types.MemoryKey
    value: types.JsonObject | UnsetType = UNSET
    metadata: types.JsonObject = msgspec.field(default_factory=types.no_fields)
    expires_in: kinds.ExpiresIn | None = None


class ChangeMemories(Message[None], frozen=True, kw_only=True):
    """Store and remove memories of one root, in order, in one commit. Not a tool."""

    changes: Annotated[list[MemoryChange], Meta(max_length=kinds.MAX_CHANGES)]


class MemoryLease(msgspec.Struct, frozen=True, kw_only=True):
    """An extension of the expiry of a memory, in seconds from now."""

    namespace: kinds.Namespace
    key: types.MemoryKey
    expires_in: kinds.ExpiresIn


class ProlongMemories(Message[None], frozen=True, kw_only=True):
    """Extend the expiry of memories of one root, without new versions. Not a tool."""

    leases: Annotated[list[MemoryLease], Meta(max_length=kinds.MAX_CHANGES)]


class ListSubNamespaces(Message[replies.NamespacePage], frozen=True, kw_only=True):
    """List the namespaces with memories below a namespace, unordered, in pages. Not a tool."""

    namespace: kinds.NamespacePrefix
    limit: types.Limit1000 = 1_000
    cursor: types.Cursor | None = None


class IndexVerified(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verification below one root.

    Attributes:
        problems: The differences of the index, one sentence each; empty if there are none.
        unindexed: Memories of an older program that wait to be indexed; then nothing was compared.
    """

    memories: int
    problems: list[str]
    rebuilt: bool
    unindexed: int = 0


class VerifyIndex(Message[IndexVerified], frozen=True, kw_only=True):
    """Compare the index below one root with the memories; rebuild it if requested and needed."""

    rebuild: bool = False
