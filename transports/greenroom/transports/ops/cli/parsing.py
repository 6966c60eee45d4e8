"""The parser of `greenroom` and its help, made from `catalogue` and the settings."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

from greenroom.runtime.base.system import program_version
from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.parsers import boolean
from greenroom.transports.base.config.settings import Settings, all_settings, flag, variable
from greenroom.transports.base.errors import InvalidValueError
from greenroom.transports.ops.cli.catalogue import COMMANDS, COMMON, FAMILIES, GROUPS, Command, Option
from greenroom.transports.ops.cli.output import say

_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "basics": ("data", "agent", "agent_type", "user", "project", "tools", "schemas", "ws", "http", "stdio"),
    "who comes in": (
        *("tls_cert", "tls_key", "require_key", "behind_proxy", "trusted_proxy", "allow_origin"),
        *("rate_limit", "rate_burst", "oauth_issuer", "oauth_resource", "trust_signer"),
    ),
    "memories and searches": (
        "embedder",
        "embedder_model",
        "models",
        "language",
        "timezone",
        "content_limit",
        "conversation_tiers",
        "documents",
    ),
    "the store": (
        *("secrets", "encrypt", "encryption_key", "durability", "max_size", "min_free"),
        *("audit_days", "audit_size"),
    ),
    "clients": (
        *("max_connections", "max_in_flight", "max_frame", "request_timeout", "debounce"),
        *("ping_interval", "http_session_idle"),
    ),
}
"""Sections in the help of a command that takes every setting; other settings come last."""

_SEVERAL: Final = "..."
_NAME_WIDTH: Final = 12
_WIDEST: Final = 110
_CHOICE: Final = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)")
_UNKNOWN: Final = re.compile(r"unrecognized arguments: (?P<given>--\S*)")
_NEAR_FLAG: Final = 0.8
_MORE: Final = """\
`greenroom help --all` lists every command, `greenroom COMMAND --help` what one takes."""


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the intended command or flag in its errors."""

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and the error."""
        from difflib import get_close_matches  # noqa: PLC0415 - only for errors

        choice, unknown = _CHOICE.search(message), _UNKNOWN.match(message)
        near: list[str] = []
        if choice is not None:
            known = re.findall(r"'([^']*)'", choice["known"])
            near = get_close_matches(choice["given"], known, 1)
            if "COMMAND" in message:
                message = (
                    f"no command is called {choice['given']!r}; `greenroom help --all` lists all {len(known)}"
                )
        elif unknown is not None:
            given = unknown["given"].partition("=")[0]
            near = get_close_matches(given, self._option_string_actions, 1, _NEAR_FLAG)
        super().error(f"{message}; did you mean {near[0]}?" if near else message)


def make_parser(first: str | None = None) -> argparse.ArgumentParser:
    """Make the parser of the whole command line, or only the part for one command.

    Args:
        first: The first word. If it is a command or a family, all others are left out, which saves 15 ms.

    The parsed arguments have `command` and, in a family, `action`, each None if missing. They also have
    `flags`, which maps fields of a request to flags or arguments, and `parser`, the recognized part's parser.
    """
    parser = _Parser(**_looks("greenroom COMMAND [options]", _listing(COMMON), _MORE), prog="greenroom")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    _add_help(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", prog="greenroom", help=argparse.SUPPRESS
    )
    known = {name.partition(" ")[0] for name in COMMANDS}
    wanted = {first} if first in known else known
    actions = {}
    for family, help_text in FAMILIES.items():
        if family not in wanted:
            continue
        made = commands.add_parser(
            family, **_looks(f"greenroom {family} ACTION [options]", _sentence(help_text))
        )
        _add_help(made)
        actions[family] = made.add_subparsers(
            dest="action", metavar="ACTION", prog=f"greenroom {family}", title="actions"
        )
    for name, command in COMMANDS.items():
        if name.partition(" ")[0] not in wanted:
            continue
        family, _, action = name.rpartition(" ")
        usage = " ".join(["greenroom", name, *metavars(command), "[options]"])
        looks = _looks(usage, _sentence(command.help), _examples(command.examples))
        if family:
            _fill(actions[family].add_parser(action, help=command.help, **looks), command)
        else:
            _fill(commands.add_parser(name, **looks), command)
    return parser


def help_of_everything() -> str:
    """Return the help with every command, examples and exit codes."""
    return f"usage: greenroom COMMAND [options]\n\n{_listing(GROUPS)}\n\n{_epilog()}"


def _looks(usage: str, description: str, epilog: str | None = None) -> dict[str, Any]:
    return {
        "usage": usage,
        "description": description,
        "epilog": epilog,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
        "add_help": False,
    }


def _add_help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-h", "--help", action="help", help="show this and exit")
    parser.set_defaults(parser=parser)


def _fill(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add a command's arguments and flags to its parser, the most frequent ones first."""
    flags = {}
    for (argument, help_text), metavar in zip(command.arguments.items(), metavars(command), strict=True):
        several = metavar.endswith(_SEVERAL)
        name = metavar.removesuffix(_SEVERAL)
        count = ("*" if command.optional else "+") if several else None
        parser.add_argument(argument, metavar=name, nargs=count, help=help_text)
        flags[argument] = name
    *groups, (title, keys) = _grouped(command)
    for each, settings in groups:
        _add_settings(parser.add_argument_group(each), settings)
    last = parser.add_argument_group(title) if groups else parser
    for name, option in command.options.items():
        _add_option(last, name, option)
        flags[option.field or name.strip("-").replace("-", "_")] = name
    parser.set_defaults(flags=flags)
    if command.json:
        last.add_argument("--json", action="store_true", help="print JSON for programs")
    _add_settings(last, keys)
    last.add_argument("--config", metavar="FILE", help="configuration file (TOML) [GREENROOM_CONFIG]")
    last.add_argument("-h", "--help", action="help", help="show this and exit")
    parser.set_defaults(parser=parser)


