"""What is known of one run of an ingestion while it goes on; the walk and the files are elsewhere."""

from __future__ import annotations

from typing import Final, NamedTuple

import trio

from greenroom.actors.ingest.exclusions import EMPTY, HIDDEN, IGNORED, MADE
from greenroom.actors.ingest.parser_process import Job
from greenroom.actors.ingest.places import is_below
from greenroom.actors.ingest.report import Report
from greenroom.actors.ingest.walk import LeftOut

MAX_FILES: Final = 250_000
"""The most files that one run looks at."""
_QUIET: Final = frozenset({EMPTY, HIDDEN, IGNORED, MADE})


class Step(NamedTuple):
    """What was seen of some files.

    Attributes:
        job: The next one that changed; None after a while without one, or at the end.
        found: Those that are still there.
        unchanged: How many of these are as they were.
        left_out: What is not read.
        is_last: Whether there is nothing more.
    """

    job: Job | None
    found: list[str]
    unchanged: int
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
    """

    def __init__(self, report: Report, gone: set[str], deadline: float) -> None:
        self.report = report
        self.looked_at = 0
        self.gone = gone
        self.slow: dict[str, float] = {}
        self.deadline = deadline

    def take(self, step: Step) -> None:
        """Take note of what was seen."""
        self.looked_at += len(step.found)
        self.gone.difference_update(step.found)
        self.report.unchanged(step.unchanged)
        for each in step.left_out:
            self.report.left_out(each.path, each.reason, told=each.reason not in _QUIET)
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
        if not stays:
            self.gone.add(path)
