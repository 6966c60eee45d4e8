"""`greenroom`, with its Python calls counted: `python -m bench.counted_server FILE ARGUMENT...`.

On SIGUSR1 it writes one line of JSON into a file, a `Way`: what was called since the last signal, from the
first read of the peer's bytes to the last write to it. The file is a named pipe, so its reader waits for the
line. All threads count. The event loop's own wake-up is no read and no write.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.transports.ops.cli.main import main

READS: Final = frozenset({"read", "recv", "recv_into"})
WRITES: Final = frozenset({"write", "writev", "send", "sendmsg"})
PORTIONS: Final = frozenset({"runtime", "actors", "transports"})
_WAKE_UP: Final = "_wakeup_socketpair.py"


class Way(msgspec.Struct, frozen=True):
    """The Python calls from a request's bytes to those of its answer.

    Attributes:
        modules: The calls of each module of Greenroom; a generator that goes on counts as called.
        changes: Those that came from another module, directly or through a library.
        others: Calls of libraries, the event loop among them.
    """

    modules: dict[str, int]
    changes: int
    others: int

    @property
    def calls(self) -> int:
        """The calls of Greenroom's own functions."""
        return sum(self.modules.values())


class Event(NamedTuple):
    """A call or a return in one thread, or a call of a C function, whose name is given."""

    thread: int
    kind: str
    file: str
    function: str = ""


def counted(file: Path, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of `greenroom` as one of this program."""
    python, _, _, *arguments = command
    return (python, "-m", "bench.counted_server", str(file), *arguments)


class Recorder:
    """Records calls in the thread that begins it, and in those started later."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def begin(self) -> None:
        """Record from now on."""
        threading.setprofile(self._record)
        sys.setprofile(self._record)

    def write(self, file: Path, _signal: int, _frame: FrameType | None) -> None:
        """Write what was recorded, and start afresh."""
        events, self._events = self._events, []
        file.write_bytes(msgspec.json.encode(way(events)))

    def _record(self, frame: FrameType, kind: str, function: Any) -> None:
        name = function.__name__ if kind == "c_call" else ""
        if kind in {"call", "return"} or name in READS or name in WRITES:
            self._events.append(Event(threading.get_ident(), kind, frame.f_code.co_filename, name))


def way(events: Sequence[Event]) -> Way:
    """Return the calls from the first read to the last write."""
    modules: Counter[str] = Counter()
    others = changes = 0
    stacks: dict[int, list[str]] = {}
    for event in _between(events):
        stack = stacks.setdefault(
            event.thread, []
        )  # the modules beneath; a library is in the module that calls it
        if event.kind == "return":
            del stack[-1:]
        elif event.kind == "call":
            module, caller = module_of(event.file), stack[-1] if stack else ""
            stack.append(module or caller)
            if module:
                modules[module] += 1
                changes += caller not in {module, ""}
            else:
                others += 1
    return Way(dict(modules), changes, others)


def module_of(file: str) -> str:
    """Return the path of a module of Greenroom, such as ``actors/app/agent.py``; empty for others."""
    module = file.rpartition("/greenroom/")[2]
    return module if module.partition("/")[0] in PORTIONS else ""


def _between(events: Sequence[Event]) -> Sequence[Event]:
    peers = [
        (number, event.function)
        for number, event in enumerate(events)
        if event.function and not event.file.endswith(_WAKE_UP)
    ]
    first = next((number for number, function in peers if function in READS), 0)
    last = next((number for number, function in reversed(peers) if function in WRITES), 0)
    return events[first:last]


if __name__ == "__main__":
    recorder = Recorder()
    signal.signal(signal.SIGUSR1, partial(recorder.write, Path(sys.argv.pop(1))))
    recorder.begin()
    sys.exit(main())
