"""`greenroom setup`: clients are told of Greenroom in their own files, tried, and untold."""

from __future__ import annotations

import argparse
import json
from typing import Any

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.commands.setup_hooks import (
    check_hooks,
    hooks_record,
    set_up_hooks,
    take_back_hooks,
)
from greenroom.transports.cli.commands.setup_plugin import write_plugin
from greenroom.transports.cli.output import complain, say
from greenroom.transports.cli.support.client_files import started, take_back, write_change
from greenroom.transports.cli.support.startup_notice import program
from greenroom.transports.cli.support.terminal import printable
from greenroom.transports.config.load import Resolved
from greenroom.transports.hooks.clients import HOOK_CLIENTS
from greenroom.transports.setup.change import SetupError, configured, put_in, taken_out
from greenroom.transports.setup.clients import BY_HAND, CLIENTS, SERVER, Client
from greenroom.transports.setup.files import read, record_of
from greenroom.transports.setup.trial import tried


async def setup(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Set up, check or undo each client; what fails for one is said, and the others go on."""
    if chosen.undo + chosen.check + chosen.only_print > 1:
        return complain("setup", "take one of --undo, --check and --print", exit_codes.USAGE)
    if chosen.plugin:
        return write_plugin(chosen, resolved)
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
        return [name for name, client in CLIENTS.items() if record_of(client.path()) or hooks_record(name)]
    return [
        name for name, client in CLIENTS.items() if every or (client.is_installed() and not client.project)
    ]


async def _server(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    if name in BY_HAND:
        say(BY_HAND[name])
        command, arguments = started(name, resolved)
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
        check_hooks(name, resolved)
    elif chosen.hooks and not chosen.check and not chosen.undo:
        await set_up_hooks(name, chosen, resolved)


async def _set_up(name: str, client: Client, chosen: argparse.Namespace, resolved: Resolved) -> None:
    path, text = client.path(), read(client.path())
    command, arguments = started(name, resolved)
    record = put_in(client, text, client.entry(command, arguments), record_of(path))
    await write_change(name, path, text, record, chosen)
    if not chosen.only_print:
        found = await tried(command, arguments)
        say(f"{name}: greenroom {found.version} starts and lists {found.tools} tools")
        say(f"{name}: now {client.after}")


async def _undo(name: str, client: Client, chosen: argparse.Namespace) -> None:
    """Take back what was set up last first: both may be in one file."""
    record = None if chosen.hooks else record_of(client.path())
    if record is None and hooks_record(name) is None:
        raise SetupError("it was not set up by this command, so nothing is taken back")
    await take_back_hooks(name, chosen)
    if record is not None:
        await take_back(name, client.path(), lambda text: taken_out(client, text, record), chosen)


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
