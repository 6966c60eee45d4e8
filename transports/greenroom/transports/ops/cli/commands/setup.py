"""`greenroom setup`: adds Greenroom to clients' files, tries the server, and can undo both."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

import msgspec

from greenroom.runtime import GreenroomError
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.setup.change import (
    Record,
    SetupError,
    find_entry,
    put_in,
    render_masked,
    take_out,
)
from greenroom.transports.clients.setup.files import check_below, keep_record, read, record_of, replace
from greenroom.transports.clients.setup.plugin import MANIFEST, PLUGIN, is_plugin, plugin_files
from greenroom.transports.clients.setup.programs import put_by_client, remove_by_client, try_start
from greenroom.transports.clients.table import BY_HAND, CLIENTS, SERVER, Client
from greenroom.transports.ops.cli.commands.setup_check import check
from greenroom.transports.ops.cli.commands.setup_hooks import (
    hooks_record,
    is_agreed,
    own_hook_entries,
    set_up_hooks,
    show_change,
    take_back_hooks,
)
from greenroom.transports.ops.cli.commands.setup_remote import bridge_command, learn_server
from greenroom.transports.ops.cli.output import complain, remark, say
from greenroom.transports.ops.cli.support.startup_notice import start_command
from greenroom.transports.ops.cli.support.terminal import printable


async def setup(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Set up, check or undo each client; one failure does not stop the others."""
    unfit = _unfit(chosen)
    if unfit is not None:
        return complain("setup", unfit, exit_codes.USAGE)
    if chosen.plugin:
        return _write_plugin(chosen, resolved)
    names = list(dict.fromkeys(chosen.clients)) or _find_clients(every=chosen.check, recorded=chosen.undo)
    if not names:
        known = f"no client is found here; name the one to set up: {_known_names()}"
        nothing = "nothing is set up" if chosen.undo else known
        return complain("setup", nothing, exit_codes.FAILED)
    if chosen.check:
        return await check(names, resolved, as_json=chosen.json)
    if chosen.url is not None:
        try:
            await learn_server(chosen, resolved.settings)
        except GreenroomError as error:
            return complain("setup", printable(str(error)), exit_codes.FAILED)
    code = exit_codes.OK
    parts = [_one, set_up_hooks] if chosen.hooks and not chosen.undo else [_one]
    for name in names:
        for part in parts:
            try:
                await part(name, chosen, resolved)
            except SetupError as error:
                code = complain("setup", f"{name}: {printable(str(error))}", exit_codes.FAILED)
    return code


def _unfit(chosen: argparse.Namespace) -> str | None:
    """Return why the options of the command line conflict; None if they do not."""
    if chosen.undo + chosen.check + chosen.only_print > 1:
        return "take one of --undo, --check and --print"
    if chosen.plugin and (chosen.clients or chosen.undo or chosen.check):
        return "--plugin takes no client, --undo or --check"
    if chosen.url is not None and (chosen.undo or chosen.check or chosen.plugin or chosen.hooks):
        return "--url takes no --undo, --check, --plugin or --hooks: hooks need a server on this machine"
    if chosen.json and not chosen.check:
        return "--json goes with --check"
    unknown = [name for name in chosen.clients if name not in CLIENTS and name not in BY_HAND]
    if unknown:
        return f"there is no client {unknown[0]!r}; known are {_known_names()}"
    return None


def _known_names() -> str:
    return ", ".join([*CLIENTS, *BY_HAND])


def _find_clients(*, every: bool, recorded: bool) -> list[str]:
    if recorded:
        return [name for name, client in CLIENTS.items() if record_of(client.path()) or hooks_record(name)]
    return [
        name for name, client in CLIENTS.items() if every or (client.is_installed() and not client.project)
    ]


