"""The hooks in a client's own file, and the user's consent to changes of files."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any, Final

import trio

from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.setup.change import Record, SetupError
from greenroom.transports.clients.setup.files import keep_record, read, record_of, replace
from greenroom.transports.clients.setup.hook_files import (
    are_off,
    has_plugin,
    hook_entries,
    hooks_path,
    put_in,
    render_masked,
    stray_events,
    take_out,
    untrusted_events,
)
from greenroom.transports.clients.table import HOOK_CLIENTS
from greenroom.transports.ops.cli.output import remark, say
from greenroom.transports.ops.cli.support.startup_notice import owner_options, program
from greenroom.transports.ops.cli.support.terminal import printable

_PART: Final = "hooks"


async def set_up_hooks(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    """Add the hooks to a client's file, or print that the client has no hooks."""
    if name not in HOOK_CLIENTS:
        nothing = f"its hooks are not known; those that can be set up are {', '.join(HOOK_CLIENTS)}"
        if name in chosen.clients:
            raise SetupError(nothing)
        say(f"{name}: {nothing}")
        return
    path, text, known = hooks_path(name), read(hooks_path(name)), hooks_record(name)
    record = put_in(name, text, own_hook_entries(name, resolved), known)
    if record.written == text:
        say(f"{name}: {printable(str(path))} has them already")
    else:
        show_change(path, render_masked(name, text, known), render_masked(name, record.written, record))
        if chosen.only_print:
            return
        if not await is_agreed(name, chosen):
            raise SetupError("no hooks were written; --yes does it")
        keep_record(path, record, _PART)  # stored first, so that every change can be undone
        replace(path, text, record.written)
    if not chosen.only_print:
        say(f"{name}: hooks are set up; now {HOOK_CLIENTS[name].after}")


async def take_back_hooks(name: str, chosen: argparse.Namespace) -> None:
    """Remove the hooks from a client's file if this command added the hooks."""
    record = hooks_record(name)
    if record is None:
        return
    path, text = hooks_path(name), read(hooks_path(name))
    left = None if text is None else take_out(name, text, record)
    if left != text:
        show_change(path, render_masked(name, text, record), render_masked(name, left, None))
        if not await is_agreed(name, chosen):
            raise SetupError("no hooks were taken back; --yes does it")
        replace(path, text, left)
    keep_record(path, None, _PART)
    say(f"{name}: hooks taken back")


def hooks_state(name: str, resolved: Resolved) -> tuple[str | None, list[str]]:
    """Return the state of a client's hooks and their problems; None without hooks."""
    if name not in HOOK_CLIENTS:
        return None, []
    text, entries = read(hooks_path(name)), own_hook_entries(name, resolved)
    missing, changed = stray_events(name, text, entries)
    if not missing:
        return "hooks set up", _stopped(name, text, entries)
    if len(missing) == len(entries) and not changed and hooks_record(name) is None:
        return ("hooks by the plugin" if has_plugin(name, text) else None), []
    wrong = []
    if changed:
        others = f"its hooks under {', '.join(changed)} are not what this command writes"
        wrong.append(f"{others}; see {hooks_path(name)}")
    gone = [event for event in missing if event not in changed]
    if gone:
        wrong.append(
            f"its hooks under {', '.join(gone)} are missing; `greenroom setup {name} --hooks` mends it"
        )
    return "hooks set up in part", wrong


def _stopped(name: str, text: str | None, entries: dict[str, Any]) -> list[str]:
    """Return the reasons why a client does not run hooks that are in its file."""
    wrong = []
    if are_off(name, text):
        wrong.append("its hooks are switched off, all of them, by the client's own setting")
    trust = HOOK_CLIENTS[name].trust
    if trust is not None:
        noted = hooks_path(name).with_name(trust)
        try:
            untrusted = untrusted_events(name, text, entries, read(noted))
        except ValueError as error:
            raise SetupError(f"{noted} cannot be read as TOML ({error})") from None
        if untrusted:
            wrong.append(
                f"its hooks under {', '.join(untrusted)} do not run before you trust them with `/hooks` there"
            )
    return wrong


def hooks_record(name: str) -> Record | None:
    """Return the record of the hooks in a client's file; None if there is none."""
    return record_of(hooks_path(name), _PART) if name in HOOK_CLIENTS else None


def own_hook_entries(name: str, resolved: Resolved) -> dict[str, Any]:
    """Return the hooks that run this program, for each event of a client."""
    command, before = program()
    return hook_entries(name, [command, *before], owner_options(resolved))


def show_change(path: Path, before: str, after: str) -> None:
    """Print the difference between two texts of a file; these contain no secrets."""
    name = str(path)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=2, lineterm="")
    for line in lines:
        say(printable(line.replace("\t", "    ")))


async def is_agreed(name: str, chosen: argparse.Namespace) -> bool:
    """Ask the user at the terminal for consent, if there is a terminal."""
    if chosen.yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    remark(f"greenroom setup: {name}: write this? [y/N]")
    typed: str = await trio.to_thread.run_sync(sys.stdin.readline)
    return typed.strip().lower() in {"y", "yes"}
