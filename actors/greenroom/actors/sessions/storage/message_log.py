"""The messages of a session, walked in order over the partitions that a reader may see.

Each partition is a stream of its own in the store, so a walk touches nothing hidden
and costs what is visible. Walks are lazy and long ones are generators that yield
between slices; none holds more than its page.

Counts of messages are kept by sender and partition, from which those of each reader are made. There is no
figure over a whole session: it would tell of messages that the reader may not see.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TypeVar

import msgspec

from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.sessions.storage.records import (
    COUNTERS,
    CountedMessage,
    Entry,
    SenderCounter,
    StoredMessage,
    counter_key,
    message_key,
    partition_prefix,
)
from greenroom.runtime import Context, Slices

T = TypeVar("T")

HIGHEST_ID = (1 << 53) - 1
PAGE_BYTES = 7_300_000
"""How much of an answer the messages of a page may take (`answer_bytes`), so that it fits a frame."""

_ENVELOPE_BYTES = 1_000  # a message without its content and metadata, twice
TALLY_BYTES = 400  # of memory, roughly


def walk(
    context: Context,
    partitions: Iterable[Partition],
    *,
    lowest: int = 0,
    highest: int = HIGHEST_ID,
    reverse: bool = False,
) -> Iterator[Entry]:
    """Yield the messages with ids from ``lowest`` to ``highest``, both included, by id."""
    streams = [
        _entries(partition, stream)
        for partition, stream in _streams(
            context, partitions, StoredMessage, lowest, highest, reverse=reverse
        )
    ]
    return heapq.merge(*streams, key=itemgetter(0), reverse=reverse)


def count(context: Context, partitions: Iterable[Partition], lowest: int) -> Slices[int]:
    """Return how many messages there are from the id ``lowest`` on."""
    found = 0
    for _, stream in _streams(context, partitions, CountedMessage, lowest, HIGHEST_ID):
        for _ in stream:
            found += 1
            if context.should_yield():
                yield
    return found


def content_bytes(context: Context, partitions: Iterable[Partition]) -> Slices[int]:
    """Return how many bytes of UTF-8 the contents of the messages have."""
    found = 0
    for entry in walk(context, partitions):
        found += len(entry.message.content.encode())
        if context.should_yield():
            yield
    return found


def skip(context: Context, partitions: Iterable[Partition], lowest: int, number: int) -> Slices[int]:
    """Return the id from which a walk goes on after ``number`` messages from ``lowest`` on."""
    streams = [stream for _, stream in _streams(context, partitions, CountedMessage, lowest, HIGHEST_ID)]
    for message_id, _ in heapq.merge(*streams, key=itemgetter(0)):
        if number == 0:
            return message_id
        number -= 1
        if context.should_yield():
            yield
    return HIGHEST_ID + 1


def find(context: Context, partitions: Iterable[Partition], message_id: int) -> Entry | None:
    """Return one message if it lies on one of these partitions."""
    for partition in partitions:
        message = context.get(message_key(partition, message_id), StoredMessage)
        if message is not None:
            return Entry(message_id, partition, message)
    return None


def take(
    context: Context,
    entries: Iterator[Entry],
    limit: int,
    wanted: Callable[[Entry], bool] = lambda _: True,
    there: int | None = None,
    *,
    whole: bool = False,
) -> Slices[tuple[list[Entry], bool]]:
    """Return the first wanted entries, and whether there are more.

    Args:
        context: The message's context.
        entries: A walk.
        limit: How many to return; fewer when they fill a page.
        wanted: Which entries count.
        there: How many wanted ones there are, when known, so that the walk can end at the last.
        whole: Whether the answer has contents in parts, too, which agents never get.
    """
    page: list[Entry] = []
    size = 0
    for entry in entries:
        if wanted(entry):
            size += answer_bytes(entry.message) + (_bytes_in_parts(entry.message) if whole else 0)
            if len(page) == limit or (page and size > PAGE_BYTES):
                return page, True
            page.append(entry)
            if len(page) == there:
                return page, False
        if context.should_yield():
            yield
    return page, False


def answer_bytes(message: StoredMessage) -> int:
    """Return what a message takes of an answer: there it stands as JSON and again as JSON in a string."""
    content = msgspec.json.encode(message.content)
    escaped = sum(json.count(mark) for json in (content, message.metadata) for mark in (b'"', b"\\"))
    return 2 * (len(content) + len(message.metadata)) + escaped + _ENVELOPE_BYTES


def _bytes_in_parts(message: StoredMessage) -> int:
    return 0 if message.event is None else message.event.whole_bytes


def _entries(partition: Partition, stream: Iterator[tuple[int, StoredMessage]]) -> Iterator[Entry]:
    return (Entry(message_id, partition, message) for message_id, message in stream)


def _streams(
    context: Context,
    partitions: Iterable[Partition],
    of: type[T],
    lowest: int,
    highest: int,
    *,
    reverse: bool = False,
) -> Sequence[tuple[Partition, Iterator[tuple[int, T]]]]:
    return [
        (partition, _stream(context, partition, of, lowest, highest, reverse=reverse))
        for partition in partitions
    ]


def _stream(
    context: Context, partition: Partition, of: type[T], lowest: int, highest: int, *, reverse: bool
) -> Iterator[tuple[int, T]]:
    if lowest > highest:
        return
    prefix = partition_prefix(partition)
    start = message_key(partition, highest if reverse else lowest)
    for key, message in context.scan(of, prefix=prefix, start=start, reverse=reverse):
        message_id = int.from_bytes(key[len(prefix) :])
        if not lowest <= message_id <= highest:
            return
        yield message_id, message


class SenderCounters:
    """The counters of one session, all of them in memory.

    Attributes:
        last_id: The highest message id, hidden ones included; it must not get out.
    """

    def __init__(self) -> None:
        self._partitions: dict[Partition, dict[str, SenderCounter]] = {}
        self.last_id = 0

    def load(self, context: Context) -> None:
        """Read them from the store."""
        for _, counter in context.scan(SenderCounter, prefix=COUNTERS):
            self._partitions.setdefault(Partition(counter.audience, counter.visibility), {})[
                counter.sender
            ] = counter
            self.last_id = max(self.last_id, counter.last_id)

    def record(self, context: Context, partition: Partition, message_id: int, message: StoredMessage) -> None:
        """Count a message and stage its sender's tally."""
        sender, last_at, others = message.sender, message.timestamp, int(not message.is_talk)
        senders = self._partitions.setdefault(partition, {})
        old = senders.get(sender)
        count = 1
        if old is not None:
            count, last_at, others = old.count + 1, max(old.last_at, last_at), old.others + others
        counter = SenderCounter(
            partition.audience, partition.visibility, sender, count, message_id, last_at, others
        )
        senders[sender] = counter
        self.last_id = max(self.last_id, message_id)
        context.put(counter_key(partition, sender), counter)

    def uncount(self, context: Context, partition: Partition, sender: str, count: int, others: int) -> None:
        """Stage that messages of a sender were removed, of which ``others`` are no talk.

        The counter stays, so that no later id is below one that somebody has read to.
        """
        old = self._partitions[partition][sender]
        counter = msgspec.structs.replace(old, count=old.count - count, others=old.others - others)
        self._partitions[partition][sender] = counter
        context.put(counter_key(partition, sender), counter)

    def count(self, partitions: Iterable[Partition], sender: str | None = None) -> int:
        """Return how many messages lie in these partitions, of one sender or of all."""
        return sum(
            counter.count for counter in self._of(partitions) if sender is None or counter.sender == sender
        )

    def all_partitions(self) -> list[Partition]:
        """Return every partition in which a message lies; which there are must not get out."""
        return list(self._partitions)

    def talk(self, partitions: Iterable[Partition]) -> int:
        """Return how many of the messages in these partitions are talk, and no events."""
        return sum(counter.count - counter.others for counter in self._of(partitions))

    def senders(self, partitions: Iterable[Partition]) -> int:
        """Return how many agents have messages in these partitions."""
        return len({counter.sender for counter in self._of(partitions) if counter.count})

    def writers(self, partitions: Iterable[Partition]) -> dict[str, tuple[int, int]]:
        """Return by sender how many messages lie in these partitions, and the latest time of one."""
        found: dict[str, tuple[int, int]] = {}
        for counter in self._of(partitions):
            count, last_at = found.get(counter.sender, (0, 0))
            found[counter.sender] = (count + counter.count, max(last_at, counter.last_at))
        return {sender: counted for sender, counted in found.items() if counted[0]}

    def newest(self, partitions: Iterable[Partition]) -> int:
        """Return the highest id that a message in these partitions ever had, or 0."""
        return max((counter.last_id for counter in self._of(partitions)), default=0)

    def audiences(self) -> dict[str, tuple[int, int, int]]:
        """Return by audience the latest time of a message, how many there are, and how many are no talk."""
        found: dict[str, tuple[int, int, int]] = {}
        for counter in self._of(self._partitions):
            at, count, others = found.get(counter.audience, (0, 0, 0))
            found[counter.audience] = (
                max(at, counter.last_at),
                count + counter.count,
                others + counter.others,
            )
        return found

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return TALLY_BYTES * sum(len(senders) for senders in self._partitions.values())

    def _of(self, partitions: Iterable[Partition]) -> Iterator[SenderCounter]:
        for partition in partitions:
            yield from self._partitions.get(partition, {}).values()
