"""Asking a workspace in time, with the query's vectors: what the tool `search_code_semantic` asks."""

from __future__ import annotations

import msgspec
import trio

from greenroom.actors.audit import record as audit_record
from greenroom.actors.corpus.asking import EMBED_SECONDS, SEARCH_SECONDS, corpus_row
from greenroom.actors.corpus.catalogue import corpus_address
from greenroom.actors.embedding.service import EmbeddingService
from greenroom.actors.schemas.code import FindCode, FoundCode
from greenroom.actors.schemas.corpus import LoadCorpus
from greenroom.actors.schemas.memory_types import QueryVectors
from greenroom.runtime import Procedure, ProcedureContext


class AskForCode(Procedure[FoundCode | None], frozen=True, kw_only=True):
    """Find files of a workspace, None where that takes more than two seconds; internal."""

    request: FindCode

    async def run(self, context: ProcedureContext) -> FoundCode | None:
        """Ask the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``.
        """
        row = await corpus_row(context, self.request.corpus)
        found: FoundCode | None = None
        with trio.move_on_after(SEARCH_SECONDS):
            vectors = await _vectors(context, self.request.query)
            request = msgspec.structs.replace(self.request, corpus=row.full_name, vectors=vectors)
            found = await context.ask(corpus_address(row), request)
        if found is None:
            context.tell(corpus_address(row), LoadCorpus())
        audit_record.record_read(
            context,
            context.principal,
            "search_code_semantic",
            None,
            corpus=row.full_name,
            query_characters=len(self.request.query),
            found=0 if found is None else len(found.results),
        )
        return found


async def _vectors(context: ProcedureContext, query: str) -> QueryVectors | None:
    """Return the query's vectors, if there are some soon."""
    embedding: EmbeddingService | None = context.sidecar
    if embedding is not None:
        with trio.move_on_after(EMBED_SECONDS):
            return await embedding.query(query)
    return None
