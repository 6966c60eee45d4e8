"""Usage counters of memories: kept in memory, written from time to time."""

from __future__ import annotations

import msgspec

from greenroom.actors.core.validation.times import SECOND
from greenroom.actors.memories.requests import keyvalue_requests as requests
from greenroom.actors.memories.storage.records import Entry, Quality, quality_key
from greenroom.actors.search.index import MemoryIndex
from greenroom.runtime import Context, Slices

TIMER = "uses"
WRITTEN_EVERY = 30 * SECOND
MOST_PENDING = 8_192
"""At most this many entries have waiting uses; until these are written, further entries are not counted."""
_BYTES_PENDING = 250


class UsageCounters:
    """The uses that are not written yet; they are lost if the actor ends before.

    ``used`` has one used entry of each partition.
    """

    def __init__(self) -> None:
        self.used: dict[int | None, Entry] = {}
        self._pending: dict[int, tuple[int, int, int]] = {}
        self._awaited = 0

    def note(self, entry: Entry, context: Context) -> None:
        """Count one use of an entry by the caller, unless the caller is impersonated."""
        now = context.now
        if context.principal is not None and context.principal.seen_by is not None:
            return
        self.used[None if entry.details is None else entry.details.partition] = entry
        known = self._pending.get(entry.number)
        if known is not None:
            self._pending[entry.number] = (entry.update, known[1] + 1, now)
        elif len(self._pending) < MOST_PENDING:
            self._pending[entry.number] = (entry.update, 1, now)

    def write_soon(self, context: Context) -> None:
        """Set a timer to write the waiting uses, unless one is set."""
        if self._pending and context.now >= self._awaited:
            if context.effects is None:
                context.use_reserve(dispensable=True)  # a read must succeed in a full store, too
            self._awaited = context.now + 2 * WRITTEN_EVERY
            context.set_timer(TIMER, context.now + WRITTEN_EVERY, requests.WriteUses())

    def quality(self, context: Context, entry: Entry) -> Quality:
        """Return an entry's quality, waiting uses included."""
        stored = context.get(quality_key(entry.number), Quality) or _NONE
        pending = self._pending.get(entry.number)
        return stored if pending is None else _with(stored, pending)

    def settle(self, context: Context, entry: Entry) -> Quality:
        """Stage the waiting uses of one entry; return its quality."""
        quality = self.quality(context, entry)
        if self._pending.pop(entry.number, None) is not None:
            context.put(quality_key(entry.number), quality)
        return quality

    def drop(self, context: Context, number: int) -> Quality:
        """Stage the removal of an entry's quality; return what it was."""
        self._pending.pop(number, None)
        stored = context.get(quality_key(number), Quality)
        if stored is None:
            return _NONE
        context.delete(quality_key(number))
        return stored

    def write(self, context: Context, index: MemoryIndex) -> Slices[None]:
        """Stage all waiting uses."""
        self._awaited = 0
        self.used = {}
        while self._pending:
            number, pending = self._pending.popitem()
            quality = _with(context.get(quality_key(number), Quality) or _NONE, pending)
            context.put(quality_key(number), quality)
            index.change(context, pending[0], uses=quality.uses, last_used=quality.last_used or 0)
            yield

    def resident_bytes(self) -> int:
        """Estimate the memory in use."""
        return len(self._pending) * _BYTES_PENDING


_NONE = Quality()


def _with(stored: Quality, pending: tuple[int, int, int]) -> Quality:
    return msgspec.structs.replace(stored, uses=stored.uses + pending[1], last_used=pending[2])
