"""The one search over memories for a program that embeds Greenroom, and its six older names."""

from __future__ import annotations

import warnings
from dataclasses import field
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.app.services.base import Askable, ServiceError, ServiceResult, from_json, to_json
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.replies.grades import Grade
from greenroom.actors.core.replies.memory_types import MemoryKind, Scope, SearchMode
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.memories.recall.memory_search import MemorySearch
from greenroom.actors.memories.recall.older_calls import OLDER_SEARCHES
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.runtime import Refusal

_OLDER: Final = {call.name: call for call in OLDER_SEARCHES}


class MemoryMatch(ServiceResult):
    """A memory that was found.

    Attributes:
        id: The UUID of the memory.
        key: Its key.
        namespace: Where it is.
        score: How well it matches, 0-1, whatever else was found.
        relevance: Measured: of memories with 0.3 three in ten were right.
        grade: By its relevance.
        content: Its text; None for a ``value``, and for what is too large for a list.
        value: Its value; None for a ``content``, and for what is too large for a list.
        tags: Its labels.
        author: Who wrote it.
        kind: What kind of memory it is.
        importance: 0-1.
        scope: Who sees it.
        version: Counts from 1.
        created_at: When the first version was written.
        updated_at: When this one was written.
        expires_at: When it ends, None for never.
        unreviewed: Whether a rule found it and nobody has looked at it since.
        metadata: A dictionary of what JSON can hold.
    """

    id: str
    key: str
    namespace: str
    score: float
    relevance: float
    grade: Grade
    content: str | None
    value: Any
    tags: list[str]
    author: str | None
    kind: MemoryKind
    importance: float
    scope: Scope
    version: int
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    unreviewed: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class MemoryMatches(ServiceResult):
    """What a search found.

    Attributes:
        memories: The best, best first.
        total: How many they are.
        query: What was looked for.
        mode: How.
        debug: How the search came to its answer, as the tool `memory_search` tells it; None unless asked for.
    """

    memories: list[MemoryMatch]
    total: int
    query: str | None
    mode: SearchMode
    debug: dict[str, Any] | None


class SearchService:
    """The search of the tool `memory_search`, in Python objects.

    It finds memories in all namespaces that the principal may see. A "no" is a `ServiceError`, which is a
    ``ValueError``. The six older names warn, with a ``DeprecationWarning`` that names the call of today; None
    stands for their older defaults.

    Args:
        runtime: What `open_greenroom` opened, or a `Database`.
        principal: In whose name the service asks.
    """

    def __init__(self, runtime: Askable, principal: Principal) -> None:
        self._runtime = runtime
        self._principal = check_principal(principal)

    async def search_memories(
        self,
        query: str | None = None,
        mode: SearchMode = "semantic",
        time_expr: str | None = None,
        after: str | None = None,
        before: str | None = None,
        tags: list[str] | None = None,
        quality_boost: float | None = None,
        limit: int = 10,
        include_debug: bool = False,  # noqa: FBT001, FBT002 - the signature is an older system's
        *,
        namespace: str | None = None,
        min_relevance: float | Grade | None = None,
        min_score: float | Grade | None = None,
    ) -> MemoryMatches:
        """Find memories.

        Args:
            query: What to look for; may be left out where a time or tags are given.
            mode: ``semantic`` goes by what is meant, ``exact`` finds a text as it stands, ``hybrid`` weighs
                quality as well.
            time_expr: When it was stored, in words: ``last week``.
            after: From this date or time on, UTC.
            before: Before this date or time.
            tags: With any of these labels.
            quality_boost: The part of quality in the score, 0-1; None is 0.3 in mode ``hybrid``, otherwise 0.
            limit: How many at most, 1-100.
            include_debug: Whether to tell how the search came to its answer.
            namespace: Only at or below these whole segments.
            min_relevance: The least relevance, 0-1, or a grade; None is all, or none where nothing can be an
                answer.
            min_score: The least score, 0-1, or a grade.

        Raises:
            ServiceError: an argument breaks a rule, or there is nothing to search by.
        """
        given = {
            "query": query,
            "mode": mode,
            "time_expr": time_expr,
            "after": after,
            "before": before,
            "tags": tags,
            "quality_boost": quality_boost,
            "limit": limit,
            "include_debug": include_debug,
            "namespace": namespace,
            "min_relevance": min_relevance,
            "min_score": min_score,
        }
        try:
            arguments = {name: value for name, value in given.items() if value is not None}
            search = parse_request(MemorySearch, to_json(arguments))
            found = await self._runtime.query(search, principal=self._principal)
        except Refusal as refusal:
            raise ServiceError.of(refusal) from None
        debug = None if found.debug is UNSET else found.debug
        return MemoryMatches(
            memories=[_match(hit) for hit in found.memories],
            total=len(found.memories),
            query=found.query,
            mode=found.mode,
            debug=None if debug is None else msgspec.to_builtins(debug),
        )

    async def retrieve_memory(self, query: str, n_results: int | None = None) -> MemoryMatches:
        """Find 5 memories or ``n_results``: an older name of `search_memories`."""
        return await self._older("retrieve_memory", query=query, n_results=n_results)

    async def recall_memory(
        self, query: str | None = None, time_expr: str | None = None, n_results: int | None = None
    ) -> MemoryMatches:
        """Find 5 memories or ``n_results`` by words, a time or both: an older name of `search_memories`."""
        return await self._older("recall_memory", query=query, time_expr=time_expr, n_results=n_results)

    async def recall_by_timeframe(
        self, start_date: str, end_date: str | None = None, n_results: int | None = None
    ) -> MemoryMatches:
        """Find the newest 5 or ``n_results`` of some days: an older name of `search_memories`."""
        return await self._older(
            "recall_by_timeframe", start_date=start_date, end_date=end_date, n_results=n_results
        )

    async def retrieve_with_quality_boost(
        self, query: str, quality_weight: float | None = None, n_results: int | None = None
    ) -> MemoryMatches:
        """Find memories by relevance and quality: an older name of `search_memories`."""
        return await self._older(
            "retrieve_with_quality_boost", query=query, quality_weight=quality_weight, n_results=n_results
        )

    async def exact_match_retrieve(self, content: str) -> MemoryMatches:
        """Find memories that hold a text: an older name of `search_memories`."""
        return await self._older("exact_match_retrieve", content=content)

    async def debug_retrieve(self, query: str, n_results: int | None = None) -> MemoryMatches:
        """Find memories and tell how they were ranked: an older name of `search_memories`."""
        return await self._older("debug_retrieve", query=query, n_results=n_results)

    async def _older(self, name: str, **given: Any) -> MemoryMatches:
        call = _OLDER[name]
        warnings.warn(call.advice("search_memories"), DeprecationWarning, stacklevel=3)
        try:
            return await self.search_memories(**call.translated(given))
        except ServiceError as error:
            raise call.reworded(error) from None


def _match(hit: MemoryHit) -> MemoryMatch:
    return MemoryMatch(
        id=hit.memory_id,
        key=hit.key,
        namespace=hit.namespace,
        score=hit.score,
        relevance=hit.relevance,
        grade=hit.grade,
        content=None if hit.content is UNSET else hit.content,
        value=None if hit.value is UNSET else from_json(hit.value),
        tags=hit.tags,
        author=hit.author,
        kind=hit.kind,
        importance=hit.importance,
        scope=hit.scope,
        version=hit.version,
        created_at=hit.created_at,
        updated_at=hit.updated_at,
        expires_at=hit.expires_at,
        unreviewed=hit.unreviewed is True,
        metadata={} if hit.metadata is UNSET else from_json(hit.metadata),
    )
