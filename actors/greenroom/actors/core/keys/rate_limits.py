"""Rate limits and count limits in memory, without a clock or I/O.

A `TokenBucket` gets tokens at a steady rate. It stores one number: the time at which it would be full again
if nothing more were taken (GCRA). Buckets outlive connections, so a new connection does not refill a bucket.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

REMEMBERED: Final = 16_384
"""The most buckets in one process; beyond that, the least recently used one is dropped."""

_MINUTE: Final = 60.0
_MOMENT: Final = 1e-9
"""The rounding error, in seconds, when times are added."""


class TokenBucket:
    """A token bucket, by the generic cell rate algorithm (GCRA); its rate is per minute."""

    __slots__ = ("_full_at", "_interval", "_room")

    def __init__(self, rate: float, burst: int) -> None:
        self._interval = _MINUTE / rate
        self._room = (burst - 1) * self._interval
        self._full_at = 0.0

    def take(self, now: float) -> float:
        """Take a token at a monotonic time; return 0 or the seconds to wait."""
        full_at = self._full_at
        if full_at <= now:
            self._full_at = now + self._interval
            return 0.0
        wait = full_at - now - self._room
        if wait > _MOMENT:
            return wait
        self._full_at = full_at + self._interval
        return 0.0


class TokenBuckets:
    """The buckets of many holders, by name."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._by_name: OrderedDict[str, tuple[TokenBucket, float, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_name)

    def of(self, name: str, rate: float | None = None, burst: int | None = None) -> TokenBucket:
        """Return a holder's bucket; a new bucket if the rate or burst has changed."""
        rate, burst = rate or self._rate, burst or self._burst
        kept = self._by_name.get(name)
        if kept is not None and kept[1:] == (rate, burst):
            self._by_name.move_to_end(name)
            return kept[0]
        bucket = TokenBucket(rate, burst)
        self._by_name[name] = bucket, rate, burst
        if len(self._by_name) > REMEMBERED:
            self._by_name.popitem(last=False)
        return bucket


class CountLimit:
    """A counter with an upper limit; None means no limit."""

    __slots__ = ("count", "limit")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.count = 0

    def add(self, count: int = 1) -> bool:
        """Add to the count unless the sum exceeds the limit; return whether it was added."""
        if self.limit is not None and self.count + count > self.limit:
            return False
        self.count += count
        return True

    def remove(self, count: int = 1) -> None:
        """Subtract from the count."""
        self.count -= count
