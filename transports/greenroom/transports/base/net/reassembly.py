"""Reassemble a message whose bytes arrive in parts."""

from __future__ import annotations

import mmap
from typing import Final

LARGE: Final = 1 << 18
"""The size in bytes from which a message is held in pages of its own."""


class ReassemblyBuffer:
    """The parts of a message that have arrived.

    A large message is held in pages of its own, which the system gets back once they are dropped. Otherwise
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
        """Drop it."""
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
