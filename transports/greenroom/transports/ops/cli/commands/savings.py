"""`greenroom savings`: what agents did not have to read, as a table, and as bars by day.

A running server has the store: then we attach to it, as any other process does. What servers counted within
the last minute is not written yet, and not shown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final

from greenroom.actors.app.administration.server_stats import savings_of
from greenroom.actors.app.savings.actor import EVERYBODY
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.app.savings.requests import DaySavings, OperationSavings, SavingsReport
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.cli.support.json_output import say_json
from greenroom.transports.ops.cli.output import say
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import painted

_BAR: Final = 40
"""Characters of the largest day's bar."""
_FULL: Final = "\u2588"
_HEAD: Final = (
    *("operation", "calls", "would have read", "read", "saved", "half within"),
    "baseline: what an agent would have read",
)


async def savings(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print what everybody saved; return the exit code."""
    settings = resolved.settings
    async with open_store(settings) as runtime:
        ledger = Ledger(runtime, time.time_ns, token_price=settings.token_price)
        said = await savings_of(ledger, EVERYBODY, "all", chosen.days)
    if chosen.json:
        say_json(said)
    else:
        say(_text(said))
    return exit_codes.OK


def _text(said: SavingsReport) -> str:
    """Return a report for people."""
    if not said.calls:
        return f"nothing was counted from {said.since} to {said.until}"
    head = (
        f"{said.since} to {said.until}: {said.saved_tokens:,} tokens saved in {said.calls:,} calls, "
        f"{said.saved_cost:,.2f} at {said.token_price:g} a million"
    )
    table = _operations(said.operations)
    return "\n".join([head, "", *table, *_caches(said), "", "saved by day", *_days(said.days)])


def _operations(operations: Sequence[OperationSavings]) -> list[str]:
    rows: list[tuple[str, ...]] = [_HEAD]
    for each in operations:
        half = "-" if each.half_within_ms is None else f"{each.half_within_ms:g} ms"
        figures = (each.calls, each.baseline_tokens, each.answer_tokens, each.saved_tokens)
        baseline = f"{each.baseline}: {each.would_have_read}"
        rows.append((each.operation, *(f"{figure:,}" for figure in figures), half, baseline))
    first, *widths, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join([name.ljust(first), *map(str.rjust, figures, widths), words])
        for name, *figures, words in rows
    ]


def _caches(said: SavingsReport) -> list[str]:
    lines = [
        f"{each.level} cache of {each.operation}: {each.rate:.0%} of {each.hits + each.misses:,} lookups "
        f"found it ({each.cache})"
        for each in said.caches
    ]
    return ["", *lines] if lines else []


def _days(days: Sequence[DaySavings]) -> list[str]:
    """Return a bar for each day: green for tokens that were saved, red for those that answers cost more."""
    most = max(1, *(abs(each.saved_tokens) for each in days))
    lines: list[str] = []
    for each in days:
        bar = _FULL * round(_BAR * abs(each.saved_tokens) / most)
        style = "green" if each.saved_tokens >= 0 else "red"
        lines.append(f"{each.day}  {painted(sys.stdout, bar.ljust(_BAR), style)}  {each.saved_tokens:,}")
    return lines
