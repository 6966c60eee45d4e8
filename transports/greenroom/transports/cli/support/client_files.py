"""What clients are told, and changes of their files: shown, agreed to, written with a record, taken back."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from greenroom.transports.cli.output import remark, say
from greenroom.transports.cli.support.startup_notice import program
from greenroom.transports.cli.support.terminal import printable
from greenroom.transports.config.load import Resolved
from greenroom.transports.setup.change import Record, SetupError
from greenroom.transports.setup.files import keep_record, read, replace


async def write_change(
    name: str, path: Path, text: str | None, record: Record, chosen: argparse.Namespace, part: str = ""
) -> None:
    """Show a change and write it, once somebody has agreed."""
    if record.written == text:
        say(f"{name}: {printable(str(path))} has {'them' if part else 'it'} already")
        return
    _show(path, text, record.written)
    if chosen.only_print:
        return
    if not await _is_agreed(name, chosen):
        raise SetupError("nothing was written; --yes does it")
    keep_record(path, record, part)  # first, so that whatever is written can be taken back
    replace(path, text, record.written)
    say(f"{name}: written")


async def take_back(
    name: str,
    path: Path,
    without: Callable[[str], str | None],
    chosen: argparse.Namespace,
    part: str = "",
) -> None:
    """Take back what a record tells, once somebody has agreed, and forget the record.

    Args:
        name: The client.
        path: Its file.
        without: Returns a text without what was ours.
        chosen: The command line.
        part: What of the file the record is about, where it is not the server.
    """
    text = read(path)
    left = None if text is None else without(text)
    if left != text:
        _show(path, text, left)
        if not await _is_agreed(name, chosen):
            raise SetupError("nothing was taken back; --yes does it")
        replace(path, text, left)
    keep_record(path, None, part)
    say(f"{name}: {part and part + ' '}taken back")


def started(name: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return how a client starts its server; the folder is named where it is not the default one."""
    command, before = program()
    arguments = [*before, "serve", "--agent", name.removesuffix("-project")]
    return command, [*arguments, *data_option(resolved)]


def data_option(resolved: Resolved) -> list[str]:
    """Return what a client's commands say of the data folder: nothing where it is the default one."""
    if resolved.sources["data"].kind == "default":
        return []
    return ["--data", str(resolved.settings.data.absolute())]


def _show(path: Path, before: str | None, after: str | None) -> None:
    """Show what changes, with two lines around it: the others may hold keys of other servers."""
    name = str(path)
    lines = difflib.unified_diff(
        (before or "").splitlines(), (after or "").splitlines(), name, name, n=2, lineterm=""
    )
    for line in lines:
        say(printable(line.replace("\t", "    ")))


async def _is_agreed(name: str, chosen: argparse.Namespace) -> bool:
    """Ask whoever sits at the terminal, if anybody does."""
    if chosen.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    remark(f"greenroom setup: {name}: write this? [y/N]")
    typed: str = await trio.to_thread.run_sync(sys.stdin.readline)
    return typed.strip().lower() in {"y", "yes"}
