"""Scores of messages from 0 to 100, comparable between queries.

    strength = the sum of the ranking signals. Signals that hold for any query (a message is long, is a
               question) are multiplied by f / (f + 3), so they count less for short queries. Signals of
               nearby messages replace signals of whole conversations; from a cosine the average is subtracted
    f        = the strength of a message that has each word of the query once, the sender and the time
               that the query names, and the same meaning
    own      = the share of the query's words in the message itself, weighted by rarity         (0-1)
    score    = 97 * max(strength / (1.2 * f), own) ** (1 / max(1, 0.75 * log2(words)))          (0-97)

The exponent is needed because a good match has all words of a short query, but rarely half of a long
question. The factor 1.2 is there because neighbours mostly have some of the words too. With

    rarity   = ln(1 + (n + 50) / (df + 5))   for a word in df of n messages

- the query as a phrase (stems, in order) scores 100;
- a message with all words, even misspelt or in part, scores by its own words: 97 if it has them exactly. If
  a word is missing, the message scores 95 at most;
- a message without any word of the query stays below 60, whatever its meaning and neighbours: in a long
  session most of the messages with a similar vector are not relevant. In a query of up to three words, the
  name of the message's sender does not count as a word;
- a sender named in full is one word of double weight: 1 for that sender's messages, 0.7 for those that
  mention the name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.ranking.lexical import K_CONVERSATION, B, idf, pseudo_documents
from greenroom.actors.search.ranking.query import name_terms
from greenroom.actors.search.ranking.rank import Ranked
from greenroom.actors.search.ranking.signals import QueryReading
from greenroom.actors.search.ranking.sums import SignalSum, weigh
from greenroom.actors.search.ranking.view import View
from greenroom.actors.search.ranking.weights import message_weights
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.lexical import TermVariants
    from greenroom.actors.search.ranking.view import Floats

Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
PHRASE = 100.0
_ALL = 97.0
_LESS = 95.0
_UNSHARED = 59.0
_EXPECTED = 1.2
_GENERIC = frozenset({"length", "opening", "question", "temporal", "reply"})
"""Signals that hold for any query."""
_DAMPED = 3.0
_MEANT = 0.3
"""How far the cosine of a message with the full meaning is above the average cosine."""
_NAME_WEIGHT = 2.0
_MENTION = 0.7
_SHORT = 3
_CLOSE = 0.01  # scores have two decimals
REACH = 10
"""The number of visible messages before and after a message that count as near."""
_STEPS = (1, 2, 4, 3)
"""Widths with the sum `REACH`; each is at most one more than the sum of the widths before it."""
_ROUNDING = 1e-6


class Scores(NamedTuple):
    """Scores by row of the corpus; 0 for hidden and unrelated rows.

    Attributes:
        strength: Strength as a share of the expected strength of a message with all words.
        candidates: Whether the message has all words, and so perhaps the phrase.
        sum: The sum of signals by place in ``ranked``; None if nothing was ranked.
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
    """The reasons for a score; ``parts`` has each signal's share of the expected strength."""

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
    *,
    explain: bool = False,
) -> Slices[Scores]:
    """Score the ranked rows; all other rows are unrelated.

    ``unknown`` is the number of query words that no visible message has.
    """
    yield
    unknown += len(ranked.unknown)
    own = _own(view, ranked.reading, unknown)
    yield
    strong = yield from _strength(view, ranked, unknown, explain=explain)
    exponent = 1 / max(1.0, 0.75 * math.log2(max(1, own.words)))
    candidates = own.shared >= max(1, own.shareable)
    rows = ranked.rows
    by_words = _ALL * own.share[rows] ** exponent
    by_signals = _ALL * np.minimum(1.0, strong.total) ** exponent
    found = np.minimum(_LESS, np.maximum(by_words, by_signals))
    found = np.where(candidates[rows], by_words, found)
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
    """Return the reasons for a score, with signals if `score` recorded them."""
    found, own = round(float(scores.score[row]), 2), float(scores.own[row])
    places = np.flatnonzero(scores.ranked == row)
    parts: Mapping[str, float] = {}
    if scores.sum is not None and len(places):
        parts = scores.sum.parts(int(places[0]))
    by_signals = float(scores.by_signals[row])
    says = f"it contains {own:.0%} of the query, by the rarity of the words"
    if found == PHRASE:
        decided = "it contains the literal query"
    elif not len(places):
        decided = "it contains the query inside words" if found else "it has nothing of the query"
    elif scores.candidates[row]:
        decided = f"{says}, and every word of it: only that counts"
    elif found == _UNSHARED < by_signals:
        decided = "the signals, but at most 59: it contains no word of the query"
    elif found > by_signals + _CLOSE:
        decided = f"{says}, which is more than the signals give"
    else:
        decided = f"the signals; {says}"
    return Reasons(parts, decided)


def no_scores(size: int) -> Scores:
    """Return zero scores for ``size`` rows."""
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


