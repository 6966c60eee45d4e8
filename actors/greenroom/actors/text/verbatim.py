"""Queries of stop words alone, "The Who": no index has these, so texts are looked through for them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from greenroom.actors.text.analyze import current_rules, spans, without_invisible
from greenroom.actors.text.words import TextRules

MOST_READ: Final = 10_000
"""Texts that one search looks through at most."""
NEWEST_ALONE: Final = "words that are nearly everywhere were looked for in the newest memories alone"
_AS_TYPED, _OTHERWISE = 1.0, 0.5
_BETWEEN: Final = r"[\s'\u2019-]{1,8}"
"""What may stand between two words of one phrase."""
_MOST_WORDS: Final = 64


class Verbatim(NamedTuple):
    """The words of a query as they follow one another."""

    typed: re.Pattern[str]
    folded: re.Pattern[str]

    def likeness(self, text: str) -> float:
        """Return 1 for the words as typed, 0.5 with other capitals, else 0."""
        if self.typed.search(text):
            return _AS_TYPED
        return _OTHERWISE if self.folded.search(text) else 0.0


def verbatim(query: str, rules: TextRules | None = None) -> Verbatim | None:
    """Return how to look for a query of stop words; None for one with a word that an index may have.

    Args:
        query: As typed.
        rules: How texts became terms; the current ones unless given.
    """
    rules = rules or current_rules()
    words: list[str] = []
    for _, _, word in spans(without_invisible(query)):
        if rules.token(word).posted:
            return None
        if word[0].isalnum():
            words.append(re.escape(word))
    if not words:
        return None
    phrase = rf"\b{_BETWEEN.join(words[:_MOST_WORDS])}\b"
    return Verbatim(re.compile(phrase), re.compile(phrase, re.IGNORECASE))
