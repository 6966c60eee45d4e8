"""The memories that a session should start with, the most useful first.

Use tells most: how often a memory was used, how it was rated, whether it is about the files in hand. Where
little was used so far, tags and wording tell what sounds like a rule: it says what must never, always or only
be done, or what is wanted. The words of a rule are English and German; elsewhere tags and use decide.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from greenroom.actors.hooks.briefing.outdated import SURELY, find_replaced
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryView

USED: Final = 2.0
"""For each unit of the natural logarithm of 1 + uses."""
RATED: Final = 2.0
"""For the mean rating, -1 to 1."""
IN_HAND: Final = 2.0
RULE: Final = 2.5
"""For a tag of a rule; `NO_RULE` for a tag of something else."""
NO_RULE: Final = -1.5
SOUNDS: Final = 1.0
"""For each sign of a rule in the text; minus that for a text about the past."""
OF_USER: Final = 1.0
"""For what holds in all of the user's projects."""
BY_PERSON: Final = 1.0
MOST_UNPROVEN: Final = 3
"""At most this many that only an agent stored: without a use, a good rating or a person's acceptance."""
_COMPARED: Final = 50
_SHORTEST_NAME: Final = 4
_CONSOLE: Final = "console"
_IN_ENGLISH: Final = "decision preference rule convention policy standard guideline"
_IN_GERMAN: Final = "entscheidung vorliebe regel konvention vorgabe"
_OTHER_TAGS: Final = "how-to howto bug incident fix log todo anleitung fehler vorfall"
TAGS_OF_RULES: Final = frozenset([*_IN_ENGLISH.split(), *_IN_GERMAN.split()])
_NO_RULES: Final = frozenset(_OTHER_TAGS.split())
_NEGATION: Final = (
    r"\b(?:not|never|no|none|nothing|without|don't|can't|cannot|must|only"
    r"|nicht|nie|niemals|kein\w*|ohne|muss|müssen|darf|dürfen|nur)\b"
)
_ALL: Final = r"\b(?:all|every|any|everything|everywhere|always|each|alle\w*|jede\w*|immer|überall)\b"
_WANTED: Final = (
    r"\b(?:wants?|prefers?|likes?|please|we (?:use|stay|support|keep)"
    r"|bitte|möchte|bevorzug\w*|wir (?:nutzen|verwenden|bleiben))\b"
)
_ORDER: Final = (
    r"^\W*(?:no|never|always|use|keep|ask|write|put|don't|do not|run"
    r"|kein\w*|nie|immer|nutze|verwende|frage?|schreibe?)\b"
)
_SIGNS: Final = tuple(re.compile(sign, re.IGNORECASE) for sign in (_NEGATION, _ALL, _WANTED, _ORDER))
_PAST: Final = re.compile(r"\b(?:was|were|had|fixed|broke|lost|happened|war|wurde|hatte)\b", re.IGNORECASE)


def most_useful(hits: Sequence[FoundMemory], files: Collection[str], unproven: int = 0) -> list[FoundMemory]:
    """Return the memories worth a place, the most useful first; nothing beside what replaced it.

    Args:
        hits: The memories.
        files: The paths of the files in hand, relative to the project.
        unproven: How many that only an agent stored the session has already.
    """
    sums = {hit.memory.memory_id: usefulness(hit.memory, files) for hit in hits}
    ordered = sorted(hits, key=lambda hit: (-sums[hit.memory.memory_id], -hit.memory.created_at.timestamp()))
    replaced = find_replaced(ordered[:_COMPARED], SURELY)
    kept: list[FoundMemory] = []
    for hit in ordered:
        if hit.memory.memory_id in replaced:
            continue
        unproven += (is_unproven := not is_proven(hit.memory))
        if not is_unproven or unproven <= MOST_UNPROVEN:
            kept.append(hit)
    return kept


def usefulness(memory: MemoryView, files: Collection[str]) -> float:
    """Return the sum of what speaks for a memory at the start of a session."""
    text, tags = memory.text, {tag.lower() for tag in memory.tags}
    found = USED * math.log1p(memory.uses) + RATED * memory.rating
    found += IN_HAND * is_about(memory, files)
    found += RULE * (not TAGS_OF_RULES.isdisjoint(tags)) + NO_RULE * (not _NO_RULES.isdisjoint(tags))
    found += SOUNDS * (sum(sign.search(text) is not None for sign in _SIGNS) - bool(_PAST.search(text)))
    found += OF_USER * (memory.namespace.count(":") == 1 and memory.namespace.startswith("user:"))
    return found + BY_PERSON * _has_person(memory)


def is_proven(memory: MemoryView) -> bool:
    """Return whether a person wrote or accepted a memory, or it was used or rated."""
    return memory.uses > 0 or memory.rating > 0 or _has_person(memory)


def is_about(memory: MemoryView, files: Collection[str]) -> bool:
    """Return whether a memory names one of some files, in its metadata or its text."""
    named = _metadata(memory).get("files")
    if isinstance(named, list) and not set(files).isdisjoint(each for each in named if isinstance(each, str)):
        return True
    names = {name for path in files for name in (path, posixpath.basename(path))}
    return any(len(name) >= _SHORTEST_NAME and "." in name and name in memory.text for name in names)


def _has_person(memory: MemoryView) -> bool:
    """Return whether a person wrote, imported or accepted a memory.

    A person writes in the console, and accepts what a rule found.
    """
    by_console = _CONSOLE in {memory.author, memory.updated_by}
    is_imported = isinstance(memory.imported, str)
    return by_console or is_imported or (not memory.unreviewed and "provenance" in _metadata(memory))


def _metadata(memory: MemoryView) -> Mapping[str, Any]:
    if isinstance(memory.metadata, msgspec.UnsetType):
        return {}
    found: Any = msgspec.json.decode(memory.metadata)
    return found if isinstance(found, dict) else {}
