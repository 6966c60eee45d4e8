"""Changes of a client's file, shown and agreed to."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

import trio

from greenroom.transports.ops.cli.output import remark, say
from greenroom.transports.ops.cli.support.terminal import printable


def show_change(path: Path, before: str, after: str) -> None:
    """Show what changes in a file, of whose texts nothing is left that is secret."""
    name = str(path)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=2, lineterm="")
    for line in lines:
        say(printable(line.replace("\t", "    ")))


async def is_agreed(name: str, chosen: argparse.Namespace) -> bool:
    """Ask whoever sits at the terminal, if anybody does."""
    if chosen.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    remark(f"greenroom setup: {name}: write this? [y/N]")
    typed: str = await trio.to_thread.run_sync(sys.stdin.readline)
    return typed.strip().lower() in {"y", "yes"}
