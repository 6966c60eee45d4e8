"""Ranking's strength of a message on a scale from 0 to 100, which means the same for every query.

    strength = what the signals of ranking add up to; those that hold for any query (a message is long,
               is a question) count less where little is asked: f / (f + 3) of it. What a conversation is
               among several, the talk around a message is here; cosines are those above the average
    f        = the strength of a message that says each word of the query once, by the sender and of the
               time that it names, and means it
    own      = how much of the query the message says itself, by the words' rarity              (0-1)
    score    = 97 * max(strength / (1.2 * f), own) ** (1 / max(1, 0.75 * log2(words)))          (0-97)

The exponent is there because a short query asks for all of its words, while few messages have half of a
long question's. It is 1.2 because neighbours mostly say some of the words too. With

    rarity   = ln(1 + (n + 50) / (df + 5))   for a word that df of n messages say

- the query as a phrase (stems, in order) scores 100;
- a message that says all words, if misspelt or in part, scores by what it says itself: 97 if they are just
  these; where a word is missing, it scores 95 at most;
- a message without any word of the query stays below 60, whatever it means and is said around it: where
  much is said, most of what a vector takes for like the query is not what was asked. In a query of up to
  three words, the name of the message's sender is no such word;
- a sender named in full is one word of double weight: 1 for that sender's messages, 0.7 for those that
  mention the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.ranking import Ranked, View
from greenroom.actors.ranking.sums import SignalSum
from greenroom.actors.ranking.weights import VectorSet, weights
from greenroom.actors.search.ranking.lexical import idf, pseudo_documents
from greenroom.actors.search.ranking.query import name_terms
from greenroom.actors.search.ranking.signals import QueryReading
from greenroom.actors.session_search.surroundings import best_around, words_around
from greenroom.runtime import Slices

Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

PHRASE = 100.0
_ALL = 97.0
_LESS = 95.0
_UNSHARED = 59.0
_EXPECTED = 1.2
_ANYWAY = frozenset({"length", "opening", "question", "temporal", "reply"})
"""Signals that hold for any query."""
_DAMPED = 3.0
_TOLD_OTHERWISE = frozenset({"conversation", "company", "theme", "meaning"})
"""Signals by which ranking tells conversations apart, and one that is weighed anew."""
AROUND = "What is said around a message counts too, the nearer the more."
"""What the signal ``around`` is for, which ranking does not have."""
_AROUND, _THEME = 0.16, 3.0
"""Weights of what is said around a message, and of the best cosine there."""
_MEANING: Mapping[VectorSet, float] = {"static": 6.0, "sentences": 8.0}
"""More than in conversations alone, which lose nothing by it: much of what agents say stands for itself."""
_MEANT = 0.3
"""How much more than an average message's cosine that of a message is which says it all."""
_NAME_WEIGHT = 2.0
_MENTION = 0.7
_SHORT = 3
_CLOSE = 0.01  # scores have two decimals


class Scores(NamedTuple):
    """By row of the corpus; 0 for hidden rows, and for those that have nothing to do with the query.

    Attributes:
        score: 0-97.
        strength: Strength as a share of what is expected of a message with all words.
        own: How much of the query the message says itself, 0-1.
        candidates: Whether the message says all words, so that it may say them as a phrase.
        shared: Whether any message says any word.
        by_signals: What the signals alone make of the score.
        ranked: The rows that have anything to do with the query.
        sum: What the signals add up to, by their places in ``ranked``; None where nothing was ranked.
    """

    score: Doubles
    strength: Doubles
    own: Doubles
    candidates: Mask
    shared: bool
    by_signals: Doubles
    ranked: npt.NDArray[np.intp]
    sum: SignalSum | None


class Reasons(NamedTuple):
    """Why a message has its score.

    Attributes:
        parts: What each signal adds to the strength, as a share of what is expected.
        decided: What made the score, in words.
    """

    parts: Mapping[str, float]
    decided: str


class _Own(NamedTuple):
    share: Doubles
    shared: npt.NDArray[np.int32]
    words: int
    shareable: int


def score(
    view: View,
    ranked: Ranked,
    unknown: int,
    should_yield: Callable[[], bool],
    *,
    explain: bool = False,
) -> Slices[Scores]:
    """Return the scores of the ranked rows, which are all that have anything to do with the query.

    Args:
        view: What was ranked.
        ranked: How.
        unknown: Words of the query that no visible message says.
        should_yield: Whether to yield.
        explain: Whether to tell what each signal adds.
    """
    if should_yield():
        yield
    unknown += len(ranked.unknown)
    own = _own(view, ranked.reading, unknown)
    if should_yield():
        yield
    strong = yield from _strength(view, ranked, unknown, should_yield, explain=explain)
    exponent = 1 / max(1.0, 0.75 * math.log2(max(1, own.words)))
    candidates = own.shared >= max(1, own.shareable)
    rows = ranked.rows
    said = _ALL * own.share[rows] ** exponent
    by_signals = _ALL * np.minimum(1.0, strong.total) ** exponent
    found = np.minimum(_LESS, np.maximum(said, by_signals))
    found = np.where(candidates[rows], said, found)
    found = np.where(own.shared[rows] > 0, found, np.minimum(found, _UNSHARED))
    every = no_scores(len(view.visible))
    every.score[rows] = found
    every.strength[rows] = strong.total
    every.by_signals[rows] = by_signals
    return every._replace(
        own=own.share,
        candidates=candidates,
        shared=bool(own.shared.any()),
        ranked=rows,
        sum=strong,
    )


