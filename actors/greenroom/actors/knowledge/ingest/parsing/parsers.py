"""The parent side of parsing: start processes, and end processes that take too much."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from signal import SIGKILL, SIGXCPU
from typing import Final, NamedTuple

import msgspec
import trio

from greenroom.actors.content.documents import digest_of
from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.core.base.freed_memory import return_freed_memory
from greenroom.actors.core.base.threads import get_or_make
from greenroom.actors.knowledge.ingest.parsing.parser_process import LENGTH, Job, Parsed, seconds_for

SECONDS: Final = 30.0
"""Limit of processor time for one small file, see `parser_process.seconds_for`."""
_PATIENCE: Final = 4
"""Factor for the wall-clock limit, since the processor may be busy."""
MOST_AT_ONCE: Final = 4
"""At most this many ingestions have processes at once; others wait."""
MAX_ANSWER: Final = 256 << 20
MOST_FAILURES: Final = 10_000
"""Failures of at most this many files are remembered; the oldest are dropped."""
_MUCH: Final = 4 << 20
"""If more bytes than this were exchanged, freed memory is returned to the system."""
_KILLED: Final = "its reader was killed, as when memory is short"
_ENDED: Final = "it ended the process that read it"
_retry_lock: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("files that are tried again")
_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("ingestions")
_PROGRAM: Final = "greenroom.actors.knowledge.ingest.parsing.parser_process"


class _Failures(NamedTuple):
    """A file's final failure, if there is one, and the seconds without a result."""

    failure: Parsed | None
    seconds: float = 0.0


