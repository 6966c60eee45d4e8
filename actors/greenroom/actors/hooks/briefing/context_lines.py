"""Render the lines that a hook injects, and decide which memories it may inject."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import STOP_WORDS, tokens
from greenroom.actors.content.text.escape import Section, escape_untrusted, line_tokens
from greenroom.actors.core.auth.namespaces import is_near
from greenroom.actors.core.replies.memory_types import by_author, changer
from greenroom.actors.memories.recall.recall_context import strongest
from greenroom.actors.memories.recall.replies import GivenMemory
from greenroom.actors.memories.requests.replies import FoundMemory

MOST_OF_MEMORY: Final = 480
"""A line has at most this many characters of a memory."""
MOST_OF_SOURCE: Final = 160
_MOST_OF_BRANCH: Final = 60
NO_ROOM: Final = "there was no room for it"
"""The reason for a memory that did not fit into the token budget."""


class Line(NamedTuple):
    """A line and its memory; the memory is None for a line about something else."""

    text: str
    memory: GivenMemory | None = None

    @property
    def digest(self) -> int:
        """A number that identifies the line among the contents that a session already has."""
        return digest_of(self.text)


def render_line(text: str, source: str, most: int) -> Line:
    """Render an escaped text and its source as a line."""
    return Line(f"{escape_untrusted(text, most)} [{escape_untrusted(source, MOST_OF_SOURCE)}]")


def to_section(title: str, lines: Iterable[Line]) -> Section:
    """Return lines as a section."""
    return Section(title, [each.text for each in lines])


def render_known(hit: FoundMemory, agent: str) -> Line:
    """Render a memory below the name of its namespace.

    Its author is shown unless it is this agent.
    """
    memory = hit.memory
    by = by_author(memory.author, memory.imported, changer(memory.author, memory.updated_by))
    source = f"{memory.key}{'' if by == f' by {agent}' else by}, {memory.updated_at:%Y-%m-%d}"
    return Line(_with_branch(hit, source), _to_given(hit, "", None))


def render_memory(hit: FoundMemory, prompt: str = "", score: float | None = None) -> Line:
    """Render a memory as a line; ``score`` is for the injection log."""
    memory = hit.memory
    by = by_author(memory.author, memory.imported, changer(memory.author, memory.updated_by))
    source = f"memory {memory.key} in {memory.namespace}{by}, {memory.updated_at:%Y-%m-%d}"
    return Line(_with_branch(hit, source), _to_given(hit, prompt, score))


def _with_branch(hit: FoundMemory, source: str) -> str:
    line = render_line(hit.memory.text, source, MOST_OF_MEMORY).text
    if hit.of_branch:
        branch = escape_untrusted(hit.of_branch, _MOST_OF_BRANCH)
        line += f" [noted on branch {branch}, whose work is not in the present one]"
    return line


def _to_given(hit: FoundMemory, prompt: str, score: float | None) -> GivenMemory:
    memory = hit.memory
    return GivenMemory(
        memory_id=memory.memory_id,
        version=memory.version,
        namespace=memory.namespace,
        key=memory.key,
        score=None if score is None else round(score, 4),
        signals=strongest(hit.components or {}),
        marks=marks_of(memory.text[:MOST_OF_MEMORY], prompt),
    )


def why_withheld(hit: FoundMemory, projects: Sequence[str], has: Mapping[str, int]) -> str | None:
    """Return why a memory may not be injected; None if it may be.

    It must belong to the user, be written by the user's agents, and be reviewed. It must be of this project
    or of no project. The session must not have this version yet.
    """
    memory = hit.memory
    if not hit.own:
        return "others wrote it"
    if memory.unreviewed:
        return "no one has reviewed it"
    if memory.withheld:
        return "it is too large"
    if not is_near(memory.namespace, *projects):
        return "it is of another project"
    return "the session has it" if has.get(memory.memory_id) == memory.version else None


def fit_lines(lines: list[Line], budget: int, most: int) -> tuple[list[Line], int]:
    """Return at most ``most`` lines within a token budget, and the rest of the budget."""
    kept: list[Line] = []
    for line in lines:
        cost = line_tokens(line.text)
        if len(kept) < most and cost <= budget:
            budget -= cost
            kept.append(line)
    return kept, budget


MOST_MARKS: Final = 24
_LEAST: Final = 3
_LEAST_OF_FEW: Final = 2
_LETTERS: Final = 4
_DIGEST_BYTES: Final = 6


def marks_of(text: str, prompt: str) -> list[int]:
    """Return digests of a text's distinctive words that the prompt lacks."""
    known = {term for token in tokens(prompt) for term in token.posted}
    return [
        digest_of(each)
        for each in list(dict.fromkeys(_distinctive(text)))[: 2 * MOST_MARKS]
        if each not in known
    ][:MOST_MARKS]


def is_used(marks: Collection[int], texts: Iterable[str]) -> bool:
    """Return whether texts show that a memory with these marks was used.

    The *marks* of a memory are its distinctive words: words of at least four letters, or with a digit, that
    are neither stop words nor in the prompt. Half of the marks, and at least three, must be in the texts. If
    there are only two marks, both must be there; a single mark is never enough.
    """
    if len(marks) < _LEAST_OF_FEW:
        return False
    words = {digest_of(word) for text in texts for word in _distinctive(text)}
    found = sum(each in words for each in marks)
    if len(marks) < _LEAST:
        return found == len(marks)
    return found >= max(_LEAST, -(-len(marks) // 2))


def _distinctive(text: str) -> Iterable[str]:
    for token in tokens(text):
        for term in token.posted:
            if term not in STOP_WORDS and (len(term) >= _LETTERS or any(map(str.isdigit, term))):
                yield term


def digest_of(text: str) -> int:
    """Return a number that stands for a text, from which the text cannot be restored."""
    return int.from_bytes(blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest())
