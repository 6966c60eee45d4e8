"""What is known of what memories are linked to: names of entities, purposes of sessions."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from greenroom.actors.auth.principal import Principal
from greenroom.actors.schemas.memory_map import MappedEntity
from greenroom.actors.text.analyze import tokens

NAMES: Final = 4
"""Names of an entity that are looked for."""
LABEL: Final = 60
"""Characters of a label."""
_HIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]+"
)
_ELLIPSIS: Final = "\u2026"


class Known(NamedTuple):
    """What is known beside memories.

    Attributes:
        principal: Who asks.
        entities: What memories may mention.
        purposes: Of sessions, by their ids.
        conflicts: Ids of memories, each with that of an older one that it may contradict.
        notes: What is missing so far.
    """

    principal: Principal
    entities: list[MappedEntity]
    purposes: dict[str, str]
    conflicts: list[tuple[str, str]]
    notes: list[str]


def words_of(entity: MappedEntity) -> list[list[str]]:
    """Return for each name of an entity the words that a text has that mentions it."""
    return [
        sorted({term for token in tokens(name.casefold()) for term in token.posted})
        for name in entity.names[:NAMES]
    ]


def label(text: str) -> str:
    """Return a text as one line that is short, in which nothing is hidden and no letters turn round."""
    line = " ".join(_HIDDEN.sub(" ", text).split())
    return line if len(line) <= LABEL else f"{line[: LABEL - 1].rstrip()}{_ELLIPSIS}"
