"""The request for a map: ask the actors, and combine their replies into one reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from greenroom.actors.app.map.known import Known, words_of
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import scopes
from greenroom.actors.core.auth.namespaces import below_root, memory_address
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.entity_requests import NameEntities
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.entities import NAMES
from greenroom.actors.memories.recall.scatter_gather import Root, ask_each, roots_to_ask
from greenroom.actors.memories.requests import map_replies as schemas
from greenroom.actors.memories.requests.map_replies import MappedEntity, MappedRoot, MapRoot
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.requests.review import ListMemoryPairs
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.runtime import GreenroomError, Procedure, ProcedureContext

CORPORA: Final = 20
ENTITIES: Final = 300
"""At most this many entities of each corpus are searched."""
SESSIONS: Final = 200
PAGES: Final = 5
"""At most this many pages of sessions are read for their purposes."""
CONFLICTED: Final = 5
"""In at most this many roots, one page of the newest memories is compared with older ones."""
PAIRS: Final = 200
_DRAWING: Final = "greenroom.actors.app.map.drawing"


@operation(
    "memory_map",
    scope="memory:read",
)
class MemoryMap(Procedure[schemas.MemoryMapped], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Draw a map of memories, their entities, and their sessions."""

    namespace: kinds.Below | None = None
    filters: Annotated[MemoryFilters | None, Meta(description="all that are given must fit")] = None
    kind: schemas.MapKind = "graph"
    order: schemas.MapOrder = "used"
    limit: schemas.MapLimit = schemas.MOST_NODES

    async def run(self, context: ProcedureContext) -> schemas.MemoryMapped:
        """Ask the owners of memories, name the linked nodes, and place all nodes."""
        filters = self._filters()
        entities = await _entities(context)
        found = await self._memories(context, filters, [name for each in entities for name in words_of(each)])
        audit_record.record_read(
            context,
            context.principal,
            "map_memories",
            None,
            namespace=self.namespace,
            found=sum(len(each.memories) for each in found.roots),
        )
        if lack := NAMES.lack:
            found.notes.append(lack)
        purposes, conflicts = await _purposes(context), await self._conflicts(context, filters, found)
        known = Known(context.principal, entities, purposes, conflicts, found.notes)
        await run_in_thread(import_module, _DRAWING)  # numpy
        from greenroom.actors.app.map.drawing import drawn  # noqa: PLC0415 - needs numpy, loaded by now

        return await run_in_thread(drawn, self.kind, self.order, found.roots, known)

    def _filters(self) -> MemoryFilters:
        filters = self.filters or MemoryFilters()
        if self.namespace is None:
            return filters
        if filters.namespace is not None:
            raise auth_errors.invalid("filters", "filters: leave out namespace, which is given beside them")
        return msgspec.structs.replace(filters, namespace=below_root(self.namespace))

    async def _memories(
        self, context: ProcedureContext, filters: MemoryFilters, names: list[list[str]]
    ) -> _Found:
        """Return the owners' memories; several owners share the limit."""
        below = self.namespace if filters.namespace is None else filters.namespace
        roots = await roots_to_ask(context, below)
        found = _Found([], [])
        if roots.left_out:
            found.notes.append(f"{roots.left_out} more namespaces have memories: name one to see them")
        limits = {root.name: self.limit for root in roots.ordered}
        if len(roots.ordered) > 1:
            counted = await self._answers(context, roots.ordered, MapRoot(filters=filters, limit=0), found)
            limits = shares({each.root: each.total for each in counted}, self.limit)
        wanted = MapRoot(filters=filters, limit=0, order=self.order, vectors=self.kind != "list", names=names)
        for root in roots.ordered:
            if limits.get(root.name):
                asked = msgspec.structs.replace(wanted, limit=limits[root.name])
                found.roots.extend(await self._answers(context, [root], asked, found))
        return found

    async def _conflicts(
        self, context: ProcedureContext, filters: MemoryFilters, found: _Found
    ) -> list[tuple[str, str]]:
        """Return the newest memories that may contradict older ones; return none for a list."""
        pairs: list[tuple[str, str]] = []
        for root in [each.root for each in found.roots][:CONFLICTED] if self.kind != "list" else []:
            asked = ListMemoryPairs(namespace=filters.namespace or root, kind="conflicts", limit=PAIRS)
            answers = await ask_each(context, [Root(root, memory_address(root))], asked)
            pairs += [
                (pair.newer.memory_id, pair.older.memory_id) for each in answers.found for pair in each.pairs
            ]
        return pairs

    @staticmethod
    async def _answers(
        context: ProcedureContext, roots: Sequence[Root], message: MapRoot, found: _Found
    ) -> list[MappedRoot]:
        """Return the owners' replies, and note failures; if all failed, raise the error."""
        answers = await ask_each(context, roots, message)
        if answers.error is not None and not answers.found:
            raise answers.error
        found.notes.extend(f"{each.namespace} is missing: {each.error}" for each in answers.failed)
        return answers.found


class _Found(NamedTuple):
    """The owners' replies, and notes about missing parts."""

    roots: list[MappedRoot]
    notes: list[str]


def shares(totals: Mapping[str, int], limit: int) -> dict[str, int]:
    """Divide the limit: all memories if they fit, else in proportion, at least one each."""
    whole = sum(totals.values())
    if whole <= limit:
        return dict(totals)
    return {name: max(1, total * limit // whole) if total else 0 for name, total in totals.items()}


async def _entities(context: ProcedureContext) -> list[MappedEntity]:
    may_read = scopes.allows(context.principal.scopes, scopes.needed_for_request("find_entity"))
    if not may_read or not can_match():
        return []
    found: dict[str, MappedEntity] = {}
    for row in (await context.query(VisibleCorpora()))[:CORPORA]:
        with suppress(GreenroomError):  # the corpus fails, or was dropped after it was listed
            named = await context.ask(corpus_address(row), NameEntities(corpus=row.full_name, limit=ENTITIES))
            for entity in named:
                found.setdefault(entity.name.casefold(), entity)
    return list(found.values())


async def _purposes(context: ProcedureContext) -> dict[str, str]:
    """Return the purposes of the most recently active sessions, if the caller may read sessions."""
    found: dict[str, str] = {}
    if not scopes.allows(context.principal.scopes, scopes.needed_for_request("list_sessions")):
        return found
    cursor: str | None = None
    for _ in range(PAGES):
        page = await context.query(ListSessions(limit=SESSIONS, cursor=cursor))
        found |= {session.session_id: session.purpose for session in page.sessions}
        cursor = page.next_cursor
        if cursor is None:
            break
    return found
