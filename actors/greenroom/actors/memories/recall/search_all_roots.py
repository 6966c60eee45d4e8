"""The search over namespaces: choose the roots, ask their actors in parallel, merge the hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import Damaged, merge_damage
from greenroom.actors.core.replies.grades import WEAK
from greenroom.actors.core.replies.memory_types import SearchMode
from greenroom.actors.memories.recall import replies
from greenroom.actors.memories.recall.query import (
    QueryEmbedding,
    QueryMeaning,
    QueryTimes,
    knows_english_alone,
    meaning_of,
    times_of,
    vectors_of,
)
from greenroom.actors.memories.recall.scatter_gather import (
    Gathered,
    Root,
    Roots,
    merge_hits,
    roots_to_ask,
    search_roots,
    sum_counts,
)
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories, NoteUses
from greenroom.runtime import ActorQuarantinedError, Address, OverloadedError, ProcedureContext

MILLISECONDS = 1_000.0
FEW = 60
"""If at most this many memories are visible, a search with ``least_share`` leaves out weak hits."""
MOST_FAILED = 100
"""A reply names at most this many failed namespaces."""
_NAMED = 5
"""The sentence of a reply gives the reasons for at most this many failed namespaces."""
ALWAYS = 5
"""This many first hits are never too weak, since one of them may be the answer."""


class SearchSpec(NamedTuple):
    """The specification of one search.

    Attributes:
        below: The leading segments of the namespaces to search; None for all visible ones.
        query: The text of the query; None if filters alone decide, or the embedding.
        boost: The part of quality in the score.
        debug: Whether the hits have their signals.
        uses: Whether each hit counts as used, whatever happens to it later.
        min_relevance: The least relevance; None to empty the list if nothing in it is relevant.
        roots: The roots to search, if they are known.
        embedding: A vector to search by in place of a query.
        zone: The time zone of the times in the query; None for the machine's.
        dated: Whether times in the query rank memories by time; otherwise they are ordinary words.
        reasons: How many of the first hits have their signals without ``debug``.
        least_share: The part of the best hit's probability that hits after the first `ALWAYS` must have, if
            at most `FEW` memories are visible; 0 for no such cut.
        unasked_for: As in `FindMemories`.
        foreign: Whether the query is not English; then embedders that know English alone do not count.
    """

    below: str | None
    query: str | None
    mode: SearchMode
    boost: float
    filters: MemoryFilters
    limit: int
    debug: bool = False
    uses: bool = False
    decompress: bool = True
    min_relevance: float | None = 0.0
    min_score: float = 0.0
    roots: list[Root] | None = None
    embedding: QueryEmbedding | None = None
    zone: str | None = None
    dated: bool = True
    reasons: int = 0
    least_share: float = 0.0
    unasked_for: Sequence[str] | None = None
    foreign: bool = False


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
        hits: The best memories, best first.
        weak: How many others ``least_share`` left out.
        is_nothing: Whether none of the searched memories is relevant.
        total: How many memories match; with ``is_minimum``, at least.
        found: The reply of each actor.
        namespaces: How many namespace roots were searched.
        space: The space of the query's vectors; None for none.
        absence: Why the query had no vectors, if some were wanted.
        partial: Why memories may be missing that a later search would find; None if none are.
        counted: Whether the hits are already counted as used.
        timings: Milliseconds by stage.
    """

    hits: list[FoundMemory]
    weak: int
    is_nothing: bool
    total: int
    is_minimum: bool
    found: list[RootSearchResult]
    failed: list[replies.FailedNamespace]
    namespaces: int
    space: str | None
    absence: str | None
    partial: str | None
    counted: bool
    timings: dict[str, float]
    query: QueryTimes
    damaged: Damaged | UnsetType = UNSET


