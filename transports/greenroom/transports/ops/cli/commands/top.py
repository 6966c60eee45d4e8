"""`greenroom top`: a running server's figures as they change, asked at its control socket.

On a terminal a frame that is drawn anew, until q is pressed; anywhere else a line for each
sample. A server that goes away is waited for. Needs neither trio nor the runtime, so it starts
at once also where the machine is busy.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any, Final

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.cli.commands.top_screen import screen
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.support import top_screen as gauges
from greenroom.transports.ops.cli.support.terminal import understands_escapes, wait_for_key
from greenroom.transports.ops.cli.support.top_screen import Sample
from greenroom.transports.ops.control.client import ControlSocketError, NoOwnerError, Stats, call

_PATIENCE: Final = 5.0  # seconds that a server may keep one sample waiting


class _NoServerError(Exception):
    """There is no server to ask now; the message says why."""


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
            screen(folder, samples(folder, chosen.interval, over, wait))
    except KeyboardInterrupt:
        pass  # the way to end it
    return exit_codes.OK


def _end_on_signals() -> Event:
    """Make signals end this program as Ctrl-C does, so that the terminal is left as it was found.

    Returns:
        Set by the first signal. Python drops what a handler raises while a generator or an object is
        disposed of, and drawing disposes of many.
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
    """Yield a sample each `interval` seconds until `over`, or a sentence that says why there is none."""
    while not over.is_set():
        begun = time.monotonic()
        try:
            yield _sample(folder)
        except _NoServerError as error:
            yield f"{error}; waiting for one that answers"
        wait(max(0.0, begun + interval - time.monotonic()))


def _sample(folder: Path) -> Sample:
    try:
        answer = call(folder, Stats(often=True), patience=_PATIENCE)
    except NoOwnerError:
        raise _NoServerError(f"no server uses {folder}") from None
    except ControlSocketError as error:
        raise _NoServerError(str(error)) from None
    return Sample(time.monotonic(), json.loads(answer))


def _once(folder: Path, interval: float, *, as_json: bool) -> int:
    """Look twice, as a rate needs two moments, and print one frame."""
    try:
        before = _sample(folder)
        time.sleep(interval)
        now = _sample(folder)
    except _NoServerError as error:
        return complain("top", str(error), exit_codes.FAILED)
    say(_as_json(now, before) if as_json else gauges.plain(gauges.groups(now, before)))
    return exit_codes.OK


def _lines(samples: Iterator[Sample | str], *, as_json: bool) -> int:
    before: Sample | str | None = None
    for now in samples:
        if isinstance(now, Sample):
            earlier = before if isinstance(before, Sample) else None
            text = _as_json(now, earlier) if as_json else f"{_clock()}  {gauges.line(now, earlier)}"
        else:
            text = json.dumps({"running": False, "reason": now}) if as_json else f"{_clock()}  {now}"
        if now != before and not say(text):
            break
        before = now
    return exit_codes.OK


def _as_json(now: Sample, before: Sample | None) -> str:
    found: dict[str, Any] = now.figures | {"per_second": gauges.rates(now, before)}
    return json.dumps(found)


def _clock() -> str:
    return time.strftime("%H:%M:%S")
