"""What is known of one run of an ingestion while it goes on; the walk and the files are elsewhere."""

from __future__ import annotations

from typing import Final, NamedTuple

import trio

from greenroom.actors.content.documents.kinds import is_known_name
from greenroom.actors.core.base.regular_files import BELOW_A_LINK, NO_PLAIN_FILE
from greenroom.actors.ingest.parser_process import Job
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
from greenroom.actors.knowledge.ingest.report import Report

MAX_FILES: Final = 250_000
"""The most files that one run looks at."""
_QUIET: Final = frozenset({EMPTY, HIDDEN, IGNORED, MADE})
_MEANT: Final = _QUIET | {BELOW_A_LINK, COPIED, LINK, NO_PLAIN_FILE, OUR_OWN, SECRET}
"""Reasons for which files are left out on purpose."""


class Step(NamedTuple):
    """What was seen of some files.

    Attributes:
        job: The next one that changed; None after a while without one, or at the end.
        found: Those that are still there.
        unchanged: How many of these are as they were.
        outdated: Those of these that are read better now than they were.
        left_out: What is not read.
        is_last: Whether there is nothing more.
    """

    job: Job | None
    found: list[str]
    unchanged: int
    outdated: list[str]
    left_out: list[LeftOut]
    is_last: bool


class IngestRun:
    """One pass over files.

    Attributes:
        report: What happened.
        looked_at: How many files were looked at that may be documents.
        gone: Documents that were not found again so far.
        slow: Files that come after the others, and how long they were parsed in vain.
        deadline: When it ends, whatever is left then.
        failures: The newest files that could not be taken in, and why.
        outdated: Files that did not change and are read better now than they were.
    """

    def __init__(self, report: Report, gone: set[str], deadline: float) -> None:
        self.report = report
        self.looked_at = 0
        self.gone = gone
        self.slow: dict[str, float] = {}
        self.deadline = deadline
        self.failures: dict[str, str] = {}
        self.outdated: list[str] = []

    def take(self, step: Step) -> None:
        """Take note of what was seen."""
        self.looked_at += len(step.found)
        self.gone.difference_update(step.found)
        self.report.unchanged(step.unchanged)
        self.outdated += step.outdated
        for each in step.left_out:
            self.report.left_out(each.path, each.reason, told=each.reason not in _QUIET)
            self._note_failure(each.path, each.reason)
            if not each.is_known:
                self.gone = {path for path in self.gone if not is_below(path, each.path)}

    def cut(self, path: str, seconds: float, *, is_last: bool) -> None:
        """Put off a file that takes long; at last there is no time for it."""
        if is_last:
            self.report.complete = False
        else:
            self.slow[path] = seconds
            self.looked_at -= 1  # it is looked at once more

    def is_cut(self) -> bool:
        """Return whether the run ends before its end, and say so."""
        if self.looked_at >= MAX_FILES:
            self.report.left_out("/", f"more than {MAX_FILES:,} files are there; name parts of it")
        elif trio.current_time() < self.deadline:
            return False
        self.report.complete = False
        return True

    def failed(self, path: str, reason: str, *, stays: bool = False) -> None:
        """Leave out what was read and cannot be put in; unless it stays, what was there before is gone."""
        self.report.left_out(path, reason)
        self._note_failure(path, reason)
        if not stays:
            self.gone.add(path)

    def _note_failure(self, path: str, reason: str) -> None:
        if is_failure(path, reason):
            self.failures[path] = reason
            while len(self.failures) > MOST_FAILED:
                del self.failures[next(iter(self.failures))]


def is_failure(path: str, reason: str) -> bool:
    """Return whether a file that was left out was to be taken in, by its name and the reason."""
    return is_known_name(path) if reason == NO_TEXT else reason not in _MEANT