def metavars(command: Command) -> list[str]:
    """Return the names of a command's arguments in the help."""
    names = [argument.upper() for argument in command.arguments]
    return [*names[:-1], names[-1].removesuffix("S") + _SEVERAL] if command.several else names


def _grouped(command: Command) -> list[tuple[str, list[str]]]:
    """Return the settings of a command by section; the last section has all others."""
    if not command.every_setting:
        taken = [
            key
            for key, setting in all_settings().items()
            if key in command.settings or (command.shared and setting.everywhere)
        ]
        return [("options", taken)]
    named = {key for keys in _SETTINGS.values() for key in keys}
    return [
        *((title, list(keys)) for title, keys in _SETTINGS.items()),
        ("more", [key for key in all_settings() if key not in named]),
    ]


def _add_option(parser: argparse._ActionsContainer, name: str, option: Option) -> None:
    if option.metavar is None:
        dest = {} if option.dest is None else {"dest": option.dest}
        parser.add_argument(name, **dest, action="store_true", help=option.help)  # type: ignore[arg-type]
    else:
        parser.add_argument(
            name,
            dest=option.dest,
            metavar=option.metavar,
            type=_argument_type(option.read),
            default=option.default,
            required=option.required,
            help=option.help,
        )


def _argument_type(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return read(text)
        except InvalidValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}, but {error}") from None

    return convert


def _add_settings(parser: argparse._ActionsContainer, keys: Iterable[str]) -> None:
    for key in keys:
        setting = all_settings()[key]
        default = getattr(Settings, key, None)  # the help text describes a default that depends on the place
        shown = f"; default {setting.reader.show(default)}" if default else ""
        help_text = f"{setting.help} [{variable(key)}{shown}]"
        if setting.reader is boolean:
            parser.add_argument(flag(key), dest=key, action="store_const", const="yes", help=help_text)
            continue
        parser.add_argument(
            flag(key),
            dest=key,
            metavar=setting.reader.metavar,
            action="append" if setting.reader.repeatable else "store",
            help=help_text,
        )


def _listing(groups: Mapping[str, tuple[str, ...]]) -> str:
    """Return the description of the program and the commands of these groups."""
    lines = ["Shared sessions and memories for AI agents, served over MCP from one folder."]
    width = min(shutil.get_terminal_size().columns, _WIDEST) - 2
    indent = " " * (_NAME_WIDTH + 2)
    for title, names in groups.items():
        lines += ["", f"{title}:"]
        for name in names:
            help_text = FAMILIES.get(name) or COMMANDS[name].help
            lines += textwrap.wrap(
                help_text, width, initial_indent=f"  {name:<{_NAME_WIDTH}}", subsequent_indent=indent
            )
    return "\n".join(lines)


def _sentence(help_text: str) -> str:
    return f"{help_text[0].upper()}{help_text[1:]}."


def _examples(lines: Iterable[str]) -> str | None:
    shown = "\n".join(f"  greenroom {line}" for line in lines)
    return f"examples:\n{shown}" if shown else None


def _epilog() -> str:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in exit_codes.MEANINGS.items())
    examples = _examples(
        [
            "serve --ws 127.0.0.1:8765",
            "watch session://release-2",
            "keys create --name 'laptop of ann' --for-user ann",
            "backup /backups/greenroom.mdb",
        ]
    )
    return (
        f"{examples}\n\n"
        "`greenroom COMMAND --help` tells what a command takes. Every setting is an option, an environment\n"
        "variable (GREENROOM_MAX_SIZE for --max-size) and a key of the configuration file (max_size). An\n"
        "option wins over the variable, the variable over the file; `greenroom config` shows the values in\n"
        "force and where each came from.\n\n"
        f"exit codes:\n{codes}"
    )


class _Version(argparse.Action):
    """`--version`, beside other options."""

    def __call__(self, parser: argparse.ArgumentParser, *_others: Any) -> None:
        say(f"greenroom {program_version()}")
        parser.exit()
