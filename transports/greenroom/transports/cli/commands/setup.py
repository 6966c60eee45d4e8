"""`greenroom setup`: clients are told of Greenroom in their own files, tried, and untold."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import complain, remark, say
from greenroom.transports.cli.support.startup_notice import program
from greenroom.transports.cli.support.terminal import printable
from greenroom.transports.config.load import Resolved
from greenroom.transports.hooks.clients import HOOK_CLIENTS
from greenroom.transports.setup import hook_files
from greenroom.transports.setup.change import Record, SetupError, configured, put_in, taken_out
from greenroom.transports.setup.clients import BY_HAND, CLIENTS, SERVER, Client
from greenroom.transports.setup.files import keep_record, read, record_of, replace
from greenroom.transports.setup.trial import tried

_HOOKS: Final = "hooks"


async def setup(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Set up, check or undo each client; what fails for one is said, and the others go on."""
    if chosen.undo + chosen.check + chosen.only_print > 1:
        return complain("setup", "take one of --undo, --check and --print", exit_codes.USAGE)
    unknown = [name for name in chosen.clients if name not in CLIENTS and name not in BY_HAND]
    if unknown:
        known = ", ".join([*CLIENTS, *BY_HAND])
        return complain("setup", f"there is no client {unknown[0]!r}; known are {known}", exit_codes.USAGE)
    names = chosen.clients or _found(every=chosen.check, recorded=chosen.undo)
    if not names:
        nothing = "nothing is set up" if chosen.undo else "no client is found here; name one to set it up"
        return complain("setup", nothing, exit_codes.FAILED)
    code = exit_codes.OK
    for name in dict.fromkeys(names):
        for part in (_server, _hooks):
            try:
                await part(name, chosen, resolved)
            except SetupError as error:
                code = complain("setup", f"{name}: {printable(str(error))}", exit_codes.FAILED)
    return code


def _found(*, every: bool, recorded: bool) -> list[str]:
    if recorded:
        return [name for name, client in CLIENTS.items() if record_of(client.path()) or _hooks_record(name)]
    return [
        name for name, client in CLIENTS.items() if every or (client.is_installed() and not client.project)
    ]


async def _server(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    if name in BY_HAND:
        say(BY_HAND[name])
        command, arguments = _started(name, resolved)
        entry = {"command": command, "args": arguments}
        shown = [{"name": SERVER, **entry}] if name == "continue" else {"mcpServers": {SERVER: entry}}
        say(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    client = CLIENTS[name]
    if chosen.check:
        await _check(name, client)
    elif chosen.undo:
        await _undo(name, client, chosen)
    else:
        await _set_up(name, client, chosen, resolved)


async def _hooks(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    if chosen.check and name in HOOK_CLIENTS:
        _check_hooks(name, resolved)
    elif chosen.hooks and not chosen.check and not chosen.undo:
        await _set_up_hooks(name, chosen, resolved)


async def _set_up(name: str, client: Client, chosen: argparse.Namespace, resolved: Resolved) -> None:
    path, text = client.path(), read(client.path())
    command, arguments = _started(name, resolved)
    record = put_in(client, text, client.entry(command, arguments), record_of(path))
    await _write(name, path, text, record, chosen)
    if not chosen.only_print:
        found = await tried(command, arguments)
        say(f"{name}: greenroom {found.version} starts and lists {found.tools} tools")
        say(f"{name}: now {client.after}")


async def _set_up_hooks(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    if name not in HOOK_CLIENTS:
        nothing = f"its hooks are not known; those that can be set up are {', '.join(HOOK_CLIENTS)}"
        if name in chosen.clients:
            raise SetupError(nothing)
        say(f"{name}: {nothing}")
        return
    path, text = hook_files.hooks_path(name), read(hook_files.hooks_path(name))
    record = hook_files.put_in(name, text, _hook_entries(name, resolved), _hooks_record(name))
    await _write(name, path, text, record, chosen, _HOOKS)
    if not chosen.only_print:
        say(f"{name}: hooks are set up; {HOOK_CLIENTS[name].after}")


async def _write(
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


async def _undo(name: str, client: Client, chosen: argparse.Namespace) -> None:
    """Take back what was set up last first: both may be in one file."""
    hooks, server = _hooks_record(name), None if chosen.hooks else record_of(client.path())
    if hooks is None and server is None:
        raise SetupError("it was not set up by this command, so nothing is taken back")
    if hooks is not None:
        path, out = hook_files.hooks_path(name), hook_files.taken_out
        await _take_back(name, path, lambda text: out(name, text, hooks), chosen, _HOOKS)
    if server is not None:
        await _take_back(name, client.path(), lambda text: taken_out(client, text, server), chosen)


async def _take_back(
    name: str,
    path: Path,
    without: Callable[[str], str | None],
    chosen: argparse.Namespace,
    part: str = "",
) -> None:
    text = read(path)
    left = None if text is None else without(text)
    if left != text:
        _show(path, text, left)
        if not await _is_agreed(name, chosen):
            raise SetupError("nothing was taken back; --yes does it")
        replace(path, text, left)
    keep_record(path, None, part)
    say(f"{name}: {part and part + ' '}taken back")


def _check_hooks(name: str, resolved: Resolved) -> None:
    """Say whether a client's hooks are as they were set up."""
    text = read(hook_files.hooks_path(name))
    entries = _hook_entries(name, resolved)
    missing, changed = hook_files.stray_events(name, text, entries)
    if not missing:
        say(f"{name}: hooks are set up")
    elif changed:
        raise SetupError(f"hooks are changed under {', '.join(changed)}; see {hook_files.hooks_path(name)}")
    elif len(missing) < len(entries) or _hooks_record(name):
        raise SetupError(
            f"hooks are missing under {', '.join(missing)}; `greenroom setup {name} --hooks` mends it"
        )
    else:
        say(f"{name}: no hooks")


def _hook_entries(name: str, resolved: Resolved) -> dict[str, Any]:
    command, before = program()
    return hook_files.hook_entries(name, [command, *before], _data_option(resolved))


def _hooks_record(name: str) -> Record | None:
    return record_of(hook_files.hooks_path(name), _HOOKS) if name in HOOK_CLIENTS else None


async def _check(name: str, client: Client) -> None:
    entry: Any = configured(client, read(client.path()))
    if entry is None:
        say(f"{name}: {'found, not configured' if client.is_installed() else 'not found'}")
        return
    command = entry.get(client.command) if isinstance(entry, dict) else None
    arguments = entry.get("args", []) if isinstance(entry, dict) else None
    if not isinstance(command, str) or not isinstance(arguments, list):
        raise SetupError(f"configured, but not as a command; see {client.path()}")
    if command != program()[0]:  # a project's file may name any program, and to look must not run it
        raise SetupError(f"configured, but with {command}, which is not this program and is not tried")
    found = await tried(command, [str(each) for each in arguments])
    say(f"{name}: configured, greenroom {found.version} starts and lists {found.tools} tools")


def _started(name: str, resolved: Resolved) -> tuple[str, list[str]]:
    """Return how a client starts its server; the folder is named where it is not the default one."""
    command, before = program()
    arguments = [*before, "serve", "--agent", name.removesuffix("-project")]
    return command, [*arguments, *_data_option(resolved)]


def _data_option(resolved: Resolved) -> list[str]:
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
