"""`greenroom setup --plugin`: a folder with a plugin for Claude Code."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.clients.setup.change import SetupError
from greenroom.transports.clients.setup.files import read, record_of, replace
from greenroom.transports.clients.setup.plugin import MANIFEST, PLUGIN, is_plugin, plugin_files
from greenroom.transports.clients.table import CLIENTS
from greenroom.transports.ops.cli.commands.setup_hooks import hooks_record, own_hook_entries
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.support.client_files import start_command
from greenroom.transports.ops.cli.support.terminal import printable


def write_plugin(chosen: argparse.Namespace, resolved: Resolved) -> int:
    """Write the plugin into a new or empty folder, or over an earlier plugin."""
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
