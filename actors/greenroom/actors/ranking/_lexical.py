"""How much of the query's words a memory, its neighbours and its conversation say: BM25, three times.

For each term, over the visible memories only:

    rarity   = ln(1 + (n - df + 0.5) / (df + 0.5))
    BM25     = rarity * tf * (k + 1) / (tf + k * (1 - b + b * length / mean length))

Where there are fewer than `FEW` texts, n is as if others were there that say nothing.

- *own*: the memory's text.
- *nearby*: the same of a text to which the neighbours in the conversation add their words, fewer the
  farther they are. What is told over several turns is found as one.
- *conversation*: the conversation as one text. The rarity is then by conversations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from greenroom.actors.ranking._view import AFTER, BEFORE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from greenroom.actors.ranking._spelling import Guess
    from greenroom.actors.ranking._view import Floats, Rows, View
    from greenroom.runtime import Slices

    Postings = tuple[Rows, Floats]

FEW = 50
"""Texts that there are at least, for rarity: what a dozen have in common is not common for that."""
K, B = 0.8, 0.4
"""For short texts: a word said twice says little more than once, and length matters little."""
K_CONVERSATION = 1.2
_SPARSE = 100  # rows that are gone through in the time of putting one and those around it in order
_NO_CONVERSATION = np.empty(0, np.intp)


class Group(NamedTuple):
    """A term of the query, as it is looked for.

    Attributes:
        asked: The term itself.
        meant: What counts as it: itself, or what it may have been meant to be.
        rows: The visible rows that hold any of these.
        times: How often.
    """

    asked: str
    meant: tuple[str, ...]
    rows: Rows
    times: Floats


def gather(view: View, asked: str, meant: Sequence[Guess]) -> Group:
    """Return the rows that hold a term or one of several that may have been meant."""
    names = tuple(guess.term for guess in meant)
    if len(meant) == 1:
        rows, times = view.postings("text", meant[0].term)
        return Group(asked, names, rows, times * np.float32(meant[0].likeness))
    total = np.zeros(len(view.visible), np.float32)
    for guess in meant:
        rows, times = view.postings("text", guess.term)
        total[rows] += times * np.float32(guess.likeness)
    rows = np.flatnonzero(total).astype(np.int32)
    return Group(asked, names, rows, total[rows])


def rarity(count: int, of: int) -> float:
    """Return how much it says that a text has a term that ``count`` of ``of`` texts have."""
    return math.log(1 + (of - count + 0.5) / (count + 0.5))


def phantoms(view: View) -> int:
    """Return how many texts that say nothing are taken to be there besides, so that there are `FEW`."""
    return max(0, FEW - view.count)


def own(view: View, groups: Sequence[Group], pace: Callable[[], bool]) -> Slices[Floats]:
    """Return only the score of the memories' own texts."""
    if not groups:
        return view.nothing
    total = np.zeros(len(view.visible), np.float32)
    mean = max(1.0, view.total / max(1, view.count))
    count = view.count + phantoms(view)
    for group in groups:
        weight = rarity(len(group.rows), count)
        total[group.rows] += _bm25(group.times, view.lengths[group.rows] / mean, weight, K)
        if pace():
            yield
    return total


def nearby(view: View, groups: Sequence[Group], words: Floats, pace: Callable[[], bool]) -> Slices[Floats]:
    """Return the score of the texts with their neighbours; ``words`` is what `own` returned."""
    if not view.has_neighbours:
        return words
    size = len(view.visible)
    total = np.zeros(size, np.float32)
    mean = max(1.0, view.total_nearby / max(1, view.count))
    scratch = np.zeros(size, np.float32)
    for group in groups:
        rows = _spread(view, group, scratch)
        weight = rarity(len(group.rows), view.count + phantoms(view))
        total[rows] += _bm25(scratch[rows], view.nearby_lengths[rows] / mean, weight, K)
        scratch[rows] = 0
        if pace():
            yield
    return total


def conversation(view: View, groups: Sequence[Group], pace: Callable[[], bool]) -> Slices[Floats]:
    """Return the score of the conversations; a memory outside of any is one of its own."""
    number = view.corpus.conversation
    conversations = np.zeros(view.conversations + 1, np.float32)
    alone = np.zeros(len(view.visible), np.float32)
    mean = max(1.0, view.total / max(1, view.contexts))
    for group in groups:
        which, single, times = _NO_CONVERSATION, group.rows, group.times
        if view.conversations:
            of_rows = number[group.rows]
            inside = of_rows >= 0
            said = np.bincount(of_rows[inside], group.times[inside], view.conversations).astype(np.float32)
            which, single, times = np.flatnonzero(said), group.rows[~inside], group.times[~inside]
        weight = rarity(len(which) + len(single), view.contexts + phantoms(view))
        if len(which):
            lengths = view.conversation_lengths[which]
            conversations[which] += _bm25(said[which], lengths / mean, weight, K_CONVERSATION)
        if len(single):
            alone[single] += _bm25(times, view.lengths[single] / mean, weight, K_CONVERSATION)
        if pace():
            yield
    return np.where(number >= 0, conversations[number], alone) if view.conversations else alone


def _bm25(times: Floats, length: Floats, weight: float, k: float) -> Floats:
    score = np.float32(weight * (k + 1)) * times / (times + np.float32(k) * (1 - B + B * length))
    return score.astype(np.float32, copy=False)


def _spread(view: View, group: Group, scratch: Floats) -> Rows:
    """Put how often the term is said in and around each row into ``scratch``; returns where that is."""
    scratch[group.rows] = group.times
    every = [group.rows]
    # What a row says counts for those before it as said after them, and the other way round.
    for step, weights in ((view.before, AFTER), (view.after, BEFORE)):
        rows, times = group.rows, group.times
        for weight in weights:
            rows = step[rows]
            there = rows >= 0
            rows, times = rows[there], times[there]
            # No two rows have the same neighbour on one side, so nothing is lost here.
            scratch[rows] += np.float32(weight) * times
            every.append(rows)
    if len(group.rows) * _SPARSE < len(scratch):
        return np.unique(np.concatenate(every))
    return np.flatnonzero(scratch).astype(np.int32)
