"""Checks of the server's entry in a client's file, and of its program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from greenroom.transports.clients.setup.change import Record
from greenroom.transports.clients.table import Client

AGAIN: Final = "set it up again"
"""The remedy for most faults."""


class Start(NamedTuple):
    """The command that starts a server."""

    command: str
    arguments: list[str]

    @property
    def is_bridge(self) -> bool:
        """Whether it reaches the server of another machine."""
        return "bridge" in self.arguments

    def value_of(self, flag: str) -> str | None:
        """Return the value of a flag in the arguments."""
        for place, each in enumerate(self.arguments):
            if each == flag:
                return next(iter(self.arguments[place + 1 :]), None)
            if each.startswith(f"{flag}="):
                return each.partition("=")[2]
        return None


def start_of(client: Client, entry: Any) -> Start | None:
    """Return the command of an entry; None if the entry has no command."""
    command = entry.get(client.command) if isinstance(entry, dict) else None
    arguments = entry.get("args", []) if isinstance(entry, dict) else None
    if not isinstance(command, str) or not isinstance(arguments, list):
        return None
    return Start(command, [str(each) for each in arguments])


def may_be_run(client: Client, entry: Any, record: Record | None, wanted: Start) -> bool:
    """Return whether an entry may be run; a project's file may come from anyone."""
    start = start_of(client, entry)
    if start is None or start.command != wanted.command or not os.access(start.command, os.X_OK):
        return False
    known = [client.entry(*wanted)] + ([record.entry] if record is not None else [])
    is_server = start.is_bridge or "serve" in start.arguments
    return entry in known or (not client.project and is_server)


def faults(client: Client, entry: Any, record: Record | None, wanted: Start) -> list[str]:
    """Return the faults of an entry, one sentence each."""
    if entry is None:
        gone = f"its entry was set up and has gone, perhaps with the client's own writing; {AGAIN}"
        return [] if record is None else [gone]
    start = start_of(client, entry)
    if start is None:
        return ["its entry names no command"]
    found = [*_of_program(start, wanted), *_of_folder(start, wanted)]
    if entry.get("disabled") is True or entry.get("enabled") is False:
        found.append("it is switched off")
    if record is not None and entry != record.entry:
        found.append("its entry has been changed since it was set up, so --undo leaves it")
    return found


def _of_program(start: Start, wanted: Start) -> list[str]:
    if not Path(start.command).is_absolute():
        return [f"it names {start.command} without a folder, which a program of the desktop may not find"]
    if not Path(start.command).exists():
        return [f"there is no {start.command}; {AGAIN}{' with --url' if start.is_bridge else ''}"]
    if not os.access(start.command, os.X_OK):
        return [f"{start.command} is not executable"]
    if start.command != wanted.command:
        return [f"it starts {start.command}, which is not this program and is not tried"]
    return []


def _of_folder(start: Start, wanted: Start) -> list[str]:
    if start.is_bridge:
        return []
    theirs, ours = start.value_of("--data"), wanted.value_of("--data")
    if theirs == ours:
        return []
    there, here = theirs or "the default folder", ours or "the default one"
    return [f"its data are in {there}, and this command looks into {here}"]
