"""Errors with their fixes, and commands that work, by the commands of a session and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from greenroom.actors.hooks.findings import Finding, finding
from greenroom.actors.schemas.hooks import Turn

LONGEST_ERROR: Final = 200
"""Characters of an error's line."""
LONGEST_COMMAND: Final = 160
_OFTEN: Final = 3
"""A command that passed so often is how something is done here."""
_MOST_STEPS: Final = 4
_PURPOSES: Final = (
    ("test", re.compile(r"\b(?:pytest|unittest|jest|vitest|mocha|rspec|ctest|phpunit|tox|nox|tests?)\b")),
    (
        "lint",
        re.compile(
            r"\b(?:ruff|eslint|flake8|pylint|clippy|golangci-lint|lint|mypy|pyright|tsc|prettier|black|format|check)\b"
        ),
    ),
    ("build", re.compile(r"\b(?:build|make|cmake|gradle|mvn|webpack|vite|compile|bundle)\b")),
)
_ERROR_LINES: Final = (
    re.compile(r"^E\s{2,}(\w*(?:Error|Exception)\b.*)$", re.MULTILINE),
    re.compile(r"^((?:[\w.]+\.)?\w*(?:Error|Exception)(?::.*)?)$", re.MULTILINE),
    re.compile(
        r"^((?:\S+:\s)?(?:fatal |compile )?error(?:\[\w+\])?:\s.*|.*\berror TS[0-9]+:.*)$",
        re.MULTILINE | re.IGNORECASE,
    ),
    re.compile(
        r"^((?:panic|fatal|FAIL|FAILED|npm ERR!)\b.*|.*: (?:command not found|No such file or directory))$",
        re.MULTILINE,
    ),
)


class _Run(NamedTuple):
    """A command that ran; how it ended, and what it said."""

    place: int
    command: str
    failed: bool
    output: str


def found_in_commands(turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield what fixed an error, and which commands pass again and again."""
    failures: dict[str, _Run] = {}
    passed: dict[str, int] = {}
    steps: list[tuple[int, str]] = []
    for event in _events(turns):
        if isinstance(event, tuple) and not isinstance(event, _Run):
            steps.append(event)
            continue
        before = failures.pop(event.command, None)
        if event.failed:
            failures[event.command] = before or event
        else:
            passed[event.command] = passed.get(event.command, 0) + 1
            if before is not None and (error := error_line(before.output)):
                done = [step for place, step in steps if before.place < place < event.place]
                if done:
                    yield finding("fix", _fix_text(event.command, error, done), event.place)
            if passed[event.command] == _OFTEN and (purpose := purpose_of(event.command)):
                yield finding(
                    "command", f"`{_short(event.command)}` works here for: {purpose}.", event.place, purpose
                )
        steps.append((event.place, f"running `{_short(event.command)}`"))


def _events(turns: Sequence[Turn]) -> Iterator[_Run | tuple[int, str]]:
    called: list[str] = []
    for place, turn in enumerate(turns):
        if turn.role == "assistant" and turn.command:
            called.append(turn.command)
        elif turn.role == "tool":
            command = turn.command or (called.pop(0) if called and not turn.path else "")
            if command:
                called = [each for each in called if each != command]
                yield _Run(place, " ".join(command.split()), turn.failed, turn.text)
        if turn.wrote and turn.path and not turn.failed and turn.role != "user":
            yield (place, f"editing `{turn.path}`")


def error_line(output: str) -> str:
    """Return the line of an output that tells its error; empty if there is none."""
    for pattern in _ERROR_LINES:
        lines = pattern.findall(output)
        if lines:
            return _quoted(lines[-1] if "Error" in pattern.pattern else lines[0], LONGEST_ERROR)
    return ""


def purpose_of(command: str) -> str:
    """Return what a command is for, as ``test``, ``lint`` or ``build``; empty if that is not known."""
    return next((purpose for purpose, pattern in _PURPOSES if pattern.search(command)), "")


def _fix_text(command: str, error: str, done: list[str]) -> str:
    steps = list(dict.fromkeys(done))[-_MOST_STEPS:]
    return f"`{_short(command)}` failed with \u201c{error}\u201d and passed after {', '.join(steps)}."


def _short(command: str) -> str:
    return _quoted(command, LONGEST_COMMAND)


def _quoted(text: str, most: int) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split()).replace("`", "'")
    return line if len(line) <= most else line[: most - 1] + "\u2026"
