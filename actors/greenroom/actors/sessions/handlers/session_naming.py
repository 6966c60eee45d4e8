"""Automatic names of sessions, from their first public messages.

The first message with a descriptive sentence gives the name. An early message of a person replaces it, once.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

import msgspec

from greenroom.actors.content.text.escape import escape_untrusted
from greenroom.actors.content.text.words import STOP_WORDS
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.actors.sessions.storage.records import Header, Naming, StoredMessage, is_by_person
from greenroom.actors.sessions.summary.units import units

MOST_NAMING: Final = 5
"""The number of first messages that may name a session."""
LONGEST: Final = 70
"""The most characters of a name from a message."""
_READ: Final = 2_000
_UNITS: Final = 12
_LEAST_WORDS: Final = 2
"""A name has at least this many words, not counting common words."""
_UNSPACED: Final = 6
"""In scripts without spaces, this many letters in a row are enough for a name."""
_DIGEST: Final = re.compile(r"-[0-9a-f]{8}")
_POLITE: Final = frozenset(
    re.findall(r"\w+", "hi hello hey ok okay yes please thanks thank sure great hallo danke")
)
_ASKS: Final = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey|ok(?:ay)?|so|now|then)\b[\s,!.:-]*)*"
    r"(?:(?:can|could|would|will) you |(?:i|we) (?:want|need|would like)(?: you)? to |let'?s |let us )?"
    r"(?:please )?",
    re.IGNORECASE,
)
_MARK: Final = re.compile(r"^(?:[-*+\u2022#>]+|\d{1,3}[.)]|\[[ xX]\])\s+")
_WORD: Final = re.compile(r"[^\W_][\w'.-]*")


def rename_by_message(header: Header, naming: Naming, message: StoredMessage) -> Header | None:
    """Return the header after a public message; None if it is unchanged."""
    if not message.is_talk:
        return None
    by_person = is_by_person(message)
    left = naming.left - 1
    purpose = header.purpose
    if not naming.by or (by_person and not naming.by_person):
        title = find_title(message.content)
        if title:
            naming = Naming(left, message.sender, by_person)
            purpose = format_name(header.project_id, title)
    is_settled = left <= 0 or naming.by_person
    return msgspec.structs.replace(
        header, purpose=purpose, naming=msgspec.structs.replace(naming, left=0 if is_settled else left)
    )


def find_title(content: str) -> str:
    """Return the first descriptive sentence of a text, shortened; empty if there is none."""
    for unit in islice(units(content[:_READ]), _UNITS):
        if unit.kind == "prose":
            line = escape_untrusted(unit.text, 4 * LONGEST)
            line = _ASKS.sub("", _MARK.sub("", line), count=1).strip()
            if _is_descriptive(line):
                return _short(line)
    return ""


def format_name(project_id: str | None, title: str) -> str:
    """Return the name of a session in a project."""
    if project_id is None:
        return title
    project = escape_untrusted(
        _DIGEST.sub("", project_id) if _DIGEST.search(project_id[-9:]) else project_id, LONGEST
    )
    return f"{project}: {title}"


def default_name(tool: str) -> str:
    """Return the name of a session without messages."""
    return f"Work in {client_tool(tool).title}"


def _is_descriptive(line: str) -> bool:
    words = {word.lower().strip(".-'") for word in _WORD.findall(line)} - STOP_WORDS - _POLITE
    return len(words) >= _LEAST_WORDS or any(len(word) >= _UNSPACED and not word.isascii() for word in words)


def _short(line: str) -> str:
    plain = line.replace("`", "").replace("**", "").rstrip(" .!?:;,\u3002")
    if len(plain) <= LONGEST:
        return plain
    head = plain[:LONGEST]
    cut = head.rfind(" ", LONGEST // 2)
    return f"{(head[:cut] if cut > 0 else head[:-1]).rstrip(' .,;:-')}\u2026"
