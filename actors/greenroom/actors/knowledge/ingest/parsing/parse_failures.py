"""Remember files that could not be parsed, by digest, until the program ends.

So a failed file is not parsed again until it changes, and one that used up a call's time comes last in the
next call. This is not stored: a newer program, or more memory, may succeed, and trying costs one process for
a minute or two at most.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.actors.content.documents import digest_of
from greenroom.actors.knowledge.ingest.parsing.parser_process import Job, Parsed

MOST: Final = 10_000
"""Files that are remembered; the oldest are dropped."""


class _Failures(NamedTuple):
    """The failures of a file.

    Attributes:
        failure: The final failure; None if parsing was only cut.
        seconds: How long it was parsed in vain, in sum.
    """

    failure: Parsed | None
    seconds: float = 0.0


class ParseFailures:
    """Files that failed or were cut."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Failures] = {}

    def failure(self, job: Job) -> Parsed | None:
        """Return how a file failed; None if it may be tried."""
        return None if (known := self._find(job)) is None else known.failure

    def seconds(self, job: Job) -> float:
        """Return how long parsing a file was in vain; 0 after its failure."""
        known = self._find(job)
        return 0.0 if known is None or known.failure is not None else known.seconds

    def record_cut(self, job: Job, seconds: float, most: float) -> None:
        """Record a cut; after `most` seconds in sum the file has failed."""
        total = self.seconds(job) + seconds
        failure = None
        if total >= most:
            failure = Parsed(failure=f"it could not be read in {most:g} s, in several calls", stays=True)
        self._put(job, _Failures(failure, total))

    def record_end(self, job: Job, parsed: Parsed) -> None:
        """Record the failure of a file, or drop the record of one that was parsed."""
        if parsed.document is None:
            self._put(job, _Failures(parsed))
        elif self._known:
            self._known.pop(_key(job), None)

    def _find(self, job: Job) -> _Failures | None:
        return self._known.get(_key(job)) if self._known else None

    def _put(self, job: Job, failure: _Failures) -> None:
        self._known[_key(job)] = failure
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]


def _key(job: Job) -> tuple[str, str]:
    return job.kind, digest_of(job.data)
