"""`greenroom setup`: clients are told of Greenroom in their own files, tried, and untold."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from typing import Any

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.output import complain, remark, say
from greenroom.transports.cli.support.startup_notice import program
from greenroom.transports.cli.support.terminal import printable
from greenroom.transports.config.load import Resolved
from greenroom.transports.setup.change import SetupError, configured, put_in, taken_out
from greenroom.transports.setup.clients import BY_HAND, CLIENTS, SERVER, Client
from greenroom.transports.setup.files import keep_record, read, record_of, replace
from greenroom.transports.setup.trial import tried


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
        try:
            await _one(name, chosen, resolved)
        except SetupError as error:
            code = complain("setup", f"{name}: {printable(str(error))}", exit_codes.FAILED)
    return code


def _found(*, every: bool, recorded: bool) -> list[str]:
    if recorded:
        return [name for name, client in CLIENTS.items() if record_of(client.path()) is not None]
    return [
        name for name, client in CLIENTS.items() if every or (client.is_installed() and not client.project)
    ]


async def _one(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
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


async def _set_up(name: str, client: Client, chosen: argparse.Namespace, resolved: Resolved) -> None:
    path, text = client.path(), read(client.path())
    command, arguments = _started(name, resolved)
    record = put_in(client, text, client.entry(command, arguments), record_of(path))
    if record.written == text:
        say(f"{name}: {printable(str(path))} has it already")
    else:
        _show(client, text, record.written)
        if chosen.only_print:
            return
        if not await _is_agreed(name, chosen):
            raise SetupError("nothing was written; --yes does it")
        keep_record(path, record)  # first, so that whatever is written can be taken back
        replace(path, text, record.written)
        say(f"{name}: written")
    if not chosen.only_print:
        found = await tried(command, arguments)
        say(f"{name}: greenroom {found.version} starts and lists {found.tools} tools")
        say(f"{name}: now {client.after}")


async def _undo(name: str, client: Client, chosen: argparse.Namespace) -> None:
    path, record = client.path(), record_of(client.path())
    if record is None:
        raise SetupError("it was not set up by this command, so nothing is taken back")
    text = read(path)
    without = None if text is None else taken_out(client, text, record)
    if without != text:
        _show(client, text, without)
        if not await _is_agreed(name, chosen):
            raise SetupError("nothing was taken back; --yes does it")
        replace(path, text, without)
    keep_record(path, None)
    say(f"{name}: taken back")


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
    if resolved.sources["data"].kind != "default":
        arguments += ["--data", str(resolved.settings.data.absolute())]
    return command, arguments


def _show(client: Client, before: str | None, after: str | None) -> None:
    """Show what changes, with two lines around it: the others may hold keys of other servers."""
    name = str(client.path())
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
