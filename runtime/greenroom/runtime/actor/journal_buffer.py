"""A write-behind buffer of journal rows: no reply waits for them, and the next group commit writes them.

They are bounded. What finds no room, here or in the store, is counted, and the count is noted when there is
room again. A note of what happened already, word for word, is counted and not kept again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import trio

from greenroom.runtime.actor.effects import Effects
from greenroom.runtime.base.clock import Clock
from greenroom.runtime.journal.chain import Journal, entry
from greenroom.runtime.lmdb import keys

NOTE_SECONDS: Final = 1.0
"""How long a note waits for a group to go with, at most."""
NOTES_LIMIT: Final = 1_024
NOTES_BYTES: Final = 1 << 20


class BufferedEntries(NamedTuple):
    """Notes that were taken out of the buffer, on their way to disk.

    Attributes:
        effects: The rows that they become.
        times: How many notes they are, by journal.
        lost: How many lost ones they tell of.
    """

    effects: Effects
    times: dict[str, int]
    lost: dict[str, int]


class JournalBuffer:
    """The journal rows that wait for the next group commit.

    Args:
        journals: The runtime's, by name.
        clock: The runtime's.

    Attributes:
        journals: The runtime's, by name.
        dropped: How many notes found no room since the runtime was opened.
    """

    def __init__(self, journals: Mapping[str, Journal], clock: Clock) -> None:
        self.journals = journals
        self._clock = clock
        self._waiting: dict[tuple[str, bytes], list[int]] = {}
        self._bytes = 0
        self._untold: dict[str, int] = {}
        self._some = trio.Event()
        self.dropped = 0

    def __bool__(self) -> bool:
        return bool(self._waiting or self._untold)

    def add(self, journal: str, value: Any) -> None:
        """Buffer a row."""
        row = keys.encode(value)
        known = self._waiting.get((journal, row))
        if known is not None:
            known[1] += 1
            return
        if len(self._waiting) >= NOTES_LIMIT or self._bytes + len(row) > NOTES_BYTES:
            self._lose({journal: 1})
            return
        self._waiting[journal, row] = [self._clock.now(), 1]
        self._bytes += len(row)
        self._some.set()

    def take(self) -> BufferedEntries:
        """Empty the buffer and return what was in it; what got lost before comes first."""
        effects = Effects(reserve=True)
        effects.dispensable = True
        times: dict[str, int] = {}
        now = self._clock.now()
        lost = self._untold
        for journal, count in lost.items():
            effects.entries.append(entry(journal, now, 1, self.journals[journal].lost(count)))
        for (journal, row), (time, count) in self._waiting.items():
            effects.entries.append((journal, time, keys.encode((time, count, msgspec.Raw(row)))))
            times[journal] = times.get(journal, 0) + count
        self._waiting, self._bytes, self._untold = {}, 0, {}
        return BufferedEntries(effects, times, lost)

    def count_lost(self, taken: BufferedEntries) -> None:
        """Count notes as lost: the store had no room for them."""
        self._lose(taken.times)
        for journal, count in taken.lost.items():
            self._untold[journal] = self._untold.get(journal, 0) + count

    async def run(self, flush: Callable[[], None]) -> None:
        """Call ``flush`` so that no note waits longer than `NOTE_SECONDS`, for ever."""
        while True:
            await self._some.wait()
            await trio.sleep(NOTE_SECONDS)
            self._some = trio.Event()
            flush()

    def _lose(self, times: Mapping[str, int]) -> None:
        for journal, count in times.items():
            self.dropped += count
            self._untold[journal] = self._untold.get(journal, 0) + count
