"""The search over namespaces: find the owners, ask them side by side, merge their hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import trio
from msgspec import UNSET

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth.namespaces import memory_address
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.grades import WEAK
from greenroom.actors.core.replies.memory_types import QueryVectors, SearchMode
from greenroom.actors.memories.recall import replies
from greenroom.actors.memories.recall.roots import ChooseRoots, Roots, ask_in_rounds, roots_for
from greenroom.actors.memories.recall.scatter_gather import Gathered, Root, merged, summed
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters, RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories, NoteUses
from greenroom.actors.recall.query_embedding import QueryEmbedding, vectors_of
from greenroom.actors.recall.query_times import QueryTimes, times_of
from greenroom.runtime import ActorQuarantinedError, Address, OverloadedError, ProcedureContext

MILLISECONDS = 1_000.0
FEW = 60
"""Memories that are visible up to which weak ones are left out where a search wants that."""
_NAMED = 5
"""Namespaces that were not searched, of which the reason is said."""
ALWAYS = 5
"""Hits that are never too weak beside the best, for one of them may be what was meant."""


class SearchSpec(NamedTuple):
    """The specification of one search.

    Attributes:
        below: The leading segments of the namespaces to search; None: all that may be seen.
        query: What is looked for; None: filters alone decide, or the embedding.
        mode: How to match; ``exact`` looks for the text as it stands.
        boost: The part of quality in the score.
        filters: What narrows the candidates.
        limit: Most hits.
        debug: Whether the hits say why.
        reasons: How many of the first hits say why without ``debug``.
        uses: Whether each hit counts as used, whatever becomes of it.
        decompress: Whether what is compressed comes as it was given.
        min_relevance: The least relevance; None where the list is emptied if nothing of it is relevant.
        min_score: The least score.
        least_share: Of the best hit's chance against nothing, what those after the first `ALWAYS` must have
            where no more than `FEW` memories are visible; 0 for no such cut.
        roots: The owners to ask where it is known which they are.
        embedding: A vector to look for in the place of a query.
        zone: In which time zone the query's own times are meant; None: the machine's.
        dated: Whether the query's own times say when what is looked for was; else they are words.
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


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
        hits: The best, best first.
        weak: How many others ``least_share`` left out.
        is_nothing: Whether none of the memories that were searched is relevant.
        total: How many memories match.
        is_minimum: Whether there may be more.
        found: The reply of each owner.
        failed: The owners that said nothing.
        asked: How many owners were asked.
        space: Which vectors the query had; None for none.
        absence: Why it had none, where some were wanted.
        partial: Why memories may be missing that another time would be found; None: none are.
        counted: Whether the hits are counted as used already.
        timings: Milliseconds by stage.
        told: The query without the times that it names, and these.
    """

    hits: list[FoundMemory]
    weak: int
    is_nothing: bool
    total: int
    is_minimum: bool
    found: list[RootSearchResult]
    failed: list[replies.FailedNamespace]
    asked: int
    space: str | None
    absence: str | None
    partial: str | None
    counted: bool
    timings: dict[str, float]
    told: QueryTimes


async def find(context: ProcedureContext, search: SearchSpec) -> SearchResult:
    """Search the namespaces that may be seen; owners that fail are named.

    Raises:
        GreenroomError: of all owners, none answered; it is what the first of them ended with.
        Refusal: ``VALIDATION_ERROR``: the vector cannot be compared with those of the memories.
    """
    clock = _Stopwatch()
    told = await _times_of(context, search)
    meaning = await _meaning_of(context, search, told.text)
    clock.lap("query_vectors")
    roots = await _roots(context, search, told.text, meaning.telling)
    clock.lap("namespaces")
    counted = len(roots.ordered) == 1 and search.uses
    message = FindMemories(
        text=told.text,
        vectors=meaning.vectors,
        times=told.times,
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
    )
    asked = await ask_in_rounds(context, roots, message)
    answers = asked.answers
    clock.lap("owners")
    if answers.error is not None and not answers.found:
        raise answers.error
    hits, weak = _relevant(search, answers.found)
    missing = _not_searched(answers), _not_compared(search, meaning, answers.found), asked.partial
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
        failed=answers.failed,
        asked=asked.asked,
        is_minimum=asked.is_minimum or any(each.is_minimum for each in answers.found),
        space=None if meaning.telling is None else meaning.telling.space,
        absence=meaning.absence,
        partial="; ".join(filter(None, missing)) or None,
        counted=counted,
        timings=clock.laps,
        told=told,
    )


class _Meaning(NamedTuple):
    """The vectors of a query.

    Attributes:
        vectors: What was made of it; None for nothing.
        absence: Why no memory is like it, where some might be.
        may_come: Whether another time it would have vectors.
    """

    vectors: QueryVectors | None = None
    absence: str | None = None
    may_come: bool = False

    @property
    def telling(self) -> QueryVectors | None:
        """The vectors, if some memory may be like them."""
        return self.vectors if self.absence is None else None


async def _times_of(context: ProcedureContext, search: SearchSpec) -> QueryTimes:
    if search.query is None or search.mode == "exact" or not search.dated:
        return QueryTimes(search.query)
    return await times_of(search.query, context.now, search.zone)


async def _meaning_of(context: ProcedureContext, search: SearchSpec, text: str | None) -> _Meaning:
    if search.embedding is not None:
        return _Meaning(await vectors_of(search.embedding, context.sidecar))
    if text is None or search.mode == "exact" or context.sidecar is None:
        return _Meaning()
    vectors = await context.sidecar.query(text)
    if vectors is None:
        return _Meaning(absence=context.sidecar.absence, may_come=not context.sidecar.is_off)
    return _Meaning(vectors, _why_nothing(vectors))


def _not_searched(answers: Gathered[RootSearchResult]) -> str | None:
    """Return what was not searched for want of time, or since it failed."""
    newest = sum(each.unread or 0 for each in answers.found)
    reasons = [f"{each.namespace} was not searched: {each.error}" for each in answers.failed[:_NAMED]]
    if any(each.unread is not None for each in answers.found):
        reasons.append(f"the newest {newest:,} memories alone were searched, by their words; ask again")
    reasons += {each.cut: None for each in answers.found if each.cut}
    return "; ".join(reasons) or None


def _not_compared(search: SearchSpec, meaning: _Meaning, found: list[RootSearchResult]) -> str | None:
    """Return why memories were not compared by their meaning that another time would be."""
    if meaning.may_come:
        return f"memories were found by their words alone, for {meaning.absence}"
    if meaning.telling is not None and any(map(_has_no_vectors, found)):
        if search.embedding is not None:
            return "some memories were not compared, for they are being embedded"
        return "some memories were found by their words alone, for they are being embedded"
    return None


async def _roots(
    context: ProcedureContext, search: SearchSpec, text: str | None, vectors: QueryVectors | None
) -> Roots:
    if search.roots is not None:
        return Roots(search.roots)
    wanted = ChooseRoots(
        below=search.below,
        text=text,
        mode=search.mode,
        filters=search.filters,
        vectors=vectors,
    )
    return await roots_for(context, wanted)


def _relevant(search: SearchSpec, found: list[RootSearchResult]) -> tuple[list[FoundMemory], int]:
    """Return the best hits of all owners, if they are relevant, and how many were too weak beside them."""
    least = search.min_relevance
    if least is None and all(each.is_nothing for each in found if each.hits):
        return [], 0
    hits = merged(found, search.boost)
    hits = [hit for hit in hits if hit.relevance >= (least or 0.0)][: search.limit]
    strong = _strong(search.least_share, hits, found)
    return strong, len(hits) - len(strong)


def _strong(share: float, hits: list[FoundMemory], found: Sequence[RootSearchResult]) -> list[FoundMemory]:
    """Return hits without those that are weak beside the best of few memories."""
    if not share or sum(each.counts.get("visible", 0) for each in found) > FEW:
        return hits
    least = share * max(map(chance_of, hits), default=0.0)
    return [hit for place, hit in enumerate(hits) if place < ALWAYS or chance_of(hit) >= least]


def chance_of(hit: FoundMemory) -> float:
    """Return the chance of a memory against nothing, whatever else was found."""
    return 0.0 if hit.odds is None else hit.odds / (1 + hit.odds)


def _is_ranked(search: SearchSpec) -> bool:
    return search.mode != "exact" and (search.query is not None or search.embedding is not None)


def _had_any(found: RootSearchResult) -> bool:
    """Return whether there were memories that may be seen and fit the filters."""
    return all(found.counts.values())


def _has_no_vectors(found: RootSearchResult) -> bool:
    """Return whether memories that may be seen and fit the filters were ranked without any vectors."""
    return found.model == "words" and _had_any(found)


def _why_nothing(vectors: QueryVectors) -> str | None:
    """Return why no memory is like a query that has its vectors; None when some may be."""
    if any(_says_something(each) for each in (vectors, *vectors.older)):
        return None
    if vectors.sentence is None:
        return "the embedder knows no word of the query"
    return "the embedder's vector of the query is all zeros, which is like no memory"


def _says_something(vectors: QueryVectors) -> bool:
    numbers = vectors.rows if vectors.sentence is None else vectors.sentence
    return any(memoryview(numbers).cast("f"))


def reply(
    outcome: SearchResult,
    search: SearchSpec,
    began: float,
    *,
    max_tokens: int | None,
    mode: SearchMode | None = None,
    debug: replies.SearchDebug | None = None,
) -> replies.MemoriesFound:
    """Return a search's answer, cut to its budget.

    Args:
        outcome: What was found.
        search: What was asked.
        began: When, in trio's time.
        max_tokens: The budget; None: none.
        mode: The mode that was asked for, if another one was carried out.
        debug: How it came about, if that was asked for.
    """
    memories = [replies.hit(each) for each in outcome.hits]
    is_weak = _is_ranked(search) and sum(each.relevance for each in outcome.hits) < WEAK
    cut = paging.take_in_order(
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
        weak=True if is_weak and memories else UNSET,
        debug=UNSET if debug is None else debug,
    )


def explained(
    outcome: SearchResult, search: SearchSpec, window: replies.TimeWindow | None
) -> replies.SearchDebug:
    """Return the debug information of a result."""
    # One that has nothing for the caller must not show that it has something for others.
    found = [each for each in outcome.found if each.counts.get("visible")]
    return replies.SearchDebug(
        time_window=window,
        tags=search.filters.tags,
        tag_match=search.filters.tag_match,
        mode=search.mode,
        quality_boost=search.boost,
        namespaces=outcome.asked,
        counts=summed(found),
        timings=outcome.timings,
        model=outcome.space or "words",
        without_vectors=outcome.absence,
        weights=sorted({each.model for each in found}),
        scores={each.memory.memory_id: each.components or {} for each in outcome.hits},
    )


def count_uses(context: ProcedureContext, outcome: SearchResult, shown: Iterable[tuple[str, str]]) -> None:
    """Count the shown memories as used, unless the search has counted them."""
    if outcome.counted:
        return
    by_owner: dict[Address, list[str]] = {}
    for namespace, memory_id in shown:
        by_owner.setdefault(memory_address(namespace), []).append(memory_id)
    for address, ids in by_owner.items():
        with suppress(OverloadedError, ActorQuarantinedError):  # that one is not counted
            context.tell(address, NoteUses(memory_ids=ids))


class _Stopwatch:
    """Takes the time of one stage after the other, in milliseconds."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = trio.current_time()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = trio.current_time()
        self.laps[stage] = round((now - self._last) * MILLISECONDS, 3)
        self._last = now
