"""`greenroom completion`, and the completion of command lines from the parser and its table.

The shell puts the line into the environment and runs this program.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Final, get_args

import argcomplete
from argcomplete.completers import BaseCompleter, DirectoriesCompleter, FilesCompleter
from argcomplete.shell_integration import shellcode

from greenroom.actors.search.embedding.models.installed_models import MINILM
from greenroom.actors.sessions.requests.hook_events import HookName
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.parsers import Reader
from greenroom.transports.base.config.settings import all_settings
from greenroom.transports.clients.table import BY_HAND, CLIENTS, HOOK_CLIENTS
from greenroom.transports.ops.cli.catalogue import COMMANDS, SHELLS
from greenroom.transports.ops.cli.output import complain, say
from greenroom.transports.ops.cli.parsing import make_parser

_WORDS: Final[Mapping[tuple[str, str], Iterable[str]]] = {
    ("setup", "clients"): (*CLIENTS, *BY_HAND),
    ("hook", "name"): get_args(HookName),
    ("hook", "client"): tuple(HOOK_CLIENTS),
    ("embedder install", "model"): (MINILM,),
    ("completion", "shell"): SHELLS,
}
"""The allowed values of those arguments of commands that have no reader."""

_FOLDERS: Final = frozenset({"DIR", "FOLDER"})


def complete() -> None:
    """Answer the shell that started this process for a completion, and exit."""
    argcomplete.autocomplete(make_parser(), always_complete_options=False, default_completer=_Values())


class _Values(BaseCompleter):
    """Completes an argument: with words, or with files if it is a path."""

    def __call__(
        self,
        *,
        prefix: str,
        action: argparse.Action,
        parser: argparse.ArgumentParser,
        parsed_args: argparse.Namespace,  # noqa: ARG002 - part of the interface
    ) -> Iterable[str]:
        name = parser.prog.removeprefix("greenroom ")
        words = _WORDS.get((name, action.dest)) or _words(_reader(name, action))
        if words:
            return words
        if action.metavar in _FOLDERS:
            return DirectoriesCompleter()(prefix)
        if action.metavar == "FILE" or not action.option_strings:
            return FilesCompleter()(prefix)
        return ()


def _reader(name: str, action: argparse.Action) -> object:
    """Return the reader of a flag's value; None if it has no reader."""
    option = next(
        (COMMANDS[name].options[each] for each in action.option_strings if each in COMMANDS[name].options),
        None,
    )
    if option is not None:
        return option.read
    setting = all_settings().get(action.dest)
    return setting.reader if setting is not None else None


def _words(reader: object) -> list[str]:
    """Return the words that a reader accepts; no words if it also accepts other values."""
    words = reader.metavar.split("|") if isinstance(reader, Reader) else []
    return words if len(words) > 1 and all(word == word.lower() and ":" not in word for word in words) else []


def completion(chosen: argparse.Namespace, _resolved: Resolved) -> int:
    """Print the completion script for a shell; return the exit code."""
    if chosen.shell not in SHELLS:
        known = f"{', '.join(SHELLS[:-1])} or {SHELLS[-1]} is allowed"
        return complain("completion", f"the shell is {chosen.shell!r}, but {known}", exit_codes.USAGE)
    say(shellcode(["greenroom"], shell=chosen.shell).strip())
    return exit_codes.OK
