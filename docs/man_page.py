"""The manual page `greenroom(1)`, made from the commands and settings."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config import settings
from greenroom.transports.base.config.parsers import boolean
from greenroom.transports.ops.cli.catalogue import COMMANDS, FAMILIES, GROUPS, Command
from greenroom.transports.ops.cli.parsing import metavars

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
OF_A_CALLER = frozenset({"--agent", "--agent-type", "--user", "--project", "--durability", "--max-size"})


def man_page() -> str:
    """Return the page as roff, with the macros of man(7)."""
    lines = [
        r".\" Written by docs/generate.py from the code.",
        f'.TH GREENROOM 1 "" "greenroom {PROJECT["version"]}" "User Commands"',
        *section("NAME", r"greenroom \- " + text("shared sessions and memories for AI agents, over MCP")),
        *section("SYNOPSIS", ".B greenroom", ".I COMMAND", r"[\fIoptions\fR]"),
        *section("DESCRIPTION", text(PROJECT["description"])),
        ".PP",
        text("`greenroom COMMAND --help` says the same of one command. --json prints JSON for programs."),
        ".SH COMMANDS",
        *(line for title, names in GROUPS.items() for line in group(title, names)),
        ".SH SETTINGS",
        text(
            "`greenroom serve` takes every setting, each other command those that it needs. An "
            "option wins over the variable, the variable over the file, the file over the default. "
            "The variable of --max-size is GREENROOM_MAX_SIZE, and so on. "
            f"Those of a caller are {', '.join(sorted(OF_A_CALLER))}."
        ),
        *(line for key in settings.all_settings() for line in setting(key)),
        ".SH EXIT STATUS",
        *(line for code, meaning in exit_codes.MEANINGS.items() for line in entry(rf"\fB{code}\fR", meaning)),
        ".SH ENVIRONMENT",
        *entry(rf"\fB{settings.CONFIG_VARIABLE}\fR", "The configuration file, as --config names it."),
    ]
    return "\n".join(lines) + "\n"


def section(title: str, *lines: str) -> list[str]:
    """Return a section."""
    return [f".SH {title}", *lines]


def entry(head: str, meaning: str) -> list[str]:
    """Return one entry of a list; the head is roff already."""
    return [".TP", head, text(meaning)]


def group(title: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the commands of a group, those of a family one after another."""
    yield f'.SS "{text(title.capitalize())}"'
    for name in names:
        if name in FAMILIES:
            yield from entry(rf"\fB{text(name)}\fR \fIACTION\fR", sentence(FAMILIES[name]))
        for full in COMMANDS:
            if full.split()[0] == name:
                yield from described(full, COMMANDS[full])


def described(name: str, command: Command) -> Iterator[str]:
    """Yield what there is to know of a command."""
    takes = "".join(rf" \fI{text(each)}\fR" for each in metavars(command))
    yield from entry(rf"\fB{text(name)}\fR{takes} [\fIoptions\fR]", sentence(command.help))
    inner = [
        (rf"\fI{text(each)}\fR", meaning)
        for each, meaning in zip(metavars(command), command.arguments.values(), strict=True)
    ]
    inner += [
        (rf"\fB{text(flag)}\fR" + (rf" \fI{text(option.metavar)}\fR" if option.metavar else ""), option.help)
        for flag, option in command.options.items()
    ]
    taken = [settings.flag(key) for key in settings.all_settings() if key in command.settings]
    if set(taken) >= OF_A_CALLER:
        taken = ["those of a caller", *(each for each in taken if each not in OF_A_CALLER)]
    if inner:
        yield ".RS"
        for head, meaning in inner:
            yield from entry(head, meaning)
        yield ".RE"
    if taken and not command.every_setting:
        yield from (".IP", text(f"Settings: {', '.join(taken)}."))
    for place, example in enumerate(command.examples):
        yield from (".br" if place else ".IP", rf"\fBgreenroom {text(example)}\fR")


def setting(key: str) -> list[str]:
    """Return the entry of a setting."""
    about = settings.all_settings()[key]
    value = "" if about.reader is boolean else rf" \fI{text(about.reader.metavar)}\fR"
    default = getattr(settings.Settings, key, None)
    shown = f" [default {about.reader.show(default)}]" if default else ""
    return entry(rf"\fB{text(settings.flag(key))}\fR{value}", f"{about.help}{shown}")


def sentence(words: str) -> str:
    """Return a help text as a sentence."""
    return f"{words[0].upper()}{words[1:]}."


def text(words: str) -> str:
    """Return plain words as roff: nothing in them is a request or an escape."""
    escaped = (
        words.replace("\\", r"\e")
        .replace("-", r"\-")
        .replace("`", r"\(ga")
        .replace("~", r"\(ti")
        .replace("^", r"\(ha")
        .replace("'", r"\(aq")
    )
    return rf"\&{escaped}" if escaped.startswith(".") else escaped
