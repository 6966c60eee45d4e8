"""Explain searches to people: modes, signals, and why a memory is missing.

The searches are the same as in the tools, but count no memory as used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.core.auth.namespaces import is_below, memory_address, root_of, user_namespace
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import memory_types as kinds
from greenroom.actors.core.replies.results_explained import signal_parts
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.memories.preferences.requests import SearchDefaults
from greenroom.actors.memories.recall import replies as schemas
from greenroom.actors.memories.recall.query import load_time_words
from greenroom.actors.memories.recall.recall_context import RecallContext
from greenroom.actors.memories.recall.scatter_gather import Root, relevance_among, sum_counts
from greenroom.actors.memories.recall.search_all_roots import (
    MILLISECONDS,
    SearchResult,
    SearchSpec,
    chance_of,
    find,
    is_weak,
)
from greenroom.actors.memories.recall.search_requests import (
    MemorySearch,
    NarrowedSearch,
    RetrieveFilters,
    RetrieveMemory,
)
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters, TermRead
from greenroom.actors.memories.requests.requests import LookUpMemories
from greenroom.actors.memories.storage.directory import RootOfMemory
from greenroom.runtime import Procedure, ProcedureContext, Refusal

PLACES: Final = 100
"""In each mode, the places of at most this many hits are known."""
_BEGINNING: Final = 300
_QUALITY: Final = "quality."
_ELSEWHERE: Final = "it is below another namespace"
_FILTERS: Final[Mapping[str, tuple[str, ...]]] = {
    _ELSEWHERE: ("namespace",),
    "it was made at another time": ("after", "before"),
    "it has other tags": ("tags", "tag_match"),
    "it is of another kind": ("kind",),
    "it has another scope": ("scope",),
    "it is by another author": ("author",),
    "it is of another conversation": ("conversation_id",),
    "no one has reviewed it": ("unreviewed",),
}
"""Reasons why a memory does not pass the filters, each with the filters concerned."""


class _Explained(NamedTuple):
    """A mode with its search and results."""

    search: SearchSpec
    outcome: SearchResult
    view: schemas.ModeExplained


@operation(
    "explain_search",
    scope="memory:read",
)
class ExplainSearch(
    NarrowedSearch, Procedure[schemas.SearchExplained], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Explain what searches of memories find in every mode, and why one memory is missing."""

    query: kinds.SearchWords
    limit: types.Limit100 = 10
    memory_id: Annotated[kinds.MemoryId, Meta(description="say why this one is found or not, too")] | None = (
        None
    )

    async def run(self, context: ProcedureContext) -> schemas.SearchExplained:
        """Search in one mode after the other."""
        if self.time_expr is not None:
            await load_time_words()
        searches = self._searches(context)
        done: dict[schemas.ExplainedMode, _Explained] = {}
        modes: list[schemas.ModeExplained] = []
        for mode, to_spec in searches.items():
            try:
                done[mode] = await self._explain(context, mode, to_spec())
                modes.append(done[mode].view)
            except Refusal as refusal:
                modes.append(schemas.ModeExplained(mode=mode, error=str(refusal)))
        if not done:
            await find(context, searches["semantic"]())  # raises the error
        window = self._as("semantic").window(context.now)
        query = next(each.outcome.query for each in done.values())
        memory = [] if self.memory_id is None else await self._about(context, self.memory_id, done)
        hits = [hit for each in modes for hit in each.hits]
        hits += [each.hit for each in memory if each.hit is not None]
        return schemas.SearchExplained(
            query=self.query,
            text=query.text or "",
            times=[
                schemas.TimeRead(after=optional_datetime(each.after), before=optional_datetime(each.before))
                for each in query.times
            ],
            terms=_terms(each.outcome for each in done.values()),
            window=None if window is None else schemas.TimeRead(after=window.after, before=window.before),
            modes=modes,
            memory=memory,
            meanings=_meanings(hits),
        )

    def _searches(
        self, context: ProcedureContext
    ) -> Mapping[schemas.ExplainedMode, Callable[[], SearchSpec]]:
        """Map each mode to a function that makes its search specification."""
        task = RecallContext(task=self.query, namespace=self.namespace, tags=self.tags, kind=self.kind)
        narrowed = RetrieveFilters(tags=self.tags, kind=self.kind)
        below = self.namespace or user_namespace(context.principal)
        retrieval = RetrieveMemory(query=self.query, filters=narrowed)
        return {
            "semantic": lambda: self._spec("semantic", context.now),
            "hybrid": lambda: self._spec("hybrid", context.now),
            "exact": lambda: self._spec("exact", context.now),
            "recall": task.to_spec,
            "retrieve": lambda: retrieval.to_spec(below, SearchDefaults()),
        }

    def _as(self, mode: kinds.SearchMode) -> MemorySearch:
        given = {name: getattr(self, name) for name in NarrowedSearch.__struct_fields__}
        return MemorySearch(mode=mode, **given)

    def _spec(self, mode: kinds.SearchMode, now: int) -> SearchSpec:
        search = self._as(mode)
        return search.to_spec(search.window(now))

    async def _explain(
        self, context: ProcedureContext, mode: schemas.ExplainedMode, spec: SearchSpec
    ) -> _Explained:
        search = spec._replace(debug=True, uses=False, limit=PLACES)
        began = trio.current_time()
        outcome = await find(context, search)
        ended = trio.current_time()
        view = schemas.ModeExplained(
            mode=mode,
            hits=[_hit(each) for each in outcome.hits[: self.limit]],
            places={hit.memory.memory_id: place for place, hit in enumerate(outcome.hits, 1)},
            total=outcome.total,
            counts=sum_counts([each for each in outcome.found if each.counts.get("visible")]),
            namespaces=outcome.namespaces,
            milliseconds=round((ended - began) * MILLISECONDS, 3),
            timings=outcome.timings,
            model=outcome.space or "words",
            without_vectors=outcome.absence,
            boost=search.boost,
            least=search.min_relevance,
            nothing_relevant=outcome.is_nothing,
            weak=is_weak(spec, outcome.hits[: spec.limit]),
            partial=outcome.partial,
            failed=[f"{each.namespace}: {each.error}" for each in outcome.failed],
        )
        return _Explained(search, outcome, view)

    # -- one memory ------------------------------------------------------------------------------

    async def _about(
        self,
        context: ProcedureContext,
        memory_id: str,
        done: Mapping[schemas.ExplainedMode, _Explained],
    ) -> list[schemas.WhyNotFound]:
        """Return the place of one memory in each mode, or why it is missing."""
        root = await context.query(RootOfMemory(memory_id=memory_id))
        looked = None
        if root is not None:
            looked = await context.ask(memory_address(root), LookUpMemories(memory_ids=[memory_id]))
        known = None if looked is None else looked.known.get(memory_id)
        if root is None or known is None:
            why = "there is no such memory, or you may not see it"
            return [schemas.WhyNotFound(mode=mode, place=None, reasons=[why], hit=None) for mode in done]
        one = _One(context, memory_id, MemoryFilters(key=known.key, superseded=True), root)
        return [await one.why(mode, explained) for mode, explained in done.items()]


