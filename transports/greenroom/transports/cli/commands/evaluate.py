"""`greenroom evaluate`: how well searches find what they should, on the user's own memories.

A line of the file is a query with the keys of the memories that it should find. Each is asked in each
mode; nothing counts as used by that.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, quantiles
from typing import Final

from greenroom.actors.recall.evaluate import DEPTHS, Judged, JudgedQuery, judged, read_query, ready
from greenroom.actors.schemas.memory_types import SearchMode
from greenroom.runtime import Refusal
from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import complain, remark, say
from greenroom.transports.cli.support.open_store import embedder_choice, open_store, principal_of
from greenroom.transports.cli.support.progress_bar import show_progress
from greenroom.transports.config.load import Resolved

MODES: Final[tuple[SearchMode, ...]] = ("semantic", "hybrid", "exact")
_NAME_WIDTH: Final = 24


async def evaluate(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print a table of figures by mode; return the exit code."""
    settings = resolved.settings
    path = Path(chosen.queries)
    try:
        queries = list(_read(path))
    except OSError as error:
        return complain("evaluate", f"{path} cannot be read: {error.strerror or error}", exit_codes.NO_ACCESS)
    except Refusal as refusal:
        return complain("evaluate", f"{path}, {refusal}", exit_codes.FAILED)
    if not queries:
        return complain("evaluate", f"{path} holds no queries", exit_codes.FAILED)
    modes = MODES if chosen.mode is None else (chosen.mode,)
    depths = tuple(depth for depth in DEPTHS if depth <= chosen.limit)
    found: dict[str, list[Judged]] = {}
    principal = principal_of(settings)
    with show_progress() as shows:
        async with open_store(settings, embedder_choice(settings, os.environ)) as runtime:
            embedder = await ready(runtime, principal)
            for mode in modes:
                found[mode] = []
                for number, query in enumerate(queries, start=1):
                    found[mode].append(await judged(runtime, principal, query, mode, chosen.limit, depths))
                    shows(mode, number, len(queries))
    if chosen.json:
        say(json.dumps({"embedder": embedder, "modes": _figures(found)}, indent=2))
    else:
        remark(f"greenroom evaluate: {len(queries):,} queries, {embedder}")
        say(_table(_figures(found)))
    return exit_codes.OK


def _read(path: Path) -> Iterator[JudgedQuery]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            text = raw.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else raw.strip()
            if text:
                try:
                    yield read_query(text)
                except Refusal as refusal:
                    sentence = f"line {number}: {refusal.sentence}"
                    raise Refusal(refusal.code, sentence, **refusal.details) from None


def _figures(found: dict[str, list[Judged]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the means by mode and group; the group of all is called ``all``."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for mode, rows in found.items():
        groups: dict[str, list[Judged]] = {"all": rows}
        for row in rows:
            if row.group is not None:
                groups.setdefault(row.group, []).append(row)
        figures[mode] = {name: _means(members) for name, members in groups.items()}
    return figures


def _means(rows: list[Judged]) -> dict[str, float]:
    times = [row.milliseconds for row in rows]
    cut = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 19
    means = {name: fmean(row.metrics[name] for row in rows) for name in rows[0].metrics}
    return {"n": len(rows), **means, "p50 ms": cut[9], "p95 ms": cut[18]}


def _table(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    lines: list[str] = []
    for mode, groups in figures.items():
        for name, row in groups.items():
            if not lines:
                lines.append(f"{'':{_NAME_WIDTH}}" + "".join(f"{column:>9}" for column in row))
            label = mode if name == "all" else f"  {name}"
            cells = [f"{_cell(column, value):>9}" for column, value in row.items()]
            lines.append(f"{label[: _NAME_WIDTH - 1]:{_NAME_WIDTH}}" + "".join(cells))
    return "\n".join(lines)


def _cell(column: str, value: float) -> str:
    if column == "n":
        return f"{value:,.0f}"
    return f"{value:.1f}" if column.endswith("ms") else f"{100 * value:.1f}"
