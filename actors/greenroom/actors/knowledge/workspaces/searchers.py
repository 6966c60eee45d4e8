"""Processes that search files; one is kept, since its start takes 0.3 s."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from greenroom.actors.core.base.threads import get_or_make
from greenroom.actors.knowledge.ingest.parsing.parsers import Parsers, open_parsers
from greenroom.actors.knowledge.workspaces.index_lease import QUIET_SECONDS, Workspaces


class _Kept:
    """A process between two searches, and until when it waits."""

    def __init__(self) -> None:
        self.process: trio.Process | None = None
        self.until = 0.0
        self.is_watched = False

    async def end_when_quiet(self) -> None:
        """End the process after a while without a search, or when the program ends."""
        try:
            while self.until > trio.current_time():  # noqa: ASYNC110  each search puts it off
                await trio.sleep_until(self.until)
        finally:
            self.is_watched = False
            parsers = Parsers()
            parsers.put_idle(self.take())
            await parsers.close()

    def take(self) -> trio.Process | None:
        """Return the process, if it is still there, for a search."""
        process, self.process = self.process, None
        return process


_kept: Final[trio.lowlevel.RunVar[_Kept]] = trio.lowlevel.RunVar("a process for searches")


@asynccontextmanager
async def open_searchers(workspaces: Workspaces | None, seconds: float) -> AsyncIterator[Parsers]:
    """Provide parsers for a search as `open_parsers`; without ``workspaces``, none is kept."""
    async with open_parsers(seconds) as parsers:
        if workspaces is None:
            yield parsers
            return
        kept = get_or_make(_kept, _Kept)
        parsers.put_idle(kept.take())
        try:
            yield parsers
        finally:
            if kept.process is None:
                kept.process = parsers.take_idle()
            kept.until = trio.current_time() + QUIET_SECONDS
            if kept.process is not None and not kept.is_watched:
                kept.is_watched = True
                workspaces.start_soon(kept.end_when_quiet)
