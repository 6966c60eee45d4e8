"""The live view of `greenroom top` on a terminal; the only part of it that needs `rich`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from greenroom.transports.cli.support import gauges
from greenroom.transports.cli.support.gauges import Sample
from greenroom.transports.cli.support.terminal import printable

_HISTORY: Final = 60  # samples whose rates are drawn as bars
_WIDTH: Final = 39  # columns of one group; two fit an ordinary terminal, and three rows of them


def screen(folder: Path, samples: Iterable[Sample | str]) -> None:
    """Draw each sample on the whole terminal, which is left as it was found."""
    history: deque[float] = deque(maxlen=_HISTORY)
    before: Sample | None = None
    frame: RenderableType = Text()
    console = Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for now in samples:
            if isinstance(now, Sample):
                history.append(gauges.rates(now, before)["handled"] or 0.0)
                frame, sentence, style = (
                    _frame(now, before, list(history)),
                    f"a server uses {folder}",
                    "green",
                )
                before = now
            else:
                sentence, style, before = now, "bold red", None
            head = Text.assemble(
                (f"{time.strftime('%H:%M:%S')}  ", "dim"), (printable(sentence), style), no_wrap=True
            )
            live.update(Group(head, frame), refresh=True)


def _frame(now: Sample, before: Sample | None, history: list[float]) -> RenderableType:
    bars = Text.assemble(("handled  ", "dim"), (gauges.bars(history), "cyan"), no_wrap=True)
    return Group(bars, Columns(map(_table, gauges.groups(now, before)), width=_WIDTH))


def _table(group: gauges.GaugeGroup) -> Table:
    table = Table(
        title=Text(group.title, "bold"), title_justify="left", box=None, show_header=False, width=_WIDTH
    )
    table.add_column(no_wrap=True, style="dim")
    table.add_column(justify="right", overflow="fold")
    for gauge in group.gauges:
        table.add_row(gauge.name, Text(gauge.value, "bold red" if gauge.alarming else ""))
    return table
