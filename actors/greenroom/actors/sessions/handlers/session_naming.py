"""Names of sessions that were begun without one: what is said first where everybody may read it.

The first message that says something gives the name. What a person says soon after takes its place, once;
then it stays.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

import msgspec

from greenroom.actors.content.text.escape import inert
from greenroom.actors.content.text.words import STOP_WORDS
from greenroom.actors.sessions.storage.records import Header, Naming, StoredMessage, is_by_person
from greenroom.actors.sessions.summary.units import units

MOST_NAMING: Final = 5
"""Messages of a session that may give it its name, the first ones."""
LONGEST: Final = 70
"""Characters of what a name takes of a message."""
_READ: Final = 2_000
_UNITS: Final = 12
_TELLING: Final = 2
"""Words besides the commonest that a name needs at least."""
_UNSPACED: Final = 6
"""Or letters in a row, where a script has no spaces."""
_DIGEST: Final = re.compile(r"-[0-9a-f]{8}")
_POLITE: Final = frozenset(
    {
        "hi",
        "hello",
        "hey",
        "ok",
        "okay",
        "yes",
        "please",
        "thanks",
        "thank",
        "sure",
        "great",
        "hallo",
        "danke",
    }
)
_ASKS: Final = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey|ok(?:ay)?|so|now|then)\b[\s,!.:-]*)*"
    r"(?:(?:can|could|would|will) you |(?:i|we) (?:want|need|would like)(?: you)? to |let'?s |let us )?"
    r"(?:please )?",
    re.IGNORECASE,
)
_MARK: Final = re.compile(r"^(?:[-*+\u2022#>]+|\d{1,3}[.)]|\[[ xX]\])\s+")
_WORD: Final = re.compile(r"[^\W_][\w'.-]*")


def renamed(header: Header, naming: Naming, message: StoredMessage) -> Header | None:
    """Return the header after a message that everybody may read; None where it stays as it is."""
    if not message.is_talk:
        return None
    by_person = is_by_person(message)
    left = naming.left - 1
    purpose = header.purpose
    if not naming.by or (by_person and not naming.by_person):
        said = telling(message.content)
        if said:
            naming = Naming(left, message.sender, by_person)
            purpose = name_of(header.project_id, said)
    is_settled = left <= 0 or naming.by_person
    return msgspec.structs.replace(
        header, purpose=purpose, naming=msgspec.structs.replace(naming, left=0 if is_settled else left)
    )


def telling(content: str) -> str:
    """Return the first sentence of a text that says something, made short; empty where none does."""
    for unit in islice(units(content[:_READ]), _UNITS):
        if unit.kind == "prose":
            line = inert(unit.text, 4 * LONGEST)
            line = _ASKS.sub("", _MARK.sub("", line), count=1).strip()
            if _is_telling(line):
                return _short(line)
    return ""


def name_of(project_id: str | None, said: str) -> str:
    """Return the name of a session of a project."""
    if project_id is None:
        return said
    project = inert(_DIGEST.sub("", project_id) if _DIGEST.search(project_id[-9:]) else project_id, LONGEST)
    return f"{project}: {said}"


def _is_telling(line: str) -> bool:
    words = {word.lower().strip(".-'") for word in _WORD.findall(line)} - STOP_WORDS - _POLITE
    return len(words) >= _TELLING or any(len(word) >= _UNSPACED and not word.isascii() for word in words)


def _short(line: str) -> str:
    plain = line.replace("`", "").replace("**", "").rstrip(" .!?:;,\u3002")
    if len(plain) <= LONGEST:
        return plain
    head = plain[:LONGEST]
    cut = head.rfind(" ", LONGEST // 2)
    return f"{(head[:cut] if cut > 0 else head[:-1]).rstrip(' .,;:-')}\u2026"
