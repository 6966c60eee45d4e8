"""Fuzzy search in a session: the window that a request looks at, the ranking, the answer.

The search index is filled backwards, as far as requests need, and forwards with what
has come since; it lives as long as its actor is resident. A session that nobody
searches prepares nothing, and no search prepares more than `CHARACTERS`: the next one
goes on where it ended.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import neg
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.auth import policy
from greenroom.actors.auth.policy import Partition
from greenroom.actors.base import paging
from greenroom.actors.base.threads import imported
from greenroom.actors.base.times import HOUR
from greenroom.actors.schemas import replies
from greenroom.actors.schemas.sessions import SearchContext
from greenroom.actors.session import log, records
from greenroom.actors.session.log import SenderCounters
from greenroom.actors.session.records import Entry, named, view
from greenroom.actors.session_search import metadata_text, preview
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.session_search.index import SearchIndex


CHARACTERS: Final = 2_500_000
"""Characters of messages that one search prepares, of its last message perhaps more: 0.6 s."""
HIGH, MEDIUM = 80, 60
SHOWN = 240_000
"""Characters in which previews look for single words, all of one search together: 0.1 s."""


class Window(NamedTuple):
    """The newest messages that a search looks at: those from ``oldest_id`` on, ``scanned`` of them."""

    oldest_id: int
    scanned: int


class PreparedMessages:
    """The prepared part of one partition: without gaps, from its newest message at some time backwards.

    Attributes:
        newer: Ids prepared after that time, ascending.
        older: Ids prepared backwards from then, descending.
        top: No message above this id is prepared.
        complete: Whether the partition's first message is prepared.
    """

    def __init__(self, partition: Partition, top: int) -> None:
        self.partition = partition
        self.newer = array("q")
        self.older = array("q")
        self.top = top
        self.complete = False

    @property
    def floor(self) -> int:
        """The id below which messages are not prepared."""
        return self.older[-1] if self.older else self.top + 1

    def count_from(self, lowest: int) -> int:
        """Return how many prepared messages have an id of at least ``lowest``."""
        newer = len(self.newer) - bisect_left(self.newer, lowest)
        return newer + bisect_right(self.older, -lowest, key=neg)


class SearchWindows:
    """The prepared part of one session."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._prepared: dict[Partition, PreparedMessages] = {}
        self._left = 0

    def window(
        self,
        context: Context,
        partitions: Sequence[Partition],
        *,
        newest_id: int,
        lowest_id: int,
        rows: int | None,
    ) -> Slices[Window | None]:
        """Prepare and return the newest messages in ``partitions``, as many as one search may.

        Returns None where more has come since the last time than that: it is less work to begin anew.

        Args:
            context: The message's context.
            partitions: What the reader may see.
            newest_id: An id that no message in these partitions exceeds.
            lowest_id: Where the window ends at the latest, for its age.
            rows: How many messages it holds at most; None for all.
        """
        self._left = CHARACTERS
        prepared_partitions = [
            self._prepared.setdefault(partition, PreparedMessages(partition, newest_id))
            for partition in partitions
        ]
        for prepared in prepared_partitions:
            if prepared.top >= newest_id:
                continue
            yield from self._catch_up(context, prepared)
            if self._left <= 0:
                return None
            prepared.top = newest_id  # what comes from now on has higher ids, whatever its partition
        yield from self._dig(context, prepared_partitions, lowest_id, rows)
        if self._left <= 0:
            lowest_id = max(
                [lowest_id, *(prepared.floor for prepared in prepared_partitions if not prepared.complete)]
            )
        scanned = _count(prepared_partitions, lowest_id)
        if rows is None or scanned <= rows:
            return Window(lowest_id, scanned)
        return Window(_nth_newest(prepared_partitions, rows), rows)

    def _catch_up(self, context: Context, prepared: PreparedMessages) -> Slices[None]:
        """Prepare what was added since the last time."""
        for entry in log.walk(context, (prepared.partition,), lowest=prepared.top + 1):
            yield from self._prepare(context, entry)
            prepared.newer.append(entry.message_id)
            prepared.top = entry.message_id
            if self._left <= 0:
                return

    def _dig(
        self,
        context: Context,
        prepared_partitions: Sequence[PreparedMessages],
        lowest_id: int,
        rows: int | None,
    ) -> Slices[None]:
        """Prepare backwards, always where the prepared part ends soonest, until the window is covered."""
        walks: dict[Partition, Iterator[Entry]] = {}
        while self._left > 0:
            shallow = [
                prepared
                for prepared in prepared_partitions
                if not prepared.complete and prepared.floor > lowest_id
            ]
            if not shallow:
                return
            prepared = max(shallow, key=lambda prepared: prepared.floor)
            if rows is not None and _count(prepared_partitions, prepared.floor) >= rows:
                return
            if prepared.partition not in walks:
                walks[prepared.partition] = log.walk(
                    context, (prepared.partition,), highest=prepared.floor - 1, reverse=True
                )
            entry = next(walks[prepared.partition], None)
            if entry is None:
                prepared.complete = True
            else:
                yield from self._prepare(context, entry)
                prepared.older.append(entry.message_id)

    def _prepare(self, context: Context, entry: Entry) -> Slices[None]:
        message = entry.message
        values = metadata_text(message.metadata)
        self._left -= len(message.content) + len(values)
        yield from self._index.add_in_slices(
            entry.message_id,
            entry.partition,
            message.sender,
            message.content,
            values,
            context.should_yield,
            created_at=message.timestamp,
        )


def _count(prepared_partitions: Sequence[PreparedMessages], lowest: int) -> int:
    return sum(prepared.count_from(lowest) for prepared in prepared_partitions)


def _nth_newest(prepared_partitions: Sequence[PreparedMessages], number: int) -> int:
    """Return the highest id from which on there are ``number`` prepared messages."""
    low, high = 0, log.HIGHEST_ID
    while low < high:
        middle = (low + high + 1) // 2
        if _count(prepared_partitions, middle) >= number:
            low = middle
        else:
            high = middle - 1
    return low


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
                lowest_id=records.lowest_id(since),
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
        cut = paging.take_in_order(hits, request.max_tokens, lambda hit: named(hit.message))
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
