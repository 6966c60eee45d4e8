"""The bytes of requests in flight: budgets, and messages that arrive in parts. No I/O."""

from __future__ import annotations

import mmap
from collections import Counter
from http import HTTPStatus
from typing import Final

from greenroom.transports.base.errors import retry_later

EACH: Final = 32 << 20
"""The smallest budget of one key, or of one address without a key, in bytes."""
LARGE: Final = 1 << 18
"""A message of at least this many bytes is held in its own pages."""
_MESSAGES: Final = 4
_RETRY_SECONDS: Final = 1
_SHARES: Final = 8


class BodyBudgets:
    """The budgets of one process.

    Args:
        max_message_bytes: The longest request, in bytes; each caller may have four of them.
    """

    def __init__(self, max_message_bytes: int = 0) -> None:
        self._each = max(EACH, _MESSAGES * max_message_bytes)
        self._all = _SHARES * self._each
        self._sizes: Counter[str] = Counter()
        self._total = 0

    def of(self, name: str | None) -> BodyBudget:
        """Return an empty budget for a caller; None as the name means no own limit."""
        return BodyBudget(self, name)

    def reserve(self, name: str | None, size: int) -> None:
        """Reserve bytes that arrived.

        Raises:
            HttpRefusedError: The limit is exceeded.
        """
        if name is not None and self._sizes[name] + size > self._each:
            sentence = f"your requests in flight have {self._each:,} bytes, which is the limit; try again"
            raise retry_later(sentence, seconds=_RETRY_SECONDS)
        if self._total + size > self._all:
            sentence = f"all requests in flight have {self._all:,} bytes, which is the limit; try again"
            raise retry_later(sentence, seconds=_RETRY_SECONDS, status=HTTPStatus.SERVICE_UNAVAILABLE)
        self._total += size
        if name is not None:
            self._sizes[name] += size

    def release(self, name: str | None, size: int) -> None:
        """Release reserved bytes."""
        self._total -= size
        if name is not None:
            self._sizes[name] -= size
            if not self._sizes[name]:
                del self._sizes[name]


class BodyBudget:
    """The reserved bytes of one request, or of successive messages of one connection."""

    __slots__ = ("_bodies", "_name", "_size")

    def __init__(self, bodies: BodyBudgets, name: str | None) -> None:
        self._bodies = bodies
        self._name = name
        self._size = 0

    def reserve(self, size: int) -> None:
        """Reserve bytes that arrived; raises what `BodyBudgets.reserve` raises."""
        self._bodies.reserve(self._name, size)
        self._size += size

    def release(self) -> None:
        """Release all reserved bytes."""
        self._bodies.release(self._name, self._size)
        self._size = 0


class ReassemblyBuffer:
    """The parts of a message that have arrived.

    A large message is held in its own pages, which the system gets back when they are dropped. Otherwise
    hundreds of large messages would fragment the heap, and the process would not shrink again.
    """

    __slots__ = ("_pages", "_size", "_small")

    def __init__(self) -> None:
        self._small = bytearray()
        self._pages: mmap.mmap | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, data: bytes) -> None:
        """Add a part."""
        size = self._size + len(data)
        if self._pages is None and size <= LARGE:
            self._small += data
        else:
            if self._pages is None or size > len(self._pages):
                self._move(2 * size)
            assert self._pages is not None, "they were just made"
            self._pages[self._size : size] = data
        self._size = size

    def take(self) -> bytes:
        """Return the whole message, and clear the buffer."""
        whole = bytes(self._small) if self._pages is None else self._pages[: self._size]
        self.clear()
        return whole

    def clear(self) -> None:
        """Drop the parts."""
        if self._pages is not None:
            self._pages.close()
            self._pages = None
        self._small = bytearray()
        self._size = 0

    def _move(self, room: int) -> None:
        pages = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if self._pages is None:
            pages[: self._size] = self._small
            self._small = bytearray()
        else:
            pages[: self._size] = self._pages[: self._size]
            self._pages.close()
        self._pages = pages
