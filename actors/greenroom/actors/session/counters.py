"""How much each sender has put on each shelf: what counts and times are computed from, per reader.

There is no figure over a whole session: it would tell of messages that the reader may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.auth.policy import Shelf
from greenroom.actors.session.records import TALLIES, StoredMessage, Tally, tally_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from greenroom.runtime import Context

TALLY_BYTES = 400  # of memory, roughly


class Tallies:
    """The tallies of one session, all of them in memory.

    Attributes:
        last_id: The highest message id, hidden ones included; it must not get out.
    """

    def __init__(self) -> None:
        self._shelves: dict[Shelf, dict[str, Tally]] = {}
        self.last_id = 0

    def load(self, context: Context) -> None:
        """Read them from the store."""
        for _, tally in context.scan(Tally, prefix=TALLIES):
            self._shelves.setdefault(Shelf(tally.audience, tally.visibility), {})[tally.sender] = tally
            self.last_id = max(self.last_id, tally.last_id)

    def record(self, context: Context, shelf: Shelf, message_id: int, message: StoredMessage) -> None:
        """Count a message and stage its sender's tally."""
        sender, last_at, others = message.sender, message.timestamp, int(not message.is_talk)
        senders = self._shelves.setdefault(shelf, {})
        old = senders.get(sender)
        count = 1
        if old is not None:
            count, last_at, others = old.count + 1, max(old.last_at, last_at), old.others + others
        tally = Tally(shelf.audience, shelf.visibility, sender, count, message_id, last_at, others)
        senders[sender] = tally
        self.last_id = max(self.last_id, message_id)
        context.put(tally_key(shelf, sender), tally)

    def count(self, shelves: Iterable[Shelf], sender: str | None = None) -> int:
        """Return how many messages lie on these shelves, of one sender or of all."""
        return sum(tally.count for tally in self._of(shelves) if sender is None or tally.sender == sender)

    def all_shelves(self) -> list[Shelf]:
        """Return every shelf on which a message lies; which there are must not get out."""
        return list(self._shelves)

    def talk(self, shelves: Iterable[Shelf]) -> int:
        """Return how many of the messages on these shelves are messages in the narrow sense."""
        return sum(tally.count - tally.others for tally in self._of(shelves))

    def senders(self, shelves: Iterable[Shelf]) -> int:
        """Return how many agents have written on these shelves."""
        return len({tally.sender for tally in self._of(shelves)})

    def newest(self, shelves: Iterable[Shelf]) -> int:
        """Return the highest message id on these shelves, or 0."""
        return max((tally.last_id for tally in self._of(shelves)), default=0)

    def audiences(self) -> dict[str, tuple[int, int, int]]:
        """Return by audience the latest time of a message, how many there are, and how many are no talk."""
        found: dict[str, tuple[int, int, int]] = {}
        for tally in self._of(self._shelves):
            at, count, others = found.get(tally.audience, (0, 0, 0))
            found[tally.audience] = (max(at, tally.last_at), count + tally.count, others + tally.others)
        return found

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return TALLY_BYTES * sum(len(senders) for senders in self._shelves.values())

    def _of(self, shelves: Iterable[Shelf]) -> Iterator[Tally]:
        for shelf in shelves:
            yield from self._shelves.get(shelf, {}).values()
