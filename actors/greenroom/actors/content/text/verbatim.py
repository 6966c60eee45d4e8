"""Queries of stop words alone, "The Who": no index has these, so texts are looked through for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from greenroom.actors.content.text.analyze import current_rules, spans, without_invisible
from greenroom.actors.content.text.words import TextRules
from greenroom.runtime import Slices

MOST_READ: Final = 10_000
"""Texts that one search looks through at most."""
NEWEST_ALONE: Final = "words that are nearly everywhere were looked for in the newest memories alone"
_AS_TYPED, _OTHERWISE = 1.0, 0.5
_MOST_BETWEEN: Final = 8
_BETWEEN: Final = rf"[\s'\u2019-]{{1,{_MOST_BETWEEN}}}"
"""What may stand between two words of one phrase."""
_MOST_WORDS: Final = 16
_STRETCH: Final = 8_192
"""Characters that are looked through at once: a text may be large, and others wait meanwhile."""


class Verbatim(NamedTuple):
    """The words of a query as they follow one another.

    Attributes:
        typed: Finds them as they were typed.
        folded: Finds them with any capitals.
        longest: The most characters of what is found.
    """

    typed: re.Pattern[str]
    folded: re.Pattern[str]
    longest: int

    def likeness(self, text: str, should_yield: Callable[[], bool]) -> Slices[float]:
        """Return 1 for a text that has the words as they were typed, 0.5 with other capitals, else 0."""
        best = 0.0
        for start in range(0, len(text), _STRETCH):
            end = start + _STRETCH
            found = self.folded.search(text, start, end + self.longest)
            if found is not None and found.start() < end:  # else its end may be none, and the next one has it
                best = _OTHERWISE
                as_typed = self.typed.search(text, found.start(), end + self.longest)
                if as_typed is not None and as_typed.start() < end:
                    return _AS_TYPED
            if should_yield():
                yield
        return best


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
            words.append(word)
    if not words:
        return None
    words = words[:_MOST_WORDS]
    phrase = rf"\b{_BETWEEN.join(map(re.escape, words))}\b"
    longest = sum(map(len, words)) + _MOST_BETWEEN * len(words)
    return Verbatim(re.compile(phrase), re.compile(phrase, re.IGNORECASE), longest)