def _strength(view: View, ranked: Ranked, unknown: int, *, explain: bool) -> Slices[SignalSum]:
    """Return the strength of the ranked rows as a share of the expected strength."""
    table = message_weights(ranked.vectors)
    signals = dict(ranked.signals)
    yield
    around = yield from words_around(view, ranked.reading.groups)
    signals["around"] = around[ranked.rows]
    meant = 0.0
    if "meaning" in signals:
        meaning = np.zeros(len(view.visible), np.float32)
        meaning[ranked.rows] = signals["meaning"]
        meant = _MEANT * (table["meaning"] + table["theme"])
        for name, values in (("meaning", meaning), ("theme", best_around(view, meaning))):
            found = values[ranked.rows]
            signals[name] = found - found.mean(dtype=np.float64)
            yield
    specific, generic = (SignalSum(len(ranked.rows), explain=explain, dtype=np.float64) for _ in range(2))
    for name, part in weigh(signals, table):
        (generic if name in _GENERIC else specific).add(name, part)
        yield
    full = _EXPECTED * max(1e-9, _full(view, ranked, table, unknown) + meant)
    specific.join(generic, full / (full + _DAMPED))
    np.maximum(specific.total, 0.0, out=specific.total)
    specific.divide(full)
    return specific


def _full(view: View, ranked: Ranked, table: Mapping[str, float], unknown: int) -> float:
    reading = ranked.reading
    by_word = table.get("words", 0.0) + table["nearby"] + table["around"] / 2
    count = view.count + pseudo_documents(view)
    full = by_word * sum(idf(len(group.rows), count) for group in reading.groups)
    full += by_word * unknown * idf(0, count)
    # If no message is of the named time, the time is not expected.
    times = [name for name in ("month", "day", "time") if name in ranked.signals]
    full += sum(table[name] * float(ranked.signals[name].max(initial=0.0)) for name in times)
    if len(reading.authors) == 1:
        return full + table["author"]
    mentioned = sum(idf(len(group.rows), view.count) for group in reading.mentions)
    return full + table.get("mention", 0.0) * mentioned


def _own(view: View, reading: QueryReading, unknown: int) -> _Own:
    size = len(view.visible)
    matched = np.zeros(size)
    shared = np.zeros(size, np.int32)
    total = unknown * _rarity(0, view.count)
    for group in reading.groups:
        weight = _rarity(len(group.rows), view.count)
        matched[group.rows] += weight * np.minimum(1.0, group.times.astype(np.float64))
        shared[group.rows] += 1
        total += weight
    words = len(reading.groups) + unknown
    enough = not words or len(reading.authors) + words > _SHORT
    for written in reading.authors:
        weight = _NAME_WEIGHT * _rarity(int(np.count_nonzero(written)), view.count)
        mentions = _mentions(view, reading, written)
        matched += weight * np.maximum(written, _MENTION * mentions)
        shared += (written | mentions) if enough else 0
        total += weight
    share = matched / total if total else matched
    shareable = words + (len(reading.authors) if enough else 0)
    return _Own(np.minimum(1.0, share), shared, words + len(reading.authors), shareable)


def _mentions(view: View, reading: QueryReading, written: Mask) -> Mask:
    """Return the mask of rows that mention the full name of the sender of ``written``."""
    number = view.corpus.author[np.argmax(written)]
    name = set(name_terms(view.corpus.authors[number]))
    times = np.zeros(len(view.visible), np.int32)
    for group in reading.mentions:
        if group.term in name:
            times[group.rows] += 1
    found: Mask = times == len(name)
    return found


def _rarity(count: int, of: int) -> float:
    return math.log(1 + (of + 50) / (count + 5))


def words_around(view: View, groups: Sequence[TermVariants]) -> Slices[Floats]:
    """Return BM25 of the messages near each visible row, as one text.

    The minimum is subtracted, since a value that all rows have does not distinguish them. A session is one
    conversation, so spans of some twenty messages take the role that conversations have in ranking.
    """
    order = view.neighbours.order
    total = np.zeros(len(order))
    lengths = _sums(view.lengths[order])
    mean = max(1.0, float(lengths.mean())) if len(order) else 1.0
    damping = K_CONVERSATION * (1 - B + B * lengths / mean)
    count = view.count + pseudo_documents(view)
    for group in groups:
        counts = np.zeros(len(order))
        counts[view.neighbours.place[group.rows]] = group.times
        times = _sums(counts)
        weight = idf(int(np.count_nonzero(times)), count)
        total += weight * (K_CONVERSATION + 1) * times / (times + damping)
        yield
    return _by_row(view, total - total.min(initial=total.max(initial=0.0)))


def best_around(view: View, values: Floats) -> Floats:
    """Return the highest value near each visible row."""
    best = values[view.neighbours.order]
    for step in _STEPS:
        before = best.copy()
        np.maximum(best[step:], before[:-step], out=best[step:])
        np.maximum(best[:-step], before[step:], out=best[:-step])
    return _by_row(view, best)


def _sums(values: npt.NDArray[Any]) -> Doubles:
    up_to = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    places = np.arange(len(values))
    found = up_to[np.minimum(len(values), places + REACH + 1)] - up_to[np.maximum(0, places - REACH)]
    return np.where(found < _ROUNDING, 0.0, found)


def _by_row(view: View, values: npt.NDArray[Any]) -> Floats:
    found = np.zeros(len(view.visible), np.float32)
    found[view.neighbours.order] = values
    return found
