"""Statements that later messages take back: what stood before "not X" and "instead of X".

The rare words just after a negation or a replacement name what no longer holds. They weaken what agents
stated in the few messages before; an explicit replacement ("replaced", "instead of") weakens everything
earlier. Both only lower a chance, since a word list cannot know what a sentence means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from greenroom.actors.session.summary.features import words_in_order

NEAR: Final = 3
"""Messages before a negation that it may take back."""
LEFT: Final = 0.3
"""What remains of the chance of a statement that was taken back."""
_REACH: Final = 4
"""Words after a cue that it is about."""
_NAMED: Final = 2
"""A word that fewer messages have names nothing that was said before."""
_RARE: Final = 4
"""A word that more messages have names nothing in particular."""
_BEFORE: Final = 20
"""Characters before a cue that it is about, in Japanese."""
_LOOKED_AT: Final = 300
_REPLACED: Final = (
    r"instead of|rather than|replac(?:e|ed|es|ing)|no longer|not any ?more|drop(?:ped|ping)?|scrap(?:ped)?"
    r"|revert(?:ed|ing)?|rolled? back|abandon(?:ed)?|switch(?:ed|ing)? from|away from|forget"
    r"|cancel(?:led)?|discard(?:ed)?"
    r"|statt|anstelle|nicht mehr|ersetzt|verworfen|au lieu de|remplacé|en vez de|en lugar de|ya no"
)
_NEGATED: Final = (
    r"not|no|don't|do not|doesn't|isn't|wasn't|won't|never|without|nicht|kein(?:e[nmrs]?)?|pas|sin|nunca"
)
_CUE: Final = re.compile(rf"\b(?:(?P<replaced>{_REPLACED})|(?:{_NEGATED}))\b")
_CUE_WORDS: Final = """
instead rather replace replaced replaces replacing no not drop dropped dropping scrap scrapped
revert reverted reverting rolled roll abandon abandoned switched switch switching away forget cancel
cancelled discard discarded statt anstelle nicht ersetzt verworfen au remplacé en ya don do doesn
isn wasn won never without kein keine keinen keinem keiner keines pas sin nunca
"""
_FIRST_WORDS: Final = frozenset(_CUE_WORDS.split())
"""A text that has none of these words has no cue."""
_AFTER: Final = re.compile("(?:の代わり|ではなく|じゃなく|をやめ|は不要)")


class Revocation(NamedTuple):
    """Words that a message takes back.

    Attributes:
        place: The message, by its number.
        words: In small letters.
        is_explicit: Whether it says that something replaces them.
    """

    place: int
    words: frozenset[str]
    is_explicit: bool


def revocations(
    units: Sequence[Sequence[tuple[str, frozenset[str]]]], counts: Mapping[str, int]
) -> list[Revocation]:
    """Return what each message takes back.

    Args:
        units: The prose of each message, with its words in small letters.
        counts: How many messages have each word.
    """
    found: list[Revocation] = []
    for place, parts in enumerate(units):
        for part, words in parts:
            if part.isascii() and words.isdisjoint(_FIRST_WORDS):
                continue
            for is_explicit, about in _cued(part[:_LOOKED_AT].lower()):
                near = words_in_order(about)[:_REACH]
                rare = frozenset(word for word in near if _NAMED <= counts.get(word, 0) <= _RARE)
                if rare:
                    found.append(Revocation(place, rare, is_explicit))
    return found


def _cued(text: str) -> list[tuple[bool, str]]:
    """Return the texts that cues are about, each with whether something replaces it."""
    said = [(match["replaced"] is not None, text[match.end() :]) for match in _CUE.finditer(text)]
    said += [(True, text[max(0, match.start() - _BEFORE) : match.start()]) for match in _AFTER.finditer(text)]
    return said
