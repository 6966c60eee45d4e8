"""What is found in the turns of a client's session, and what finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Protocol

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.memory_types import MemoryKind
from greenroom.actors.sessions.requests.hook_events import Turn

Rule = Literal["decision", "preference", "remember", "fix", "command"]

MAX_FINDING: Final = 800
"""Most characters of a finding's text."""
KINDS: Final[dict[Rule, MemoryKind]] = {
    "decision": "semantic",
    "preference": "semantic",
    "remember": "semantic",
    "fix": "procedural",
    "command": "procedural",
}
"""The kind of memory that a finding of each rule becomes."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a session's turns say, worth a memory that nobody reviewed yet.

    Attributes:
        rule: What found it.
        kind: The kind of memory that it becomes.
        text: What it says; it reads alone.
        tags: Labels for it, its rule first.
        turn: The place in the turns where it was said, or came out last.
    """

    rule: Rule
    kind: MemoryKind
    text: Annotated[str, Meta(min_length=1, max_length=MAX_FINDING)]
    tags: list[str]
    turn: int


class Extractor(Protocol):
    """Finds what is worth a memory in turns, as `found_in` does; a language model may stand behind it."""

    async def __call__(self, turns: Sequence[Turn], /) -> list[Finding]: ...  # noqa: D102  the class says it


def finding(rule: Rule, text: str, turn: int, *tags: str) -> Finding:
    """Return a finding of a rule, with its kind and its tags."""
    return Finding(rule=rule, kind=KINDS[rule], text=text, tags=[rule, *tags], turn=turn)


def on_a_line(text: str, most: int) -> str:
    """Return what others wrote as one printable line without backquotes, of so many characters at most."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).replace("`", "'").split())
    return line if len(line) <= most else line[: most - 1] + "\u2026"
