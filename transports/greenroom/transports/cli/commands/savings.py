"""`greenroom savings`: what agents did not have to read, as a table, and as bars by day.

A running server has the store: then we attach to it, as any other process does. What servers counted within
the last minute is not written yet, and not shown.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.orchestrations.server_stats import savings_of
from greenroom.actors.savings.actor import EVERYBODY
from greenroom.actors.savings.ledger import Ledger
from greenroom.actors.schemas.savings import DaySavings, OperationSavings, SavingsReport
from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import say
from greenroom.transports.cli.support.open_store import open_store
from greenroom.transports.config.load import Resolved

if TYPE_CHECKING:
    from rich.table import Table

_BAR = 40  # characters of the largest day's
_WIDE = 110  # characters of a line that goes into a file or a pipe


async def savings(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print what everybody saved; return the exit code."""
    settings = resolved.settings
    async with open_store(settings) as runtime:
        ledger = Ledger(runtime, time.time_ns, token_price=settings.token_price)
        said = await savings_of(ledger, EVERYBODY, "all", chosen.days)
    if chosen.json:
        say(json.dumps(msgspec.to_builtins(said), indent=2))
    else:
        say(_text(said))
    return exit_codes.OK


def _text(said: SavingsReport) -> str:
    """Return a report for people."""
    if not said.calls:
        return f"nothing was counted from {said.since} to {said.until}"
    from rich.console import Console, Group  # noqa: PLC0415 - 50 ms, and only where there is something

    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    head = (
        f"{said.since} to {said.until}: {said.saved_tokens:,} tokens saved in {said.calls:,} calls, "
        f"{said.saved_cost:,.2f} at {said.token_price:g} a million"
    )
    with console.capture() as shown:
        console.print(
            Group(
                head, "", _operations(said.operations), *_caches(said), "", "saved by day", _days(said.days)
            )
        )
    return shown.get().rstrip("\n")


def _operations(operations: Sequence[OperationSavings]) -> Table:
    from rich.table import Table  # noqa: PLC0415 - see above

    table = Table(box=None, pad_edge=False)
    table.add_column("operation", no_wrap=True)
    for name in ("calls", "would have read", "read", "saved", "half within"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("baseline: what an agent would have read")
    for each in operations:
        half = "-" if each.half_within_ms is None else f"{each.half_within_ms:g} ms"
        figures = (each.calls, each.baseline_tokens, each.answer_tokens, each.saved_tokens)
        words = f"{each.baseline}: {each.would_have_read}"
        table.add_row(each.operation, *(f"{figure:,}" for figure in figures), half, words)
    return table


def _caches(said: SavingsReport) -> list[str]:
    lines = [
        f"{each.level} cache of {each.operation}: {each.rate:.0%} of {each.hits + each.misses:,} lookups "
        f"found it ({each.cache})"
        for each in said.caches
    ]
    return ["", *lines] if lines else []


def _days(days: Sequence[DaySavings]) -> Table:
    """Return a bar for each day: green for tokens that were saved, red for those that answers cost more."""
    from rich.bar import Bar  # noqa: PLC0415 - see above
    from rich.table import Table  # noqa: PLC0415 - see above

    most = max(1, *(abs(each.saved_tokens) for each in days))
    table = Table(box=None, pad_edge=False, show_header=False)
    for each in days:
        color = "green" if each.saved_tokens >= 0 else "red"
        bar = Bar(most, 0, abs(each.saved_tokens), width=_BAR, color=color)
        table.add_row(str(each.day), bar, f"{each.saved_tokens:,}")
    return table
