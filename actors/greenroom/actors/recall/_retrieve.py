"""`retrieve_memory`: what a tool looks up in its user's memory, by words or by key."""

from __future__ import annotations

from typing import Annotated

import msgspec
import trio
from msgspec import Meta

from greenroom.actors import _refusals
from greenroom.actors._namespaces import below_root, memory_address, root_of, user_namespace
from greenroom.actors.recall import _replies as replies
from greenroom.actors.recall import _types
from greenroom.actors.recall._finding import Asked, Outcome, find, note_uses, reply
from greenroom.actors.requests import _memory_types as kinds
from greenroom.actors.requests import _types as types
from greenroom.actors.requests._memories import ReadMemory
from greenroom.actors.requests._memory_replies import FoundMemory, MemoryFilters
from greenroom.runtime import Desk, Procedure, Refusal


class RetrieveFilters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What narrows a retrieval; `MemorySearch` has more."""

    tags: kinds.Tags | None = None
    kind: kinds.MemoryKind | None = None
    scope: kinds.Scope | None = None
    min_importance: kinds.Fraction | None = None
    max_age_days: kinds.MaxAgeDays | None = None


class RetrieveMemory(Procedure[replies.MemoriesFound], frozen=True, kw_only=True):
    """Find memories of the caller's user by words, or read one by its key."""

    query: kinds.SearchWords | None = None
    key: types.MemoryKey | None = None
    namespace: _types.OwnBelow | None = None
    filters: Annotated[RetrieveFilters | None, Meta(description="what must fit")] = None
    limit: types.Limit100 = 10
    max_tokens: kinds.MaxTokens | None = None
    decompress: Annotated[bool, Meta(description="with contents that are compressed")] = True

    async def run(self, desk: Desk) -> replies.MemoriesFound:
        """Search by relevance alone; a key is matched whole.

        Raises:
            Refusal: neither a query nor a key is given.
        """
        began = trio.current_time()
        if self.query is None and self.key is None:
            raise _refusals.invalid("query", "query: either query or key is required")
        search = self._asked(self.namespace or user_namespace(desk.principal))
        outcome = await find(desk, search)
        if self.key is not None:
            outcome = await _with_contents(desk, outcome)
        answer = reply(outcome, search, began, max_tokens=self.max_tokens, decompress=self.decompress)
        note_uses(desk, outcome, ((each.namespace, each.memory_id) for each in answer.memories))
        return answer

    def _asked(self, below: str) -> Asked:
        wanted = self.filters or RetrieveFilters()
        filters = MemoryFilters(
            namespace=below_root(below),
            key=self.key,
            superseded=self.key is not None,  # whoever names one wants that one
            **msgspec.structs.asdict(wanted),
        )
        uses = self.max_tokens is None  # else only what fits the budget is
        return Asked(below, self.query, "semantic", 0.0, filters, self.limit, uses=uses)


async def _with_contents(desk: Desk, outcome: Outcome) -> Outcome:
    """Return what was found by its key with contents that are too large for lists."""
    hits = [await _whole(desk, each) if each.memory.withheld else each for each in outcome.hits]
    return outcome._replace(hits=hits)


async def _whole(desk: Desk, found: FoundMemory) -> FoundMemory:
    memory = found.memory
    request = ReadMemory(memory_id=memory.memory_id, namespace=memory.namespace)
    try:
        shown = await desk.ask(memory_address(root_of(memory.namespace)), request)
    except Refusal:  # gone meanwhile
        return found
    return msgspec.structs.replace(found, memory=shown.memory)
