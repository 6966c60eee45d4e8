"""Compression of a text: the units with the most weight for their length.

The value of a set of units is the weight of its terms; each term counts in full only once. This value has
diminishing returns, so the greedy choice by gain for length is near the optimum (Lin and Bilmes, "A Class of
Submodular Functions for Document Summarization", 2011). Gains only shrink. So if the fresh gain of a unit is
still the largest, this unit is the next one (Minoux, 1978).

The first choice is a whole sentence: the sentence with the most weight for its length. If the budget has no
room for it, only a fragment would fit; then the whole sentence comes alone.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from greenroom.actors.content.compression.units import LEAST_WORDS, Unit, units
from greenroom.actors.content.text.analyze import STOP_WORDS, current_rules

NUMBER: Final = 1.25
NAME: Final = 2.0
WORD: Final = 0.5
"""Weights of a term at its first occurrence."""
AGAIN: Final = {NUMBER: 1.0, NAME: 0.45, WORD: 0.015}
"""Weights at later occurrences: a number or name may be in another statement; a word adds nearly nothing."""
BESIDE: Final = 0.15
"""The weight of two terms that stand side by side for the first time."""

_EMPTY_WORDS: Final = """
a an the very really quite just also then there such simply actually basically essentially generally
usually thus moreover furthermore additionally indeed that which this these those its their his her our
my your as
"""
EMPTY: Final = frozenset(_EMPTY_WORDS.split())
"""English filler words: none of them negates, binds or counts."""
ENGLISH: Final = 0.2
"""The least share of stop words in an English text."""

MAX_WORD: Final = 64
"""At most this many characters of a word distinguish it."""

_WORD: Final = re.compile(r"\w+(?:[.,'\u2019_/:@-]\w+)*")
_EDGES: Final = "\"'\u201c\u201d\u2018\u2019([{"


class Term(NamedTuple):
    """An occurrence of a term: its key, and its weight at the first occurrence."""

    key: str
    weight: float


def terms(text: str) -> Iterator[Term]:
    """Yield the terms of a unit in order, without stop words."""
    analysed = current_rules().cached_token
    for found in _WORD.finditer(text):
        word = found[0]
        begins = not text[: found.start()].strip(_EDGES + " ") if found.start() < len(_EDGES) else False
        weight = _weight(word, begins=begins)
        if len(word) > MAX_WORD:
            yield Term(word[:MAX_WORD], weight)
            continue
        for key in analysed(word).posted:
            yield Term(key, weight)


def _weight(word: str, *, begins: bool) -> float:
    if any(map(str.isdigit, word)):
        return NUMBER
    if word[0].isupper() and (not begins or not word[1:].islower()):
        return NAME
    if "_" in word or "@" in word or "/" in word:
        return NAME
    return WORD


def drop_filler(text: str) -> tuple[str, int]:
    """Remove English filler words from part of a sentence; return it with their number."""
    words = text.split()
    kept = [word for word in words if word.lower() not in EMPTY]
    return " ".join(kept), len(words) - len(kept)


def is_english(parts: Iterable[str]) -> bool:
    """Return whether parts of sentences are English; their stop words show it."""
    words = stops = 0
    for part in parts:
        for word in part.split():
            words += 1
            stops += word.strip(",.;:!?").lower() in STOP_WORDS
    return stops > ENGLISH * words


FIRST: Final = frozenset({"heading", "code", "row"})
"""Kinds of units that are chosen before prose."""
SHARE: Final = 0.75
"""These kinds get at most this share of the budget, if there is prose as well."""


class Compressed(NamedTuple):
    """A compressed text.

    Attributes:
        quality: The share of the weight of distinct terms that the kept text has, 0 to 1.
        words: The filler words dropped from kept units.
        lines: Runs of lines that are dropped.
        shortened: Runs of lines that are partly kept.
        fits: Whether it is within the budget; otherwise it is only the most important sentence.
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
    """Compress a text.

    ``budget`` is in bytes of UTF-8. Unless ``is_strict``, the most important sentence may exceed it. Units
    are added until the quality reaches ``least``.
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
    """The units chosen so far, and their terms."""

    def __init__(self, text: str, whole: Sequence[Unit]) -> None:
        self._text = text
        self._units = whole
        texts = [text[unit.first : unit.last] for unit in whole]
        prose = [each for unit, each in zip(whole, texts, strict=True) if unit.kind == "prose"]
        shortens = is_english(prose)
        self._full = texts
        self._short: list[str] = []
        self._empty: list[int] = []
        for unit, each in zip(whole, texts, strict=True):
            shorter, dropped = drop_filler(each) if shortens and unit.kind == "prose" else (each, 0)
            self._short.append(shorter)
            self._empty.append(dropped)
        self._costs = [_size(each) + 1 for each in self._short]
        self._terms = [list(terms(each)) for each in self._short]
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
        """The share of the weight of all terms that the chosen units cover."""
        return min(1.0, self._weight / self._total) if self._total else 1.0

    def size(self) -> int:
        """Return the bytes of the chosen units together."""
        return _size(self._joined())

    def begin(self, budget: int) -> bool:
        """Choose the most important sentence whole; return whether it fits."""
        kinds = {unit.kind for unit in self._units}
        wanted = "prose" if "prose" in kinds else "code" if "code" in kinds else None
        sentences: dict[int, list[int]] = {}
        for at, unit in enumerate(self._units):
            if wanted in (None, unit.kind):
                sentences.setdefault(unit.sentence, []).append(at)
        for at in max(sentences.values(), key=self._importance, default=[]):
            self._short[at], self._empty[at] = self._full[at], 0
            self._costs[at] = _size(self._full[at]) + 1
            self._add(at)
        self._least = len(self._order)
        return self.size() <= budget

    def fill(self, budget: int) -> None:
        """Choose headings and code, then prose, within the budget."""
        early = [at for at in self._left() if self._units[at].kind in FIRST]
        prose = [at for at in self._left() if self._units[at].kind == "prose"]
        self._take(early, int(budget * (SHARE if prose else 1.0)))
        self._take(prose, budget)
        self._take([at for at in early if at not in self._chosen], budget)

    def fill_to(self, least: float) -> None:
        """Choose more units until the quality reaches ``least``."""
        self._take([at for at in self._left() if self._units[at].kind != "fence"], None, least)

    def fit(self, budget: int) -> None:
        """Drop the last chosen units until the text fits or is one sentence."""
        while len(self._order) > self._least and self.size() > budget:
            over = self.size() - budget
            while len(self._order) > self._least and over > 0:
                at = self._order.pop()
                self._chosen.remove(at)
                over -= self._costs[at]
        self._cover_again()

    def restore(self, budget: int) -> None:
        """Restore filler words where there is room, in the order of choice."""
        room = budget - self.size()
        for at in self._order:
            more = _size(self._full[at]) + 1 - self._costs[at]
            if 0 < more <= room:
                room -= more
                self._restored.add(at)

    def outcome(self, *, fits: bool) -> Compressed:
        """Return the compressed text."""
        dropped: dict[str, int] = {}
        kept_lines: set[int] = set()
        cut_lines: dict[int, None] = {}  # ordered keys
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
        """Return a sentence's weight for its length; fragments rank last."""
        words = sum(len(self._full[at].split()) for at in sentence)
        weight = sum(self._gain(at) for at in sentence)
        return words >= LEAST_WORDS, weight / sum(self._costs[at] for at in sentence)

    def _left(self) -> list[int]:
        return [at for at, text in enumerate(self._short) if text and at not in self._chosen]

    def _take(self, offered: list[int], budget: int | None, least: float = 2.0) -> None:
        """Take units by gain for length, within the budget or up to a quality."""
        heap: list[tuple[float, int]] = []
        for at in offered:  # one at a time, so that other threads run in between
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
        """Recompute the coverage after units were dropped."""
        order = self._order
        self._order, self._chosen, self._used = [], set(), 0
        self._covered, self._weight, self._pairs = {}, 0.0, set()
        for at in order:
            self._add(at)

    def _blocks(self) -> set[int]:
        """Return the blocks with kept units."""
        return {self._units[at].block for at in self._chosen}

    def _joined(self) -> str:
        """Join the chosen units, with the fences of kept code."""
        blocks = self._blocks()
        pieces: list[str] = []
        before: Unit | None = None
        for at, unit in enumerate(self._units):
            if at not in self._chosen and not (unit.kind == "fence" and unit.block in blocks):
                continue
            if before is not None:
                pieces.append(_between(before, unit))
            pieces.append(self._full[at] if at in self._restored else self._short[at])
            before = unit
        return "".join(pieces)


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _between(before: Unit, unit: Unit) -> str:
    if unit.block == before.block:
        is_apart = before.last < unit.first  # scripts without spaces need no space between sentences
        return " " * is_apart if unit.kind == "prose" else "\n"
    return "\n\n" if unit.paragraph != before.paragraph else "\n"


def _runs(lines: Iterable[int]) -> list[tuple[int, int]]:
    """Group numbers into runs of consecutive ones."""
    runs: list[tuple[int, int]] = []
    for number in lines:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
