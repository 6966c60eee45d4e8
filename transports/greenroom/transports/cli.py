"""The program `greenroom`: its commands, their flags, and what its exit codes mean.

The parser is made of the table in `_settings`; what a command does is in `_commands`,
imported when the command is known, so that `greenroom serve` does not load what only
`greenroom stats` needs and no command loads trio to print its help.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from greenroom.actors._tool_profiles import TOOL_PROFILES
from greenroom.transports import _exits
from greenroom.transports._output import complain, prepare, say
from greenroom.transports._resolving import SettingsError, resolve
from greenroom.transports._settings import Settings, flag, table, variable
from greenroom.transports._values import NotAllowedError, number, several, word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from greenroom.transports._resolving import Resolved
    from greenroom.transports._settings import Setting


@dataclass(frozen=True)
class _Option:
    """A flag of one command that is no setting; a switch unless it has a `metavar`."""

    help: str
    metavar: str | None = None
    read: Callable[[str], Any] = str
    default: Any = None


@dataclass(frozen=True)
class _Command:
    """One command: its help, its positional arguments, and which flags it takes.

    Attributes:
        optional: Positional arguments that may be left out.
        settings: The settings that it takes besides those that every command takes.
        shared: Whether it takes those; a command without a store of its own does not.
    """

    help: str
    arguments: Mapping[str, str]
    optional: Mapping[str, str] = field(default_factory=dict)
    every_setting: bool = False
    json: bool = True
    options: Mapping[str, _Option] = field(default_factory=dict)
    settings: frozenset[str] = frozenset()
    shared: bool = True


def _seconds(text: str) -> float:
    try:
        return float(number(0.05, 3600, "seconds")(text))
    except NotAllowedError as error:
        raise argparse.ArgumentTypeError(f"{text!r}, but {error}") from None


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"{text!r}, but it must be one of {', '.join(words)}")
        return text

    return read


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_FOUND:
        raise argparse.ArgumentTypeError(f"{text!r}, but it must be a number from 1 to {_MOST_FOUND}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r}, but it must be a whole number from 1 on")
    return int(text)


def _count_from_0(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _tool_profiles(text: str) -> list[str]:
    try:
        return list(several(word(*TOOL_PROFILES))(text))
    except NotAllowedError as error:
        raise argparse.ArgumentTypeError(f"{text!r}, but {error}") from None


_SCOPES: Final = "sessions:*,memory:*"


def _days(text: str) -> float:
    try:
        return float(number(0.001, 366, "days")(text))
    except NotAllowedError as error:
        raise argparse.ArgumentTypeError(f"{text!r}, but {error}") from None


def _lines(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_LINES:
        raise argparse.ArgumentTypeError(f"{text!r}, but it must be a number from 1 to {_MOST_LINES:,}")
    return int(text)


_MOST_LINES: Final = 1_000_000
_URL: Final = "ws://127.0.0.1:8765"
_MOST_FOUND: Final = 100
_FORMATS: Final = (
    *("auto", "jsonl", "mem0", "mcp-memory-service", "server-memory", "shared-context-server", "markdown"),
)
_format = _one_of(*_FORMATS)
_on_conflict = _one_of("skip", "overwrite", "version")
_export_format = _one_of("jsonl", "json")
_mode = _one_of("semantic", "hybrid", "exact")
_WORKS_WITH_MEMORIES: Final = frozenset(
    {"agent", "agent_type", "user", "project", "embedder", "embedder_model", "durability", "max_size"}
)

_COMMANDS: Final[Mapping[str, _Command]] = {
    "serve": _Command(
        "serve MCP on standard input and output, over WebSocket or over HTTP",
        {},
        every_setting=True,
        json=False,
    ),
    "config": _Command("show the settings in force and where each came from", {}, every_setting=True),
    "backup": _Command(
        "copy the store, also while a server uses it", {"destination": "file to make; it must not exist"}
    ),
    "restore": _Command(
        "replace the store with a backup; no server may be using it", {"source": "file that `backup` made"}
    ),
    "repair": _Command(
        "save what is sound of a damaged store, and say what is missing; no server may be using it",
        {"destination": "file to make, which `restore` takes; it must not exist"},
    ),
    "encrypt": _Command(
        "encrypt the store with the key of --encryption-key, by rewriting it; no server may be using it", {}
    ),
    "rekey": _Command(
        "change the key of an encrypted store, without rewriting it; no server may be using it",
        {"new_key": "where the new key is kept: file:PATH, env:NAME or keyring:NAME"},
    ),
    "import": _Command(
        "import memories from a file or a folder, all of them or none",
        {"file": "JSON Lines, a file of another program, or a folder of Markdown"},
        options={
            "--format": _Option(
                f"one of {', '.join(_FORMATS)} [default auto]", "FORMAT", _format, default="auto"
            ),
            "--namespace": _Option("where memories go that name none [default user:<user>]", "NAMESPACE"),
            "--on-conflict": _Option(
                "what a key that is there means: skip, overwrite or version [default skip]",
                "WHAT",
                _on_conflict,
                default="skip",
            ),
            "--dry-run": _Option("only count what would happen"),
        },
        settings=_WORKS_WITH_MEMORIES,
    ),
    "export": _Command(
        "export the memories that you may see to a file",
        {"file": "file to make, which must not exist, or - for standard output"},
        options={
            "--namespace": _Option(
                "only the memories below this [default all that you may see]", "NAMESPACE"
            ),
            "--format": _Option("jsonl or json [default jsonl]", "FORMAT", _export_format, default="jsonl"),
        },
        settings=_WORKS_WITH_MEMORIES,
    ),
    "evaluate": _Command(
        "measure how well searches find what they should, on your own memories",
        {"queries": "JSON Lines: query, relevant (keys), optional namespace, filters, group"},
        options={
            "--mode": _Option("semantic, hybrid or exact [default each of them]", "MODE", _mode),
            "--limit": _Option(
                "how many memories each search answers with [default 50]", "N", _limit, default=50
            ),
        },
        settings=_WORKS_WITH_MEMORIES,
    ),
    "passport": _Command(
        "write a session into a passport or make one of it, and show whose passports are taken",
        {"action": "signer (this server's public key), show, export or restore"},
        options={
            "--file": _Option("file of the passport; `export` makes it", "FILE"),
            "--session": _Option("session that `export` writes", "ID"),
            "--include-memories": _Option("export memories that were stored in the session, too"),
            "--one-time": _Option("let a server take the passport once"),
            "--days": _Option("days for which it is valid [default 7]", "DAYS", _days),
            "--encrypt-with-passphrase": _Option(
                "ask for a passphrase, or read it from GREENROOM_PASSPHRASE"
            ),
        },
        settings=_WORKS_WITH_MEMORIES | {"trust_signer"},
    ),
    "verify": _Command(
        "check the whole store for damage and the index of memories, also while a server uses it",
        {},
        options={"--rebuild": _Option("make an index anew that differs from the memories")},
    ),
    "stats": _Command("show the figures of the server that uses the folder, or of the stopped store", {}),
    "top": _Command(
        "show the figures of a running server as they change",
        {},
        options={
            "--once": _Option("print one frame plainly and end"),
            "--interval": _Option(
                "time between two looks, in seconds [default 1]", "SECONDS", _seconds, default=1.0
            ),
        },
    ),
    "watch": _Command(
        "print a session's messages as they are written, until it ends",
        {"session": "the session, as session://ID or its id alone"},
        options={
            "--url": _Option(f"the server's WebSocket [default {_URL}]", "ws://HOST:PORT", default=_URL),
        },
        settings=frozenset({"agent", "agent_type", "project", "log_level"}),
        shared=False,
    ),
    "demo": _Command(
        "show in some seconds, on a temporary folder, what this is for; checks what it says",
        {},
        json=False,
        shared=False,
    ),
    "keys": _Command(
        "create, list, rotate or revoke API keys, also while servers run",
        {"action": "create, list, rotate or revoke"},
        optional={"key_id": "the key to rotate or to revoke"},
        options={
            "--name": _Option("what the key is for, in words", "NAME"),
            "--scopes": _Option(
                f"what it lets its holder do, such as sessions:*,memory:read or admin [default {_SCOPES}]",
                "SCOPES",
                default=_SCOPES,
            ),
            "--for-agent": _Option("the agent that it is bound to [default as its holder says]", "ID"),
            "--for-type": _Option("the agent type that it is bound to", "TYPE"),
            "--for-user": _Option("the user whom its holder works for [default you]", "NAME"),
            "--for-project": _Option("projects, with commas between [default every one]", "IDS"),
            "--days": _Option("days until it ends [default 90, in rotation as before]", "N", _count),
            "--overlap": _Option(
                "seconds that a rotated key goes on [default 86400]", "SECONDS", _count_from_0
            ),
            "--rate": _Option("requests a minute [default that of the server]", "N", _count),
            "--burst": _Option("requests at once [default that of the server]", "N", _count),
            "--max-bytes": _Option("bytes of content that it may write [default any]", "N", _count),
            "--max-sessions": _Option("sessions that it may create [default any]", "N", _count),
            "--max-subscriptions": _Option("resources it may hear of at once [default any]", "N", _count),
            "--tools": _Option(
                "tool profiles that it is listed, with commas between [default those of the server]",
                "NAMES",
                _tool_profiles,
            ),
        },
        settings=frozenset({"user", "durability", "max_size", "encrypt", "encryption_key"}),
    ),
    "audit": _Command(
        "show, export or check the audit log, also while servers run",
        {"action": "tail, export, verify or checkpoint (a line to keep elsewhere, for `verify`)"},
        options={
            "--lines": _Option("how many records `tail` shows [default 20]", "N", _lines, default=20),
            "--follow": _Option("show records as they come, too, until interrupted"),
            "--file": _Option("file that `export` makes [default standard output]", "FILE"),
            "--checkpoint": _Option("file with checkpoints, or an export, that `verify` goes by", "FILE"),
        },
        settings=frozenset({"user", "durability", "max_size"}),
    ),
    "secret": _Command(
        "give a stopped store a new secret, when the old one is lost or known",
        {"action": "renew"},
        json=False,
        settings=frozenset({"max_size"}),
    ),
    "readmit": _Command(
        "let an actor in again that failed too often and was set aside",
        {"kind": "the actor's kind", "key": "the actor's key"},
    ),
}


_CARRIED_OUT_BY: Final[Mapping[str, tuple[str, str]]] = {
    "top": ("_top", "top"),
    "watch": ("_watch", "watch"),
    "import": ("_exchange", "import_memories"),
    "export": ("_exchange", "export_memories"),
    "evaluate": ("_evaluate", "evaluate"),
    "passport": ("_passport", "passport"),
    "audit": ("_audit", "audit"),
    "secret": ("_secret", "secret"),
    "keys": ("_keys", "keys"),
}
"""Modules of `_commands`, imported when the command is known, with what carries it out there."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: The command line without the program's name; `sys.argv` unless given.

    Returns:
        The exit code of the process.
    """
    prepare()
    if sys.platform not in {"linux", "darwin"}:
        return complain(
            "on this system", f"Linux and macOS are supported, {sys.platform} is not", _exits.FAILED
        )
    chosen = _parser().parse_args(arguments)
    try:
        return _run(chosen, resolve(vars(chosen), os.environ))
    except SettingsError as error:
        return complain(chosen.command, str(error), _exits.USAGE)
    except KeyboardInterrupt:
        return _exits.INTERRUPTED


def _run(chosen: argparse.Namespace, resolved: Resolved) -> int:
    match chosen.command:
        case "serve":
            # Until the server listens for signals there is nothing to put in order, and an exception
            # would come out in the middle of an import.
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            from greenroom.transports._commands._serve import serve  # noqa: PLC0415 - see the module's head

            return serve(resolved)
        case "config":
            from greenroom.transports._commands._config import config  # noqa: PLC0415 - see the module's head

            return config(resolved, as_json=chosen.json)
        case name if name in _CARRIED_OUT_BY:
            module, function = _CARRIED_OUT_BY[name]
            code: int = getattr(import_module(f"greenroom.transports._commands.{module}"), function)(
                chosen, resolved
            )
            return code
        case "demo":
            from greenroom.transports._commands._demo import demo  # noqa: PLC0415 - see the module's head

            return demo()
        case _:
            from greenroom.transports._commands import _store  # noqa: PLC0415 - see the module's head

            return _store.run(chosen, resolved)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="greenroom",
        description="Shared sessions and memories for AI agents, served over MCP from one folder.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help, allow_abbrev=False)
        for argument, help_text in command.arguments.items():
            sub.add_argument(argument, metavar=argument.upper(), help=help_text)
        for argument, help_text in command.optional.items():
            sub.add_argument(argument, metavar=argument.upper(), help=help_text, nargs="?")
        for name_of_flag, option in command.options.items():
            _add_option(sub, name_of_flag, option)
        if command.json:
            sub.add_argument("--json", action="store_true", help="print JSON for programs")
        sub.add_argument("--config", metavar="FILE", help="configuration file (TOML) [GREENROOM_CONFIG]")
        for key, setting in table().items():
            is_shared = setting.everywhere and command.shared
            if command.every_setting or is_shared or key in command.settings:
                _add_flag(sub, key, setting)
    return parser


def _add_option(parser: argparse.ArgumentParser, name: str, option: _Option) -> None:
    if option.metavar is None:
        parser.add_argument(name, action="store_true", help=option.help)
    else:
        parser.add_argument(
            name, metavar=option.metavar, type=option.read, default=option.default, help=option.help
        )


def _add_flag(parser: argparse.ArgumentParser, key: str, setting: Setting) -> None:
    default = getattr(Settings, key, None)  # a default that depends on the place is told by the help
    shown = f"; default {setting.show(default)}" if default else ""
    help_text = f"{setting.help} [{variable(key)}{shown}]"
    if setting.switch:
        parser.add_argument(flag(key), dest=key, action="store_const", const="yes", help=help_text)
        return
    parser.add_argument(
        flag(key),
        dest=key,
        metavar=setting.metavar,
        action="append" if setting.repeatable else "store",
        help=help_text,
    )


def _epilog() -> str:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in _exits.MEANINGS.items())
    return (
        "Every option is also an environment variable (GREENROOM_MAX_SIZE for --max-size) and a key of\n"
        "the configuration file (max_size). An option wins over the variable, the variable over the\n"
        "file; `greenroom config` shows the values in force and where each came from.\n\n"
        f"exit codes:\n{codes}"
    )


class _Version(argparse.Action):
    """`--version`, which looks the version up only when asked: the metadata take a while to read."""

    def __call__(self, parser: argparse.ArgumentParser, *_others: Any) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - for the reason above

        say(f"greenroom {version('greenroom')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
