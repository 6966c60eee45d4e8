"""The state of one ingest run; it reads no files itself."""

from __future__ import annotations

from typing import Final, NamedTuple

import trio

from greenroom.actors.content.documents.kinds import is_known_name
from greenroom.actors.core.base.regular_files import BELOW_A_LINK, NOT_REGULAR
from greenroom.actors.knowledge.corpora.requests.ingestion import MOST_FAILED
from greenroom.actors.knowledge.ingest.files.exclusions import (
    COPIED,
    EMPTY,
    HIDDEN,
    IGNORED,
    MADE,
    NO_TEXT,
    SECRET,
)
from greenroom.actors.knowledge.ingest.files.places import is_below
from greenroom.actors.knowledge.ingest.files.walk import LINK, OUR_OWN, LeftOut
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job
from greenroom.actors.knowledge.ingest.report import Report

MAX_FILES: Final = 250_000
"""Most files of one run."""
_QUIET: Final = frozenset({EMPTY, HIDDEN, IGNORED, MADE})
_MEANT: Final = _QUIET | {BELOW_A_LINK, COPIED, LINK, NOT_REGULAR, OUR_OWN, SECRET}
"""Reasons for files that are left out on purpose."""


class Step(NamedTuple):
    """Result of checking some files.

    Attributes:
        job: The next changed file; None after a while without one, or at the end.
        found: Files that still exist.
        unchanged: How many of these are unchanged.
        outdated: Those of these that have a better reader now.
        left_out: Files left out.
        is_last: Whether these are the last.
    """

    job: Job | None
    found: list[str]
    unchanged: int
    outdated: list[str]
    left_out: list[LeftOut]
    is_last: bool


class IngestRun:
    """The state of one pass over files.

    Attributes:
        report: The counts.
        looked_at: How many possible documents were checked.
        gone: Documents without a file so far.
        slow: Files to retry at the end, and the seconds that parsing them took in vain.
        deadline: When the run ends, complete or not.
        failures: The newest failed files, with the reasons.
        outdated: Unchanged files that have a better reader now.
    """

    def __init__(self, report: Report, gone: set[str], deadline: float) -> None:
        self.report = report
        self.looked_at = 0
        self.gone = gone
        self.slow: dict[str, float] = {}
        self.deadline = deadline
        self.failures: dict[str, str] = {}
        self.outdated: list[str] = []

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
            self.looked_at -= 1  # it will be counted again

    def is_cut(self) -> bool:
        """Return whether the run ends early, and record that."""
        if self.looked_at >= MAX_FILES:
            self.report.leave_out("/", f"more than {MAX_FILES:,} files are there; name parts of it")
        elif trio.current_time() < self.deadline:
            return False
        self.report.complete = False
        return True

    def fail(self, path: str, reason: str, *, stays: bool = False) -> None:
        """Leave out a file that cannot be put in.

        Unless `stays`, its document is removed.
        """
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
    """Return whether it is a failure to leave out a file for this reason."""
    return is_known_name(path) if reason == NO_TEXT else reason not in _MEANT
