"""Mask secrets in whole files; a process with limits searches large files.

A regular-expression search blocks all threads of its process, so long searches run in another process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from greenroom.actors.content.documents import Marks, digest_of, find_marks
from greenroom.actors.core.base.regular_files import UnreadableFileError
from greenroom.actors.core.base.threads import get_or_make, read_in_thread
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.actors.knowledge.ingest.parsing.parsers import Parsers

SMALL: Final = 64 << 10
"""Largest file, in bytes, that is searched in the server's process."""
SECONDS: Final = 45.0
"""Time limit of searching one file; a megabyte with many words takes two seconds."""
MOST_AT_ONCE: Final = 2
_OF_PROCESSOR: Final = 10.0
_MOST_KNOWN: Final = 64
_MOST_MARKS: Final = 10_000
_known: trio.lowlevel.RunVar[dict[str, Marks]] = trio.lowlevel.RunVar("marks of large files")
_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("files masked")


class Masking:
    """Finds secrets, and caches the marks of recent files by digest."""

    def __init__(self, parsers: Parsers) -> None:
        self._parsers = parsers

    async def find_marks(self, data: bytes) -> Marks:
        """Return the marks of a whole file.

        Raises:
            UnreadableFileError: The search took too much time or memory.
        """
        if len(data) <= SMALL:
            return await read_in_thread(find_marks, data)
        key = await read_in_thread(digest_of, data)
        known = get_or_make(_known, dict[str, Marks])
        marks = known.pop(key, None) or await self._search(data)
        if len(marks.places) <= _MOST_MARKS:
            known[key] = marks
        while len(known) > _MOST_KNOWN:
            del known[next(iter(known))]
        return marks

    async def _search(self, data: bytes) -> Marks:
        job = Job("", "code", 0, data, is_masked=True)
        with trio.move_on_after(SECONDS):
            async with get_or_make(_limiter, lambda: trio.CapacityLimiter(MOST_AT_ONCE)):
                found = await self._parsers.search(job)
            if found.marks is not None:
                return found.marks
        raise UnreadableFileError(
            f"its {len(data):,} bytes could not be looked through for secrets within {SECONDS:g} s"
        )


@asynccontextmanager
async def open_masking() -> AsyncIterator[Masking]:
    """Provide a process for large files while the context is open."""
    parsers = Parsers(_OF_PROCESSOR, languages=("english",))
    try:
        yield Masking(parsers)
    finally:
        await parsers.close()
