"""Pages rendered in short slices of work, and cached for several tabs of one person.

Invariants:

- A page's tag depends on everything that makes the page: reader, place, and all replies. A reader with fewer
  rights gets other replies, so this reader never gets a page of another reader.
- Pages stay cached until the first request of the next minute, so "5 min ago" is at most a minute old.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import blake2b
from time import perf_counter
from typing import Any, Final

import msgspec
import trio

MOST_CACHED: Final = 4 << 20
"""The most bytes of all cached pages; a page of more than an eighth of this is not cached."""


class PageCache:
    """Caches the pages of the current minute."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._secret = secrets.token_bytes(32)  # so that a tag reveals nothing of the page
        self._minute = 0
        self._size = 0
        self._pages: dict[str, bytes] = {}
        self._under_way: dict[str, trio.Event] = {}

    def tag(self, *shown: Any, read: Sequence[bytes]) -> str:
        """Return the tag of a page, for the header ``ETag``.

        Args:
            shown: The values that make the page, besides replies; JSON can encode them.
            read: Digests of the replies.
        """
        self._begin_minute()
        digest = blake2b(key=self._secret, digest_size=16)
        for each in (msgspec.json.encode((self._minute, shown)), *read):
            digest.update(b"%d:" % len(each) + each)
        return f'"{digest.hexdigest()}"'

    async def page(self, tag: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the page of a tag; simultaneous requests share one rendering."""
        while (kept := self._pages.get(tag)) is None:
            if (made := self._under_way.get(tag)) is None:
                return await self._make(tag, make)
            await made.wait()
        return kept

    async def _make(self, tag: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        event = self._under_way[tag] = trio.Event()
        try:
            page = await make()
            self._keep(tag, page)
        finally:
            del self._under_way[tag]
            event.set()
        return page

    def _keep(self, tag: str, page: bytes) -> None:
        if len(page) > MOST_CACHED // 8:
            return
        self._pages[tag] = page
        self._size += len(page)
        while self._size > MOST_CACHED:
            self._size -= len(self._pages.pop(next(iter(self._pages))))

    def _begin_minute(self) -> None:
        minute = int(self._now() // 60)
        if minute != self._minute:
            self._minute, self._size = minute, 0
            self._pages.clear()


SLICE: Final = 0.0005
"""Seconds of work after which a page yields to the event loop."""
PASSES: Final = 4
"""The event loop runs this often between two slices; a request takes about as many runs."""


class Turns:
    """Lets only one page at a time compute, so many block no longer than one."""

    def __init__(self, slice_seconds: float = SLICE) -> None:
        self._slice_seconds = slice_seconds
        self._turn = trio.Lock()

    async def join(self, parts: Iterable[str]) -> str:
        """Join texts that may be slow to compute."""
        made: list[str] = []
        more = iter(parts)
        is_over = False
        while not is_over:
            async with self._turn:
                is_over = _slice(more, made, self._slice_seconds)
                for _ in range(PASSES):
                    await trio.lowlevel.checkpoint()
        return "".join(made)


def _slice(parts: Iterable[str], made: list[str], seconds: float) -> bool:
    """Append texts until the slice is over; return whether there are no more texts."""
    ends = perf_counter() + seconds
    for part in parts:
        made.append(part)
        if perf_counter() >= ends:
            return False
    return True
