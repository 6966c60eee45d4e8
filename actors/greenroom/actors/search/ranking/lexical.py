"""Lexical scores: BM25 of a memory, a memory with its neighbours, and a conversation.

For each term, over the visible memories only:

    idf      = ln(1 + (n - df + 0.5) / (df + 0.5))
    BM25     = idf * tf * (k + 1) / (tf + k * (1 - b + b * length / mean length))

With fewer than `FEW` texts, n is `FEW`, as if the others were empty.

- *own*: the memory's text; also the share of the query that the text has.
- *nearby*: the memory's text and its neighbours' words in the conversation; farther neighbours add less.
  So a topic of several turns is found as one.
- *conversation*: the conversation as one text. Its idf counts conversations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from greenroom.actors.search.ranking.spelling import Correction
from greenroom.actors.search.ranking.view import AFTER, BEFORE, Floats, Rows, View
from greenroom.runtime import Slices

FEW = 50
"""At least this many texts are assumed for rarity: a word that a dozen texts share is not yet common."""
K, B = 0.8, 0.4
"""For short texts: a repeated word adds little, and length matters little."""
K_CONVERSATION = 1.2
_SPARSE = 100  # scanning this many rows takes as long as sorting one row and its neighbours
_SMALL = 8_192
"""Up to this many rows, each term looks at all rows; with more, at rows with the term and rows around it."""
_TOGETHER = 4_096  # at most this many rows of several terms are added at once (0.1 ms)
_ABREAST = 16_384  # the same if each term takes all rows (0.2 ms)


class TermVariants(NamedTuple):
    """A term of the query, the terms that count as it, and their visible rows."""

    term: str
    meant: tuple[str, ...]
    rows: Rows
    times: Floats


def matching_rows(view: View, term: str, meant: Sequence[Correction] = ()) -> TermVariants:
    """Return the rows that hold a term or one of its corrections."""
    meant = meant or [Correction(term, 1.0, 0)]
    names = tuple(correction.term for correction in meant)
    if len(meant) == 1:
        rows, times = view.postings("text", meant[0].term)
        return TermVariants(term, names, rows, times * np.float32(meant[0].likeness))
    total = np.zeros(len(view.visible), np.float32)
    for correction in meant:
        rows, times = view.postings("text", correction.term)
        total[rows] += times * np.float32(correction.likeness)
    rows = np.flatnonzero(total).astype(np.int32)
    return TermVariants(term, names, rows, total[rows])


def idf(count: int, of: int) -> float:
    """Return the inverse document frequency of a term that ``count`` of ``of`` texts have."""
    return math.log(1 + (of - count + 0.5) / (count + 0.5))


def pseudo_documents(view: View) -> int:
    """Return the number of empty texts to add, so that there are `FEW`."""
    return max(0, FEW - view.count)


def own_score(view: View, groups: Sequence[TermVariants]) -> Slices[Floats]:
    """Return the score of the memories' own texts."""
    if not groups:
        return view.nothing
    total = np.zeros(len(view.visible), np.float32)
    mean = max(1.0, view.total / max(1, view.count))
    count = view.count + pseudo_documents(view)
    for some in _runs(groups):
        weights = [idf(len(group.rows), count) for group in some]
        _add_several(total, some, weights, view.lengths, mean, K)
        yield
    return total


def coverage(view: View, groups: Sequence[TermVariants], unknown: int) -> Slices[Floats]:
    """Return the share of the query, with ``unknown`` further terms, in the memories' own texts."""
    count = view.count + pseudo_documents(view)
    own = np.zeros(len(view.visible), np.float32)
    total = unknown * idf(0, count)
    for group in groups:
        weight = idf(len(group.rows), count)
        own[group.rows] += np.float32(weight) * np.minimum(group.times, np.float32(1))
        total += weight
        yield
    return own / np.float32(total) if total else own


