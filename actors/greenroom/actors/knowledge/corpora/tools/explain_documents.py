"""Explain document searches: the results of each strategy, their signals, and missing results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
import trio
from msgspec import UNSET, Meta

from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies.results_explained import (
    NOTHING,
    NamedResult,
    ResultExplained,
    ResultsExplained,
    ResultsOfMode,
    WhyThatResult,
    explain_place,
    list_mode,
    meanings_of,
    signal_parts,
)
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora
from greenroom.actors.knowledge.corpora.requests.corpus_requests import ChunkFound, FoundChunks
from greenroom.actors.knowledge.corpora.tools.query_service import Replies, SearchCorpora, query_corpus
from greenroom.actors.search.ranking.weights import DOCUMENT_SIGNALS, DOCUMENT_WEIGHTS
from greenroom.runtime import GreenroomError, Procedure, ProcedureContext

PLACES: Final = 50
"""For each strategy, at most this many passages have a known place."""
STRATEGIES: Final[tuple[corpus_requests.Strategy, ...]] = ("auto", "hybrid", "vector", "bm25")
_BEGINNING: Final = 300
_UNKNOWN: Final = "there is no such passage or document, or you may not see it"


@operation(
    "explain_documents",
    scope="knowledge:read",
)
class ExplainDocuments(Procedure[ResultsExplained], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Explain what each strategy finds and why, and why it misses a passage or document.

    It searches as the tool `semantic_search` does, and writes the same audit records.
    """

    query: corpus_requests.QueryText
    corpus: corpus_requests.SearchedCorpus = corpus_requests.EVERY_CORPUS
    limit: corpus_requests.TopK = 10
    about: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=4_096,
                description="a passage's number, which is behind the # of its id, or a document's path: say "
                "why this one is found or not, too",
            ),
        ]
        | None
    ) = None

    async def run(self, context: ProcedureContext) -> ResultsExplained:
        """Search by each strategy, one after the other."""
        modes: list[ResultsOfMode] = []
        about: list[WhyThatResult] = []
        analyses: list[corpus_requests.QueryAnalysis] = []
        for strategy in STRATEGIES:
            began = trio.current_time()
            request = corpus_requests.FindChunks(
                corpus=corpus_requests.DEFAULT_CORPUS,
                query=self.query,
                strategy=strategy,
                top_k=PLACES,
                explain=True,
                about=self.about or "",
            )
            answers, answer = await SearchCorpora(corpus=self.corpus, asked=request).answers(context)
            reply = answer.reply
            analyses += [] if reply.query_analysis is UNSET else [reply.query_analysis]
            mode = list_mode(
                strategy,
                _results(reply, answers),
                self.limit,
                total=reply.total_found,
                seconds=trio.current_time() - began,
                how="; ".join(dict.fromkeys(_how(answer) for answer in answers.found.values())),
                partial=reply.partial_reason or None,
            )
            modes.append(mode)
            if self.about is not None:
                about.append(await self._why(context, mode, answers))
        return ResultsExplained(
            query=self.query,
            modes=modes,
            corrected=analyses[0].corrected if analyses else {},
            unknown=analyses[0].unknown if analyses else [],
            about=about,
            meanings=meanings_of(modes, about, DOCUMENT_SIGNALS),
        )

    async def _why(self, context: ProcedureContext, mode: ResultsOfMode, answers: Replies) -> WhyThatResult:
        """Explain the place of the requested result in a mode, or its absence."""
        named = [(row, answer.about) for row, answer in answers.found.items() if answer.about is not None]
        if not named:
            return explain_place(mode, None, await self._elsewhere(context, answers))
        row, (found, ranked) = max(named, key=lambda each: each[1][1].score)
        hit = _result(found, row.full_name, ranked.parts)
        return explain_place(mode, hit, _why_not(ranked, mode, answers.found[row]))

    async def _elsewhere(self, context: ProcedureContext, answers: Replies) -> str:
        """Name the corpus of the requested result, if it was not searched."""
        assert self.about is not None, "there is a result to explain"
        request = corpus_requests.FindChunks(
            corpus=corpus_requests.DEFAULT_CORPUS,
            query=self.query,
            strategy="bm25",
            top_k=1,
            about=self.about,
        )
        for row in await context.query(VisibleCorpora()):
            if row in answers.found or row.root is not None:
                continue
            try:
                answer = await query_corpus(context, row, request)
            except GreenroomError:  # it was dropped meanwhile, or failed
                continue
            if answer.about is not None:
                return f"it is in another corpus: {row.full_name}"
        return _UNKNOWN


def _why_not(ranked: NamedResult, mode: ResultsOfMode, answer: FoundChunks) -> str:
    if ranked.place is None:
        return NOTHING
    waiting = answer.freshness.waiting_for_vectors
    if answer.strategy == "vector" and not ranked.parts and waiting:
        return f"it has no vector yet: {waiting:,} passages wait for theirs"
    return f"{max(len(mode.places), ranked.place - 1)} others are better"


def _how(answer: FoundChunks) -> str:
    return f"{answer.analysis.form}, {answer.analysis.reason}; by {answer.strategy}"


def _results(reply: corpus_requests.ChunksFound, answers: Replies) -> list[ResultExplained]:
    """Return all results with their signals."""
    parts: dict[str, Mapping[str, float]] = {}
    for row, answer in answers.found.items():
        for hit, of_hit in zip(answer.results, answer.parts, strict=True):
            parts[_name(row.full_name, hit)] = of_hit
    found = [(hit, hit.corpus or reply.corpus) for hit in reply.results]
    return [
        msgspec.structs.replace(_result(hit, corpus, parts[_name(corpus, hit)]), place=place)
        for place, (hit, corpus) in enumerate(found, 1)
    ]


def _name(corpus: str, hit: ChunkFound) -> str:
    return f"{corpus}#{hit.chunk_id}"


def _result(hit: ChunkFound, corpus: str, parts: Mapping[str, float]) -> ResultExplained:
    return ResultExplained(
        id=_name(corpus, hit),
        title=hit.citation or hit.source_file,
        text=(hit.chunk_text or "")[:_BEGINNING],
        place=None,
        score=hit.hybrid_score,
        signals=signal_parts(parts, DOCUMENT_WEIGHTS),
        corpus=corpus,
        path=hit.source_file,
    )
