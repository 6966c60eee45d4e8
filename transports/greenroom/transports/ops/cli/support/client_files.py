"""Changes of a client's file by `greenroom setup`: command, display and consent."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

import trio

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.ops.cli.output import remark, say
from greenroom.transports.ops.cli.support.startup_notice import program
from greenroom.transports.ops.cli.support.terminal import printable


def show_change(path: Path, before: str, after: str) -> None:
    """Print the difference of a file's texts, which have no secrets."""
    name = str(path)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=2, lineterm="")
    for line in lines:
        say(printable(line.replace("\t", "    ")))


async def is_agreed(name: str, chosen: argparse.Namespace) -> bool:
    """Ask the user at the terminal, if there is one."""
    if chosen.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    remark(f"greenroom setup: {name}: write this? [y/N]")
    typed: str = await trio.to_thread.run_sync(sys.stdin.readline)
    return typed.strip().lower() in {"y", "yes"}


def start_command(name: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return the command that starts a server; defaults of folder and user are left out."""
    command, before = program()
    return command, [*before, "serve", "--agent", name.removesuffix("-project"), *owner_options(resolved)]


def owner_options(resolved: Resolved) -> list[str]:
    """Return the options for folder and user, unless they are the defaults."""
    options = []
    if resolved.sources["data"].kind != "default":
        options += ["--data", str(resolved.settings.data.absolute())]
    if resolved.sources["user"].kind != "default":
        options += ["--user", resolved.settings.user]
    return options
