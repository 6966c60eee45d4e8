"""What all benchmarks share: rounds that take turns, checked answers, tables and figures.

Numbers of two programs compare only when both ran under the same conditions, so the
contenders of one comparison take turns, round by round, and each is judged by its median.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

Value = str | int | float | None
T = TypeVar("T")


class WrongAnswerError(Exception):
    """A contender answered wrongly, so its speed means nothing and the run fails."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How thorough a run is.

    Attributes:
        smoke: Whether only the answers matter: one short round with small sizes.
        data: A folder with conversations (`memories.jsonl`, `queries.jsonl`) or other questions, or None.
        peers: A folder into which `bench.peers` installed other memory servers, or None.
        mirrors: A folder of bare git repositories whose source `code` searches, or None.
        work: Where benchmarks make their stores: on the disk whose speed is asked about.
        seconds: How long the load of `crowd` lasts.
        kills: How many processes `chaos` kills, and `kills`.
        memories: How many `writes` imports.
        files: How many it indexes as a workspace.
        sectors: Whether it counts what the disk has written instead of what it was given.
    """

    smoke: bool
    data: Path | None
    work: Path
    peers: Path | None = None
    mirrors: Path | None = None
    seconds: float = 60.0
    kills: int = 100
    memories: int = 30_000
    files: int = 3_000
    sectors: bool = False

    def size(self, full: T, smoke: T) -> T:
        """Return ``smoke`` in a smoke run, else ``full``."""
        return smoke if self.smoke else full

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Give an empty folder and remove it afterwards."""
        path = Path(tempfile.mkdtemp(dir=self.work))
        try:
            yield path
        finally:
            shutil.rmtree(path)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of measurements under named columns; a column's name ends with its unit."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A measured value and the one to reach.

    Attributes:
        what: What was measured, with its unit.
        value: The measured value.
        least: The value must not be below this.
        most: The value must not be above this.
    """

    what: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        """Whether the value is within its limits."""
        least = self.least if self.least is not None else self.value
        most = self.most if self.most is not None else self.value
        return least <= self.value <= most


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one benchmark found out."""

    tables: Sequence[Table]
    figures: Sequence[Figure] = ()


def check(right: object, sentence: str) -> None:
    """Fail the run unless the answer is right.

    Raises:
        WrongAnswerError: it is not; ``sentence`` says which answer.
    """
    if not right:
        raise WrongAnswerError(sentence)


def take_turns(contenders: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Run every contender once a round and return what each returned, round by round.

    Each round begins with another contender, so that none always runs after the same one.
    """
    names = list(contenders)
    results: dict[str, list[T]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            results[name].append(contenders[name]())
    return results


def medians(results: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the median of each contender's rounds."""
    return {name: statistics.median(values) for name, values in results.items()}


def middle(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each value that the rounds have at the same place."""
    return [statistics.median(values) for values in zip(*rounds, strict=True)]


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def as_text(table: Table) -> str:
    """Return the table for people: aligned, numbers to the right."""
    rows = [[shown(value) for value in row] for row in table.rows]
    widths = [max(len(line[n]) for line in [list(table.columns), *rows]) for n in range(len(table.columns))]
    numeric = [all(not isinstance(row[n], str) for row in table.rows) for n in range(len(table.columns))]
    lines = [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(table.columns), ["-" * width for width in widths], *rows]
    ]
    return "\n".join([table.title, *("  " + line for line in lines)])


def as_markdown(table: Table) -> str:
    """Return the table for a README."""
    numeric = [all(not isinstance(row[n], str) for row in table.rows) for n in range(len(table.columns))]
    rule = ["--:" if right else "---" for right in numeric]
    lines = [list(table.columns), rule, *([shown(value) for value in row] for row in table.rows)]
    return "\n".join([f"**{table.title}**", "", *("| " + " | ".join(line) + " |" for line in lines)])


def shown(value: Value) -> str:
    """Return a measured value for people."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
