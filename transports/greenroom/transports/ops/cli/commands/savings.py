"""`greenroom savings`: tokens that agents did not have to read, by operation and day.

If a server is running, the command attaches to it. The counts of the last minute are not yet written, so the
command does not show them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final

from greenroom.actors.app.savings.actor import EVERYBODY
from greenroom.actors.app.savings.ledger import Ledger
from greenroom.actors.app.savings.requests import DaySavings, OperationSavings, SavingsReport
from greenroom.actors.app.savings.resource import savings_of
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import say, say_json
from greenroom.transports.ops.cli.support.open_store import open_store
from greenroom.transports.ops.cli.support.terminal import painted

_BAR: Final = 40
"""The longest bar has this many characters."""
_FULL: Final = "\u2588"
_HEAD: Final = (
    *("operation", "calls", "would have read", "read", "saved", "half within"),
    "baseline: what an agent would have read",
)


async def savings(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print the savings of all agents; return the exit code."""
    settings = resolved.settings
    async with open_store(settings) as runtime:
        ledger = Ledger(runtime, time.time_ns, token_price=settings.token_price)
        report = await savings_of(ledger, EVERYBODY, "all", chosen.days)
    if chosen.json:
        say_json(report)
    else:
        say(_text(report))
    return exit_codes.OK


def _text(report: SavingsReport) -> str:
    """Render a report for people."""
    if not report.calls:
        return f"nothing was counted from {report.since} to {report.until}"
    head = (
        f"{report.since} to {report.until}: {report.saved_tokens:,} tokens saved in {report.calls:,} calls, "
        f"{report.saved_cost:,.2f} at {report.token_price:g} a million"
    )
    table = _operations(report.operations)
    return "\n".join([head, "", *table, *_caches(report), "", "saved by day", *_days(report.days)])


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


def _caches(report: SavingsReport) -> list[str]:
    lines = [
        f"{each.level} cache of {each.operation}: {each.rate:.0%} of {each.hits + each.misses:,} lookups "
        f"found it ({each.cache})"
        for each in report.caches
    ]
    return ["", *lines] if lines else []


def _days(days: Sequence[DaySavings]) -> list[str]:
    """Render a bar for each day: green for saved tokens, red if replies cost more."""
    most = max(1, *(abs(each.saved_tokens) for each in days))
    lines: list[str] = []
    for each in days:
        bar = _FULL * round(_BAR * abs(each.saved_tokens) / most)
        style = "green" if each.saved_tokens >= 0 else "red"
        lines.append(f"{each.day}  {painted(sys.stdout, bar.ljust(_BAR), style)}  {each.saved_tokens:,}")
    return lines
