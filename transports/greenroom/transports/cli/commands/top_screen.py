"""The live view of `greenroom top` on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from greenroom.transports.ops.cli.support import top_screen as gauges
from greenroom.transports.ops.cli.support.terminal import painted, printable, whole_screen
from greenroom.transports.ops.cli.support.top_screen import Sample

_HISTORY: Final = 60  # samples whose rates are drawn as bars


def screen(folder: Path, samples: Iterable[Sample | str]) -> None:
    """Draw each sample on the whole terminal, which is left as it was found."""
    paint = partial(painted, sys.stdout)
    history: deque[float] = deque(maxlen=_HISTORY)
    before: Sample | None = None
    frame: list[str] = []
    with whole_screen() as draw:
        for now in samples:
            if isinstance(now, Sample):
                history.append(gauges.rates(now, before)["handled"] or 0.0)
                frame = [
                    paint("handled  ", "dim") + paint(gauges.bars(list(history)), "cyan"),
                    *gauges.tables(gauges.groups(now, before), shutil.get_terminal_size().columns, paint),
                ]
                state = paint(printable(f"a server uses {folder}"), "green")
                before = now
            else:
                state = paint(printable(now), "bold", "red")
                before = None
            draw([paint(time.strftime("%H:%M:%S"), "dim") + "  " + state, *frame])
