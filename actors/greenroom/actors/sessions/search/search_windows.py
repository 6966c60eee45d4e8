"""The window of a search: the prepared messages, and how far back they reach.

The prepared part grows backwards when requests need older messages, and forwards with new messages. A search
prepares at most `CHARACTERS`; the next search continues.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import neg
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.sessions.search import metadata_text
from greenroom.actors.sessions.storage import message_log
from greenroom.actors.sessions.storage.message_log import SenderCounters
from greenroom.actors.sessions.storage.records import Entry
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.sessions.search.index import SearchIndex

CHARACTERS: Final = 2_500_000
"""One search prepares at most this many characters, plus the rest of its last message: 0.6 s."""


class Window(NamedTuple):
    """The messages in scope: all from ``oldest_id`` on; ``scanned`` is their number."""

    oldest_id: int
    scanned: int


class PreparedMessages:
    """The prepared messages of one partition, without gaps.

    Attributes:
        newer: Ids added after the first preparation, ascending.
        older: Ids that the first preparation and later ones prepared backwards, descending.
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
        """Return the number of prepared messages from the id ``lowest`` on."""
        newer = len(self.newer) - bisect_left(self.newer, lowest)
        return newer + bisect_right(self.older, -lowest, key=neg)


class SearchWindows:
    """The prepared messages of one session."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._prepared: dict[Partition, PreparedMessages] = {}
        self._left = 0

    def catch_up(self, context: Context, counters: SenderCounters) -> Slices[None]:
        """Prepare new messages of searched partitions, within the limit of one search."""
        self._left = CHARACTERS
        for prepared in self._prepared.values():
            if self._left > 0 and prepared.top < counters.newest_id([prepared.partition]):
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
        """Prepare the newest messages in ``partitions``, within the limit of one search.

        Returns None if the new messages exceed this limit, because then a new index is cheaper.

        Args:
            context: The message's context.
            partitions: The partitions of the reader.
            newest_id: The highest id in these partitions, or more.
            lowest_id: The lowest id that is recent enough for the window.
            rows: The most messages of the window; None for all.
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
            prepared.top = newest_id  # new messages have higher ids, in every partition
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
        for entry in message_log.walk(context, (prepared.partition,), lowest=prepared.top + 1):
            yield from self._prepare(entry)
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
        """Prepare backwards, always the partition that reaches back least, until the window is covered."""
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
                walks[prepared.partition] = message_log.walk(
                    context, (prepared.partition,), highest=prepared.floor - 1, reverse=True
                )
            entry = next(walks[prepared.partition], None)
            if entry is None:
                prepared.complete = True
            else:
                yield from self._prepare(entry)
                prepared.older.append(entry.message_id)

    def _prepare(self, entry: Entry) -> Slices[None]:
        message = entry.message
        values = metadata_text(message.metadata)
        self._left -= len(message.content) + len(values)
        yield from self._index.add_in_slices(
            entry.message_id,
            entry.partition,
            message.sender,
            message.content,
            values,
            created_at=message.timestamp,
        )


def _count(prepared_partitions: Sequence[PreparedMessages], lowest: int) -> int:
    return sum(prepared.count_from(lowest) for prepared in prepared_partitions)


def _nth_newest(prepared_partitions: Sequence[PreparedMessages], number: int) -> int:
    """Return the highest id with ``number`` prepared messages from it on."""
    low, high = 0, message_log.HIGHEST_ID
    while low < high:
        middle = (low + high + 1) // 2
        if _count(prepared_partitions, middle) >= number:
            low = middle
        else:
            high = middle - 1
    return low
