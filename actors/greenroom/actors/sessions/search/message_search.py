"""Search of a session: its index in memory, and the vectors of its messages.

Requests fill the index as they need it (`search_windows`); it lives as long as the actor is resident. A
session that was not searched has no index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies.damage import read_undamaged
from greenroom.actors.core.validation.times import HOUR
from greenroom.actors.search.embedding.embedder import EMBEDDED_CHARACTERS
from greenroom.actors.search.embedding.vector_messages import (
    QueryVectors,
    StoreVectors,
    TextsToEmbed,
    UnembeddedText,
    UnembeddedTexts,
    Vectors,
    VectorsStored,
)
from greenroom.actors.sessions.requests.requests import FindMessages
from greenroom.actors.sessions.search import metadata_text
from greenroom.actors.sessions.search.search_windows import CHARACTERS, SearchWindows, Window
from greenroom.actors.sessions.storage import message_log, records
from greenroom.actors.sessions.storage.message_log import SenderCounters
from greenroom.actors.sessions.storage.message_vectors import MessageVectors
from greenroom.actors.sessions.storage.records import Entry
from greenroom.runtime import Context, RecordDamagedError, Slices

if TYPE_CHECKING:
    from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest

AT_ONCE: Final = 256  # vectors that are set without a pause (1 ms)
BATCH_CHARACTERS: Final = 400_000


class PreparedSearch(NamedTuple):
    """A prepared search; ``partial``: why some messages were not compared by meaning."""

    messages: SearchIndex
    partitions: Sequence[Partition]
    wanted: SearchRequest
    window: Window
    since: int
    partial: str | None


class MessageSearch:
    """The search of a session, with an index until the actor passivates."""

    def __init__(self, counters: SenderCounters) -> None:
        self.vectors = MessageVectors()
        self._counters = counters
        self._index: SearchIndex | None = None
        self._prepared: SearchWindows
        self._looked = 0
        self._once: list[int] = []
        self._lost: set[int] = set()

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return 0 if self._index is None else self._index.resident_bytes()

    def note_lost(self, context: Context, partitions: Iterable[Partition]) -> None:
        """Report damaged messages in the reply, including those that earlier searches found."""
        self._lost |= {int(each.entry["message_id"]) for each in context.damage if "message_id" in each.entry}
        for message_id in self._lost:
            read_undamaged(context, message_log.find, context, partitions, message_id)

    def prepare(self, search: FindMessages, context: Context) -> Slices[PreparedSearch]:
        """Prepare a search, within the limits of one search."""
        request = search.asked
        yield from import_in_thread("greenroom.actors.sessions.search.index")
        from greenroom.actors.sessions.search.index import SearchIndex, SearchRequest  # noqa: PLC0415 - needs numpy

        partitions = policy.partitions(context.principal, request.search_scope)
        since = _since(request.recent_hours, context.now)
        window: Window | None = None
        while window is None:
            index = SearchIndex() if self._index is None else self._index  # not `or`: an empty index is false
            if self._index is None:
                self._index, self._prepared, self._looked = index, SearchWindows(index), 0
            window = yield from self._prepared.window(
                context,
                partitions,
                newest_id=self._counters.newest_id(partitions),
                lowest_id=records.lowest_id(since),
                rows=request.max_rows_scanned,
            )
            if window is None:
                self._index = None
        wanted = SearchRequest(
            text=compose(request.query),
            partitions=partitions,
            oldest_id=window.oldest_id,
            threshold=request.fuzzy_threshold,
            limit=request.limit,
            metadata=request.search_metadata,
            words=compose(request.query if search.text is None else search.text),
            times=search.times,
            vectors=self._comparable(search.vectors, context),
        )
        reason = yield from self._complete(index, wanted, search.absence, context)
        return PreparedSearch(index, partitions, wanted, window, since, reason)

    # -- vectors -----------------------------------------------------------

    def note_added(self, context: Context) -> None:
        """Report a new message to the embedder, if the session has an index."""
        if self._index is not None and context.sidecar is not None and context.sidecar.quick_space is None:
            context.sidecar.add_pending(context.address)

    def forget(self, context: Context, message_ids: Sequence[int]) -> Slices[None]:
        """Stage the removal of vectors, and drop the index, which cannot remove messages."""
        self._index = None
        self._once = []
        return self.vectors.forget(context, message_ids)

    def texts(self, request: TextsToEmbed, context: Context) -> Slices[UnembeddedTexts]:
        """Return texts that lack vectors in a space, of messages that were searched before."""
        if request.space == context.sidecar.quick_space:
            yield from self.vectors.drop_all_but(context, None)
            return UnembeddedTexts(texts=[], remaining=0)
        missing, count = yield from self._without_vectors(request.space, request.limit, context)
        found: list[UnembeddedText] = []
        size = 0
        for message_id in missing:
            if size >= BATCH_CHARACTERS:
                break
            entry = self._sound(context, message_id)
            if entry is not None:
                found.append(UnembeddedText(id=message_id, text=_embedded(entry)))
                size += len(found[-1].text)
            yield
        if not count:
            yield from self.vectors.drop_all_but(context, request.space)
        return UnembeddedTexts(texts=found, remaining=count - len(found))

    def store(self, request: StoreVectors, context: Context) -> Slices[VectorsStored]:
        """Store vectors; a complete space replaces the older ones."""
        there: dict[int, Vectors] = {}
        for message_id, made in request.vectors:
            if self._sound(context, message_id) is not None:
                there[message_id] = made
            yield
        if there:
            self.vectors.put(context, request.space, there.items())
            if self._index is not None:
                self._index.set_vectors(request.space, there)
        _, count = yield from self._without_vectors(request.space, 1, context)
        if not count:
            yield from self.vectors.drop_all_but(context, request.space)
        return VectorsStored(stored=len(there), remaining=count)

    def _sound(self, context: Context, message_id: int) -> Entry | None:
        """Return a message; None if it is missing or damaged (other replies report damage)."""
        try:
            return message_log.find(context, self._counters.all_partitions(), message_id)
        except RecordDamagedError:
            return None

    def _comparable(self, vectors: QueryVectors | None, context: Context) -> QueryVectors | None:
        """Return the query's vectors in the messages' space: sentence vector, or else word vectors."""
        if vectors is None:
            return None
        found = vectors.in_space(context.sidecar.quick_space or self.vectors.serving(context))
        if found is None or found.sentence is None:
            return found
        return msgspec.structs.replace(found, words=[], rows=b"")

    def _complete(
        self, index: SearchIndex, wanted: SearchRequest, absence: str | None, context: Context
    ) -> Slices[str | None]:
        """Load or compute vectors, and request missing ones; return why some are missing."""
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
                yield
            index.set_vectors(space, found)
        self._looked += len(new)

    def _embed(self, index: SearchIndex, wanted: SearchRequest, space: str, context: Context) -> Slices[None]:
        """Compute fast vectors, within the limit of characters of one search."""
        left = CHARACTERS
        while left > 0:
            made: dict[int, Vectors] = {}
            for message_id, partition in index.without_vectors(space, AT_ONCE, wanted):
                entry = read_undamaged(context, message_log.find, context, [partition], message_id)
                text = "" if entry is None else _embedded(entry)
                made[message_id] = context.sidecar.embed_nowait(text)
                left -= len(text)
                yield
                if left <= 0:
                    break
            if not made:
                return
            yield
            index.set_vectors(space, made)
            yield

    def _without_vectors(self, space: str, limit: int, context: Context) -> Slices[tuple[list[int], int]]:
        """Return messages without vectors in a space, and their number.

        Messages in the index come first, then messages with vectors in other spaces, from earlier searches.
        """
        if self._index is not None:
            yield from self._prepared.catch_up(context, self._counters)
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
    message = entry.message
    is_json = message.event is not None and message.event.is_json
    text = metadata_text(message.content) if is_json else message.content
    return text[:EMBEDDED_CHARACTERS]


def _since(hours: float | None, now: int) -> int:
    return 0 if hours is None or hours * HOUR >= now else now - int(hours * HOUR)
