"""Findings in a session's turns, the extractor's interface, and lines of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal, Protocol

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.memory_types import MemoryKind
from greenroom.actors.sessions.requests.hook_events import Turn

Rule = Literal["decision", "preference", "remember", "fix", "command"]

MAX_FINDING: Final = 800
"""The text of a finding has at most this many characters."""
KINDS: Final[dict[Rule, MemoryKind]] = {
    "decision": "semantic",
    "preference": "semantic",
    "remember": "semantic",
    "fix": "procedural",
    "command": "procedural",
}
"""The kind of the memory that a finding becomes, by rule."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a session's turns that becomes a memory without a review.

    Attributes:
        text: The content; it must be clear without its context.
        tags: The tags of the memory, its rule first.
        turn: The number of the turn that has the finding, or of the turn where it was last confirmed.
    """

    rule: Rule
    kind: MemoryKind
    text: Annotated[str, Meta(min_length=1, max_length=MAX_FINDING)]
    tags: list[str]
    turn: int


class Extractor(Protocol):
    """Finds memories in turns, as `found_in` does; it may use a language model."""

    async def __call__(self, turns: Sequence[Turn], /) -> list[Finding]: ...  # noqa: D102  the class describes it


def finding(rule: Rule, text: str, turn: int, *tags: str) -> Finding:
    """Make a finding of a rule, with its kind and its tags."""
    return Finding(rule=rule, kind=KINDS[rule], text=text, tags=[rule, *tags], turn=turn)


def to_line(text: str, most: int) -> str:
    """Return text as one printable line without backquotes, cut to a number of characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).replace("`", "'").split())
    return line if len(line) <= most else line[: most - 1] + "\u2026"


LONGEST: Final = 200
"""An error line has at most this many characters."""
_MOST: Final = 20_000
_LINE: Final = 400
_FIRST_OF: Final = (
    r"(?i:(?:\S{1,200}[:(][0-9]+[,:0-9)]*:? ?)?(?:fatal |compile )?error(?: ?\[?[A-Z]*[0-9]+\]?)?: .+)",
    r".{0,200}: (?:command not found|not found|No such file or directory|Permission denied)\b.*",
    r"(?:\w+: )?\S{1,200}:[0-9]+:[0-9]+: .+",
    r"(?:panic|fatal|FATAL|ERR!|npm ERR!|npm error|FAILED|--- FAIL|FAIL|Error|ERROR|error)\b:? .+",
    r"(?i:.{0,100}(?:No module named|Cannot find module|Missing script|Unknown command)\b.*)",
    r"make: \*\*\* .+",
)
_LAST_OF: Final = (
    r"E {3,}((?:[\w.]+\.)?\w*(?:Error|Exception|Warning)\b.*)",
    r"((?:[\w.$]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b(?:: .*)?)",
)
_RAISED, _THROWN = (re.compile(each) for each in _LAST_OF)
_PATTERNS: Final = (
    (-1, _RAISED),
    (0, re.compile(f"({_FIRST_OF[0]})")),
    (-1, _THROWN),
    *((0, re.compile(f"({each})")) for each in _FIRST_OF[1:]),
)
"""The most specific pattern comes first. 0 takes the first line that fits; -1, for tracebacks, the last."""
_ASSERTS: Final = re.compile(r"\bassert\b|AssertionError")
"""A failed assertion is useless without its test, so these lines are left out."""
_CANNOT_RUN: Final = re.compile(
    r"not found|no module named|cannot find module|missing script|unknown command|not recognized|no such file"
    r"|unrecognized (?:option|argument|command)|no such command|unknown option",
    re.IGNORECASE,
)


def find_error_line(output: str) -> str:
    """Find the line of an error, at most `LONGEST` characters; "" if there is none."""
    lines = [
        line.rstrip() if line.startswith("E ") else line.strip() for line in output[-_MOST:].splitlines()
    ]
    lines = [line for line in lines if 0 < len(line) <= _LINE and not _ASSERTS.search(line)]
    for which, pattern in _PATTERNS:
        found = [match[1] for line in lines if (match := pattern.fullmatch(line))]
        if found:
            return to_line(found[which], LONGEST)
    return ""


def cannot_run(error: str) -> bool:
    """Return whether an error means that a command could not start."""
    return _CANNOT_RUN.search(error) is not None
