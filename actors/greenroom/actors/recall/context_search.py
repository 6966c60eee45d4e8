"""The search of the tool `search_context`: what the query means first, then the session with that."""

from __future__ import annotations

from greenroom.actors.embedding.service import EmbeddingService
from greenroom.actors.recall.query_times import times_of
from greenroom.actors.schemas import replies
from greenroom.actors.schemas.sessions import FindMessages, SearchContext
from greenroom.runtime import Address, Procedure, ProcedureContext


class SearchSession(Procedure[replies.SearchResults], frozen=True, kw_only=True):
    """Have a search's query read and embedded, and ask the session."""

    asked: SearchContext

    async def run(self, context: ProcedureContext) -> replies.SearchResults:
        """Answer what the session answers.

        Raises:
            Refusal: as the session says.
        """
        told = await times_of(self.asked.query, context.now, None)
        embedding: EmbeddingService | None = context.sidecar
        vectors = absence = None
        if embedding is not None and not embedding.is_off:
            vectors = await embedding.query(told.text or self.asked.query)
            absence = embedding.absence if vectors is None else None
        search = FindMessages(
            asked=self.asked, text=told.text, times=told.times, vectors=vectors, absence=absence
        )
        return await context.ask(Address("session", self.asked.session_id), search)
