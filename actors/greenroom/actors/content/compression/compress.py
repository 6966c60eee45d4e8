"""Compression of a text: the units that say most for their length, as many as a budget has room for.

What a set of units says is the weight of the terms in it, each counted in full once (`words`). This function
has diminishing returns, so taking what adds most for its length, again and again, is near the best that
can be done (Lin and Bilmes, "A Class of Submodular Functions for Document Summarization", 2011). Gains only
shrink, so a unit whose gain was just computed and is still the largest is the next one (Minoux, 1978).

The first choice is a whole sentence, the one that says most for its length: what has no room for it is no
shorter text but a torn one, so then that sentence comes alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from greenroom.actors.content.compression.units import LEAST_WORDS, Unit, units
from greenroom.actors.content.compression.words import AGAIN, BESIDE, is_english, terms, without_empty

FIRST: Final = frozenset({"heading", "code", "row"})
"""Kinds that are chosen before prose."""
SHARE: Final = 0.75
"""So much of the budget they may take, where there is prose as well."""


class Compressed(NamedTuple):
    """What was kept of a text.

    Attributes:
        text: What is left.
        quality: How much of the weight of what the text says for the first time is in it, 0 to 1.
        units: How many units the text has.
        dropped: How many of them are left out, by kind.
        words: How many words without meaning are left out of what was kept.
        lines: Runs of lines of which nothing is kept.
        shortened: Runs of lines of which something is kept, and not all.
        fits: Whether it is within the budget, which else has no room for the most important sentence.
    """

    text: str
    quality: float
    units: int
    dropped: dict[str, int]
    words: int
    lines: list[tuple[int, int]]
    shortened: list[tuple[int, int]]
    fits: bool


def compress(text: str, budget: int, *, least: float = 0.0, is_strict: bool = False) -> Compressed:
    """Return what is to be kept of a text.

    Args:
        text: The text.
        budget: How many bytes of UTF-8 it may have; the most important sentence may have more.
        least: The least quality: more is kept until it is reached, as long as there is something.
        is_strict: Whether the budget holds even so.
    """
    whole = list(units(text))
    if _size(text) <= budget:
        return Compressed(text, 1.0, len(whole), {}, 0, [], [], fits=True)
    chosen = _Choice(text, whole)
    fits = chosen.begin(budget)
    chosen.fill(budget)
    chosen.fit(budget)
    if not is_strict:
        chosen.fill_to(least)
    chosen.restore(budget)
    return chosen.outcome(fits=fits)


class _Choice:
    """The units that are chosen so far, and what they say."""

    def __init__(self, text: str, whole: Sequence[Unit]) -> None:
        self._text = text
        self._units = whole
        said = [text[unit.first : unit.last] for unit in whole]
        prose = [each for unit, each in zip(whole, said, strict=True) if unit.kind == "prose"]
        shortens = is_english(prose)
        self._full = said
        self._said: list[str] = []
        self._empty: list[int] = []
        for unit, each in zip(whole, said, strict=True):
            shorter, dropped = without_empty(each) if shortens and unit.kind == "prose" else (each, 0)
            self._said.append(shorter)
            self._empty.append(dropped)
        self._costs = [_size(each) + 1 for each in self._said]
        self._terms = [list(terms(each)) for each in self._said]
        self._weights: dict[str, float] = {}
        for term in chain.from_iterable(self._terms):
            self._weights[term.key] = max(term.weight, self._weights.get(term.key, 0.0))
        self._total = sum(self._weights.values())
        self._covered: dict[str, float] = {}
        self._weight = 0.0
        self._pairs: set[tuple[str, str]] = set()
        self._order: list[int] = []
        self._chosen: set[int] = set()
        self._restored: set[int] = set()
        self._used = self._least = 0

    @property
    def quality(self) -> float:
        """How much of the weight of all terms is covered."""
        return min(1.0, self._weight / self._total) if self._total else 1.0

    def size(self) -> int:
        """Return how many bytes the chosen units have together."""
        return _size(self._joined())

    def begin(self, budget: int) -> bool:
        """Choose the most important sentence, whole, and return whether there is room for it."""
        kinds = {unit.kind for unit in self._units}
        wanted = "prose" if "prose" in kinds else "code" if "code" in kinds else None
        sentences: dict[int, list[int]] = {}
        for at, unit in enumerate(self._units):
            if wanted in (None, unit.kind):
                sentences.setdefault(unit.sentence, []).append(at)
        for at in max(sentences.values(), key=self._importance, default=[]):
            self._said[at], self._empty[at] = self._full[at], 0
            self._costs[at] = _size(self._full[at]) + 1
            self._add(at)
        self._least = len(self._order)
        return self.size() <= budget

    def fill(self, budget: int) -> None:
        """Choose headings and code, then prose, as long as there is room."""
        early = [at for at in self._left() if self._units[at].kind in FIRST]
        prose = [at for at in self._left() if self._units[at].kind == "prose"]
        self._take(early, int(budget * (SHARE if prose else 1.0)))
        self._take(prose, budget)
        self._take([at for at in early if at not in self._chosen], budget)

    def fill_to(self, least: float) -> None:
        """Choose more until the quality is reached."""
        self._take([at for at in self._left() if self._units[at].kind != "fence"], None, least)

    def fit(self, budget: int) -> None:
        """Let go what was chosen last, until the text that is made of the rest fits, or is one sentence."""
        while len(self._order) > self._least and self.size() > budget:
            over = self.size() - budget
            while len(self._order) > self._least and over > 0:
                at = self._order.pop()
                self._chosen.remove(at)
                over -= self._costs[at]
        self._cover_again()

    def restore(self, budget: int) -> None:
        """Put words without meaning back where there is room, first into what was chosen first."""
        room = budget - self.size()
        for at in self._order:
            more = _size(self._full[at]) + 1 - self._costs[at]
            if 0 < more <= room:
                room -= more
                self._restored.add(at)

    def outcome(self, *, fits: bool) -> Compressed:
        """Return what was kept, and what was not."""
        dropped: dict[str, int] = {}
        kept_lines: set[int] = set()
        cut_lines: dict[int, None] = {}  # in order
        words = 0
        framed = self._blocks()
        for at, unit in enumerate(self._units):
            spanned = range(unit.line, unit.last_line + 1)
            if at in self._chosen:
                kept_lines.update(spanned)
                if self._empty[at] and at not in self._restored:
                    words += self._empty[at]
                    cut_lines.update(dict.fromkeys(spanned))
            elif unit.kind != "fence" or unit.block not in framed:
                name = "code" if unit.kind == "fence" else unit.kind
                dropped[name] = dropped.get(name, 0) + 1
                cut_lines.update(dict.fromkeys(spanned))
        lines = _runs(line for line in cut_lines if line not in kept_lines)
        shortened = _runs(line for line in cut_lines if line in kept_lines)
        return Compressed(
            self._joined(), self.quality, len(self._units), dropped, words, lines, shortened, fits
        )

    def _importance(self, sentence: Sequence[int]) -> tuple[bool, float]:
        """Return what a sentence says for its length, beside no other; what has few words is hardly one."""
        words = sum(len(self._full[at].split()) for at in sentence)
        weight = sum(self._gain(at) for at in sentence)
        return words >= LEAST_WORDS, weight / sum(self._costs[at] for at in sentence)

    def _left(self) -> list[int]:
        return [at for at, said in enumerate(self._said) if said and at not in self._chosen]

    def _take(self, offered: list[int], budget: int | None, least: float = 2.0) -> None:
        """Take the units that add most for their length, within the budget or up to a quality."""
        heap: list[tuple[float, int]] = []
        for at in offered:  # one by one: other threads have their turn in between
            heapq.heappush(heap, (-self._gain(at) / self._costs[at], at))
        while heap and self.quality < least:
            _, at = heapq.heappop(heap)
            if budget is not None and self._used + self._costs[at] > budget:
                continue
            now = -self._gain(at) / self._costs[at]
            if heap and (now, at) > heap[0]:
                heapq.heappush(heap, (now, at))
                continue
            self._add(at)

    def _gain(self, at: int) -> float:
        gain = 0.0
        before: str | None = None
        seen: set[str] = set()
        for term in self._terms[at]:
            if term.key not in seen:
                seen.add(term.key)
                is_new = term.key not in self._covered
                gain += self._weights[term.key] if is_new else AGAIN[term.weight]
                gain += BESIDE if before is not None and (before, term.key) not in self._pairs else 0.0
            before = term.key
        return gain

    def _add(self, at: int) -> None:
        self._used += self._costs[at]
        self._order.append(at)
        self._chosen.add(at)
        before: str | None = None
        for term in self._terms[at]:
            if term.key not in self._covered:
                self._covered[term.key] = weight = self._weights[term.key]
                self._weight += weight
            if before is not None:
                self._pairs.add((before, term.key))
            before = term.key

    def _cover_again(self) -> None:
        """Count anew what the chosen units say, some of which were let go."""
        order = self._order
        self._order, self._chosen, self._used = [], set(), 0
        self._covered, self._weight, self._pairs = {}, 0.0, set()
        for at in order:
            self._add(at)

    def _blocks(self) -> set[int]:
        """Return the blocks of which something is kept."""
        return {self._units[at].block for at in self._chosen}

    def _joined(self) -> str:
        """Return the chosen units as a text, with the fences of what is kept of code."""
        blocks = self._blocks()
        pieces: list[str] = []
        before: Unit | None = None
        for at, unit in enumerate(self._units):
            if at not in self._chosen and not (unit.kind == "fence" and unit.block in blocks):
                continue
            if before is not None:
                pieces.append(_between(before, unit))
            pieces.append(self._full[at] if at in self._restored else self._said[at])
            before = unit
        return "".join(pieces)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _between(before: Unit, unit: Unit) -> str:
    if unit.block == before.block:
        is_apart = before.last < unit.first  # scripts without spaces have none between sentences either
        return " " * is_apart if unit.kind == "prose" else "\n"
    return "\n\n" if unit.paragraph != before.paragraph else "\n"


def _runs(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers as runs of numbers that follow each other."""
    runs: list[tuple[int, int]] = []
    for number in lines:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
