"""The search over memories for an embedding program, and its six older names."""

from __future__ import annotations

import warnings
from dataclasses import field
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.app.services.base import (
    Askable,
    ServiceError,
    ServiceResult,
    from_json,
    service_errors,
    to_json,
)
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.replies.grades import Grade
from greenroom.actors.core.replies.memory_types import MemoryKind, Scope, SearchMode
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.memories.recall.older_calls import OLDER_SEARCHES
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.actors.memories.recall.search_requests import MemorySearch

_OLDER: Final = {call.name: call for call in OLDER_SEARCHES}


class MemoryMatch(ServiceResult):
    """A found memory.

    Attributes:
        score: How well it matches, 0-1, independent of other results.
        relevance: Calibrated: of memories with 0.3, three in ten were right.
        grade: The grade of its relevance.
        content: Its text; None if it has a ``value``, or is too large for a list.
        value: Its value; None if it has a ``content``, or is too large for a list.
        importance: 0-1.
        version: Counts from 1.
        expires_at: When it expires; None for never.
        unreviewed: Whether a rule extracted it and it was not reviewed yet.
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
    """The result of a search.

    Attributes:
        memories: The best matches, best first.
        debug: How the search ran, as the tool `memory_search` reports it; None unless requested.
    """

    memories: list[MemoryMatch]
    total: int
    query: str | None
    mode: SearchMode
    debug: dict[str, Any] | None


class SearchService:
    """The search of the tool `memory_search`, as Python objects.

    It finds memories in all namespaces that the principal may see. A refusal is a `ServiceError`, which is a
    ``ValueError``. Six older names issue a ``DeprecationWarning`` that names the current call.

    Args:
        runtime: The runtime of `open_greenroom`, or a `Database`.
        principal: The identity of the service.
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
        include_debug: bool = False,  # noqa: FBT001, FBT002 - an older system has this signature
        *,
        namespace: str | None = None,
        min_relevance: float | Grade | None = None,
        min_score: float | Grade | None = None,
    ) -> MemoryMatches:
        """Find memories.

        Args:
            query: The query; optional with a time or tags.
            mode: ``semantic`` by meaning, ``exact`` for a literal text, ``hybrid`` also weighs quality.
            time_expr: When a memory was stored, in words such as ``last week``.
            after: Only memories stored at or after this date or time, UTC.
            before: Only memories stored before this date or time.
            tags: Only memories with any of these labels.
            quality_boost: The weight of quality in the score, 0-1; by default 0.3 in mode ``hybrid``, else 0.
            limit: The most results, 1-100.
            include_debug: Whether to report how the search ran.
            namespace: Only memories at or below this namespace; its segments are whole.
            min_relevance: The least relevance, 0-1, or a grade; by default none, but no results if no memory
                can be an answer.
            min_score: The least score, 0-1, or a grade.

        Raises:
            ServiceError: An argument breaks a rule, or there is no query, time or tag.
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
        with service_errors():
            arguments = {name: value for name, value in given.items() if value is not None}
            search = parse_request(MemorySearch, to_json(arguments))
            found = await self._runtime.query(search, principal=self._principal)
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
        """Find 5 memories or ``n_results`` by words, a time or both: an older name."""
        return await self._older("recall_memory", query=query, time_expr=time_expr, n_results=n_results)

    async def recall_by_timeframe(
        self, start_date: str, end_date: str | None = None, n_results: int | None = None
    ) -> MemoryMatches:
        """Find the newest 5 or ``n_results`` memories of some days: an older name of `search_memories`."""
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
        """Find memories that contain a text: an older name of `search_memories`."""
        return await self._older("exact_match_retrieve", content=content)

    async def debug_retrieve(self, query: str, n_results: int | None = None) -> MemoryMatches:
        """Find memories and report their ranking: an older name of `search_memories`."""
        return await self._older("debug_retrieve", query=query, n_results=n_results)

    async def _older(self, name: str, **given: Any) -> MemoryMatches:
        call = _OLDER[name]
        warnings.warn(call.advice("search_memories"), DeprecationWarning, stacklevel=3)
        try:
            return await self.search_memories(**call.translate(given))
        except ServiceError as error:
            raise call.reword(error) from None


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
