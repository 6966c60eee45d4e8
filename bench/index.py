"""The index of memories: how fast it is loaded, how much memory it takes, what looks and additions cost.

Each size is written by one process and loaded by another, which has a server's modules
loaded and nothing else. Ranking and the embedder are not part of this.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from bench.harness import Figure, Plan, Report, Table, check
from bench.indexes import Filled, Loaded

if TYPE_CHECKING:
    from pathlib import Path


def run(plan: Plan) -> Report:
    """Measure each size."""
    rows: list[list[str | int | float | None]] = []
    figures = []
    for size in plan.size((600, 10_000, 100_000), (600, 2_500)):
        with plan.folder() as folder:
            filled = msgspec.json.decode(_child("fill", folder, size), type=Filled)
            loaded = msgspec.json.decode(_child("load", folder, size), type=Loaded)
        rows.append(
            [
                f"{size:,}",
                filled.memories,
                filled.vectors,
                loaded.segments,
                loaded.numpy,
                loaded.load,
                loaded.idle.anonymous,
                loaded.after.anonymous,
                loaded.lookup_us,
                loaded.add,
                loaded.neighbours,
            ]
        )
        figures += [
            Figure(what=f"loading {size:,} memories, ms", value=loaded.load, most=300),
            Figure(what=f"RssAnon MB with {size:,} memories", value=loaded.after.anonymous, most=250),
        ]
    table = Table(
        title="The index of memories of 120 characters with vectors of 256 bytes",
        columns=[
            "memories",
            "added/s",
            "vectors/s",
            "segments",
            "numpy ms",
            "load ms",
            "idle MB",
            "loaded MB",
            "word us",
            "add ms",
            "neighbours ms",
        ],
        rows=rows,
    )
    return Report(tables=[table], figures=figures)


def _child(verb: str, data: Path, size: int) -> bytes:
    command = [sys.executable, "-m", "bench.indexes", verb, str(data), str(size)]
    child = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    check(child.returncode == 0, f"{verb} ended with code {child.returncode}")
    return child.stdout
