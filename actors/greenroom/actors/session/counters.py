"""Counters of messages by sender and partition, from which each reader's counts and times are computed.

There is no figure over a whole session: it would tell of messages that the reader may not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from greenroom.actors.auth.policy import Partition
from greenroom.actors.session.records import COUNTERS, SenderCounter, StoredMessage, counter_key
from greenroom.runtime import Context

TALLY_BYTES = 400  # of memory, roughly


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
        """Return how many agents have written in these partitions."""
        return len({counter.sender for counter in self._of(partitions)})

    def newest(self, partitions: Iterable[Partition]) -> int:
        """Return the highest message id in these partitions, or 0."""
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
