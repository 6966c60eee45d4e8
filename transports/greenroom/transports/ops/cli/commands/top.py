"""`greenroom top`: shows a running server's figures, updated from its control socket.

On a terminal it redraws the screen until q is pressed; elsewhere it prints one line per sample. If the server
ends, it waits for the next. It imports neither trio nor the runtime, so it starts fast on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any, Final

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.support import top_screen
from greenroom.transports.ops.cli.support.terminal import (
    painted,
    printable,
    understands_escapes,
    wait_for_key,
    whole_screen,
)
from greenroom.transports.ops.cli.support.top_screen import Sample
from greenroom.transports.ops.control.client import ControlSocketError, NoOwnerError, Stats, call

_HISTORY: Final = 60  # samples in the row of bars
_PATIENCE: Final = 5.0  # the most seconds to wait for one sample


def top(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Show the figures until Ctrl-C or q, or once; return the exit code."""
    over = _end_on_signals()
    folder: Path = resolved.settings.data
    try:
        if chosen.once:
            return _once(folder, chosen.interval, as_json=chosen.json)
        if chosen.json or not understands_escapes(sys.stdout):
            return _lines(samples(folder, chosen.interval, over), as_json=chosen.json)
        with wait_for_key("q", over) as wait:
            _screen(folder, samples(folder, chosen.interval, over, wait))
    except KeyboardInterrupt:
        pass  # this is how a user ends the command
    return exit_codes.OK


def _end_on_signals() -> Event:
    """Turn signals into KeyboardInterrupt, so that the terminal is restored.

    The first signal also sets the returned event: Python drops an exception that a handler raises while an
    object or a generator is finalized, and drawing finalizes many of them.
    """
    over = Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        over.set()
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    return over


def samples(
    folder: Path, interval: float, over: Event, wait: Callable[[float], object] = time.sleep
) -> Iterator[Sample | str]:
    """Yield a sample every `interval` seconds until `over`; yield a sentence if there is none."""
    while not over.is_set():
        begun = time.monotonic()
        now = _sample(folder)
        yield f"{now}; waiting for one that answers" if isinstance(now, str) else now
        wait(max(0.0, begun + interval - time.monotonic()))


def _sample(folder: Path) -> Sample | str:
    """Return a sample, or a sentence that explains why there is none now."""
    try:
        answer = call(folder, Stats(often=True), patience=_PATIENCE)
    except NoOwnerError:
        return f"no server uses {folder}"
    except ControlSocketError as error:
        return str(error)
    return Sample(time.monotonic(), json.loads(answer))


def _once(folder: Path, interval: float, *, as_json: bool) -> int:
    """Take two samples, because rates need two, and print one frame."""
    before = now = _sample(folder)
    if isinstance(before, Sample):
        time.sleep(interval)
        now = _sample(folder)
    if isinstance(before, str) or isinstance(now, str):
        return complain("top", str(now), exit_codes.FAILED)
    say(_as_json(now, before) if as_json else top_screen.plain(top_screen.groups(now, before)))
    return exit_codes.OK


def _lines(samples: Iterator[Sample | str], *, as_json: bool) -> int:
    before: Sample | str | None = None
    for now in samples:
        if isinstance(now, Sample):
            earlier = before if isinstance(before, Sample) else None
            text = _as_json(now, earlier) if as_json else f"{_clock()}  {top_screen.line(now, earlier)}"
        else:
            text = json.dumps({"running": False, "reason": now}) if as_json else f"{_clock()}  {now}"
        if now != before and not say(text):
            break
        before = now
    return exit_codes.OK


def _as_json(now: Sample, before: Sample | None) -> str:
    found: dict[str, Any] = now.figures | {"per_second": top_screen.rates(now, before)}
    return json.dumps(found)


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _screen(folder: Path, samples: Iterable[Sample | str]) -> None:
    """Draw each sample on the full screen, and restore the terminal at the end."""
    paint = partial(painted, sys.stdout)
    history: deque[float] = deque(maxlen=_HISTORY)
    before: Sample | None = None
    frame: list[str] = []
    with whole_screen() as draw:
        for now in samples:
            if isinstance(now, Sample):
                history.append(top_screen.rates(now, before)["handled"] or 0.0)
                frame = [
                    paint("handled  ", "dim") + paint(top_screen.bars(list(history)), "cyan"),
                    *top_screen.tables(
                        top_screen.groups(now, before), shutil.get_terminal_size().columns, paint
                    ),
                ]
                state = paint(printable(f"a server uses {folder}"), "green")
                before = now
            else:
                state = paint(printable(now), "bold", "red")
                before = None
            draw([paint(time.strftime("%H:%M:%S"), "dim") + "  " + state, *frame])
