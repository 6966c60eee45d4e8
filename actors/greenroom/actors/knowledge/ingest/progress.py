"""Report the progress of an ingest run, and its failed files, to the corpus."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import uuid4

import trio

from greenroom.actors.knowledge.corpora.requests.ingestion import LeftOutFile, NoteIngest
from greenroom.actors.knowledge.ingest.files.walk import printable_path
from greenroom.actors.knowledge.ingest.run_state import IngestRun
from greenroom.runtime import GreenroomError, Message

logger = logging.getLogger(__name__)

EVERY: Final = 1.0
"""Seconds between two reports of progress; a shorter run reports only its end."""


class ProgressReporter:
    """Reports one run to its corpus.

    Args:
        ask: Sends a message to the corpus.
        corpus: Its full name.
        base: Folder of a workspace, with a slash at the end; else empty.
        run: The run.
    """

    def __init__(
        self, ask: Callable[[Message[None]], Awaitable[None]], corpus: str, base: str, run: IngestRun
    ) -> None:
        self._ask = ask
        self._corpus = corpus
        self._base = base
        self._run = run
        self._id = "" if base else uuid4().hex
        self._has_reported = False

    async def report_repeatedly(self, total: int) -> None:
        """Report progress every second until cancelled; of a workspace the lease's holder does."""
        while self._id:
            await trio.sleep(EVERY)
            self._has_reported = True
            await self._send(self._make_report(total))

    async def end(self, below: Sequence[str] = (), *, was_all: bool = False) -> None:
        """Report the end of the run.

        Args:
            below: Files and folders that were completely processed.
            was_all: Whether the run was complete, not of changes alone.
        """
        names = [printable_path(self._make_name(path)) for path in below]  # as in the failures
        note = self._make_report(0, below=names, is_over=True, was_all=was_all and not self._base)
        if note.failed or note.below or note.was_all or self._has_reported:
            await self._send(note)

    def _make_report(
        self, total: int, *, below: Sequence[str] = (), is_over: bool = False, was_all: bool = False
    ) -> NoteIngest:
        return NoteIngest(
            corpus=self._corpus,
            run=self._id,
            looked_at=self._run.looked_at,
            of=total,
            failed=[
                LeftOutFile(self._make_name(path), reason) for path, reason in self._run.failures.items()
            ],
            below=list(below),
            is_over=is_over,
            was_all=was_all,
        )

    def _make_name(self, path: str) -> str:
        return "" if f"{path}/" == self._base else path.removeprefix(self._base)

    async def _send(self, note: NoteIngest) -> None:
        """Send a report; a run does not fail because its report does."""
        try:
            await self._ask(note)
        except GreenroomError as error:
            logger.info("the progress of ingesting into %s is not recorded: %s", self._corpus, error)
