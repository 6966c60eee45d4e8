"""Asking a workspace in time: what the tool `search_code_semantic` asks."""

from __future__ import annotations

import msgspec
import trio

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import LoadCorpus
from greenroom.actors.knowledge.corpora.tools.query_service import SEARCH_SECONDS, corpus_row
from greenroom.actors.schemas.code import FindCode, FoundCode
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
            request = msgspec.structs.replace(self.request, corpus=row.full_name)
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
