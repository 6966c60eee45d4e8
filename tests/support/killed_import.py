"""A program: imports memories, is killed at each commit in turn, looks at what is left, imports again."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import trio
import trio.lowlevel
from support.agents import FAST
from support.exchanges import ANN, export, imported, line
from support.killed_commits import kill_at_each

from greenroom.actors import VerifyMemories, open_greenroom
from greenroom.actors.memories.writing import import_staging
from greenroom.runtime import RuntimeClient

import_staging.TURN_ROWS = 2_000  # so that a root takes several turns, some of them with two batches
LINES = [
    *(line(f"k{number}", f"memory {number}", namespace="user:ann") for number in range(900)),
    *(
        line(f"k{number}", f"memory {number} again", supersedes=f"k{number - 1}")
        for number in range(901, 906)
    ),
    *(line(f"t{number}", namespace="team:birds") for number in range(30)),
]


async def _import(runtime: RuntimeClient) -> dict[str, int]:
    return (await imported(runtime, ANN, *LINES, on_conflict="version")).counts


async def _filled(folder: Path) -> None:
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        await _import(runtime)
        await trio.lowlevel.checkpoint()


async def _look(folder: Path) -> dict[str, Any]:
    """Say what is in the folder, by exports and the check of the index, and what after another import."""
    async with open_greenroom(folder, embedder="none", options=FAST) as runtime:
        before = len(await export(runtime, ANN))
        await _import(runtime)
        lines = await export(runtime, ANN)
        problems = (await runtime.query(VerifyMemories())).problems
        repeated = await _import(runtime)
    keys = Counter(each["key"] for each in lines)
    is_whole = keys == Counter(each["key"] for each in LINES)
    in_order = [each["key"] for each in lines if each["key"].startswith("k")][:900]
    return {
        "before": before,
        "is_whole": is_whole and in_order == [f"k{number}" for number in range(900)],
        "links": sum("supersedes" in each for each in lines),
        "problems": problems,
        "repeated": repeated,
    }


if __name__ == "__main__":
    kill_at_each(Path(sys.argv[1]), _filled, _look)
