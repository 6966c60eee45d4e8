"""The tools `semantic_search` and `get_full_content`: find the corpus, ask it in time, answer."""

from __future__ import annotations

from typing import Final

import trio
from msgspec import UNSET

from greenroom.actors.audit import record as audit_record
from greenroom.actors.corpus.catalogue import (
    FindCorpus,
    VisibleCorpora,
    check_owner,
    corpus_address,
    corpus_not_found,
)
from greenroom.actors.corpus.query_form import form_of
from greenroom.actors.embedding.service import EmbeddingService
from greenroom.actors.schemas import corpus as schemas
from greenroom.actors.schemas.corpus import CorpusRow
from greenroom.actors.schemas.memory_types import QueryVectors
from greenroom.runtime import Procedure, ProcedureContext, Refusal

SEARCH_SECONDS: Final = 2.0
"""A search is cut then, and says so."""
EMBED_SECONDS: Final = 1.0
"""Of these, how long a query waits for its vectors."""
_LATE: Final = (
    "the search was cut after 2 s, before its corpus answered: its index is being read, or others are before "
    "you; ask again"
)


class SemanticSearch(Procedure[schemas.ChunksFound], frozen=True, kw_only=True):
    """Find passages of documents by what they say and mean."""

    query: schemas.QueryText
    top_k: schemas.TopK = 10
    strategy: schemas.AStrategy = "auto"
    min_score: schemas.MinScore = 0.0
    detail_level: schemas.ADetailLevel = "full"
    corpus: schemas.CorpusName = schemas.DEFAULT_CORPUS

    async def run(self, context: ProcedureContext) -> schemas.ChunksFound:
        """Ask the corpus, for two seconds at most.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``.
        """
        began = trio.current_time()
        row = await corpus_row(context, self.corpus)
        found: schemas.FoundChunks | None = None
        with trio.move_on_at(began + SEARCH_SECONDS):
            vectors, absence = await self._vectors(context)
            found = await context.ask(
                corpus_address(row),
                schemas.FindChunks(
                    corpus=row.full_name,
                    query=self.query,
                    vectors=vectors,
                    absence=absence,
                    strategy=self.strategy,
                    top_k=self.top_k,
                    min_score=self.min_score,
                    detail_level=self.detail_level,
                ),
            )
        if found is None:
            context.tell(corpus_address(row), schemas.LoadCorpus())
        audit_record.record_read(
            context,
            context.principal,
            "semantic_search",
            None,
            corpus=row.full_name,
            query_characters=len(self.query),
            found=0 if found is None else len(found.results),
        )
        return self._answer(row, found, began)

    async def _vectors(self, context: ProcedureContext) -> tuple[QueryVectors | None, str | None]:
        """Return the query's vectors, or why there are none."""
        embedding: EmbeddingService | None = context.sidecar
        if self.strategy == "bm25":
            return None, None
        if embedding is None:
            return None, "no embedder runs"
        vectors = None
        with trio.move_on_after(EMBED_SECONDS):
            vectors = await embedding.query(self.query)
        if vectors is None:
            return None, embedding.absence or "the embedder has no vector of this query"
        return vectors, None

    def _answer(self, row: CorpusRow, found: schemas.FoundChunks | None, began: float) -> schemas.ChunksFound:
        took = round((trio.current_time() - began) * 1_000, 3)
        if found is None:
            return schemas.ChunksFound(
                results=[],
                total_found=0,
                strategy_used="bm25",
                query_analysis=schemas.QueryAnalysis(form=form_of(self.query), reason="nothing was searched"),
                execution_time_ms=took,
                corpus=row.full_name,
                freshness=schemas.FreshnessView(indexed_at=None, waiting_for_vectors=0),
                cache_hit=False,
                partial=_LATE,
            )
        analysis = found.analysis
        is_told = found.strategy != self.strategy or analysis.corrected or analysis.unknown
        return schemas.ChunksFound(
            results=found.results,
            total_found=found.total,
            strategy_used=found.strategy,
            query_analysis=analysis if is_told else UNSET,
            execution_time_ms=took,
            corpus=row.full_name,
            freshness=found.freshness,
            cache_hit=found.cache_hit,
        )


class GetFullContent(Procedure[schemas.FullContent], frozen=True, kw_only=True):
    """Read passages in full that a search has found."""

    chunk_ids: schemas.ChunkIds
    around: schemas.Around = 0
    corpus: schemas.CorpusName = schemas.DEFAULT_CORPUS

    async def run(self, context: ProcedureContext) -> schemas.FullContent:
        """Ask the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``.
        """
        began = trio.current_time()
        row = await corpus_row(context, self.corpus)
        request = schemas.ReadChunks(corpus=row.full_name, chunk_ids=self.chunk_ids, around=self.around)
        found = await context.ask(corpus_address(row), request)
        audit_record.record_read(
            context,
            context.principal,
            "get_full_content",
            None,
            corpus=row.full_name,
            found=len(found.chunks),
        )
        return schemas.FullContent(
            chunks=found.chunks,
            unknown_ids=found.unknown,
            corpus=row.full_name,
            execution_time_ms=round((trio.current_time() - began) * 1_000, 3),
        )


class ListCorpora(Procedure[schemas.CorporaListed], frozen=True, kw_only=True):
    """List the corpora that the caller may see, with what is in each."""

    async def run(self, context: ProcedureContext) -> schemas.CorporaListed:
        """Ask one after the other."""
        found: list[schemas.CorpusView] = []
        for row in await context.query(VisibleCorpora()):
            try:
                found.append(await context.ask(corpus_address(row), schemas.DescribeCorpus(row=row)))
            except Refusal:  # dropped meanwhile
                continue
        return schemas.CorporaListed(corpora=found)


async def corpus_row(context: ProcedureContext, name: str) -> CorpusRow:
    """Return the corpus that a name means.

    Raises:
        Refusal: ``CORPUS_NOT_FOUND``.
    """
    check_owner(context.principal, name)
    row = await context.query(FindCorpus(name=name))
    if row is None:
        raise corpus_not_found(name)
    return row
