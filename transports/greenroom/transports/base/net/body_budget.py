"""Budgets of bytes of requests under way: for each caller, and for all together. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import Final

from greenroom.transports.base.errors import HttpRefusedError

EACH: Final = 32 << 20
"""Bytes that one key, or one address without a key, may have under way at least."""
_FRAMES: Final = 4
_SHARES: Final = 8


class BodyBudgets:
    """The budgets of one process.

    Args:
        frame: The longest request, in bytes; everybody may have four of these.
    """

    def __init__(self, frame: int = 0) -> None:
        self._each = max(EACH, _FRAMES * frame)
        self._all = _SHARES * self._each
        self._sizes: Counter[str] = Counter()
        self._total = 0

    def of(self, name: str | None) -> BodyBudget:
        """Return an empty budget for a caller's name; None has no limit of its own."""
        return BodyBudget(self, name)

    def reserve(self, name: str | None, size: int) -> None:
        """Count bytes that arrived.

        Raises:
            HttpRefusedError: they are too many.
        """
        if name is not None and self._sizes[name] + size > self._each:
            sentence = f"requests of yours under way have {self._each:,} bytes, which is the limit; ask again"
            raise HttpRefusedError(HTTPStatus.TOO_MANY_REQUESTS, sentence, **{"Retry-After": "1"})
        if self._total + size > self._all:
            sentence = f"requests of all under way have {self._all:,} bytes, which is the limit; ask again"
            raise HttpRefusedError(HTTPStatus.SERVICE_UNAVAILABLE, sentence, **{"Retry-After": "1"})
        self._total += size
        if name is not None:
            self._sizes[name] += size

    def release(self, name: str | None, size: int) -> None:
        """Release counted bytes."""
        self._total -= size
        if name is not None:
            self._sizes[name] -= size
            if not self._sizes[name]:
                del self._sizes[name]


class BodyBudget:
    """The counted bytes of one request, or of one message after the other."""

    __slots__ = ("_bodies", "_name", "_size")

    def __init__(self, bodies: BodyBudgets, name: str | None) -> None:
        self._bodies = bodies
        self._name = name
        self._size = 0

    def reserve(self, size: int) -> None:
        """Count bytes that arrived; raises as `BodyBudgets.reserve`."""
        self._bodies.reserve(self._name, size)
        self._size += size

    def release(self) -> None:
        """Release all of them."""
        self._bodies.release(self._name, self._size)
        self._size = 0
