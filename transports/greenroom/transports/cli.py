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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from greenroom.transports import _exits
from greenroom.transports._output import complain, prepare, say
from greenroom.transports._settings import Settings, SettingsError, flag, resolve, table, variable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from greenroom.transports._settings import Resolved, Setting


@dataclass(frozen=True)
class _Command:
    """One command: its help, its positional arguments, and which flags it takes."""

    help: str
    arguments: Mapping[str, str]
    every_setting: bool = False
    json: bool = True


_COMMANDS: Final[Mapping[str, _Command]] = {
    "serve": _Command("serve MCP on standard input and output", {}, every_setting=True, json=False),
    "config": _Command("show the settings in force and where each came from", {}, every_setting=True),
    "backup": _Command(
        "copy the store, also while a server uses it", {"destination": "file to make; it must not exist"}
    ),
    "restore": _Command(
        "replace the store with a backup; no server may be using it", {"source": "file that `backup` made"}
    ),
    "verify": _Command("check the whole store for damage, also while a server uses it", {}),
    "stats": _Command("show the figures of the server that uses the folder, or of the stopped store", {}),
    "readmit": _Command(
        "let an actor in again that failed too often and was set aside",
        {"kind": "the actor's kind", "key": "the actor's key"},
    ),
}


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
        if command.json:
            sub.add_argument("--json", action="store_true", help="print JSON for programs")
        sub.add_argument("--config", metavar="FILE", help="configuration file (TOML) [GREENROOM_CONFIG]")
        for key, setting in table().items():
            if command.every_setting or setting.everywhere:
                _add_flag(sub, key, setting)
    return parser


def _add_flag(parser: argparse.ArgumentParser, key: str, setting: Setting) -> None:
    default = getattr(Settings, key, None)  # a default that depends on the place is told by the help
    shown = f"; default {setting.show(default)}" if default else ""
    parser.add_argument(
        flag(key),
        dest=key,
        metavar=setting.metavar,
        action="append" if setting.repeatable else "store",
        help=f"{setting.help} [{variable(key)}{shown}]",
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
