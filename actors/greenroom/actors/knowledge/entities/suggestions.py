"""Suggest undeclared names that texts repeat: capitalised names, and identifiers of code.

A capital counts only within a sentence, since every first word of a sentence has one. A word is no name if
texts have it more often in small letters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from greenroom.actors.knowledge.entities.names import fold
from greenroom.actors.knowledge.entities.records import NameCounts, Suggestion

# There are lookaheads instead of possessive quantifiers: CPython before 3.11.5 matches the latter wrongly.
_WORD: Final = r"[^\W\d_][^\W_]*(?![^\W_])(?:[.-][^\W_]+(?![^\W_]))*(?!\w)"
_NAMES: Final = re.compile(
    rf"(?P<code>`[A-Za-z_][\w.:/@-]{{2,99}}`|\b[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+\b)"
    r"|(?P<before>(?:[.!?:;|>#*=([{\"']|\n|\A)[\s*_#>\"'(\[-]{0,20})?"
    rf"(?P<words>(?<!\w){_WORD}(?: {_WORD})*)"
)
_CAPITAL_WITHIN: Final = re.compile(r"[^\W\d_].*[A-Z]")
MAX_KEPT: Final = 20_000
"""If more than twice as many names are counted, only this many are kept: rare names are dropped."""
USUAL_COUNT: Final = 3
"""By default, a suggested name occurs at least this often."""
_MOST_WORDS: Final = 3
_LONGEST: Final = 100
_SHORTEST: Final = 2
_LEAST_SHARE: Final = 0.5
"""At least this share of a name's occurrences must have a capital."""


class NameCounter:
    """Counts the names in texts."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._chunks: Counter[str] = Counter()
        self._examples: dict[str, int] = {}
        self._small: Counter[str] = Counter()
        self._code: set[str] = set()

    def export(self) -> NameCounts:
        """Return the counts; another `NameCounter` can merge them."""
        return NameCounts(
            counts=self._counts,
            chunks=self._chunks,
            examples=self._examples,
            small=self._small,
            code=self._code,
        )

    def add(self, chunk: int, text: str) -> Counter[str]:
        """Count the names in a text, and return their counts."""
        found: Counter[str] = Counter()
        for match in _NAMES.finditer(text):
            if (code := match["code"]) is not None:
                name = code.strip("`")
                self._code.add(name)
                found[name] += 1
            else:
                found.update(self._names(match["words"].split(" "), begins=match["before"] is not None))
        self._counts.update(found)
        self._chunks.update(found.keys())
        for name in found:
            self._examples.setdefault(name, chunk)
        if len(self._counts) > 2 * MAX_KEPT:
            self._drop_rare()
        return found

    def merge(self, other: NameCounts) -> None:
        """Add the counts of another `NameCounter`."""
        self._counts.update(other.counts)
        self._chunks.update(other.chunks)
        self._small.update(other.small)
        self._code |= other.code
        self._examples = {**other.examples, **self._examples}
        if len(self._counts) > 2 * MAX_KEPT:
            self._drop_rare()

    def suggest(self, known: Iterable[str], least: int, most: int) -> list[Suggestion]:
        """Return the most frequent names; names in more chunks come first."""
        left_out = {fold(name) for name in known}
        best: dict[str, Suggestion] = {}
        for name, count in self._counts.items():
            alike = fold(name)
            if (
                count < least
                or alike in left_out
                or count < _LEAST_SHARE * (count + self._small[name.lower()])
            ):
                continue
            known_as = best.get(alike)
            if known_as is None or known_as.count < count:
                best[alike] = Suggestion(
                    name=name,
                    looks_like="code" if name in self._code else "name",
                    count=count,
                    chunks=self._chunks[name],
                    example=self._examples[name],
                )
        return sorted(best.values(), key=lambda each: (-each.chunks, -each.count, each.name))[:most]

    def _names(self, words: list[str], *, begins: bool) -> Iterable[str]:
        """Yield the names in a run of words; a sentence's first capital does not count."""
        run: list[str] = []
        for place, word in enumerate([*words, ""]):
            is_name = word[:1].isupper() and not (place == 0 and begins and not _CAPITAL_WITHIN.match(word))
            if is_name or _CAPITAL_WITHIN.match(word):
                run.append(word)
                continue
            if run:
                name = " ".join(run)
                if len(run) <= _MOST_WORDS and _SHORTEST <= len(name) <= _LONGEST:
                    yield name
                run = []
            if word[:1].islower():
                self._small[word] += 1

    def _drop_rare(self) -> None:
        kept = dict(self._counts.most_common(MAX_KEPT))
        self._counts = Counter(kept)
        self._chunks = Counter({name: self._chunks[name] for name in kept})
        self._examples = {name: self._examples[name] for name in kept}
        self._small = Counter(dict(self._small.most_common(MAX_KEPT)))
        self._code &= kept.keys()
