"""The message log of a session, read in order over the reader's partitions.

Each partition is a separate stream in the store. So a walk reads no hidden message, and its cost depends only
on visible messages. Walks are lazy, and long walks yield between slices. A walk holds at most one page.

Counters count the messages by sender and partition; a reader's counts are sums of these counters. A count
over the whole session would reveal hidden messages.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TypeVar

import msgspec

from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.replies.damage import damaged_entry, filter_damage, note_damage
from greenroom.actors.sessions.storage.records import (
    COUNTERS,
    MESSAGES,
    CountedMessage,
    Entry,
    SenderCounter,
    StoredMessage,
    counter_key,
    message_key,
    partition_in,
    partition_prefix,
)
from greenroom.runtime import Context, RecordDamagedError, Slices, pass_over

T = TypeVar("T")

_ID_BYTES = 8
HIGHEST_ID = (1 << 53) - 1
PAGE_BYTES = 7_300_000
"""In a reply, a page of messages has at most this many bytes (`answer_bytes`), so that it fits a frame."""

_ENVELOPE_BYTES = 1_000  # a message without its content and metadata, counted twice
TALLY_BYTES = 400  # memory of one counter, roughly


def walk(
    context: Context,
    partitions: Iterable[Partition],
    *,
    lowest: int = 0,
    highest: int = HIGHEST_ID,
    reverse: bool = False,
) -> Iterator[Entry]:
    """Yield the messages with ids from ``lowest`` to ``highest`` in order, without damaged ones."""
    streams = [_entries(context, partition, lowest, highest, reverse=reverse) for partition in partitions]
    return heapq.merge(*streams, key=itemgetter(0), reverse=reverse)


def count(context: Context, partitions: Iterable[Partition], lowest: int) -> Slices[int]:
    """Return the number of messages from the id ``lowest`` on."""
    found = 0
    for partition in partitions:
        for _ in _stream(context, partition, CountedMessage, lowest, HIGHEST_ID):
            found += 1
            yield
    return found


def content_bytes(context: Context, partitions: Iterable[Partition]) -> Slices[int]:
    """Return the size of the contents of all messages, in bytes of UTF-8."""
    found = 0
    for entry in walk(context, partitions):
        found += len(entry.message.content.encode())
        yield
    return found


def skip(context: Context, partitions: Iterable[Partition], lowest: int, number: int) -> Slices[int]:
    """Return the id at which a walk continues after ``number`` messages from ``lowest`` on."""
    streams = [_stream(context, each, CountedMessage, lowest, HIGHEST_ID) for each in partitions]
    for message_id, _ in heapq.merge(*streams, key=itemgetter(0)):
        if number == 0:
            return message_id
        number -= 1
        yield
    return HIGHEST_ID + 1


def find(context: Context, partitions: Iterable[Partition], message_id: int) -> Entry | None:
    """Return one message if it is in one of these partitions.

    Raises:
        RecordDamagedError: the message is damaged.
    """
    damage: RecordDamagedError | None = None
    for partition in partitions:
        try:
            message = context.get(message_key(partition, message_id), StoredMessage)
        except RecordDamagedError as error:  # another partition may have it
            damage = damage or error
            continue
        if message is not None:
            return Entry(message_id, partition, message)
    if damage is not None:
        raise damaged_entry(damage, "the message", message_id=str(message_id))
    return None


def take_page(
    entries: Iterator[Entry],
    limit: int,
    wanted: Callable[[Entry], bool] = lambda _: True,
    there: int | None = None,
    *,
    whole: bool = False,
) -> Slices[tuple[list[Entry], bool]]:
    """Return the first wanted entries, and whether there are more.

    ``there`` is the number of wanted entries, if known; it lets the walk end at the last wanted entry. With
    ``whole``, the reply also has the contents that are stored in parts.
    """
    page: list[Entry] = []
    size = 0
    for entry in entries:
        if wanted(entry):
            event = entry.message.event
            size += answer_bytes(entry.message) + (event.whole_bytes if whole and event is not None else 0)
            if len(page) == limit or (page and size > PAGE_BYTES):
                return page, True
            page.append(entry)
            if len(page) == there:
                return page, False
        yield
    return page, False


def answer_bytes(message: StoredMessage) -> int:
    """Return the bytes of a message in a reply: as JSON, and as escaped JSON."""
    content = msgspec.json.encode(message.content)
    escaped = sum(json.count(mark) for json in (content, message.metadata) for mark in (b'"', b"\\"))
    return 2 * (len(content) + len(message.metadata)) + escaped + _ENVELOPE_BYTES


def _entries(
    context: Context, partition: Partition, lowest: int, highest: int, *, reverse: bool
) -> Iterator[Entry]:
    for message_id, message in _stream(context, partition, StoredMessage, lowest, highest, reverse=reverse):
        yield Entry(message_id, partition, message)


def _stream(
    context: Context, partition: Partition, of: type[T], lowest: int, highest: int, *, reverse: bool = False
) -> Iterator[tuple[int, T]]:
    if lowest > highest:
        return
    prefix = partition_prefix(partition)
    start = message_key(partition, highest if reverse else lowest)

    def note_lost(error: RecordDamagedError) -> None:
        message_id = int.from_bytes(error.key[-_ID_BYTES:])
        if lowest <= message_id <= highest:
            note_damage(context, damaged_entry(error, "the message", message_id=str(message_id)))

    report = filter_damage(context, prefix, note_lost)  # a neighbour may be a hidden message
    for key, message in context.scan(of, prefix=prefix, start=start, reverse=reverse, on_damage=report):
        message_id = int.from_bytes(key[len(prefix) :])
        if not lowest <= message_id <= highest:
            return
        yield message_id, message


class SenderCounters:
    """The counters of one session, in memory.

    ``last_id`` is the highest message id, hidden ones included; never return it to a caller.
    """

    def __init__(self) -> None:
        self._partitions: dict[Partition, dict[str, SenderCounter]] = {}
        self.last_id = 0

    def load(self, context: Context) -> None:
        """Read the counters from the store; recount damaged ones."""
        damage: list[RecordDamagedError] = []
        for _, counter in context.scan(SenderCounter, prefix=COUNTERS, on_damage=damage.append):
            self._partitions.setdefault(Partition(counter.audience, counter.visibility), {})[
                counter.sender
            ] = counter
            self.last_id = max(self.last_id, counter.last_id)
        if damage:
            self._recount(context)

    def _recount(self, context: Context) -> None:
        """Count the messages of senders without a counter."""
        anew: dict[tuple[Partition, str], SenderCounter] = {}
        messages = context.scan(StoredMessage, prefix=MESSAGES, on_damage=pass_over)
        for key, message in messages:
            partition, message_id = partition_in(key), int.from_bytes(key[-_ID_BYTES:])
            if message.sender in self._partitions.get(partition, {}):
                continue
            old = anew.get((partition, message.sender))
            others = int(not message.is_talk)
            anew[partition, message.sender] = SenderCounter(
                partition.audience,
                partition.visibility,
                message.sender,
                1 if old is None else old.count + 1,
                message_id,
                max(message.timestamp, 0 if old is None else old.last_at),
                others if old is None else old.others + others,
            )
        for (partition, sender), counter in anew.items():
            self._partitions.setdefault(partition, {})[sender] = counter
            self.last_id = max(self.last_id, counter.last_id)

    def record(self, context: Context, partition: Partition, message_id: int, message: StoredMessage) -> None:
        """Count a message and stage the counter of its sender."""
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

    def subtract(self, context: Context, partition: Partition, sender: str, count: int, others: int) -> None:
        """Stage the removal of ``count`` messages of a sender; ``others`` of them are other events.

        The counter stays, so that every later id is above all ids that a reader has reached.
        """
        old = self._partitions[partition][sender]
        counter = msgspec.structs.replace(old, count=old.count - count, others=old.others - others)
        self._partitions[partition][sender] = counter
        context.put(counter_key(partition, sender), counter)

    def count(self, partitions: Iterable[Partition], sender: str | None = None) -> int:
        """Return the number of messages in these partitions, of one sender or of all."""
        return sum(
            counter.count for counter in self._of(partitions) if sender is None or counter.sender == sender
        )

    def all_partitions(self) -> list[Partition]:
        """Return every partition with a message; never return the list to a caller."""
        return list(self._partitions)

    def count_talk(self, partitions: Iterable[Partition]) -> int:
        """Return the number of messages in these partitions, without events."""
        return sum(counter.count - counter.others for counter in self._of(partitions))

    def count_senders(self, partitions: Iterable[Partition]) -> int:
        """Return the number of agents with messages in these partitions."""
        return len({counter.sender for counter in self._of(partitions) if counter.count})

    def writers(self, partitions: Iterable[Partition]) -> dict[str, tuple[int, int]]:
        """Return the number of messages and the latest time by sender."""
        found: dict[str, tuple[int, int]] = {}
        for counter in self._of(partitions):
            count, last_at = found.get(counter.sender, (0, 0))
            found[counter.sender] = (count + counter.count, max(last_at, counter.last_at))
        return {sender: counted for sender, counted in found.items() if counted[0]}

    def newest_id(self, partitions: Iterable[Partition]) -> int:
        """Return the highest id ever used in these partitions, or 0."""
        return max((counter.last_id for counter in self._of(partitions)), default=0)

    def audiences(self) -> dict[str, tuple[int, int, int]]:
        """Return latest time, number of messages and number of events by audience."""
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
