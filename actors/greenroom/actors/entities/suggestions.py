"""Names that texts repeat and nobody has declared: capitalised names, and identifiers of code.

A word with a capital counts within a sentence only, since at its beginning every word has one; and it is no
name where the texts have it in small letters as often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from greenroom.actors.entities.names import folded

_WORD: Final = r"[^\W\d_][^\W_]*+(?:[.-][^\W_]++)*+(?!\w)"
_NAMES: Final = re.compile(
    rf"(?P<code>`[A-Za-z_][\w.:/@-]{{2,99}}`|\b[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+\b)"
    r"|(?P<before>(?:[.!?:;|>#*=([{\"']|\n|\A)[\s*_#>\"'(\[-]*)?"
    rf"(?P<words>(?<!\w){_WORD}(?: {_WORD})*)"
)
_CAPITAL_WITHIN: Final = re.compile(r"[^\W\d_].*[A-Z]")
MAX_KEPT: Final = 20_000
"""Names that are counted at once; of more the rare ones are forgotten."""
_MOST_WORDS: Final = 3
_LONGEST: Final = 100
_SHORTEST: Final = 2
_LEAST_SHARE: Final = 0.5
"""Of all a word's occurrences, how many have a capital if it is a name."""


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A name that texts repeat.

    Attributes:
        name: As it is mostly spelled.
        looks_like: What kind of word it is.
        count: How often it is there.
        chunks: In how many chunks.
        example: One of these.
    """

    name: str
    looks_like: Literal["name", "code"]
    count: int
    chunks: int
    example: int


class NameCounts(msgspec.Struct):
    """Names counted over many texts.

    Attributes:
        counts: How often each spelling of a name is there.
        chunks: In how many texts.
        examples: The first of these.
        small: How often a word is there in small letters.
        code: Which of them are identifiers of code.
    """

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    chunks: Counter[str] = msgspec.field(default_factory=Counter)
    examples: dict[str, int] = msgspec.field(default_factory=dict)
    small: Counter[str] = msgspec.field(default_factory=Counter)
    code: set[str] = msgspec.field(default_factory=set)

    def add(self, chunk: int, text: str) -> None:
        """Count what a text names."""
        found: Counter[str] = Counter()
        for match in _NAMES.finditer(text):
            if (code := match["code"]) is not None:
                name = code.strip("`")
                self.code.add(name)
                found[name] += 1
            else:
                found.update(self._names(match["words"].split(" "), begins=match["before"] is not None))
        self.counts.update(found)
        self.chunks.update(found.keys())
        for name in found:
            self.examples.setdefault(name, chunk)
        if len(self.counts) > 2 * MAX_KEPT:
            self._forget()

    def merge(self, other: NameCounts) -> None:
        """Add what was counted elsewhere."""
        self.counts.update(other.counts)
        self.chunks.update(other.chunks)
        self.small.update(other.small)
        self.code |= other.code
        self.examples = {**other.examples, **self.examples}
        if len(self.counts) > 2 * MAX_KEPT:
            self._forget()

    def suggestions(self, known: Iterable[str], least: int, most: int) -> list[Suggestion]:
        """Return the names that are there most, in the order of the chunks that have them.

        Args:
            known: Names that nobody need be told.
            least: How often a name is there at least.
            most: How many are returned.
        """
        left_out = {folded(name) for name in known}
        best: dict[str, Suggestion] = {}
        for name, count in self.counts.items():
            alike = folded(name)
            if (
                count < least
                or alike in left_out
                or count < _LEAST_SHARE * (count + self.small[name.lower()])
            ):
                continue
            known_as = best.get(alike)
            if known_as is None or known_as.count < count:
                best[alike] = Suggestion(
                    name=name,
                    looks_like="code" if name in self.code else "name",
                    count=count,
                    chunks=self.chunks[name],
                    example=self.examples[name],
                )
        return sorted(best.values(), key=lambda each: (-each.chunks, -each.count, each.name))[:most]

    def _names(self, words: list[str], *, begins: bool) -> Iterable[str]:
        """Yield the names among words that follow each other; the first may owe its capital to its place."""
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
                self.small[word] += 1

    def _forget(self) -> None:
        """Keep the names that are there most."""
        kept = dict(self.counts.most_common(MAX_KEPT))
        self.counts = Counter(kept)
        self.chunks = Counter({name: self.chunks[name] for name in kept})
        self.examples = {name: self.examples[name] for name in kept}
        self.small = Counter(dict(self.small.most_common(MAX_KEPT)))
        self.code &= kept.keys()
