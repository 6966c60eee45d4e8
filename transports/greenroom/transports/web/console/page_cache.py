"""Pages as they were made last, for tabs that show the same to the same person.

Invariants:

- What a page was made of stands in its tag: who looks, where, and every reply that was read for it. So
  whoever may see less reads less, and finds no page of somebody else's.
- Nothing is kept beyond the minute in which it was made, but until the next page is asked for. Times that are
  shown as "5 min ago" are at most a minute behind.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec
import trio

MOST_KEPT: Final = 4 << 20
"""Bytes of all pages that are kept; one that has more than an eighth of it is not."""


class KeptPages:
    """Knows what the pages of the last minute were made of.

    Args:
        now: Returns the wall clock in seconds since 1970 UTC.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._secret = secrets.token_bytes(32)  # so that a tag tells nothing of what was read
        self._minute = 0
        self._size = 0
        self._pages: dict[str, bytes] = {}
        self._under_way: dict[str, trio.Event] = {}

    def tag(self, *shown: Any, read: Sequence[bytes]) -> str:
        """Return the tag of a page, as it stands in the header ``ETag``.

        Args:
            shown: What it is made of besides what is read: values that can be written as JSON.
            read: Digests of what was read for it.
        """
        self._begin_minute()
        digest = blake2b(key=self._secret, digest_size=16)
        for each in (msgspec.json.encode((self._minute, shown)), *read):
            digest.update(b"%d:" % len(each) + each)
        return f'"{digest.hexdigest()}"'

    async def page(self, tag: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the page of a tag, made unless it is kept; several who want it at once have it made once."""
        while (kept := self._pages.get(tag)) is None:
            if (made := self._under_way.get(tag)) is None:
                return await self._made(tag, make)
            await made.wait()
        return kept

    async def _made(self, tag: str, make: Callable[[], Awaitable[bytes]]) -> bytes:
        event = self._under_way[tag] = trio.Event()
        try:
            page = await make()
            self._keep(tag, page)
        finally:
            del self._under_way[tag]
            event.set()
        return page

    def _keep(self, tag: str, page: bytes) -> None:
        if len(page) > MOST_KEPT // 8:
            return
        self._pages[tag] = page
        self._size += len(page)
        while self._size > MOST_KEPT:
            self._size -= len(self._pages.pop(next(iter(self._pages))))

    def _begin_minute(self) -> None:
        minute = int(self._now() // 60)
        if minute != self._minute:
            self._minute, self._size = minute, 0
            self._pages.clear()
