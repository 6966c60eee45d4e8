"""The searches of the tools `memory_search` and `retrieve_memory`."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import msgspec
import trio
from msgspec import UNSET, Meta

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.namespaces import below_root, memory_address, root_of, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.grades import least_of
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import parse_time_argument, to_datetime
from greenroom.actors.memories.preferences.actor import preferences_address
from greenroom.actors.memories.preferences.requests import GetPreferences, SearchDefaults
from greenroom.actors.memories.recall import replies
from greenroom.actors.memories.recall.emptiness import with_reason
from greenroom.actors.memories.recall.key_resolution import PlacesOfKey
from greenroom.actors.memories.recall.query import QueryEmbedding, load_time_words
from greenroom.actors.memories.recall.scatter_gather import Root
from greenroom.actors.memories.recall.search_all_roots import (
    SearchResult,
    SearchSpec,
    count_uses,
    debug_view,
    find,
    reply,
)
from greenroom.actors.memories.recall.time_window import is_in_words, time_window, time_zone
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters
from greenroom.actors.memories.requests.requests import LookUpMemories, ReadMemory
from greenroom.actors.memories.storage.directory import RootOfMemory
from greenroom.runtime import GreenroomError, Procedure, ProcedureContext, Refusal

HYBRID_BOOST = 0.3
_USUAL_LIMIT = 10
MOST = 100
"""The caller's own memories are looked for among at most this many memories with one key."""


