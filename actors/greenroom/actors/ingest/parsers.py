"""The parent's half of parsing: processes, begun when they are needed, ended when a file is too much."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from signal import SIGKILL, SIGXCPU
from typing import Final

import msgspec
import trio

from greenroom.actors.content.text.analyze import current_rules
from greenroom.actors.ingest.parser_process import LENGTH, Job, Parsed
from greenroom.actors.ingest.setbacks import Setbacks

SECONDS: Final = 30.0
"""How much time on the processor one file may take."""
_PATIENCE: Final = 4
"""How much longer it may take where the processor is busy."""
MOST_AT_ONCE: Final = 4
"""How many may have processes at once, whoever asks; others wait."""
MAX_ANSWER: Final = 256 << 20
_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("ingestions")
_setbacks: trio.lowlevel.RunVar[Setbacks] = trio.lowlevel.RunVar("setbacks")
_PROGRAM: Final = "greenroom.actors.ingest.parser_process"


class Parsers:
    """Processes that parse, one file at a time each.

    Args:
        seconds: How much time on the processor one file may take.
        languages: Of the documents; None for those of the store whose code runs.

    Attributes:
        setbacks: What could not be parsed, by whomever.
    """

    def __init__(self, seconds: float = SECONDS, languages: Sequence[str] | None = None) -> None:
        self._seconds = seconds
        self.languages = current_rules().languages if languages is None else languages
        try:
            self.setbacks = _setbacks.get()
        except LookupError:
            self.setbacks = Setbacks()
            _setbacks.set(self.setbacks)
        self._idle: list[trio.Process] = []

    async def parse(self, job: Job) -> Parsed:
        """Return what becomes of a file; one that is too much for its process has failed.

        One that failed is not tried again. Who cancels this ends the process; a file that was cancelled
        for so long in sum has failed, too.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        failure = self.setbacks.failure(job)
        if failure is not None:
            return failure
        began = trio.current_time()
        try:
            parsed = await self.parse_anew(job)
        except trio.Cancelled:
            self.setbacks.was_cut(job, trio.current_time() - began, _PATIENCE * self._seconds)
            raise
        self.setbacks.ended(job, parsed)
        return parsed

    async def parse_anew(self, job: Job) -> Parsed:
        """Have a process parse a file, whatever became of it before; as text if its syntax is too much."""
        parsed = await self._parse_once(job)
        if parsed.stays and job.is_source:
            return await self._parse_once(msgspec.structs.replace(job, as_text=True))
        return parsed

    async def search(self, job: Job) -> Parsed:
        """Have a process search a file; what ends it is not remembered, since it may be the pattern."""
        return await self._parse_once(job)

    async def _parse_once(self, job: Job) -> Parsed:
        process = self._idle.pop() if self._idle else await self._start()
        is_sound = False
        try:
            with trio.move_on_after(_PATIENCE * self._seconds):
                answer = await _exchange(process, msgspec.msgpack.encode(job))
                is_sound = answer is not None
                if answer is not None:
                    return answer
                code = await process.wait()
                if code == -SIGKILL:
                    return Parsed(failure="its reader was killed, as when memory is short", stays=True)
                if code != -SIGXCPU:
                    return Parsed(failure="it ended the process that read it", stays=True)
            return Parsed(failure=f"it took longer than {self._seconds:g} s to be read", stays=True)
        finally:
            if is_sound:
                self._idle.append(process)
            else:
                await _end(process)

    async def close(self) -> None:
        """End all processes that have nothing to do."""
        while self._idle:
            await _end(self._idle.pop())

    async def _start(self) -> trio.Process:
        # The folder that we are in is none to import from (-P): it may be the one that is read.
        command = [sys.executable, "-P", "-m", _PROGRAM, str(self._seconds), *self.languages]
        return await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@asynccontextmanager
async def open_parsers(
    seconds: float = SECONDS, languages: Sequence[str] | None = None
) -> AsyncIterator[Parsers]:
    """Have processes as long as they are needed, as `Parsers` says; wait where too many have some."""
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(MOST_AT_ONCE)
        _limiter.set(limiter)
    async with limiter:
        parsers = Parsers(seconds, languages)
        try:
            yield parsers
        finally:
            await parsers.close()


async def _exchange(process: trio.Process, job: bytes) -> Parsed | None:
    """Send a job and return the answer; None if the process ends without one."""
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
        return msgspec.msgpack.decode(memoryview(answer)[LENGTH.size :], type=Parsed)
    except (trio.BrokenResourceError, trio.ClosedResourceError, msgspec.MsgspecError):
        return None


async def _end(process: trio.Process) -> None:
    process.kill()
    with trio.CancelScope(shield=True):
        await process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                await stream.aclose()
