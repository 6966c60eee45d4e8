"""The search of the tool `search_context`: what the query means first, then the session with that."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import trio
from msgspec import Meta

from greenroom.actors.core.replies import replies
from greenroom.actors.core.replies.results_explained import (
    ResultsExplained,
    ResultsOfMode,
    WhyThatResult,
    meanings_of,
)
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.memories.recall.search import MILLISECONDS
from greenroom.actors.recall.query_times import times_of
from greenroom.actors.search.embedding.embedding_service import EmbeddingService
from greenroom.actors.sessions.requests.requests import ExplainMessages, FindMessages, SearchContext
from greenroom.runtime import Address, Procedure, ProcedureContext

PLACES: Final = 50
"""Messages of each mode of which the place is known."""


class SearchSession(Procedure[replies.SearchResults], frozen=True, kw_only=True):
    """Have a search's query read and embedded, and ask the session."""

    session_id: types.SessionId
    asked: SearchContext

    async def run(self, context: ProcedureContext) -> replies.SearchResults:
        """Answer what the session answers.

        Raises:
            Refusal: as the session says.
        """
        search = await _understood(context, self.asked)
        return await context.ask(Address("session", self.session_id), search)


class ExplainSessionSearch(
    Procedure[ResultsExplained], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Explain what a search of a session finds and why, and why not one message.

    It searches as the tool `search_context` does: ``usual`` as agents do who say no more than the query,
    ``everything`` from the least score on and however old.
    """

    session_id: types.SessionId
    query: types.SearchText
    limit: types.Limit100 = 10
    about: (
        Annotated[types.MessageId, Meta(description="say why this message is found or not, too")] | None
    ) = None

    async def run(self, context: ProcedureContext) -> ResultsExplained:
        """Search in both ways.

        Raises:
            Refusal: as the session says.
        """
        usual = SearchContext(session_id=self.session_id, query=self.query, limit=PLACES)
        everything = msgspec.structs.replace(
            usual, fuzzy_threshold=0, recent_hours=None, max_rows_scanned=None
        )
        modes: list[ResultsOfMode] = []
        about: list[WhyThatResult] = []
        for name, asked in (("usual", usual), ("everything", everything)):
            began = trio.current_time()
            search = ExplainMessages(asked=await _understood(context, asked), about=self.about)
            said = await context.ask(Address("session", self.session_id), search)
            took = round((trio.current_time() - began) * MILLISECONDS, 3)
            hits = said.mode.hits[: self.limit]
            modes.append(msgspec.structs.replace(said.mode, mode=name, hits=hits, milliseconds=took))
            if said.about is not None:
                about.append(msgspec.structs.replace(said.about, mode=name))
        return ResultsExplained(query=self.query, modes=modes, about=about, meanings=_meanings(modes, about))


async def _understood(context: ProcedureContext, asked: SearchContext) -> FindMessages:
    """Return a search with what its query means."""
    told = await times_of(asked.query, context.now, None)
    embedding: EmbeddingService | None = context.sidecar
    vectors = absence = None
    if embedding is not None and not embedding.is_off:
        vectors = await embedding.query(told.text or asked.query)
        absence = embedding.absence if vectors is None else None
    return FindMessages(asked=asked, text=told.text, times=told.times, vectors=vectors, absence=absence)


def _meanings(modes: list[ResultsOfMode], about: list[WhyThatResult]) -> dict[str, str]:
    if not any(mode.hits for mode in modes) and not any(each.hit for each in about):
        return {}  # nothing was ranked, so nothing may be loaded
    from greenroom.actors.ranking.weights import SIGNALS  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.sessions.search.scores import AROUND  # noqa: PLC0415 - as above

    return meanings_of(modes, about, {**SIGNALS, "around": AROUND})
