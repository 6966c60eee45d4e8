"""Lines of what a hook gives, each a text made inert, with its source; and which memories may be one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from greenroom.actors.content.text.escape import inert, line_tokens
from greenroom.actors.core.replies.memory_types import by_author, changer
from greenroom.actors.hooks.briefing.usage_marks import digest_of, marks_of
from greenroom.actors.memories.recall.search import chance_of
from greenroom.actors.memories.requests.replies import FoundMemory
from greenroom.actors.recall.near import is_near
from greenroom.actors.recall.recalled import strongest
from greenroom.actors.schemas.hook_work import GivenMemory

MOST_OF_MEMORY: Final = 480
"""Characters of a memory that a line has."""
MOST_OF_SOURCE: Final = 160
NO_ROOM: Final = "there was no room for it"
"""Why a line is left out that might be given."""


class Line(NamedTuple):
    """A line, and the memory that it is; None where it is none."""

    text: str
    memory: GivenMemory | None = None

    @property
    def digest(self) -> int:
        """Stands for the line in what a session has."""
        return digest_of(self.text)


def said(text: str, source: str, most: int) -> Line:
    """Return what somebody said, with its source."""
    return Line(f"{inert(text, most)} [{inert(source, MOST_OF_SOURCE)}]")


def of_memory(hit: FoundMemory, prompt: str = "") -> Line:
    """Return a memory as a line."""
    memory = hit.memory
    text = memory.text
    by = by_author(memory.author, memory.imported, changer(memory.author, memory.updated_by))
    source = f"memory {memory.key} in {memory.namespace}{by}, {memory.updated_at:%Y-%m-%d}"
    given = GivenMemory(
        memory_id=memory.memory_id,
        version=memory.version,
        namespace=memory.namespace,
        key=memory.key,
        score=None if hit.odds is None else round(chance_of(hit), 4),
        signals=strongest(hit.components or {}),
        marks=marks_of(text[:MOST_OF_MEMORY], prompt),
    )
    return Line(said(text, source, MOST_OF_MEMORY).text, given)


def why_withheld(hit: FoundMemory, project: str, has: Mapping[str, int]) -> str | None:
    """Return why a memory may not be put into a context without being asked for; None if it may.

    It is the user's, and agents of that user wrote it; it is not unreviewed; it is of no other project; and
    the session has not got this version of it.
    """
    memory = hit.memory
    if not hit.own:
        return "others wrote it"
    if memory.unreviewed:
        return "nobody has reviewed it"
    if memory.withheld:
        return "it is too large"
    if not is_near(memory.namespace, project):
        return "it is of another project"
    return "the session has it" if has.get(memory.memory_id) == memory.version else None


def within(lines: list[Line], budget: int, most: int) -> tuple[list[Line], int]:
    """Return the first lines that a budget of tokens has room for, and what is left of it."""
    kept: list[Line] = []
    for line in lines:
        cost = line_tokens(line.text)
        if len(kept) < most and cost <= budget:
            budget -= cost
            kept.append(line)
    return kept, budget
