"""`retrieve_memory`: what a tool looks up in its user's memory, by words or by key."""

from __future__ import annotations

from typing import Annotated

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.auth.namespaces import below_root, memory_address, root_of, user_namespace
from greenroom.actors.recall import replies
from greenroom.actors.recall.fallback_lookup import PlacesOfKey
from greenroom.actors.recall.scatter_gather import Root
from greenroom.actors.recall.search import SearchResult, SearchSpec, count_uses, find, reply
from greenroom.actors.schemas import memory_types as kinds
from greenroom.actors.schemas import types
from greenroom.actors.schemas.memories import ReadMemory
from greenroom.actors.schemas.memory_replies import FoundMemory, MemoryFilters
from greenroom.runtime import Procedure, ProcedureContext, Refusal

MOST = 100
"""Memories with one key among which those of the caller are looked for."""


class RetrieveFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What narrows a retrieval; `MemorySearch` has more."""

    tags: kinds.Tags | None = None
    kind: kinds.MemoryKind | None = None
    scope: kinds.Scope | None = None
    min_importance: kinds.Fraction | None = None
    max_age_days: kinds.MaxAgeDays | None = None


class RetrieveMemory(Procedure[replies.MemoriesFound], frozen=True, kw_only=True):
    """Find memories of the caller's user by words, those of any namespace by key, or list the newest."""

    query: kinds.SearchWords | None = None
    key: types.MemoryKey | None = None
    namespace: kinds.OwnBelow | None = None
    filters: Annotated[RetrieveFilters | None, Meta(description="what must fit")] = None
    limit: types.Limit100 = 10
    max_tokens: kinds.MaxTokens | None = None
    decompress: Annotated[bool, Meta(description="with contents that are compressed")] = True

    async def run(self, context: ProcedureContext) -> replies.MemoriesFound:
        """Search by relevance alone, list the newest first without words; a key is matched whole."""
        began = trio.current_time()
        search = self._asked(self.namespace or user_namespace(context.principal))
        if self.key is not None:
            outcome = await self._by_key(context, search)
        else:
            outcome = await find(context, search)
        answer = reply(outcome, search, began, max_tokens=self.max_tokens, decompress=self.decompress)
        count_uses(context, outcome, ((each.namespace, each.memory_id) for each in answer.memories))
        return answer

    async def _by_key(self, context: ProcedureContext, search: SearchSpec) -> SearchResult:
        """Return what has the key, with whole contents; of all namespaces one's own come first."""
        assert self.key is not None, "this is asked by key"
        if self.namespace is not None:
            return await _with_contents(context, await find(context, search))
        located = await context.query(PlacesOfKey(key=self.key))
        order = list(dict.fromkeys(root_of(place.namespace) for place in located.places))
        filters = msgspec.structs.replace(search.filters, namespace=None)
        roots = [Root(name, memory_address(name)) for name in order]
        wide = search._replace(below=None, filters=filters, limit=MOST, roots=roots)
        outcome = await find(context, wide)
        hits = outcome.hits
        if self.query is None:
            hits = sorted(hits, key=lambda hit: order.index(root_of(hit.memory.namespace)))
        outcome = outcome._replace(hits=hits[: self.limit], failed=[*located.failed, *outcome.failed])
        return await _with_contents(context, outcome)

    def _asked(self, below: str) -> SearchSpec:
        wanted = self.filters or RetrieveFilters()
        filters = MemoryFilters(
            namespace=below_root(below),
            key=self.key,
            superseded=self.key is not None,  # whoever names one wants that one
            **msgspec.structs.asdict(wanted),
        )
        uses = self.max_tokens is None  # else only what fits the budget is
        return SearchSpec(below, self.query, "semantic", 0.0, filters, self.limit, uses=uses)


async def _with_contents(context: ProcedureContext, outcome: SearchResult) -> SearchResult:
    """Return what was found by its key with contents that are too large for lists."""
    hits = [await _whole(context, each) if each.memory.withheld else each for each in outcome.hits]
    return outcome._replace(hits=hits)


async def _whole(context: ProcedureContext, found: FoundMemory) -> FoundMemory:
    memory = found.memory
    request = ReadMemory(memory_id=memory.memory_id, namespace=memory.namespace)
    try:
        shown = await context.ask(memory_address(root_of(memory.namespace)), request)
    except Refusal:  # gone meanwhile
        return found
    return msgspec.structs.replace(found, memory=shown.memory)