def neighbourhood_score(view: View, groups: Sequence[TermVariants], words: Floats) -> Slices[Floats]:
    """Return the score of the texts with their neighbours; ``words`` is the result of `own_score`."""
    if not view.has_neighbours:
        return words
    size = len(view.visible)
    total = np.zeros(size, np.float32)
    mean = max(1.0, view.total_nearby / max(1, view.count))
    count = view.count + pseudo_documents(view)
    if size <= _SMALL:
        lengths = view.nearby_lengths[view.side_by_side] / mean
        step = max(1, _ABREAST // size)
        for start in range(0, len(groups), step):
            some = groups[start : start + step]
            weights = np.array([[idf(len(group.rows), count)] for group in some])
            for score in _bm25(_spread_to_all(view, some), lengths, weights, K):
                total += score
            yield
        found = np.empty_like(total)
        found[view.side_by_side] = total
        return found
    scratch = np.zeros(size, np.float32)
    for group in groups:
        rows = _spread(view, group, scratch)
        weight = idf(len(group.rows), count)
        total[rows] += _bm25(scratch[rows], view.nearby_lengths[rows] / mean, weight, K)
        scratch[rows] = 0
        yield
    return total


def conversation_score(view: View, groups: Sequence[TermVariants]) -> Slices[Floats]:
    """Return the scores of conversations; a memory outside of conversations counts as one."""
    alone = np.zeros(len(view.visible), np.float32)
    mean = max(1.0, view.total / max(1, view.contexts))
    contexts = view.contexts + pseudo_documents(view)
    if not view.conversations:
        for some in _runs(groups):
            weights = [idf(len(group.rows), contexts) for group in some]
            _add_several(alone, some, weights, view.lengths, mean, K_CONVERSATION)
            yield
        return alone
    number = view.corpus.conversation
    conversations = np.zeros(view.conversations + 1, np.float32)
    for group in groups:
        of_rows = number[group.rows]
        inside = of_rows >= 0
        counts = np.bincount(of_rows[inside], group.times[inside], view.conversations).astype(np.float32)
        which, single, times = np.flatnonzero(counts), group.rows[~inside], group.times[~inside]
        weight = idf(len(which) + len(single), contexts)
        if len(which):
            lengths = view.conversation_lengths[which]
            conversations[which] += _bm25(counts[which], lengths / mean, weight, K_CONVERSATION)
        if len(single):
            alone[single] += _bm25(times, view.lengths[single] / mean, weight, K_CONVERSATION)
        yield
    return np.where(number >= 0, conversations[number], alone)


def _bm25(times: Floats, length: Floats, weight: float | Floats, k: float) -> Floats:
    score = np.asarray(weight * (k + 1), np.float32) * times / (times + np.float32(k) * (1 - B + B * length))
    return score.astype(np.float32, copy=False)


def _runs(groups: Sequence[TermVariants]) -> Iterator[Sequence[TermVariants]]:
    """Yield runs of groups to process at once, to save calls of numpy."""
    start = rows = 0
    for end, group in enumerate(groups):
        if rows and rows + len(group.rows) > _TOGETHER:
            yield groups[start:end]
            start, rows = end, 0
        rows += len(group.rows)
    if rows:
        yield groups[start:]


def _add_several(
    total: Floats,
    groups: Sequence[TermVariants],
    weights: Sequence[float],
    lengths: Floats,
    mean: float,
    k: float,
) -> None:
    """Add the scores of several groups to the total."""
    rows = np.concatenate([group.rows for group in groups])
    times = np.concatenate([group.times for group in groups])
    weight = np.repeat(np.array(weights), [len(group.rows) for group in groups])
    np.add.at(total, rows, _bm25(times, lengths.take(rows) / mean, weight, k))


def _spread_to_all(view: View, groups: Sequence[TermVariants]) -> Floats:
    """Return how often each term occurs around each row of `View.side_by_side`."""
    own = np.zeros((len(groups), len(view.visible)), np.float32)
    for line, group in zip(own, groups, strict=True):
        line[view.places[group.rows]] = group.times
    total = own.copy()
    # A word of a row is "after" for the rows before it, and "before" for the rows after it.
    for away, weights in enumerate(view.after_weights, 1):
        total[:, :-away] += weights * own[:, away:]
    for away, weights in enumerate(view.before_weights, 1):
        total[:, away:] += weights * own[:, :-away]
    return total


def _spread(view: View, group: TermVariants, scratch: Floats) -> Rows:
    """Write the frequencies of a term around each row into ``scratch``; return the rows."""
    scratch[group.rows] = group.times
    every = [group.rows]
    # A word of a row is "after" for the rows before it, and "before" for the rows after it.
    for step, weights in ((view.before, AFTER), (view.after, BEFORE)):
        rows, times = group.rows, group.times
        for weight in weights:
            rows = step[rows]
            there = rows >= 0
            rows, times = rows[there], times[there]
            # No two rows have the same neighbour on one side, so no sum is lost here.
            scratch[rows] += np.float32(weight) * times
            every.append(rows)
    if len(group.rows) * _SPARSE < len(scratch):
        return np.unique(np.concatenate(every))
    return np.flatnonzero(scratch).astype(np.int32)
