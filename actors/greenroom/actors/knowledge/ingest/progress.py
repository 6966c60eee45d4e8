"""What a corpus is told of a run: how far it is, and which files failed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import uuid4

import trio

from greenroom.actors.knowledge.corpora.requests.ingestion import LeftOutFile, NoteIngest
from greenroom.actors.knowledge.ingest.files.walk import shown_path
from greenroom.actors.knowledge.ingest.run_state import IngestRun
from greenroom.runtime import GreenroomError, Message

logger = logging.getLogger(__name__)

EVERY: Final = 1.0
"""Seconds between two words of how far a run is; a run that ends before says nothing but its end."""


class Notes:
    """Tells a corpus of one run.

    Args:
        ask: Asks the corpus.
        corpus: Its name in full.
        base: Of a workspace its folder, with a slash at the end; else empty.
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
        self._was_told = False

    async def keep_telling(self, total: int) -> None:
        """Tell every second how far the run is, until this is cancelled; of a workspace its keeper tells."""
        while self._id:
            await trio.sleep(EVERY)
            self._was_told = True
            await self._tell(self._note(total))

    async def end(self, below: Sequence[str] = (), *, was_all: bool = False) -> None:
        """Tell that the run is over.

        Args:
            below: What it has gone through to the end.
            was_all: Whether that is all that it was to go through, and not only what changed.
        """
        names = [shown_path(self._name(path)) for path in below]  # as failures are named; no other is text
        note = self._note(0, below=names, is_over=True, was_all=was_all and not self._base)
        if note.failed or note.below or note.was_all or self._was_told:
            await self._tell(note)

    def _note(
        self, total: int, *, below: Sequence[str] = (), is_over: bool = False, was_all: bool = False
    ) -> NoteIngest:
        return NoteIngest(
            corpus=self._corpus,
            run=self._id,
            looked_at=self._run.looked_at,
            of=total,
            failed=[LeftOutFile(self._name(path), reason) for path, reason in self._run.failures.items()],
            below=list(below),
            is_over=is_over,
            was_all=was_all,
        )

    def _name(self, path: str) -> str:
        return "" if f"{path}/" == self._base else path.removeprefix(self._base)

    async def _tell(self, note: NoteIngest) -> None:
        """Tell the corpus; a run does not fail because nothing could be noted of it."""
        try:
            await self._ask(note)
        except GreenroomError as error:
            logger.info("nothing is noted of what is put into %s: %s", self._corpus, error)
