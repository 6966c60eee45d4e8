"""Queries of only stop words, "The Who": no index has these, so texts are scanned."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import current_rules, spans, without_invisible
from greenroom.actors.content.text.words import TextRules
from greenroom.runtime import Slices

MOST_READ: Final = 10_000
"""One search scans at most this many texts."""
NEWEST_ALONE: Final = "very common words were searched in the newest memories only"
_AS_TYPED, _OTHERWISE = 1.0, 0.5
_MOST_BETWEEN: Final = 8
_BETWEEN: Final = rf"[\s'\u2019-]{{1,{_MOST_BETWEEN}}}"
"""The gap between two words of a phrase."""
_MOST_WORDS: Final = 16
_STRETCH: Final = 8_192
"""One slice scans this many characters, since other actors wait in the meantime."""


class Verbatim(NamedTuple):
    """Patterns for a query's words as a phrase; a match has at most ``longest`` characters."""

    typed: re.Pattern[str]
    folded: re.Pattern[str]
    longest: int

    def likeness(self, text: str) -> Slices[float]:
        """Return 1 for the words as typed, 0.5 if only the case differs, else 0."""
        best = 0.0
        for start in range(0, len(text), _STRETCH):
            end = start + _STRETCH
            found = self.folded.search(text, start, end + self.longest)
            if found is not None and found.start() < end:  # else the next slice finds it whole
                best = _OTHERWISE
                as_typed = self.typed.search(text, found.start(), end + self.longest)
                if as_typed is not None and as_typed.start() < end:
                    return _AS_TYPED
            yield
        return best


def build_verbatim(query: str, rules: TextRules | None = None) -> Verbatim | None:
    """Return the pattern for a query of stop words; None if it has indexed words."""
    rules = rules or current_rules()
    words: list[str] = []
    for _, _, word in spans(without_invisible(query)):
        if rules.token(word).posted:
            return None
        if word[0].isalnum():
            words.append(word)
    if not words:
        return None
    words = words[:_MOST_WORDS]
    phrase = rf"\b{_BETWEEN.join(map(re.escape, words))}\b"
    longest = sum(map(len, words)) + _MOST_BETWEEN * len(words)
    return Verbatim(re.compile(phrase), re.compile(phrase, re.IGNORECASE), longest)
