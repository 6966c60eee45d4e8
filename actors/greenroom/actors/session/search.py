"""Fuzzy search in a session: the window that a request looks at, the ranking, the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.auth import policy
from greenroom.actors.base import budget
from greenroom.actors.base.threads import imported
from greenroom.actors.base.times import HOUR
from greenroom.actors.schemas import replies
from greenroom.actors.schemas.sessions import SearchContext
from greenroom.actors.session import ids, log
from greenroom.actors.session.counters import SenderCounters
from greenroom.actors.session.records import named, view
from greenroom.actors.session.search_window import SearchWindows, Window
from greenroom.actors.session_search import preview
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.session_search.index import SearchIndex

HIGH, MEDIUM = 80, 60
SHOWN = 240_000
"""Characters in which previews look for single words, all of one search together: 0.1 s."""


class SessionSearch:
    """The search index of a session, kept from its first search until its actor leaves memory."""

    def __init__(self) -> None:
        self._index: SearchIndex | None = None
        self._prepared: SearchWindows

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return 0 if self._index is None else self._index.resident_bytes()

    def search(
        self, request: SearchContext, context: Context, counters: SenderCounters
    ) -> Slices[replies.SearchResults]:
        """Answer the best matches among the newest messages that the caller may see."""
        yield from imported("greenroom.actors.session_search.index")
        from greenroom.actors.session_search.index import SearchIndex, SearchRequest  # noqa: PLC0415 - needs numpy

        partitions = policy.partitions(context.principal, request.search_scope)
        since = _since(request.recent_hours, context.now)
        window: Window | None = None
        while window is None:
            index = SearchIndex() if self._index is None else self._index  # an empty one is false
            if self._index is None:
                self._index, self._prepared = index, SearchWindows(index)
            window = yield from self._prepared.window(
                context,
                partitions,
                newest_id=counters.newest(partitions),
                lowest_id=ids.lowest_id(since),
                rows=request.max_rows_scanned,
            )
            if window is None:
                self._index = None
        matches = yield from index.search(
            SearchRequest(
                text=request.query,
                partitions=partitions,
                oldest_id=window.oldest_id,
                threshold=request.fuzzy_threshold,
                limit=request.limit,
                metadata=request.search_metadata,
            ),
            context.should_yield,
        )
        looked_at = SHOWN // max(1, len(matches))
        hits: list[replies.SearchHit] = []
        size = 0
        for match in matches:
            entry = log.find(context, partitions, match.id)
            assert entry is not None, "what is in the index is in the store"
            size += log.answer_bytes(entry.message)
            if hits and size > log.PAGE_BYTES:
                break
            # After a jump of the clock an older message can lie within the window of ids.
            if entry.message.timestamp >= since:
                shown = preview(entry.message.content, request.query, looked_at=looked_at)
                hits.append(
                    replies.SearchHit(
                        message=view(entry, context.principal),
                        score=round(match.score, 2),
                        match_preview=shown.text,
                        match_start=shown.start,
                        match_end=shown.end,
                        relevance=relevance(match.score),
                    )
                )
            if context.should_yield():
                yield
        cut = budget.take_in_order(hits, request.max_tokens, lambda hit: named(hit.message))
        return replies.SearchResults(
            results=cut.kept,
            query=request.query,
            threshold=request.fuzzy_threshold,
            search_scope=request.search_scope,
            message_count=len(cut.kept),
            scanned=window.scanned,
            truncated=window.scanned < counters.count(partitions) or len(cut.kept) < len(matches),
            left_out=cut.left_out,
            over_budget=cut.over_budget,
        )


def _since(hours: float | None, now: int) -> int:
    """Return where the last ``hours`` begin, in microseconds since 1970."""
    return 0 if hours is None or hours * HOUR >= now else now - int(hours * HOUR)


def relevance(score: float) -> replies.Relevance:
    """Return a score in a word."""
    if score >= HIGH:
        return "high"
    return "medium" if score >= MEDIUM else "low"