async def _one(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    if name in BY_HAND:
        command, arguments = _start(name, chosen, resolved)
        entry = {"mcpServers": {SERVER: {"command": command, "args": arguments}}}
        say(BY_HAND[name])
        say(json.dumps(entry, indent=2, ensure_ascii=False))
        return
    client = CLIENTS[name]
    if client.project:
        check_below(client.path(), Path.cwd())
    if chosen.undo:
        await _undo(name, client, chosen)
    else:
        await _set_up(name, client, chosen, resolved)


def _start(name: str, chosen: argparse.Namespace, resolved: Resolved) -> tuple[str, list[str]]:
    return start_command(name, resolved) if chosen.url is None else bridge_command(chosen.url, resolved)


async def _set_up(name: str, client: Client, chosen: argparse.Namespace, resolved: Resolved) -> None:
    path, text = client.path(), read(client.path())
    command, arguments = _start(name, chosen, resolved)
    entry, known = client.entry(command, arguments), record_of(path)
    wanted, record = put_in(client, text, entry, known)
    if wanted == text:
        say(f"{name}: {printable(str(path))} has it already")
    else:
        _show(client, text, wanted, ours_before=known is not None, ours_after=True)
        if client.own is not None and client.program() is not None:
            say(f"{name}: with its own command, `{client.programs[0]} {' '.join(client.own.add)} …`")
        if chosen.only_print:
            return
        if not await is_agreed(name, chosen):
            raise SetupError("nothing was written; --yes does it")
        keep_record(path, record)  # stored first, so that every change can be undone
        await _put(name, client, text, wanted, record)
        say(f"{name}: written")
    if not chosen.only_print:
        found = await try_start(command, arguments)
        say(f"{name}: greenroom {found.version} starts and lists {found.tools} tools")
        say(f"{name}: now {client.after}")


async def _put(name: str, client: Client, text: str | None, wanted: str | None, record: Record) -> None:
    """Add the entry with the client's own command if possible, else directly to its file."""
    path, program = client.path(), client.program()
    if client.own is not None and program is not None:
        try:
            written = await put_by_client(client, program, record.entry)
        except SetupError as error:
            remark(f"greenroom setup: {name}: {printable(str(error))}; its file is edited instead")
            text = read(path)  # the command may have made only a part of the change
            wanted, _ = put_in(client, text, record.entry, None)
            keep_record(path, msgspec.structs.replace(record, written=wanted or ""))
        else:
            keep_record(path, msgspec.structs.replace(record, written=written, by_client=True))
            return
    replace(path, text, wanted)


async def _undo(name: str, client: Client, chosen: argparse.Namespace) -> None:
    """Undo a setup, last change first, since entry and hooks may share a file."""
    path, record = client.path(), None if chosen.hooks else record_of(client.path())
    if record is None and hooks_record(name) is None:
        raise SetupError("it was not set up by this command, so nothing is taken back")
    await take_back_hooks(name, chosen)
    if record is None:
        return
    text = read(path)
    without = None if text is None else take_out(client, text, record)
    if without != text:
        _show(client, text, without, ours_before=True, ours_after=False)
        if not await is_agreed(name, chosen):
            raise SetupError("nothing was taken back; --yes does it")
        await _take(name, client, text, without, record)
    keep_record(path, None)
    say(f"{name}: taken back")


async def _take(name: str, client: Client, text: str | None, without: str | None, record: Record) -> None:
    """Remove the entry with the client's command if that added it, else from the file."""
    path, program = client.path(), client.program()
    if record.by_client and program is not None:
        try:
            await remove_by_client(client, program, find_entry(client, record.original))
        except SetupError as error:
            remark(f"greenroom setup: {name}: {printable(str(error))}; its file is edited instead")
            text = read(path)
            without = None if text is None else take_out(client, text, record)
        else:
            return
    if without != text:
        replace(path, text, without)


def _show(
    client: Client, before: str | None, after: str | None, *, ours_before: bool, ours_after: bool
) -> None:
    """Print the change; values of other servers are masked, since they may be keys."""
    show_change(
        client.path(),
        render_masked(client, before, ours=ours_before),
        render_masked(client, after, ours=ours_after),
    )


def _write_plugin(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Write the plugin into a new or empty folder, or replace an earlier plugin."""
    name, folder = "claude-code", Path(chosen.plugin).absolute()
    files = plugin_files(
        CLIENTS[name].entry(*start_command(name, resolved)), own_hook_entries(name, resolved)
    )
    try:
        _check_free(folder)
        for path, text in files.items():
            if chosen.only_print:
                say(f"--- {printable(str(folder / path))}\n{text}")
            else:
                replace(folder / path, read(folder / path), text)
    except SetupError as error:
        return complain("setup", printable(str(error)), exit_codes.FAILED)
    if not chosen.only_print:
        shown = printable(shlex.quote(str(folder)))
        say(f"plugin: {len(files)} files are in {printable(str(folder))}")
        say(f"plugin: now `claude plugin marketplace add {shown}`, `claude plugin install {PLUGIN}`")
        if record_of(CLIENTS[name].path()) or hooks_record(name):
            say(f"plugin: and `greenroom setup --undo {name}` first, or all is there twice")
    return exit_codes.OK


def _check_free(folder: Path) -> None:
    try:
        is_free = not folder.exists() or not any(folder.iterdir()) or is_plugin(read(folder / MANIFEST))
    except OSError as error:
        raise SetupError(f"{folder} cannot be used: {error.strerror}") from None
    if not is_free:
        raise SetupError(f"{folder} holds something else than the plugin; name a new folder")
