"""The tool `search_context`: interpret the query, then search the session."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies import replies
from greenroom.actors.core.replies.results_explained import (
    ResultsExplained,
    ResultsOfMode,
    WhyThatResult,
    meanings_of,
)
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.recall.query import times_of
from greenroom.actors.memories.recall.search_all_roots import MILLISECONDS
from greenroom.actors.search.embedding.embedding_service import EmbeddingService
from greenroom.actors.search.ranking.weights import MESSAGE_SIGNALS
from greenroom.actors.sessions.requests.requests import ExplainMessages, FindMessages, SearchContext
from greenroom.runtime import Address, Procedure, ProcedureContext

PLACES: Final = 50
"""The most ranked messages in each mode."""


class SearchSession(Procedure[replies.SearchResults], frozen=True, kw_only=True):
    """Interpret and embed the query of a search, then search the session."""

    session_id: types.SessionId
    asked: SearchContext

    async def run(self, context: ProcedureContext) -> replies.SearchResults:
        """Return the reply of the session."""
        search = await _interpret(context, self.asked)
        return await context.ask(Address("session", self.session_id), search)


@operation(
    "explain_session_search",
    scope="sessions:read",
)
class ExplainSessionSearch(
    Procedure[ResultsExplained], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Explain the results of a session search, and the rank of one message.

    It searches as the tool `search_context` does, in two modes. ``usual`` has the defaults; ``everything``
    has the lowest score and no limit of age.
    """

    session_id: types.SessionId
    query: types.SearchText
    limit: types.Limit100 = 10
    about: (
        Annotated[types.MessageId, Meta(description="say why this message is found or not, too")] | None
    ) = None

    async def run(self, context: ProcedureContext) -> ResultsExplained:
        """Search in both modes."""
        usual = SearchContext(session_id=self.session_id, query=self.query, limit=PLACES)
        everything = msgspec.structs.replace(
            usual, fuzzy_threshold=0, recent_hours=None, max_rows_scanned=None
        )
        modes: list[ResultsOfMode] = []
        about: list[WhyThatResult] = []
        for name, asked in (("usual", usual), ("everything", everything)):
            began = trio.current_time()
            search = ExplainMessages(asked=await _interpret(context, asked), about=self.about)
            reply = await context.ask(Address("session", self.session_id), search)
            took = round((trio.current_time() - began) * MILLISECONDS, 3)
            hits = reply.mode.hits[: self.limit]
            modes.append(msgspec.structs.replace(reply.mode, mode=name, hits=hits, milliseconds=took))
            if reply.about is not None:
                about.append(msgspec.structs.replace(reply.about, mode=name))
        meanings = meanings_of(modes, about, MESSAGE_SIGNALS)
        return ResultsExplained(query=self.query, modes=modes, about=about, meanings=meanings)


async def _interpret(context: ProcedureContext, asked: SearchContext) -> FindMessages:
    """Return a search with its interpreted query."""
    reading = await times_of(asked.query, context.now, None)
    embedding: EmbeddingService | None = context.sidecar
    vectors = absence = None
    if embedding is not None and not embedding.is_off:
        vectors = await embedding.query(reading.text or asked.query)
        absence = embedding.absence if vectors is None else None
    return FindMessages(asked=asked, text=reading.text, times=reading.times, vectors=vectors, absence=absence)