async def find(context: ProcedureContext, search: SearchSpec) -> SearchResult:
    """Search the visible namespaces; report the namespaces that fail.

    Raises:
        GreenroomError: No actor replied; this is the error of the first actor.
        Refusal: ``VALIDATION_ERROR``: The vector cannot be compared with the vectors of the memories.
    """
    clock = _Stopwatch()
    query = await _times_of(context, search)
    meaning = await _meaning_of(context, search, query.text)
    clock.lap("query_vectors")
    roots = await roots_to_ask(context, search.below) if search.roots is None else Roots(search.roots)
    clock.lap("namespaces")
    counted = len(roots.ordered) == 1 and search.uses
    message = FindMemories(
        text=query.text,
        vectors=meaning.vectors,
        times=query.times,
        mode=search.mode,
        quality_boost=search.boost,
        min_relevance=search.min_relevance,
        min_score=search.min_score,
        filters=search.filters,
        limit=search.limit,
        use=counted,
        debug=search.debug,
        reasons=search.reasons,
        decompress=search.decompress,
        unasked_for=None if search.unasked_for is None else list(search.unasked_for),
    )
    answers = await search_roots(context, roots.ordered, message)
    clock.lap("owners")
    if answers.error is not None and not answers.found:
        raise answers.error
    hits, weak = _relevant(search, answers.found)
    lost = merge_damage(each.damaged for each in answers.found)
    missing = (
        _not_searched(answers),
        _not_compared(search, meaning, answers.found),
        roots.partial,
        None if lost is UNSET else lost.sentence,
    )
    clock.lap("merge")
    audit_record.record_read(
        context,
        context.principal,
        "search_memories",
        None,
        namespace=search.below,
        mode=search.mode,
        query_characters=len(search.query or ""),
        found=len(hits),
    )
    return SearchResult(
        hits=hits,
        weak=weak,
        is_nothing=not hits and _is_ranked(search) and any(map(_had_any, answers.found)),
        total=sum(each.total for each in answers.found),
        found=answers.found,
        failed=answers.failed[:MOST_FAILED],
        namespaces=len(roots.ordered),
        is_minimum=roots.left_out > 0 or any(each.is_minimum for each in answers.found),
        space=None if meaning.comparable is None else meaning.comparable.space,
        absence=meaning.absence,
        partial="; ".join(filter(None, missing)) or None,
        counted=counted,
        timings=clock.laps,
        query=query,
        damaged=lost,
    )


async def _times_of(context: ProcedureContext, search: SearchSpec) -> QueryTimes:
    if search.query is None or search.mode == "exact" or not search.dated:
        return QueryTimes(search.query)
    return await times_of(search.query, context.now, search.zone)


async def _meaning_of(context: ProcedureContext, search: SearchSpec, text: str | None) -> QueryMeaning:
    if search.embedding is not None:
        return QueryMeaning(await vectors_of(search.embedding, context.sidecar))
    if text is None or search.mode == "exact" or context.sidecar is None:
        return QueryMeaning()
    meaning = await meaning_of(text, context.sidecar)
    is_noise = search.foreign and meaning.vectors is not None and knows_english_alone(meaning.vectors)
    return QueryMeaning() if is_noise else meaning


def _not_searched(answers: Gathered[RootSearchResult]) -> str | None:
    """Describe what was not searched, because time was short or a namespace failed."""
    newest = sum(each.unread or 0 for each in answers.found)
    reasons = [f"{each.namespace} was not searched: {each.error}" for each in answers.failed[:_NAMED]]
    if len(answers.failed) > MOST_FAILED:
        reasons.append(f"{len(answers.failed):,} namespaces were not searched; name a namespace")
    if any(each.unread is not None for each in answers.found):
        reasons.append(f"the newest {newest:,} memories alone were searched, by their words; ask again")
    reasons += {each.cut: None for each in answers.found if each.cut}
    return "; ".join(reasons) or None


def _not_compared(search: SearchSpec, meaning: QueryMeaning, found: list[RootSearchResult]) -> str | None:
    """Return why memories were not compared by meaning, if a later search would compare them."""
    if meaning.may_come:
        return f"memories were found by their words alone, for {meaning.absence}"
    without_vectors = (each.model == "words" and _had_any(each) for each in found)
    if meaning.comparable is not None and any(without_vectors):
        if search.embedding is not None:
            return "some memories were not compared, for they are being embedded"
        return "some memories were found by their words alone, for they are being embedded"
    return None


def _relevant(search: SearchSpec, found: list[RootSearchResult]) -> tuple[list[FoundMemory], int]:
    """Return the best relevant hits of all namespaces, and how many more were too weak."""
    least = search.min_relevance
    if least is None and all(each.is_nothing for each in found if each.hits):
        return [], 0
    hits = merge_hits(found, search.boost)
    hits = [hit for hit in hits if hit.relevance >= (least or 0.0)][: search.limit]
    strong = _strong(search.least_share, hits, found)
    return strong, len(hits) - len(strong)