class _One(NamedTuple):
    """The memory to explain.

    ``alone`` are filters that only memories with its key pass.
    """

    context: ProcedureContext
    memory_id: str
    alone: MemoryFilters
    root: str

    async def why(self, mode: schemas.ExplainedMode, explained: _Explained) -> schemas.WhyNotFound:
        """Return the memory's place in a mode, or why it is missing."""
        search, outcome, view = explained
        place = view.places.get(self.memory_id)
        hit = await self._find(search._replace(filters=self.alone))
        reasons: list[str] = []
        if place is None:
            reasons = await self._find_filters(search)
            if not reasons:
                reasons.append(_why_too_weak(hit, search, outcome))
        return schemas.WhyNotFound(
            mode=mode,
            place=place,
            reasons=reasons,
            hit=None if hit is None else _hit(_among(hit, outcome)),
        )

    async def _find_filters(self, search: SearchSpec) -> list[str]:
        """Describe the filters that the memory does not pass."""
        reasons: list[str] = []
        if search.below is not None and not is_below(self.root, root_of(search.below)):
            reasons.append(_ELSEWHERE)
        for why, names in _FILTERS.items():
            given = {name: getattr(search.filters, name) for name in names}
            if any(value is not None for name, value in given.items() if name != "tag_match"):
                narrowed = msgspec.structs.replace(self.alone, **given)
                if not await self._passes(search, narrowed):
                    reasons.append(why)
        current = msgspec.structs.replace(self.alone, superseded=search.filters.superseded)
        if not await self._passes(search, current):
            reasons.append("another memory takes its place")
        return list(dict.fromkeys(reasons))

    async def _passes(self, search: SearchSpec, filters: MemoryFilters) -> bool:
        return await self._find(search._replace(query=None, mode="semantic", filters=filters)) is not None

    async def _find(self, search: SearchSpec) -> FoundMemory | None:
        roots = [Root(self.root, memory_address(self.root))]
        alone = search._replace(
            below=None,
            roots=roots,
            min_relevance=0.0,
            min_score=0.0,
            least_share=0.0,
            limit=PLACES,
        )
        outcome = await find(self.context, alone)
        return next((each for each in outcome.hits if each.memory.memory_id == self.memory_id), None)


