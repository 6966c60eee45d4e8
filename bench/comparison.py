"""A run beside an older one: how many times as much each value is as it was then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.harness import Report, Table, Value


class OldReport(msgspec.Struct, frozen=True):
    """What of an older run's report is compared."""

    tables: list[Table]


class OldRun(msgspec.Struct, frozen=True):
    """What of an older run's file is compared."""

    smoke: bool
    benchmarks: dict[str, OldReport]


def read_run(path: Path) -> OldRun:
    """Return the run that ``--json`` wrote to a file.

    Raises:
        OSError, msgspec.DecodeError: there is none in it.
    """
    return msgspec.json.decode(path.read_bytes(), type=OldRun)


def compared(old: OldRun, name: str, report: Report) -> Report:
    """Return the tables of a benchmark as ratios, new to old; only what both runs have."""
    if name not in old.benchmarks:
        return Report(tables=[])
    then = {(table.title, tuple(table.columns)): table for table in old.benchmarks[name].tables}
    pairs = [(then.get((now.title, tuple(now.columns))), now) for now in report.tables]
    tables = [_ratios(was, now) for was, now in pairs if was is not None]
    return Report(tables=[table for table in tables if table.rows])


def _ratios(then: Table, now: Table) -> Table:
    rows = dict(_labelled(then))
    both = [(label, rows[label], row) for label, row in _labelled(now) if label in rows]
    return Table(
        title=f"{now.title}: times as much as then",
        columns=now.columns,
        rows=[[_ratio(*cells) for cells in zip(was, row, strict=True)] for _, was, row in both],
    )


def _labelled(table: Table) -> Iterator[tuple[object, Sequence[Value]]]:
    """Return each row with what tells it from others: its words, or its first number if it has none."""
    for row in table.rows:
        yield tuple(cell for cell in row if isinstance(cell, str)) or row[0], row


def _ratio(then: Value, now: Value) -> Value:
    """Return how many times as much it is now; the value itself where that says nothing."""
    if isinstance(then, str) or isinstance(now, str) or not then or now is None or then == now:
        return now if isinstance(now, str) else 1.0 if then == now else None
    return now / then
