"""`greenroom evaluate`: measures how well searches find the user's own memories.

Each line of the file has a query and the keys of the memories to find. Each query runs in each mode, and does
not count as use of the memories. ``--template`` writes such a file, which the user fills in.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from statistics import fmean, quantiles
from typing import Final

import msgspec

from greenroom.actors.core.replies.memory_types import SearchMode
from greenroom.actors.memories.recall.evaluate import (
    DEPTHS,
    EMPTY,
    NEWER,
    RANKED,
    Judged,
    JudgedQuery,
    Scored,
    expected_error,
    judge,
    read_query,
    ready,
    tenths,
    unknown,
)
from greenroom.actors.memories.requests.transfer import MemoryLine
from greenroom.actors.memories.transfer.export_actor import export_lines
from greenroom.runtime import Refusal
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import Settings
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.authentication import acting_principal
from greenroom.transports.ops.cli.support.open_store import embedder_choice, open_store
from greenroom.transports.ops.cli.support.terminal import show_progress

_NEEDS: Final = ("greenroom evaluate", "memory:read")
MODES: Final[tuple[SearchMode, ...]] = ("semantic", "hybrid", "exact")
_NAME_WIDTH: Final = 24
_ABOUT: Final = 300
"""The most characters of a memory in a template."""
_ORDER: Final = (*(f"R@{depth}" for depth in DEPTHS), f"hit@{RANKED}", "MRR", f"nDCG@{RANKED}", NEWER, EMPTY)


async def evaluate(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Print tables of figures, or write a template; return the exit code."""
    path = Path(chosen.queries)
    if chosen.template is not None:
        return await _begin(path, chosen.template, resolved.settings)
    try:
        lines = list(_read(path))
    except OSError as error:
        return complain("evaluate", f"{path} cannot be read: {error.strerror or error}", exit_codes.NO_ACCESS)
    except Refusal as refusal:
        return complain("evaluate", f"{path}, {refusal}", exit_codes.FAILED)
    queries = [each for each in lines if each.query]
    if not queries:
        return complain("evaluate", f"{path} holds no queries", exit_codes.FAILED)
    if len(queries) < len(lines):
        remark(f"greenroom evaluate: {len(lines) - len(queries):,} lines without a query are left out")
    return await _measure(chosen, resolved.settings, queries)


async def _measure(chosen: argparse.Namespace, settings: Settings, queries: Sequence[JudgedQuery]) -> int:
    modes = MODES if chosen.mode is None else (chosen.mode,)
    depths = tuple(depth for depth in DEPTHS if depth <= chosen.limit)
    found: dict[str, list[Judged]] = {}
    with show_progress() as shows:
        async with open_store(settings, embedder_choice(settings, os.environ)) as runtime:
            principal = await acting_principal(runtime, settings, *_NEEDS)
            embedder = await ready(runtime, principal)
            for mode in modes:
                found[mode] = []
                for number, query in enumerate(queries, start=1):
                    found[mode].append(await judge(runtime, principal, query, mode, chosen.limit, depths))
                    shows(mode, number, len(queries))
            missed = [set[str]().union(*(row.missed for row in rows)) for rows in found.values()]
            strangers = await unknown(runtime, principal, sorted(set.intersection(*missed)))
    for name in strangers:
        remark(f"greenroom evaluate: {name!r} was never found, and is the key of no memory that you may see")
    scored = [each for row in found.get("semantic", ()) for each in row.scored]
    if chosen.json:
        say(json.dumps({"embedder": embedder, "modes": _figures(found), **_reliability(scored)}, indent=2))
    else:
        remark(f"greenroom evaluate: {len(queries):,} queries, {embedder}")
        say("\n\n".join([_table(_figures(found)), *([_score_table(scored)] if scored else ())]))
    return exit_codes.OK


async def _begin(path: Path, count: int, settings: Settings) -> int:
    """Write a template with some memories; return the exit code."""
    drawn, seen = await _draw(count, settings)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(json.dumps(_blank(each), ensure_ascii=False) + "\n" for each in drawn)
    except FileExistsError:
        return complain("evaluate", f"{path} exists already; choose another name", exit_codes.NO_ACCESS)
    except OSError as error:
        sentence = f"{path} cannot be written: {error.strerror or error}"
        return complain("evaluate", sentence, exit_codes.NO_ACCESS)
    say(f"{len(drawn):,} of {seen:,} memories are in {path}: write a query into each line, or leave it empty")
    return exit_codes.OK


async def _draw(count: int, settings: Settings) -> tuple[list[MemoryLine], int]:
    """Draw memories at random; return them, and the number of all memories."""
    drawn: list[MemoryLine] = []
    seen = 0
    async with open_store(settings) as runtime:
        principal = await acting_principal(runtime, settings, *_NEEDS)
        async with aclosing(export_lines(runtime, principal, None)) as pages:
            async for page in pages:
                for line in page:
                    seen += 1
                    # Reservoir sampling: the n-th memory replaces a drawn one with the probability count / n.
                    place = len(drawn) if len(drawn) < count else random.randrange(seen)  # noqa: S311  no secret
                    if place < count:
                        drawn[place : place + 1] = [msgspec.json.decode(line, type=MemoryLine)]
    return drawn, seen


def _blank(memory: MemoryLine) -> dict[str, object]:
    text = msgspec.json.encode(memory.value).decode() if memory.content is None else memory.content
    return {"query": "", "relevant": [memory.key], "about": text[:_ABOUT]}


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
    """Return the means by mode and group; the group ``all`` includes every query."""
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
    names = [name for name in _ORDER if any(name in row.metrics for row in rows)]
    means = {name: fmean(row.metrics[name] for row in rows if name in row.metrics) for name in names}
    return {"n": len(rows), **means, "p50 ms": cut[9], "p95 ms": cut[18]}


def _table(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    columns = list(next(iter(figures.values()))["all"])
    lines = [f"{'':{_NAME_WIDTH}}" + "".join(f"{column:>9}" for column in columns)]
    for mode, groups in figures.items():
        for name, row in groups.items():
            label = mode if name == "all" else f"  {name}"
            cells = [f"{_cell(column, row.get(column)):>9}" for column in columns]
            lines.append(f"{label[: _NAME_WIDTH - 1]:{_NAME_WIDTH}}" + "".join(cells))
    return "\n".join(lines)


def _reliability(scored: Sequence[Scored]) -> dict[str, object]:
    return {
        "reliability": [each._asdict() for each in tenths(scored)],
        "expected_error": expected_error(scored),
    }


def _score_table(scored: Sequence[Scored]) -> str:
    """Render, by score, the share of correct first results of semantic searches."""
    lines = [f"{'score (semantic)':{_NAME_WIDTH}}{'found':>9}{'score':>9}{'right':>9}"]
    for each in reversed(tenths(scored)):
        cells = (f"{each.found:,}", *(_cell("", share) for share in (each.score, each.right)))
        name = f"  {each.least:.1f} to {each.most:.1f}"
        lines.append(f"{name:{_NAME_WIDTH}}" + "".join(f"{cell:>9}" for cell in cells))
    lines.append(f"{'  expected error':{_NAME_WIDTH}}{'':18}{_cell('', expected_error(scored)):>9}")
    return "\n".join(lines)


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return "-"
    if column == "n":
        return f"{value:,.0f}"
    return f"{value:.1f}" if column.endswith("ms") else f"{100 * value:.1f}"
