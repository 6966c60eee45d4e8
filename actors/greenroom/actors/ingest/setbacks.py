"""What is remembered of files that could not be parsed, by their bytes, until the program ends.

So a file that failed is not parsed again until it changes, and one that took all the time of a call comes
after the others in the next one. It is not stored: a newer program may read what an older one could not, and
so does one on a machine with more memory; what that costs is one process for half a minute at most.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.actors.documents import digest_of
from greenroom.actors.ingest.parser_process import Job, Parsed

MOST: Final = 10_000
"""Files that are remembered; the oldest are forgotten."""


class _Setback(NamedTuple):
    """What came of a file.

    Attributes:
        failure: That it failed, and why; None where it was only cut.
        seconds: How long it was parsed before that, in sum.
    """

    failure: Parsed | None
    seconds: float = 0.0


class Setbacks:
    """Remembers files that failed or were cut."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Setback] = {}

    def failure(self, job: Job) -> Parsed | None:
        """Return why a file failed; None where it may be tried."""
        return None if (known := self._of(job)) is None else known.failure

    def seconds(self, job: Job) -> float:
        """Return how long a file was parsed in vain; 0 for one of which it is known that it failed."""
        known = self._of(job)
        return 0.0 if known is None or known.failure is not None else known.seconds

    def was_cut(self, job: Job, seconds: float, most: float) -> None:
        """Remember that a file was parsed for so long in vain; with so much in sum it has failed."""
        total = self.seconds(job) + seconds
        failure = None
        if total >= most:
            failure = Parsed(failure=f"it could not be read in {most:g} s, in several calls", stays=True)
        self._put(job, _Setback(failure, total))

    def ended(self, job: Job, parsed: Parsed) -> None:
        """Remember a file that failed, and forget one that did not."""
        if parsed.document is None:
            self._put(job, _Setback(parsed))
        elif self._known:
            self._known.pop(_key(job), None)

    def _of(self, job: Job) -> _Setback | None:
        return self._known.get(_key(job)) if self._known else None

    def _put(self, job: Job, setback: _Setback) -> None:
        self._known[_key(job)] = setback
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]


def _key(job: Job) -> tuple[str, str]:
    return job.kind, digest_of(job.data)
