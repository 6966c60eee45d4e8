"""The state of one ingest run: counts, failures, progress. This module reads no files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import uuid4

import trio

from greenroom.actors.content.documents.kinds import is_known_name
from greenroom.actors.core.base.regular_files import BELOW_A_LINK, NOT_REGULAR
from greenroom.actors.knowledge.corpora.requests.ingestion import (
    MOST_FAILED,
    DocumentsIngested,
    LeftOutFile,
    NoteIngest,
)
from greenroom.actors.knowledge.ingest.files.exclusions import (
    COPIED,
    EMPTY,
    HIDDEN,
    IGNORED,
    MADE,
    NO_TEXT,
    SECRET,
    UNREAD_PART,
)
from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import LINK, OUR_OWN, LeftOut, printable_path
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.runtime import GreenroomError, Message

logger = logging.getLogger(__name__)

MAX_FILES: Final = 250_000
"""Maximum number of files of one run."""
_QUIET: Final = frozenset({EMPTY, HIDDEN, IGNORED, MADE})
_MEANT: Final = _QUIET | {BELOW_A_LINK, COPIED, LINK, NOT_REGULAR, OUR_OWN, SECRET}
"""Reasons for files that are left out on purpose."""


MAX_NAMED: Final = 100
"""Besides secrets, at most this many left-out files are named; the rest are only counted."""
MAX_SECRETS: Final = 10_000
"""At most this many secrets are named; a workspace with more recounts all of them after each change."""
EVERY: Final = 1.0
"""Seconds between two reports of progress; a shorter run reports only its end."""


class Step(NamedTuple):
    """Result of checking some files.

    Attributes:
        job: The next changed file; None after many unchanged files, or at the end.
        found: Files that still exist.
        outdated: Unchanged files that have a better reader now.
    """

    job: Job | None
    found: list[str]
    unchanged: int
    outdated: list[str]
    left_out: list[LeftOut]
    is_last: bool


class Report:
    """Counts the results of an ingestion, even if it was cut."""

    def __init__(self, corpus: str) -> None:
        self.complete = True
        self._corpus = corpus
        self._states: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._named: list[LeftOutFile] = []
        self._secrets: list[LeftOutFile] = []
        self._chunks = self._bytes = 0

    def count_stored(self, state: str, chunks: int, size: int) -> None:
        """Count a document that was stored."""
        self._states[state] += 1
        if state != "unchanged":
            self._chunks += chunks
            self._bytes += size

    def count_unchanged(self, count: int) -> None:
        """Count unchanged documents."""
        self._states["unchanged"] += count

    def count_removed(self, count: int) -> None:
        """Count documents of files that are gone."""
        self._states["removed"] += count

    def leave_out(self, path: str, reason: str, *, is_listed: bool = True) -> None:
        """Count a left-out file or folder, and list it if `is_listed`."""
        self._reasons[reason] += 1
        if reason == SECRET and len(self._secrets) < MAX_SECRETS:
            self._secrets.append(LeftOutFile(path, reason))
        elif is_listed and reason != SECRET and len(self._named) < MAX_NAMED:
            self._named.append(LeftOutFile(path, reason))

    def count_unread(self, path: str, parts: Sequence[str]) -> None:
        """Count parts of a document that were not read."""
        for part in parts:
            self.leave_out(f"{path}, part {part}", UNREAD_PART)

    @property
    def changes(self) -> dict[str, Any]:
        """The numbers of stored and removed documents, by kind; empty if there are none."""
        changes = {name: self._states[name] for name in ("added", "changed", "removed")}
        return {**changes, "bytes": self._bytes} if any(changes.values()) else {}

    def reply(self) -> DocumentsIngested:
        """Return the reply with all counts."""
        return DocumentsIngested(
            corpus=self._corpus,
            added=self._states["added"],
            changed=self._states["changed"],
            unchanged=self._states["unchanged"],
            removed=self._states["removed"],
            chunks=self._chunks,
            bytes=self._bytes,
            left_out=dict(self._reasons),
            named=[*self._secrets, *self._named],
            complete=self.complete,
        )


@dataclass
class IngestRun:
    """The state of one pass over files.

    Attributes:
        looked_at: How many possible documents were checked.
        gone: Documents whose file has not been found so far.
        slow: Files to retry at the end, and the seconds that were spent on them without a result.
        outdated: Unchanged files that have a better reader now.
    """

    report: Report
    gone: set[str]
    deadline: float
    looked_at: int = 0
    slow: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Add the result of a step."""
        self.looked_at += len(step.found)
        self.gone.difference_update(step.found)
        self.report.count_unchanged(step.unchanged)
        self.outdated += step.outdated
        for each in step.left_out:
            self.report.leave_out(each.path, each.reason, is_listed=each.reason not in _QUIET)
            self._note_failure(each.path, each.reason)
            if not each.is_known:
                self.gone = {path for path in self.gone if not is_below(path, each.path)}

    def postpone(self, path: str, seconds: float, *, is_last: bool) -> None:
        """Retry a slow file later; on its last try, mark the run incomplete."""
        if is_last:
            self.report.complete = False
        else:
            self.slow[path] = seconds
            self.looked_at -= 1  # the retry counts it again

    def is_cut(self) -> bool:
        """Return whether the run ends early, and record that."""
        if self.looked_at >= MAX_FILES:
            self.report.leave_out("/", f"more than {MAX_FILES:,} files are there; name parts of it")
        elif trio.current_time() < self.deadline:
            return False
        self.report.complete = False
        return True

    def fail(self, path: str, reason: str, *, stays: bool = False) -> None:
        """Leave out a file that cannot be stored; unless `stays`, its document is removed."""
        self.report.leave_out(path, reason)
        self._note_failure(path, reason)
        if not stays:
            self.gone.add(path)

    def _note_failure(self, path: str, reason: str) -> None:
        if is_failure(path, reason):
            self.failures[path] = reason
            while len(self.failures) > MOST_FAILED:
                del self.failures[next(iter(self.failures))]


def is_failure(path: str, reason: str) -> bool:
    """Return whether a file that is left out for this reason counts as failed."""
    return is_known_name(path) if reason == NO_TEXT else reason not in _MEANT


class ProgressReporter:
    """Reports one run to its corpus; ``base`` is a workspace's folder with a slash."""

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
        """Report progress every second until cancelled; for a workspace, the lease holder reports instead."""
        while self._id:
            await trio.sleep(EVERY)
            self._has_reported = True
            await self._send(self._make_report(total))

    async def end(self, below: Sequence[str] = (), *, was_all: bool = False) -> None:
        """Report the end of the run, and the completely processed files and folders."""
        names = [printable_path(self._make_name(path)) for path in below]  # printable, as in the failures
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
        """Send a report; if sending fails, the run does not fail."""
        try:
            await self._ask(note)
        except GreenroomError as error:
            logger.info("the progress of ingesting into %s is not recorded: %s", self._corpus, error)
