"""Starts the workers of a load, lets them begin together, and adds up what they tell."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import psutil  # type: ignore[import-untyped]  # it has no hints

from bench.harness import WrongAnswerError, check
from bench.load.outcome import Outcome, Sample, live_line, merged
from bench.load.plan import LoadPlan, Share
from bench.load.worker import Ready, Second
from bench.servers import memory_of, processor_seconds

_START: Final = 0.2  # seconds from the moment when all are ready to the first call


def run_load(
    plan: LoadPlan,
    *,
    processes: int = 1,
    pids: Sequence[int] = (),
    say: Callable[[str], None] = lambda _line: None,
) -> Outcome:
    """Make a load and return what came of it.

    Args:
        plan: What to do.
        processes: How many workers share it.
        pids: The servers' processes whose memory is watched, beside those that the workers start.
        say: Is told a line every second.

    Raises:
        WrongAnswerError: it could not begin, or a worker ended before its time.
    """
    outcome = Outcome(plan)
    with _workers(plan, min(processes, plan.clients)) as workers:
        watched = [*pids]
        for worker in workers:
            started = msgspec.json.decode(_line(worker), type=Ready).pids
            watched += started if Path("/proc/self/status").exists() else []
        _watch(outcome, watched)
        begin = time.monotonic() + _START
        for worker in workers:
            _tell(worker, b"%.6f" % begin)
        left = list(workers)
        number = 0
        while left:
            number += 1
            told = {worker.pid: msgspec.json.decode(_line(worker), type=Second) for worker in left}
            left = [worker for worker in left if not told[worker.pid].over]
            second = merged(list(told.values()))
            outcome.add(second)
            _watch(outcome, watched)
            say(live_line(number, second, outcome.samples[-2:]))
    return outcome


@contextmanager
def _workers(plan: LoadPlan, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    command = (sys.executable, "-m", "bench.load.worker")
    workers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for index, worker in enumerate(workers):
            _tell(worker, msgspec.json.encode(Share(plan, index, count)))
        yield workers
        for worker in workers:
            check(worker.wait() == 0, "a worker of the load failed")
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
            for stream in (worker.stdin, worker.stdout):
                assert stream is not None
                stream.close()


def _watch(outcome: Outcome, pids: Sequence[int]) -> None:
    with suppress(OSError, psutil.Error):  # a server has ended: the load is over, or its calls tell
        if pids:
            memory = sum(memory_of(pid).anonymous for pid in pids)
            outcome.samples.append(Sample(memory, sum(map(processor_seconds, pids))))


def _tell(worker: subprocess.Popen[bytes], line: bytes) -> None:
    assert worker.stdin is not None
    worker.stdin.write(line + b"\n")
    worker.stdin.flush()


def _line(worker: subprocess.Popen[bytes]) -> bytes:
    """Return what a worker writes next; what it says of its end is on standard error already."""
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        raise WrongAnswerError("a worker of the load ended before its time")
    return line
