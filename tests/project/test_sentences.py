"""Sentences of the product: the commands, flags and pages that they name exist."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from greenroom.transports.base.config.settings import all_settings, flag
from greenroom.transports.ops.cli.catalogue import COMMANDS, FAMILIES
from greenroom.transports.ops.cli.parsing import make_parser

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for room in ("runtime", "actors", "transports") for path in sorted((ROOT / room).rglob("*.py"))
]
COMMAND = re.compile(r"`greenroom ([^`]+)`")
TYPED = re.compile(r": greenroom ([a-z][^`;()]+)")
"""A command that is to be typed as it stands; words in capitals are filled in."""
PAGE = re.compile(r"(?<![\w./-])(?:docs|how-to|reference)/[\w./-]+\.md(?:#[\w-]+)?")
SHARED = {"--json", "--help", "--version", "--no-json", *(flag(key) for key in all_settings())}
"""Flags that every command has, or that are settings."""


@cache
def sentences() -> list[tuple[str, str]]:
    """Return each text of the product with its place; what a format puts in is `{}`."""
    return list(texts())


def texts() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        pieces = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            if id(node) in pieces:
                continue
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            if not isinstance(node, ast.JoinedStr | ast.Constant):
                continue
            text = "".join(
                (str(part.value) if isinstance(part.value, str) else "")
                if isinstance(part, ast.Constant)
                else "{}"
                for part in parts
            )
            if text:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def wrong_in(command: str) -> str | None:
    """Return what there is not of a command line that a sentence names."""
    words = command.split()
    name = " ".join(words[:2]) if words[0] in FAMILIES else words[0]
    if name in FAMILIES or words[0].isupper() or words[0].startswith(("{", "-")):
        return None
    if name not in COMMANDS:
        return f"no command {name!r}"
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    missing = flags - SHARED - set(COMMANDS[name].options)
    return f"{name!r} has no {', '.join(sorted(missing))}" if missing else None


@pytest.mark.slow
@pytest.mark.promise("cli.named-commands")
def test_the_commands_that_sentences_name_exist() -> None:
    named = [(place, match[1]) for place, text in sentences() for match in COMMAND.finditer(text)]
    assert len(named) > 50
    assert [(place, command, wrong) for place, command in named if (wrong := wrong_in(command))] == []


@pytest.mark.promise("cli.doctor-advice")
def test_the_commands_that_sentences_advise_can_be_parsed() -> None:
    advised = [(place, match[1]) for place, text in sentences() for match in TYPED.finditer(text)]
    assert len(advised) > 10
    for place, command in advised:
        words = shlex.split(command.replace("{}", "filled-in"))
        try:
            make_parser(words[0]).parse_args(words)
        except SystemExit:
            pytest.fail(f"{place}: {command}")


@pytest.mark.parametrize("command", ["verfy", "verify --fast", "keys invent", "serve --wss"])
def test_a_command_that_there_is_not_is_found(command: str) -> None:
    assert wrong_in(command) is not None


@pytest.mark.promise("cli.named-commands")
def test_the_pages_that_sentences_name_exist() -> None:
    named = {(place, match[0]) for place, text in sentences() for match in PAGE.finditer(text)}
    assert named
    for place, page in named:
        path, _, anchor = page.partition("#")
        file = ROOT / path if path.startswith("docs/") else ROOT / "docs" / path
        assert file.is_file(), (place, page)
        headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, (place, page)
