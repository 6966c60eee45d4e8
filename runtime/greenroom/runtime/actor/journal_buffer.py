"""A write-behind buffer of journal rows, which the next group commit writes.

No reply waits for them, and the buffer is bounded. Rows without room, here or in the store, are counted; the
count is written when there is room again. A row equal to a waiting row is only counted.
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
"""The longest time that a row waits for a group commit."""
NOTES_LIMIT: Final = 1_024
NOTES_BYTES: Final = 1 << 20


class BufferedEntries(NamedTuple):
    """Rows taken from the buffer; per journal, the counts of taken and of lost rows."""

    effects: Effects
    times: dict[str, int]
    lost: dict[str, int]


class JournalBuffer:
    """Journal rows that wait for the next group commit, and a count of dropped ones."""

    def __init__(self, journals: Mapping[str, Journal], clock: Clock) -> None:
        self.journals = journals
        self._clock = clock
        self._waiting: dict[tuple[str, bytes], list[int]] = {}
        self._bytes = 0
        self._unreported: dict[str, int] = {}
        self._some = trio.Event()
        self.dropped = 0

    def __bool__(self) -> bool:
        return bool(self._waiting or self._unreported)

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
        """Empty the buffer and return its rows, after rows that report how many were lost."""
        effects = Effects(reserve=True)
        effects.dispensable = True
        times: dict[str, int] = {}
        now = self._clock.now()
        lost = self._unreported
        for journal, count in lost.items():
            effects.entries.append(entry(journal, now, 1, self.journals[journal].lost(count)))
        for (journal, row), (time, count) in self._waiting.items():
            effects.entries.append((journal, time, keys.encode((time, count, msgspec.Raw(row)))))
            times[journal] = times.get(journal, 0) + count
        self._waiting, self._bytes, self._unreported = {}, 0, {}
        return BufferedEntries(effects, times, lost)

    def count_lost(self, taken: BufferedEntries) -> None:
        """Count rows as lost: the store had no room for them."""
        self._lose(taken.times)
        for journal, count in taken.lost.items():
            self._unreported[journal] = self._unreported.get(journal, 0) + count

    async def run(self, flush: Callable[[], None]) -> None:
        """Run forever: call ``flush`` so that no row waits longer than `NOTE_SECONDS`."""
        while True:
            await self._some.wait()
            await trio.sleep(NOTE_SECONDS)
            self._some = trio.Event()
            flush()

    def _lose(self, times: Mapping[str, int]) -> None:
        for journal, count in times.items():
            self.dropped += count
            self._unreported[journal] = self._unreported.get(journal, 0) + count