def reasons(scores: Scores, row: int) -> Reasons:
    """Return why a row has its score; the signals as far as `score` was to explain them."""
    found, own = round(float(scores.score[row]), 2), float(scores.own[row])
    places = np.flatnonzero(scores.ranked == row)
    parts: Mapping[str, float] = {}
    if scores.sum is not None and len(places):
        parts = scores.sum.parts(int(places[0]))
    by_signals = float(scores.by_signals[row])
    says = f"it says {own:.0%} of the query itself, by the rarity of the words"
    if found == PHRASE:
        decided = "it holds the query as it stands"
    elif not len(places):
        decided = "it holds the query inside of words" if found else "it has nothing of the query"
    elif scores.candidates[row]:
        decided = f"{says}, and every word of it: that alone counts"
    elif found == _UNSHARED < by_signals:
        decided = "the signals, and 59 at most: it says no word of the query"
    elif found > by_signals + _CLOSE:
        decided = f"{says}, which is worth more than the signals"
    else:
        decided = f"the signals; {says}"
    return Reasons(parts, decided)


def no_scores(size: int) -> Scores:
    """Return the scores of ``size`` rows when no message says a word of the query."""
    none = np.zeros(size)
    return Scores(
        score=none,
        strength=none.copy(),
        own=none.copy(),
        candidates=np.zeros(size, np.bool_),
        shared=False,
        by_signals=none.copy(),
        ranked=np.empty(0, np.intp),
        sum=None,
    )


def _strength(
    view: View, ranked: Ranked, unknown: int, should_yield: Callable[[], bool], *, explain: bool
) -> Slices[SignalSum]:
    """Return the strength of each ranked row, at its place, as a share of what is expected."""
    table = weights("conversation", ranked.vectors)
    asked, anyway = (SignalSum(len(ranked.rows), apart=explain, dtype=np.float64) for _ in range(2))
    for name, weight in table.items():
        if name in ranked.signals and name not in _TOLD_OTHERWISE:
            part = anyway if name in _ANYWAY else asked
            part.add(name, np.float32(weight) * ranked.signals[name])
    if should_yield():
        yield
    around = yield from words_around(view, ranked.reading.groups, should_yield)
    asked.add("around", _AROUND * around[ranked.rows])
    meant = 0.0
    if "meaning" in ranked.signals:
        meaning = np.zeros(len(view.visible), np.float32)
        meaning[ranked.rows] = ranked.signals["meaning"]
        of_message = _MEANING.get(ranked.vectors, table.get("meaning", 0.0))
        meant = _MEANT * (of_message + _THEME)
        for name, weight, values in (
            ("meaning", of_message, meaning),
            ("theme", _THEME, best_around(view, meaning)),
        ):
            found = values[ranked.rows]
            asked.add(name, weight * (found - found.mean(dtype=np.float64)))
            if should_yield():
                yield
    full = _EXPECTED * max(1e-9, _full(view, ranked, table, unknown) + meant)
    asked.join(anyway, full / (full + _DAMPED))
    np.maximum(asked.total, 0.0, out=asked.total)
    asked.divide(full)
    return asked


def _full(view: View, ranked: Ranked, table: Mapping[str, float], unknown: int) -> float:
    """Return the strength of a message that says each word once, by the sender and of the time named."""
    reading = ranked.reading
    by_word = table.get("words", 0.0) + table["nearby"] + _AROUND / 2
    count = view.count + pseudo_documents(view)
    full = by_word * sum(idf(len(group.rows), count) for group in reading.groups)
    full += by_word * unknown * idf(0, count)
    # Where no message is of that time, none is asked for it.
    times = [name for name in ("month", "day", "time") if name in ranked.signals]
    full += sum(table[name] * float(ranked.signals[name].max(initial=0.0)) for name in times)
    if len(reading.authors) == 1:
        return full + table["author"]
    mentioned = sum(idf(len(group.rows), view.count) for group in reading.mentions)
    return full + table.get("mention", 0.0) * mentioned


def _own(view: View, reading: QueryReading, unknown: int) -> _Own:
    """Return how much of the query each row says itself, and how many of its words."""
    size = len(view.visible)
    said = np.zeros(size)
    shared = np.zeros(size, np.int32)
    total = unknown * _rarity(0, view.count)
    for group in reading.groups:
        weight = _rarity(len(group.rows), view.count)
        said[group.rows] += weight * np.minimum(1.0, group.times.astype(np.float64))
        shared[group.rows] += 1
        total += weight
    words = len(reading.groups) + unknown
    enough = not words or len(reading.authors) + words > _SHORT
    for written in reading.authors:
        weight = _NAME_WEIGHT * _rarity(int(np.count_nonzero(written)), view.count)
        mentions = _mentions(view, reading, written)
        said += weight * np.maximum(written, _MENTION * mentions)
        shared += (written | mentions) if enough else 0
        total += weight
    share = said / total if total else said
    shareable = words + (len(reading.authors) if enough else 0)
    return _Own(np.minimum(1.0, share), shared, words + len(reading.authors), shareable)


def _mentions(view: View, reading: QueryReading, written: Mask) -> Mask:
    """Return which rows say the whole name of the sender of the rows ``written``."""
    number = view.corpus.author[np.argmax(written)]
    name = set(name_terms(view.corpus.authors[number]))
    times = np.zeros(len(view.visible), np.int32)
    for group in reading.mentions:
        if group.asked in name:
            times[group.rows] += 1
    found: Mask = times == len(name)
    return found


def _rarity(count: int, of: int) -> float:
    return math.log(1 + (of + 50) / (count + 5))
