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

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.replies import paging, replies
from greenroom.actors.core.replies.memory_types import QueryVectors, Vectors
from greenroom.actors.core.validation.times import HOUR
from greenroom.actors.memories.requests.replies import UnembeddedText, UnembeddedTexts, VectorsStored
from greenroom.actors.memories.requests.requests import StoreVectors, TextsToEmbed
from greenroom.actors.search.embedding.embedder import EMBEDDED_CHARACTERS
from greenroom.actors.session_search import metadata_text
from greenroom.actors.sessions.requests.requests import FindMessages
from greenroom.actors.sessions.search import preview
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage import records
from greenroom.actors.sessions.storage.message_log import SenderCounters
from greenroom.actors.sessions.storage.message_vectors import MessageVectors
from greenroom.actors.sessions.storage.records import Entry, named, view
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest


CHARACTERS: Final = 2_500_000
"""Characters of messages that one search prepares, of its last message perhaps more: 0.6 s."""
HIGH, MEDIUM = 80, 60
AT_ONCE: Final = 256  # vectors put in their places without a pause (1 ms)
BATCH_CHARACTERS: Final = 400_000
SHOWN = 240_000
"""Characters in which previews look for single words, all of one search together: 0.1 s."""


class Window(NamedTuple):
    """The newest messages that a search looks at: those from ``oldest_id`` on, ``scanned`` of them."""

    oldest_id: int
    scanned: int


