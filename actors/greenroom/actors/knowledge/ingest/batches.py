"""Batches of parsed files, which share one commit and one segment of the index."""

from __future__ import annotations

from typing import Final, NamedTuple

import trio

from greenroom.actors.knowledge.corpora.requests.corpus_requests import MAX_PUTS, PutDocument
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job

MAX_CHARACTERS: Final = 524_288
"""A batch with this many characters of text is full."""
HOLD_SECONDS: Final = 1.0
"""The first file of a batch waits for others at most this long."""


class ParsedFile(NamedTuple):
    """A file that can be stored, and what its parser could not read of it."""

    job: Job
    put: PutDocument
    failure: str
    unread: list[str]

    @property
    def characters(self) -> int:
        """The length of its text."""
        return sum(len(chunk.text) for chunk in self.put.document.chunks)


class Batches:
    """The parsed files that wait to be stored, one batch at most."""

    def __init__(self) -> None:
        self._changed = trio.Condition()
        self._waiting: list[ParsedFile] = []
        self._characters = 0
        self._is_closed = False

    async def add(self, parsed: ParsedFile) -> None:
        """Add a file; wait while a full batch waits."""
        async with self._changed:
            while self._is_full():
                await self._changed.wait()
            self._waiting.append(parsed)
            self._characters += parsed.characters
            self._changed.notify_all()

    async def close(self) -> None:
        """Let the last batch go, full or not."""
        async with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    async def take(self) -> list[ParsedFile]:
        """Return a batch that is full or has waited long enough; empty at the end."""
        async with self._changed:
            while not (self._waiting or self._is_closed):
                await self._changed.wait()
            with trio.move_on_after(HOLD_SECONDS):
                while not (self._is_full() or self._is_closed):
                    await self._changed.wait()
            taken, self._waiting, self._characters = self._waiting, [], 0
            self._changed.notify_all()
            return taken

    def _is_full(self) -> bool:
        return len(self._waiting) >= MAX_PUTS or self._characters >= MAX_CHARACTERS
