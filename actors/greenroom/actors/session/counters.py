"""Counters of messages by sender and shelf, from which each reader's counts and times are computed.

There is no figure over a whole session: it would tell of messages that the reader may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.auth.policy import Shelf
from greenroom.actors.session.records import COUNTERS, SenderCounter, StoredMessage, counter_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from greenroom.runtime import Context

TALLY_BYTES = 400  # of memory, roughly


class SenderCounters:
    """The counters of one session, all of them in memory.

    Attributes:
        last_id: The highest message id, hidden ones included; it must not get out.
    """

    def __init__(self) -> None:
        self._shelves: dict[Shelf, dict[str, SenderCounter]] = {}
        self.last_id = 0

    def load(self, context: Context) -> None:
        """Read them from the store."""
        for _, counter in context.scan(SenderCounter, prefix=COUNTERS):
            self._shelves.setdefault(Shelf(counter.audience, counter.visibility), {})[counter.sender] = (
                counter
            )
            self.last_id = max(self.last_id, counter.last_id)

    def record(self, context: Context, shelf: Shelf, message_id: int, message: StoredMessage) -> None:
        """Count a message and stage its sender's tally."""
        sender, last_at, others = message.sender, message.timestamp, int(not message.is_talk)
        senders = self._shelves.setdefault(shelf, {})
        old = senders.get(sender)
        count = 1
        if old is not None:
            count, last_at, others = old.count + 1, max(old.last_at, last_at), old.others + others
        counter = SenderCounter(shelf.audience, shelf.visibility, sender, count, message_id, last_at, others)
        senders[sender] = counter
        self.last_id = max(self.last_id, message_id)
        context.put(counter_key(shelf, sender), counter)

    def count(self, shelves: Iterable[Shelf], sender: str | None = None) -> int:
        """Return how many messages lie on these shelves, of one sender or of all."""
        return sum(
            counter.count for counter in self._of(shelves) if sender is None or counter.sender == sender
        )

    def all_shelves(self) -> list[Shelf]:
        """Return every shelf on which a message lies; which there are must not get out."""
        return list(self._shelves)

    def talk(self, shelves: Iterable[Shelf]) -> int:
        """Return how many of the messages on these shelves are talk, and no events."""
        return sum(counter.count - counter.others for counter in self._of(shelves))

    def senders(self, shelves: Iterable[Shelf]) -> int:
        """Return how many agents have written on these shelves."""
        return len({counter.sender for counter in self._of(shelves)})

    def newest(self, shelves: Iterable[Shelf]) -> int:
        """Return the highest message id on these shelves, or 0."""
        return max((counter.last_id for counter in self._of(shelves)), default=0)

    def audiences(self) -> dict[str, tuple[int, int, int]]:
        """Return by audience the latest time of a message, how many there are, and how many are no talk."""
        found: dict[str, tuple[int, int, int]] = {}
        for counter in self._of(self._shelves):
            at, count, others = found.get(counter.audience, (0, 0, 0))
            found[counter.audience] = (
                max(at, counter.last_at),
                count + counter.count,
                others + counter.others,
            )
        return found

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return TALLY_BYTES * sum(len(senders) for senders in self._shelves.values())

    def _of(self, shelves: Iterable[Shelf]) -> Iterator[SenderCounter]:
        for shelf in shelves:
            yield from self._shelves.get(shelf, {}).values()