class LookedAt(NamedTuple):
    """What a search looks at.

    Attributes:
        messages: The messages that are prepared.
        partitions: Where the reader may see any.
        wanted: The search of them.
        window: Its messages.
        since: The time from which on they count, in microseconds since 1970.
        partial: Why some are not compared by what they mean, where another time they are.
    """

    messages: SearchIndex
    partitions: Sequence[Partition]
    wanted: SearchRequest
    window: Window
    since: int
    partial: str | None


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

    def catch_up(self, context: Context, counters: SenderCounters) -> Slices[None]:
        """Prepare what has come in partitions that were searched, as much as one search may."""
        self._left = CHARACTERS
        for prepared in self._prepared.values():
            if self._left > 0 and prepared.top < counters.newest([prepared.partition]):
                yield from self._catch_up(context, prepared)

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
    """The search index of a session, kept from its first search until its actor leaves memory.

    Attributes:
        vectors: The vectors of its messages that are kept.
    """

    def __init__(self) -> None:
        self.vectors = MessageVectors()
        self._index: SearchIndex | None = None
        self._prepared: SearchWindows
        self._looked = 0
        self._once: list[int] = []

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return 0 if self._index is None else self._index.resident_bytes()

    def search(
        self, search: FindMessages, context: Context, counters: SenderCounters
    ) -> Slices[replies.SearchResults]:
        """Answer the best matches among the newest messages that the caller may see."""
        request = search.asked
        looked = yield from self.prepare(search, context, counters)
        matches = yield from looked.messages.search(looked.wanted, context.should_yield)
        looked_at = SHOWN // max(1, len(matches))
        hits: list[replies.SearchHit] = []
        size = 0
        for match in matches:
            entry = log.find(context, looked.partitions, match.id)
            assert entry is not None, "what is in the index is in the store"
            size += log.answer_bytes(entry.message)
            if hits and size > log.PAGE_BYTES:
                break
            # After a jump of the clock an older message can lie within the window of ids.
            if entry.message.timestamp >= looked.since:
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
        count = counters.count(looked.partitions)
        return replies.SearchResults(
            results=cut.kept,
            query=request.query,
            threshold=request.fuzzy_threshold,
            search_scope=request.search_scope,
            message_count=len(cut.kept),
            scanned=looked.window.scanned,
            truncated=looked.window.scanned < count or len(cut.kept) < len(matches),
            partial=UNSET if looked.partial is None else True,
            partial_reason=UNSET if looked.partial is None else looked.partial,
            left_out=cut.left_out,
            over_budget=cut.over_budget,
        )

    def prepare(self, search: FindMessages, context: Context, counters: SenderCounters) -> Slices[LookedAt]:
        """Return what a search looks at, prepared as far as one search may."""
        request = search.asked
        yield from imported("greenroom.actors.sessions.search.index")
        from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest  # noqa: PLC0415 - needs numpy

        partitions = policy.partitions(context.principal, request.search_scope)
        since = _since(request.recent_hours, context.now)
        window: Window | None = None
        while window is None:
            index = SearchIndex() if self._index is None else self._index  # an empty one is false
            if self._index is None:
                self._index, self._prepared, self._looked = index, SearchWindows(index), 0
            window = yield from self._prepared.window(
                context,
                partitions,
                newest_id=counters.newest(partitions),
                lowest_id=records.lowest_id(since),
                rows=request.max_rows_scanned,
            )
            if window is None:
                self._index = None
        wanted = SearchRequest(
            text=composed(request.query),
            partitions=partitions,
            oldest_id=window.oldest_id,
            threshold=request.fuzzy_threshold,
            limit=request.limit,
            metadata=request.search_metadata,
            words=composed(request.query if search.text is None else search.text),
            times=search.times,
            vectors=self._comparable(search.vectors, context),
        )
        reason = yield from self._complete(index, wanted, search.absence, context)
        return LookedAt(index, partitions, wanted, window, since, reason)

    # -- vectors -----------------------------------------------------------

    def note_added(self, context: Context) -> None:
        """Tell the embedder of a message that has come, if the session is searched."""
        if self._index is not None and context.sidecar is not None and context.sidecar.quick_space is None:
            context.sidecar.add_pending(context.address)

    def forget(self, context: Context, message_ids: Sequence[int]) -> Slices[None]:
        """Stage that messages have no vectors, and begin the index anew: it can lose nothing."""
        self._index = None
        self._once = []
        return self.vectors.forget(context, message_ids)

    def texts(
        self, request: TextsToEmbed, context: Context, counters: SenderCounters
    ) -> Slices[UnembeddedTexts]:
        """Hand over texts without vectors of a space: of messages that are searched, or once were."""
        if request.space == context.sidecar.quick_space:
            yield from self.vectors.drop_all_but(context, None)
            return UnembeddedTexts(texts=[], remaining=0)
        missing, count = yield from self._without_vectors(request.space, request.limit, context, counters)
        found: list[UnembeddedText] = []
        size = 0
        for message_id in missing:
            if size >= BATCH_CHARACTERS:
                break
            entry = log.find(context, counters.all_partitions(), message_id)
            if entry is not None:
                found.append(UnembeddedText(id=message_id, text=_embedded(entry)))
                size += len(found[-1].text)
            if context.should_yield():
                yield
        if not count:
            yield from self.vectors.drop_all_but(context, request.space)
        return UnembeddedTexts(texts=found, remaining=count - len(found))

    def store(
        self, request: StoreVectors, context: Context, counters: SenderCounters
    ) -> Slices[VectorsStored]:
        """Keep vectors; when all have theirs, the space takes the place of older ones."""
        there: dict[int, Vectors] = {}
        for message_id, made in request.vectors:
            if log.find(context, counters.all_partitions(), message_id) is not None:
                there[message_id] = made
            if context.should_yield():
                yield
        if there:
            self.vectors.put(context, request.space, there.items())
            if self._index is not None:
                self._index.set_vectors(request.space, there)
        _, count = yield from self._without_vectors(request.space, 1, context, counters)
        if not count:
            yield from self.vectors.drop_all_but(context, request.space)
        return VectorsStored(stored=len(there), remaining=count)

    def _comparable(self, vectors: QueryVectors | None, context: Context) -> QueryVectors | None:
        """Return a query's vectors in the space of the messages', without those of its words for a model."""
        if vectors is None:
            return None
        found = vectors.in_space(context.sidecar.quick_space or self.vectors.serving(context))
        if found is None or found.sentence is None:
            return found
        return msgspec.structs.replace(found, words=[], rows=b"")

    def _complete(
        self, index: SearchIndex, wanted: SearchRequest, absence: str | None, context: Context
    ) -> Slices[str | None]:
        """Give messages the vectors that there are, and have the others made.

        Returns:
            Why some are not compared by what they mean, where another time they are.
        """
        sidecar = context.sidecar
        if sidecar is None or sidecar.is_off:
            return None
        quick = sidecar.quick_space
        if quick is None:
            yield from self._load(index, context)
        else:
            yield from self._embed(index, wanted, quick, context)
        if quick is None and (sidecar.space is None or index.count_without(sidecar.space, wanted)):
            sidecar.add_pending(context.address)
        if absence is not None:
            return f"messages were found by their words alone, for {absence}"
        compared = wanted.vectors
        if index.count_without("" if compared is None else compared.space, wanted):
            return "some messages were found by their words alone, for they are being embedded"
        return None

    def _load(self, index: SearchIndex, context: Context) -> Slices[None]:
        """Give the messages that were prepared since the last time their vectors that are kept."""
        new = index.added_since(self._looked)
        for space in self.vectors.spaces(context):
            found: dict[int, Vectors] = {}
            for message_id in new:
                vector = self.vectors.find(context, space, message_id)
                if vector is not None:
                    found[message_id] = vector
                if len(found) == AT_ONCE:
                    index.set_vectors(space, found)
                    found = {}
                if context.should_yield():
                    yield
            index.set_vectors(space, found)
        self._looked += len(new)

    def _embed(self, index: SearchIndex, wanted: SearchRequest, space: str, context: Context) -> Slices[None]:
        """Make the vectors that take no time to speak of, of as many characters as one search may."""
        left = CHARACTERS
        while left > 0:
            made: dict[int, Vectors] = {}
            for message_id, partition in index.without_vectors(space, AT_ONCE, wanted):
                entry = log.find(context, [partition], message_id)
                assert entry is not None, "what is in the index is in the store"
                text = _embedded(entry)
                made[message_id] = context.sidecar.embed_nowait(text)
                left -= len(text)
                if context.should_yield():
                    yield
                if left <= 0:
                    break
            if not made:
                return
            if context.should_yield():
                yield
            index.set_vectors(space, made)
            if context.should_yield():
                yield

    def _without_vectors(
        self, space: str, limit: int, context: Context, counters: SenderCounters
    ) -> Slices[tuple[list[int], int]]:
        """Return messages without vectors of a space, and how many there are.

        They are those that are searched; when these have theirs, those that once were, as vectors of other
        spaces tell.
        """
        if self._index is not None:
            yield from self._prepared.catch_up(context, counters)
            yield from self._load(self._index, context)
            missing = self._index.count_without(space)
            if missing:
                return [key.id for key in self._index.without_vectors(space, limit)], missing
        others = [other for other in self.vectors.spaces(context) if other != space]
        if not others:
            return [], 0
        while self._once and self.vectors.find(context, space, self._once[-1]) is not None:
            self._once.pop()
        if not self._once:
            before = yield from self.vectors.ids(context, others)
            self._once = sorted(before - (yield from self.vectors.ids(context, [space])))
        return self._once[-limit:][::-1], len(self._once)


def _embedded(entry: Entry) -> str:
    """Return the text of a message that is embedded."""
    message = entry.message
    is_json = message.event is not None and message.event.is_json
    text = metadata_text(message.content) if is_json else message.content
    return text[:EMBEDDED_CHARACTERS]


def _since(hours: float | None, now: int) -> int:
    """Return where the last ``hours`` begin, in microseconds since 1970."""
    return 0 if hours is None or hours * HOUR >= now else now - int(hours * HOUR)


def relevance(score: float) -> replies.Relevance:
    """Return a score in a word."""
    if score >= HIGH:
        return "high"
    return "medium" if score >= MEDIUM else "low"
