"""LangGraph's store, whose items are memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from greenroom.actors import (
    Database,
    ListMemories,
    Memory,
    MemoryChange,
    MemoryLease,
    MemoryMatch,
    MemoryService,
    Principal,
    SearchService,
    ServiceError,
    parse_request,
    user_namespace,
)
from greenroom.adapters.base.blocking import blocking
from greenroom.adapters.base.extras import needs
from greenroom.adapters.langgraph.filters import fits, matches
from greenroom.adapters.langgraph.places import MOST_SEGMENTS, Namespace, Places
from greenroom.runtime import Refusal

with needs("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        validate_op_namespace,
    )


MOST_RANKED = 100
"""A search with a query ranks at most this many memories."""
_MOST_MINUTES = 100 * 365 * 24 * 60
_OURS = "langgraph"
"""The name of the store's member in a memory's metadata, and of the segment above its items."""


class _Found(NamedTuple):
    """An item that a read or a search found."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ours: Mapping[str, Any]  # the store's member of the memory's metadata
    score: float | None = None


class GreenroomStore(BaseStore):
    """LangGraph's long-term memory, with memories of Greenroom as items.

    An item's value is a memory's value, and its namespace is below ``root``. So MCP clients of the same user
    or agent, exports and erasures include the items, and memories that others store there are items, too.

    A batch first reads, then writes up to 1,000 items in one commit; of several writes of a key the last
    counts. A search without a query returns the last updated items first. One with a query takes the 100
    nearest memories and returns those that match, best first, with scores 0 to 1. ``index=False`` excludes an
    item from these; a list of fields is ignored. An item with a TTL expires; reads extend it unless
    ``refresh_ttl`` is false. The blocking methods are for threads without an event loop.

    Args:
        database: An open database.
        principal: The caller.
        root: The namespace above the items, of 2 to 7 segments; by default ``langgraph`` below the
            principal's namespace.
        ttl: ``default_ttl`` in minutes, and ``refresh_on_read``. No sweeping is needed.

    Raises:
        ServiceError: the root is no namespace of 2 to 7 segments.
    """

    supports_ttl = True

    def __init__(
        self,
        database: Database,
        principal: Principal,
        *,
        root: str | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._database = database
        self._principal = principal
        self._memory = MemoryService(database, principal)
        self._search = SearchService(database, principal)
        self._places = Places(_check_root(f"{user_namespace(principal)}:{_OURS}" if root is None else root))
        self.ttl_config = ttl

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first all reads, in order, then all writes in one commit.

        Raises:
            InvalidNamespaceError: a label is no text, is empty, or has a period.
            ServiceError: a value has no JSON form or is over 1 MB, the principal may not write it, or another
                argument breaks a rule of memories. Nothing was written.
            ValueError: an operator or condition is unknown, or a name has a lone surrogate.
        """
        results: list[Result] = []
        changes: dict[tuple[Namespace, str], MemoryChange] = {}
        leases: dict[tuple[Namespace, str], MemoryLease] = {}
        for op in list(ops):
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                changes[op.namespace, op.key] = self._change(op)
                results.append(None)
            else:
                results.append(await self._read(op, leases))
        if leases:
            await self._memory.prolong_memories(list(leases.values()))
        if changes:
            await self._memory.change_memories(list(changes.values()))
        return results

    batch = blocking(abatch)

    # -- writing -----------------------------------------------------------

    def _change(self, op: PutOp) -> MemoryChange:
        place = self._places.of(op.namespace, op.key)
        if op.value is None:
            return MemoryChange(namespace=place.namespace, key=place.key, value=None)
        if op.ttl is not None and not 0 < op.ttl <= _MOST_MINUTES:
            raise ValueError(f"ttl: it takes minutes above 0, up to 100 years, and got {op.ttl!r}")
        ours = dict(place.rest)
        if op.ttl is not None:
            ours["ttl"] = op.ttl
        if op.index is False:
            ours["index"] = False
        return MemoryChange(
            namespace=place.namespace,
            key=place.key,
            value=dict(op.value),
            metadata={_OURS: ours} if ours else None,
            expires_in=None if op.ttl is None else op.ttl * 60,
        )

    # -- reading -----------------------------------------------------------

    async def _read(self, op: Op, leases: dict[tuple[Namespace, str], MemoryLease]) -> Result:
        """Return the result of a read; add the items to extend to ``leases``."""
        if isinstance(op, ListNamespacesOp):
            return await self._namespaces(op)
        if isinstance(op, GetOp):
            place = self._places.of(op.namespace, op.key)
            memory = await self._memory.get_memory(place.namespace, place.key)
            found = None if memory is None else self._to_item(memory)
            if found is None:
                return None
            self._prolong([found], leases, wanted=op.refresh_ttl)
            return Item(
                value=found.value,
                key=found.key,
                namespace=found.namespace,
                created_at=found.created_at,
                updated_at=found.updated_at,
            )
        if not isinstance(op, SearchOp):
            raise ValueError(f"Unknown operation type: {type(op)}")  # noqa: TRY004 - the type that LangGraph raises
        several = await (
            self._search_ranked(op, op.query) if op.query and op.query.strip() else self._list_newest(op)
        )
        self._prolong(several, leases, wanted=op.refresh_ttl)
        return [
            SearchItem(each.namespace, each.key, each.value, each.created_at, each.updated_at, each.score)
            for each in several
        ]

    def _prolong(
        self, found: list[_Found], leases: dict[tuple[Namespace, str], MemoryLease], *, wanted: bool
    ) -> None:
        for each in found:
            minutes = each.ours.get("ttl")
            if wanted and isinstance(minutes, int | float):
                place = self._places.of(each.namespace, each.key)
                leases[each.namespace, each.key] = MemoryLease(
                    namespace=place.namespace, key=place.key, expires_in=minutes * 60
                )

    async def _list_newest(self, op: SearchOp) -> list[_Found]:
        """Return the matches of a search without a query, newest update first."""
        below = self._places.above(op.namespace_prefix)
        end = op.offset + op.limit
        found: list[_Found] = []
        cursor: str | None = None
        while len(found) < end:
            limit = 200 if op.filter else min(200, end - len(found))
            page = await self._memory.page_memories(below, limit, cursor)
            found += self._filter(op, page.memories)
            cursor = page.next_cursor
            if cursor is None:
                break
        return found[op.offset : end]

    async def _search_ranked(self, op: SearchOp, query: str) -> list[_Found]:
        """Return the matches of a search with a query, best first."""
        end = op.offset + op.limit
        below = self._places.above(op.namespace_prefix)
        for most in (min(end, MOST_RANKED), MOST_RANKED):
            if most < 1:
                return []
            hits = await self._search.search_memories(query, limit=most, namespace=below, min_relevance=0.0)
            whole = [each for hit in hits.memories if (each := await self._whole(hit)) is not None]
            found = [each for each in self._filter(op, whole) if each.ours.get("index") is not False]
            if len(found) >= end or hits.total < most:
                break
        return found[op.offset : end]

    async def _whole(self, hit: MemoryMatch) -> MemoryMatch | Memory | None:
        """Return a memory with its value; a search leaves out a large value."""
        if hit.value is None and hit.content is None:
            return await self._memory.get_memory(hit.namespace, hit.key)
        return hit

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found: set[Namespace] = set()
        for written in await self._memory.list_namespaces(self._places.root):
            namespace = self._places.namespace(written)
            if namespace is None:
                namespace = await self._read_namespace(written)
            if namespace is not None and all(matches(namespace, each) for each in op.match_conditions or ()):
                found.add(namespace[: op.max_depth])
        return sorted(found)[op.offset : op.offset + op.limit]

    async def _read_namespace(self, written: str) -> Namespace | None:
        """Return a namespace that is too long for its segments, from an item's metadata."""
        cursor: str | None = None
        while True:
            page = await self._memory.page_memories(written, cursor=cursor)
            for memory in page.memories:
                found = self._to_item(memory)
                if found is not None and memory.namespace == written:
                    return found.namespace
            cursor = page.next_cursor
            if cursor is None:
                return None

    def _filter(self, op: SearchOp, memories: Iterable[Memory | MemoryMatch]) -> list[_Found]:
        """Return the items among memories that match a search."""
        prefix = op.namespace_prefix
        return [
            found
            for memory in memories
            if (found := self._to_item(memory)) is not None
            and found.namespace[: len(prefix)] == prefix
            and fits(found.value, op.filter)
        ]

    def _to_item(self, memory: Memory | MemoryMatch) -> _Found | None:
        """Return a memory as an item; None if no item can have its name."""
        given = memory.metadata.get(_OURS)
        ours = given if isinstance(given, dict) else {}
        place = self._places.item(memory.namespace, memory.key, ours)
        if place is None:
            return None
        value, score = memory.value, None
        if isinstance(memory, MemoryMatch):
            score = memory.score
            value = value if memory.content is None else {"content": memory.content}
        return _Found(
            namespace=place[0],
            key=place[1],
            value=value if isinstance(value, dict) else {"value": value},
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            ours=ours,
            score=score,
        )


def _check_root(root: str) -> str:
    """Check the root of a store's items, and return it."""
    try:
        parse_request(ListMemories, msgspec.json.encode({"namespace": root}))
    except Refusal as refusal:
        raise ServiceError(refusal.code, f"root: {refusal.sentence}", **refusal.details) from None
    if root.count(":") + 1 >= MOST_SEGMENTS:
        sentence = f"root: {root!r} has {MOST_SEGMENTS} segments, which leaves none for the items"
        raise ServiceError("VALIDATION_ERROR", sentence, field="root")
    return root