def _strong(share: float, hits: list[FoundMemory], found: Sequence[RootSearchResult]) -> list[FoundMemory]:
    """Remove the hits that are much weaker than the best, if there are few memories."""
    if not share or sum(each.counts.get("visible", 0) for each in found) > FEW:
        return hits
    least = share * max(map(chance_of, hits), default=0.0)
    return [hit for place, hit in enumerate(hits) if place < ALWAYS or chance_of(hit) >= least]


def chance_of(hit: FoundMemory) -> float:
    """Return the probability that a memory is the answer, whatever else was found."""
    return 0.0 if hit.odds is None else hit.odds / (1 + hit.odds)


def _is_ranked(search: SearchSpec) -> bool:
    return search.mode != "exact" and (search.query is not None or search.embedding is not None)


def _had_any(found: RootSearchResult) -> bool:
    """Return whether visible memories passed the filters."""
    return all(found.counts.values())


def is_weak(search: SearchSpec, hits: Sequence[FoundMemory]) -> bool:
    """Return whether too small a chance of a right answer makes a ranked list weak."""
    return bool(hits) and _is_ranked(search) and sum(each.relevance for each in hits) < WEAK


def reply(
    outcome: SearchResult,
    search: SearchSpec,
    began: float,
    *,
    max_tokens: int | None,
    mode: SearchMode | None = None,
    debug: replies.SearchDebug | None = None,
) -> replies.MemoriesFound:
    """Return a search's reply, cut to its budget.

    ``mode`` is the requested mode, if another one was carried out; ``began`` is a time on trio's clock.
    """
    memories = [replies.to_hit(each) for each in outcome.hits]
    cut = paging.fit_to_budget(
        memories, max_tokens, lambda each: {"memory_id": each.memory_id, "key": each.key}
    )
    return replies.MemoriesFound(
        memories=cut.kept,
        total=0 if outcome.is_nothing else outcome.total,
        total_is_minimum=True if outcome.is_minimum else UNSET,
        query=search.query,
        mode=mode or search.mode,
        query_time_ms=round((trio.current_time() - began) * MILLISECONDS, 3),
        tokens=cut.tokens,
        left_out=cut.left_out,
        over_budget=cut.over_budget,
        failed=outcome.failed,
        partial=True if outcome.partial else UNSET,
        partial_reason=outcome.partial or UNSET,
        weak=True if is_weak(search, outcome.hits) else UNSET,
        damaged=outcome.damaged,
        debug=UNSET if debug is None else debug,
    )


def debug_view(
    outcome: SearchResult, search: SearchSpec, window: replies.TimeWindow | None
) -> replies.SearchDebug:
    """Return the debug information of a result."""
    # A root with nothing for the caller must not reveal that it has something for others.
    found = [each for each in outcome.found if each.counts.get("visible")]
    return replies.SearchDebug(
        time_window=window,
        tags=search.filters.tags,
        tag_match=search.filters.tag_match,
        mode=search.mode,
        quality_boost=search.boost,
        namespaces=outcome.namespaces,
        counts=sum_counts(found),
        timings=outcome.timings,
        model=outcome.space or "words",
        without_vectors=outcome.absence,
        weights=sorted({each.model for each in found}),
        scores={each.memory.memory_id: each.components or {} for each in outcome.hits},
    )


def count_uses(context: ProcedureContext, outcome: SearchResult, memories: Iterable[tuple[str, str]]) -> None:
    """Count memories (namespace and id) as used, unless the search has counted them already."""
    if outcome.counted:
        return
    by_owner: dict[Address, list[str]] = {}
    for namespace, memory_id in memories:
        by_owner.setdefault(memory_address(namespace), []).append(memory_id)
    for address, ids in by_owner.items():
        with suppress(OverloadedError, ActorQuarantinedError):  # then these uses are not counted
            context.tell(address, NoteUses(memory_ids=ids))


class _Stopwatch:
    """Measure the time of one stage after the other, in milliseconds."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = trio.current_time()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = trio.current_time()
        self.laps[stage] = round((now - self._last) * MILLISECONDS, 3)
        self._last = now