class NarrowedSearch(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a search, and its filters."""

    query: kinds.SearchWords | None = None
    namespace: kinds.Below | None = None
    time_expr: kinds.TimeWords | None = None
    after: kinds.After | None = None
    before: kinds.Before | None = None
    timezone: kinds.Zone | None = None
    tags: kinds.Tags | None = None
    tag_match: kinds.ATagMatch = "any"
    kind: kinds.AKind | None = None
    author: kinds.Author | None = None


@operation(
    "memory_search",
    scope="memory:read",
    tool=ToolText(
        title="Search memories",
        description="Find the answer to a question in all memories: do we know or remember "
        "anything about it, is there a rule or preference, what was ever told, written "
        "down or decided and why, who was responsible for it, what people think, like "
        "or prefer. Looks it up by meaning, words, time or tags.",
        weight=4,
    ),
)
class MemorySearch(
    NarrowedSearch, Procedure[replies.MemoriesFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find memories in all visible namespaces, or below one."""

    mode: kinds.AMode = "semantic"
    scope: kinds.AScope | None = None
    conversation_id: kinds.ConversationId | None = None
    quality_boost: kinds.Boost | None = None
    min_relevance: Annotated[kinds.LeastRelevance, types.RARE] = None
    min_score: Annotated[kinds.LeastScore, types.RARE] = None
    limit: types.Limit100 = 10
    max_tokens: kinds.MaxTokens | None = None
    include_debug: Annotated[bool, Meta(description="say how it was ranked")] = False

    async def run(self, context: ProcedureContext) -> replies.MemoriesFound:
        """Search every namespace and return the best of all."""
        began = trio.current_time()
        if self.time_expr is not None:
            await load_time_words()
        window = self.window(context.now)
        search = self.to_spec(window)
        outcome = await find(context, search)
        debug = debug_view(outcome, search, window) if self.include_debug else None
        answer = reply(outcome, search, began, max_tokens=self.max_tokens, mode=self.mode, debug=debug)
        return await with_reason(context, self, outcome, answer)

    def with_words_in(self, timezone: str) -> MemorySearch:
        """Return the search with ``timezone`` as the default zone of ``time_expr``."""
        if self.timezone is not None or self.time_expr is None or not is_in_words(self.time_expr):
            return self
        after, before = (
            None if given is None else parse_time_argument(field, given).isoformat()
            for field, given in (("after", self.after), ("before", self.before))
        )
        return msgspec.structs.replace(self, timezone=timezone, after=after, before=before)

    def to_spec(self, window: replies.TimeWindow | None) -> SearchSpec:
        """Return the specification of this search."""
        query = self.query if self.query is None or self.query.strip() else None
        mode, boost = self.mode, self.quality_boost
        if boost is None:
            boost = HYBRID_BOOST if mode == "hybrid" else 0.0
        elif boost and mode == "exact":
            raise auth_errors.invalid(
                "quality_boost", "quality_boost: mode exact does not weigh; take mode hybrid"
            )
        elif boost:
            mode = "hybrid"
        if query is None and mode != "hybrid" and not self.tags and window is None:
            raise auth_errors.invalid(
                "query", "query: it is required unless time_expr, after, before or tags are given"
            )
        filters = MemoryFilters(
            namespace=below_root(self.namespace),
            tags=self.tags or None,
            tag_match=self.tag_match,
            kind=self.kind,
            scope=self.scope,
            author=self.author,
            conversation_id=self.conversation_id,
            after=None if window is None else window.after,
            before=None if window is None else window.before,
        )
        return SearchSpec(
            self.namespace,
            query,
            mode,
            boost,
            filters,
            self.limit,
            self.include_debug,
            min_relevance=_least(self, filters),
            min_score=least_of(self.min_score, None).score,
            zone=self.timezone,
        )

    def window(self, now: int) -> replies.TimeWindow | None:
        """Return the requested time of creation; None if none was requested."""
        zone: dt.tzinfo = dt.UTC
        name = "UTC"
        if self.timezone is not None or (self.time_expr is not None and is_in_words(self.time_expr)):
            zone, name = time_zone(self.timezone)
        if self.time_expr is None and self.after is None and self.before is None:
            return None
        window = time_window(
            to_datetime(now),
            zone,
            time_expr=self.time_expr,
            after=self.after,
            before=self.before,
            bounds=dt.UTC if self.timezone is None else zone,
        )
        return replies.TimeWindow(
            after=window.after, before=window.before, time_expr=self.time_expr, timezone=name
        )


class RetrieveFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filters of a retrieval; `MemorySearch` has more."""

    tags: kinds.Tags | None = None
    kind: kinds.MemoryKind | None = None
    scope: kinds.Scope | None = None
    min_importance: kinds.Fraction | None = None
    max_age_days: kinds.MaxAgeDays | None = None


@operation(
    "retrieve_memory",
    scope="memory:read",
    tool=ToolText(
        title="Retrieve memory",
        description="Recall from your user's memory by words, or by key from everywhere. For "
        "projects, your own keys or a time: memory_search.",
        weight=4,
    ),
)
class RetrieveMemory(Procedure[replies.MemoriesFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Find the user's memories by words, vector or key, or list the newest.

    A key is looked up in all visible namespaces. With a scope that others share, `filters` apply to all
    visible memories of that scope.

    Attributes:
        by_preferences: Whether the user's `search_defaults` fill in for absent arguments; no parameter.
    """

    query: kinds.SearchWords | None = None
    query_embedding: kinds.Embedding | None = None
    embedding_space: kinds.EmbeddingSpace | None = None
    key: types.MemoryKey | None = None
    memory_id: kinds.MemoryId | None = None
    namespace: kinds.OwnBelow | None = None
    filters: Annotated[RetrieveFilters | None, Meta(description="what must fit")] = None
    min_relevance: Annotated[kinds.LeastRelevance, types.RARE] = None
    min_score: Annotated[kinds.LeastScore, types.RARE] = None
    limit: types.Limit100 = _USUAL_LIMIT
    max_tokens: kinds.MaxTokens | None = None
    decompress: Annotated[bool, Meta(description="else as stored, in base64")] = True
    by_preferences: Annotated[bool, Meta(extra_json_schema=types.UNLISTED)] = False

    async def run(self, context: ProcedureContext) -> replies.MemoriesFound:
        """Search by relevance, list the newest, or match a whole key."""
        began = trio.current_time()
        defaults = await self._defaults(context)
        search = self.to_spec(self._below(context.principal), defaults)
        if self.memory_id is not None:
            outcome = await self._by_id(context, search)
        elif self.key is not None:
            outcome = await self._by_key(context, search)
        else:
            outcome = await find(context, search)
        answer = reply(outcome, search, began, max_tokens=self.max_tokens)
        count_uses(context, outcome, ((each.namespace, each.memory_id) for each in answer.memories))
        return await with_reason(context, self, outcome, answer)

    def _below(self, principal: Principal) -> str | None:
        """Return the namespaces to search; others' shared memories are in their own namespaces."""
        is_shared = self.filters is not None and self.filters.scope in {"shared", "public"}
        return self.namespace or (None if is_shared else user_namespace(principal))

    async def _defaults(self, context: ProcedureContext) -> SearchDefaults:
        """Return the user's defaults for arguments that the call leaves out."""
        if not self.by_preferences or self.query is None:
            return SearchDefaults()
        try:
            known = await context.ask(preferences_address(context.principal), GetPreferences())
        except GreenroomError:  # a search must not fail without the preferences
            return SearchDefaults()
        return known.search_defaults

    async def _by_id(self, context: ProcedureContext, search: SearchSpec) -> SearchResult:
        """Return the memory with the id, with its whole content.

        Raises:
            Refusal: ``MEMORY_NOT_FOUND``; ``VALIDATION_ERROR``: The request has a key, too.
        """
        assert self.memory_id is not None, "the request has an id"
        if self.key is not None:
            raise auth_errors.neither_id_nor_key()
        root = await context.query(RootOfMemory(memory_id=self.memory_id))
        known = {}
        if root is not None:
            look = LookUpMemories(memory_ids=[self.memory_id])
            known = (await context.ask(memory_address(root), look)).known
        if root is None or self.memory_id not in known:
            raise auth_errors.no_memory(self.memory_id)
        filters = msgspec.structs.replace(
            search.filters, namespace=None, key=known[self.memory_id].key, superseded=True
        )
        roots = [Root(root, memory_address(root))]
        outcome = await find(
            context,
            search._replace(
                below=None,
                query=None,
                embedding=None,
                filters=filters,
                limit=MOST,
                roots=roots,
                min_relevance=0.0,
                min_score=0.0,
            ),
        )
        hits = [hit for hit in outcome.hits if hit.memory.memory_id == self.memory_id]
        return await _with_contents(context, outcome._replace(hits=hits))

    async def _by_key(self, context: ProcedureContext, search: SearchSpec) -> SearchResult:
        """Return the memories with the key, with whole contents; the caller's own namespaces come first."""
        assert self.key is not None, "the request has a key"
        if self.namespace is not None:
            return await _with_contents(context, await find(context, search))
        located = await context.query(PlacesOfKey(key=self.key))
        order = list(dict.fromkeys(root_of(place.namespace) for place in located.places))
        filters = msgspec.structs.replace(search.filters, namespace=None)
        roots = [Root(name, memory_address(name)) for name in order]
        wide = search._replace(below=None, filters=filters, limit=MOST, roots=roots)
        outcome = await find(context, wide)
        hits = outcome.hits
        if self.query is None and self.query_embedding is None:
            hits = sorted(hits, key=lambda hit: order.index(root_of(hit.memory.namespace)))
        outcome = outcome._replace(hits=hits[: search.limit], failed=[*located.failed, *outcome.failed])
        return await _with_contents(context, outcome)

    def to_spec(self, below: str | None, defaults: SearchDefaults) -> SearchSpec:
        """Return the specification of this search, below a namespace, or in all."""
        limit, least = self.limit, _least(self, MemoryFilters())
        if limit == _USUAL_LIMIT and defaults.max_results is not UNSET:
            limit = defaults.max_results
        if least is None and defaults.min_relevance is not UNSET:
            least = defaults.min_relevance
        embedding = None
        if self.query_embedding is not None:
            embedding = QueryEmbedding(self.query_embedding, self.embedding_space)
            if self.query is not None:
                raise auth_errors.invalid("query_embedding", "query_embedding: give either it or query")
        elif self.embedding_space is not None:
            raise auth_errors.invalid("embedding_space", "embedding_space: there is no query_embedding")
        wanted = self.filters or RetrieveFilters()
        filters = MemoryFilters(
            namespace=below_root(below),
            key=self.key,
            superseded=self.key is not None,  # a key means that memory, superseded or not
            **msgspec.structs.asdict(wanted),
        )
        # Memories that do not fit into the budget do not count as used.
        return SearchSpec(
            below,
            self.query,
            "semantic",
            0.0,
            filters,
            limit,
            uses=self.max_tokens is None,
            decompress=self.decompress,
            min_relevance=_least(self, filters) if least is None and embedding is None else least or 0.0,
            min_score=least_of(self.min_score, None).score,
            embedding=embedding,
        )


def _least(request: MemorySearch | RetrieveMemory, filters: MemoryFilters) -> float | None:
    """Return the least relevance: the caller's, otherwise 0 if there are filters."""
    is_narrowed = filters != MemoryFilters(namespace=filters.namespace)
    if request.min_relevance is None and request.min_score is None and not is_narrowed:
        return None
    return least_of(request.min_score, request.min_relevance).relevance


async def _with_contents(context: ProcedureContext, outcome: SearchResult) -> SearchResult:
    """Add contents that are too large for lists to memories that were found by key."""
    hits = [await _whole(context, each) if _is_left_out(each) else each for each in outcome.hits]
    return outcome._replace(hits=hits)


def _is_left_out(found: FoundMemory) -> bool:
    return found.memory.withheld and found.compressed is UNSET


async def _whole(context: ProcedureContext, found: FoundMemory) -> FoundMemory:
    memory = found.memory
    request = ReadMemory(memory_id=memory.memory_id, namespace=memory.namespace)
    try:
        answer = await context.ask(memory_address(root_of(memory.namespace)), request)
    except Refusal:  # it was removed meanwhile
        return found
    return msgspec.structs.replace(found, memory=answer.memory)