class ParseFailures:
    """Files that failed or were cut off, by digest, until the program ends.

    So a failed file is not parsed again until it changes, and a file that used up a call's time comes last
    in the next call. Failures are not stored: a newer program, or more memory, may succeed. A new attempt
    costs at most one process for a minute or two.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Failures] = {}

    def failure(self, job: Job) -> Parsed | None:
        """Return how a file failed; None if it may be parsed."""
        return None if (known := self._find(job)) is None else known.failure

    def seconds(self, job: Job) -> float:
        """Return the seconds spent on a file without a result; 0 after its failure."""
        known = self._find(job)
        return 0.0 if known is None or known.failure is not None else known.seconds

    def record_cut(self, job: Job, seconds: float, most: float) -> None:
        """Record that parsing was cut off; after ``most`` seconds in total, the file has failed."""
        total = self.seconds(job) + seconds
        failure = None
        if total >= most:
            failure = Parsed(failure=f"it could not be read in {most:g} s, in several calls", stays=True)
        self._put(job, _Failures(failure, total))

    def record_end(self, job: Job, parsed: Parsed) -> None:
        """Record the failure of a file; if the file was parsed, drop its record."""
        if parsed.document is None:
            self._put(job, _Failures(parsed))
        elif self._known:
            self._known.pop(_key(job), None)

    def _find(self, job: Job) -> _Failures | None:
        return self._known.get(_key(job)) if self._known else None

    def _put(self, job: Job, failure: _Failures) -> None:
        self._known[_key(job)] = failure
        while len(self._known) > MOST_FAILURES:
            del self._known[next(iter(self._known))]


def _key(job: Job) -> tuple[str, str]:
    return job.kind, digest_of(job.data)


_failures: trio.lowlevel.RunVar[ParseFailures] = trio.lowlevel.RunVar("parse failures")


class Parsers:
    """Parser processes; each parses one file at a time.

    Attributes:
        failures: Files that could not be parsed, shared by all callers.
        bytes: Bytes exchanged with the processes.
    """

    def __init__(self, seconds: float = SECONDS, languages: Sequence[str] | None = None) -> None:
        self._seconds = seconds
        self.languages = current_rules().languages if languages is None else languages
        self.failures = get_or_make(_failures, ParseFailures)
        self._idle: list[trio.Process] = []
        self.bytes = 0

    async def parse(self, job: Job) -> Parsed:
        """Parse a file; a file that is too much for its process fails.

        A file that failed is not tried again until it changes. Cancellation ends the process. If the
        cancelled attempts took long enough in total, the file fails, too.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        failure = self.failures.failure(job)
        if failure is not None:
            return failure
        began = trio.current_time()
        try:
            parsed = await self.parse_anew(job)
        except trio.Cancelled:
            self.failures.record_cut(job, trio.current_time() - began, _PATIENCE * self._seconds)
            raise
        self.failures.record_end(job, parsed)
        return parsed

    async def parse_anew(self, job: Job) -> Parsed:
        """Parse a file despite earlier failures; as text if its syntax is too much.

        If the process ended, the file is tried once more, one such file at a time, because another file may
        have used up the memory. If the file is read as text instead, `failure` says why.
        """
        parsed = await self._parse_once(job)
        if parsed.failure in {_KILLED, _ENDED}:
            async with get_or_make(_retry_lock, trio.Lock):
                await self.close()
                parsed = await self._parse_once(job)
        if parsed.stays and job.is_source:
            as_text = await self._parse_once(msgspec.structs.replace(job, as_text=True))
            return msgspec.structs.replace(as_text, failure=as_text.failure or parsed.failure)
        return parsed

    async def search(self, job: Job) -> Parsed:
        """Search a file for a pattern or for secrets; a failure is not remembered."""
        return await self._parse_once(job)

    async def _parse_once(self, job: Job) -> Parsed:
        while (process := self.take_idle()) is not None and process.poll() is not None:
            await _end(process)  # it ended meanwhile
        process = process or await self._start()
        seconds = seconds_for(job, self._seconds)
        is_sound = False
        try:
            with trio.move_on_after(_PATIENCE * max(seconds, self._seconds)):
                answer = await self._exchange(process, msgspec.msgpack.encode(job))
                if answer is not None:
                    is_sound = not answer.is_last
                    return answer
                code = await process.wait()
                if code == -SIGKILL:
                    return Parsed(failure=_KILLED, stays=True)
                if code != -SIGXCPU:
                    return Parsed(failure=_ENDED, stays=True)
            return Parsed(failure=f"it took longer than {seconds:g} s to be read", stays=True)
        finally:
            if is_sound:
                self._idle.append(process)
            else:
                await _end(process)

    async def _exchange(self, process: trio.Process, job: bytes) -> Parsed | None:
        """Send a job and return the reply; None if the process ends without a reply."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await process.stdin.send_all(LENGTH.pack(len(job)) + job)
            answer = bytearray()
            size = None
            while size is None or len(answer) < LENGTH.size + size:
                piece = await process.stdout.receive_some()
                if not piece:
                    return None
                answer += piece
                if size is None and len(answer) >= LENGTH.size:
                    size = LENGTH.unpack_from(answer)[0]
                    if size > MAX_ANSWER:
                        return None
            self.bytes += len(job) + len(answer)
            return msgspec.msgpack.decode(memoryview(answer)[LENGTH.size :], type=Parsed)
        except (trio.BrokenResourceError, trio.ClosedResourceError, msgspec.MsgspecError):
            return None

    def put_idle(self, process: trio.Process | None) -> None:
        """Take over an idle process."""
        if process is not None:
            self._idle.append(process)

    def take_idle(self) -> trio.Process | None:
        """Hand over an idle process; None if there is none."""
        return self._idle.pop() if self._idle else None

    async def close(self) -> None:
        """End all idle processes."""
        while self._idle:
            await _end(self._idle.pop())

    async def _start(self) -> trio.Process:
        # Without -P, Python would import from the current folder, which may be the folder to read.
        command = [sys.executable, "-P", "-m", _PROGRAM, str(self._seconds), *self.languages]
        return await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@asynccontextmanager
async def open_parsers(
    seconds: float = SECONDS, languages: Sequence[str] | None = None
) -> AsyncIterator[Parsers]:
    """Provide parsers while the context is open; wait while too many ingestions have parsers."""
    async with get_or_make(_limiter, lambda: trio.CapacityLimiter(MOST_AT_ONCE)):
        parsers = Parsers(seconds, languages)
        try:
            yield parsers
        finally:
            await parsers.close()
            if parsers.bytes > _MUCH:
                return_freed_memory()


async def _end(process: trio.Process) -> None:
    process.kill()
    with trio.CancelScope(shield=True):
        await process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                await stream.aclose()
