"""`greenroom setup --hooks`: the hooks of a client, in its own file."""

from __future__ import annotations

import argparse
from typing import Any, Final

from greenroom.transports.cli.output import say
from greenroom.transports.cli.support.client_files import data_option, take_back, write_change
from greenroom.transports.cli.support.startup_notice import program
from greenroom.transports.config.load import Resolved
from greenroom.transports.hooks.clients import HOOK_CLIENTS
from greenroom.transports.setup import hook_files
from greenroom.transports.setup.change import Record, SetupError
from greenroom.transports.setup.files import read, record_of

_PART: Final = "hooks"


async def set_up_hooks(name: str, chosen: argparse.Namespace, resolved: Resolved) -> None:
    """Put the hooks into a client's file, or say that there are none for it."""
    if name not in HOOK_CLIENTS:
        nothing = f"its hooks are not known; those that can be set up are {', '.join(HOOK_CLIENTS)}"
        if name in chosen.clients:
            raise SetupError(nothing)
        say(f"{name}: {nothing}")
        return
    path, text = hook_files.hooks_path(name), read(hook_files.hooks_path(name))
    record = hook_files.put_in(name, text, own_hook_entries(name, resolved), hooks_record(name))
    await write_change(name, path, text, record, chosen, _PART)
    if not chosen.only_print:
        say(f"{name}: hooks are set up; {HOOK_CLIENTS[name].after}")


async def take_back_hooks(name: str, chosen: argparse.Namespace) -> None:
    """Take a client's hooks out of its file, if this command has put them there."""
    record = hooks_record(name)
    if record is not None:
        path, taken_out = hook_files.hooks_path(name), hook_files.taken_out
        await take_back(name, path, lambda text: taken_out(name, text, record), chosen, _PART)


def check_hooks(name: str, resolved: Resolved) -> None:
    """Say whether a client's hooks are as they were set up."""
    text = read(hook_files.hooks_path(name))
    entries = own_hook_entries(name, resolved)
    missing, changed = hook_files.stray_events(name, text, entries)
    if not missing:
        off = " and switched off" if hook_files.are_off(name, text) else ""
        say(f"{name}: hooks are set up{off}")
    elif changed:
        raise SetupError(f"hooks are changed under {', '.join(changed)}; see {hook_files.hooks_path(name)}")
    elif len(missing) < len(entries) or hooks_record(name):
        raise SetupError(
            f"hooks are missing under {', '.join(missing)}; `greenroom setup {name} --hooks` mends it"
        )
    else:
        say(f"{name}: {'hooks by the plugin' if hook_files.has_plugin(name, text) else 'no hooks'}")


def hooks_record(name: str) -> Record | None:
    """Return what was done to the file of a client's hooks, if anything was and is not taken back."""
    return record_of(hook_files.hooks_path(name), _PART) if name in HOOK_CLIENTS else None


def own_hook_entries(name: str, resolved: Resolved) -> dict[str, Any]:
    """Return what a client's file has for each event, when this program is what runs."""
    command, before = program()
    return hook_files.hook_entries(name, [command, *before], data_option(resolved))