def _why_too_weak(hit: FoundMemory | None, search: SearchSpec, outcome: SearchResult) -> str:
    """Return why a memory that passes every filter is not among the best."""
    if hit is None:
        return "it has nothing of the query" if search.mode != "exact" else "it does not hold this text"
    if outcome.is_nothing:
        return "nothing that was found is relevant enough to be shown, it neither"
    relevance = _among(hit, outcome).relevance
    least = search.min_relevance
    if least is not None and relevance < least:
        return f"its relevance is {relevance:.4f}, and {least:.4f} is wanted at least"
    best = max(map(chance_of, outcome.hits), default=0.0)
    if outcome.weak and chance_of(hit) < search.least_share * best:
        return f"it is weak beside the best: a chance of {chance_of(hit):.4f}, and theirs is {best:.4f}"
    return f"{min(len(outcome.hits), PLACES)} others are better"


def _among(hit: FoundMemory, outcome: SearchResult) -> FoundMemory:
    """Return a hit with its relevance among the results."""
    if hit.odds is None:
        return hit
    together = sum(each.rivals for each in outcome.found)
    return msgspec.structs.replace(hit, relevance=relevance_among(hit.odds, together))


def _hit(found: FoundMemory) -> schemas.HitExplained:
    memory = found.memory
    components = found.components or {}
    parts = {name: part for name, part in components.items() if not name.startswith(_QUALITY)}
    return schemas.HitExplained(
        memory_id=memory.memory_id,
        key=memory.key,
        namespace=memory.namespace,
        version=memory.version,
        text=memory.text[:_BEGINNING],
        author=memory.author,
        created_at=memory.created_at,
        tags=memory.tags,
        score=round(found.match, 4),
        relevance=round(found.relevance, 4),
        chance=None if found.odds is None else round(chance_of(found), 4),
        quality=None if found.quality is None else round(found.quality, 4),
        weighed_as=found.weighed_as,
        signals=signal_parts(parts, _weights(found)),
        quality_parts={
            name.removeprefix(_QUALITY): part
            for name, part in components.items()
            if name.startswith(_QUALITY)
        },
    )


def _weights(found: FoundMemory) -> Mapping[str, float]:
    """Return the weights that ranked a memory; none if it was not ranked."""
    if found.weighed_as is None:
        return {}
    from greenroom.actors.search.ranking.weights import KINDS, VECTOR_SETS, weights  # noqa: PLC0415 - needs numpy, loaded by now

    kind, vectors = found.weighed_as
    return weights(KINDS[KINDS.index(kind)], VECTOR_SETS[VECTOR_SETS.index(vectors)])


def _meanings(hits: Sequence[schemas.HitExplained]) -> dict[str, str]:
    """Return the purpose of each signal in some hits."""
    names = {part.name for hit in hits for part in hit.signals}
    if not names:  # nothing was ranked, so numpy may not be loaded
        return {}
    from greenroom.actors.search.ranking.weights import SIGNALS  # noqa: PLC0415 - as above

    return {name: why for name, why in SIGNALS.items() if name in names}


def _terms(outcomes: Iterable[SearchResult]) -> list[TermRead]:
    """Return how the query's words were understood, by the first mode that has terms."""
    for outcome in outcomes:
        read: dict[str, TermRead] = {}
        for found in outcome.found:
            for term in found.terms:
                known = read.get(term.term, term)
                if known is not term:
                    known = msgspec.structs.replace(
                        known,
                        meant=list(dict.fromkeys([*known.meant, *term.meant])),
                        memories=known.memories + term.memories,
                        is_name=known.is_name or term.is_name,
                    )
                read[term.term] = known
        if read:
            return list(read.values())
    return []
