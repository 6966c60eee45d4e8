"""The rows that a caller sees, with statistics of them alone.

A memory that is hidden from the caller therefore changes no score that the caller gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index import QUESTION, TEMPORAL
from greenroom.actors.search.index.corpus import Neighbours
from greenroom.actors.search.ranking.weights import KINDS
from greenroom.runtime import Slices

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Postings = tuple[Rows, Floats]

BEFORE = (0.6, 0.45, 0.3, 0.2)
"""The weight of a word 1, 2, 3, 4 memories before: it shows what the conversation is about."""
AFTER = (0.25, 0.2, 0.1)
"""The weight of a word 1, 2, 3 memories after: it shows less of the topic."""


_NEEDED = (
    "lengths",
    "total",
    "neighbours",
    "before",
    "after",
    "nearby_lengths",
    "total_nearby",
    "conversation_lengths",
    "contexts",
    "length",
    "question",
    "temporal",
    "opening",
    "reply",
    "kinds",
    "has_notes",
)
OPENING = 3
"""The number of memories that open a conversation."""
LONG = 100
"""At most this many words count for the length of a memory; else a book would always come first."""
_BYTES_A_ROW = 53
"""Bytes that a view keeps for each row after a search."""


class _Corpus(Protocol):
    """The parts of an index that ranking reads, by row in insertion order; see `index.corpus.Corpus`."""

    @property
    def size(self) -> int: ...
    @property
    def author(self) -> Rows: ...
    @property
    def authors(self) -> Sequence[str]: ...
    @property
    def conversation(self) -> Rows: ...
    @property
    def created(self) -> npt.NDArray[np.int64]: ...
    @property
    def flags(self) -> npt.NDArray[np.uint8]: ...
    def lengths(self, field: Any) -> npt.NDArray[np.uint32]: ...
    def postings(self, field: Any, term: str) -> tuple[Rows, npt.NDArray[Any]]: ...
    def vocabulary(self, field: Any) -> Iterator[Sequence[str]]: ...
    def neighbours(self, mask: Mask) -> Neighbours: ...
    def vectors(self, space: str) -> tuple[npt.NDArray[np.int8], Floats, Mask] | None: ...
    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]: ...


class View:
    """The visible rows of a corpus, valid for many queries until it changes."""

    def __init__(self, corpus: _Corpus, visible: Mask) -> None:
        self.corpus = corpus
        self.visible = visible
        self.count = int(np.count_nonzero(visible))
        self.all_visible = self.count == len(visible)
        self.ordinary: dict[str, Any] = {}
        """The last comparison with ordinary prompts, by space; see `ranking.ordinary`."""

    def prepare(self) -> Slices[None]:
        """Calculate and cache what every query needs."""
        for name in _NEEDED:
            if name not in self.__dict__:  # `__dict__` has the cached properties
                getattr(self, name)
                yield

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return _BYTES_A_ROW * len(self.visible)

    def postings(self, field: str, term: str) -> tuple[Rows, Floats]:
        """Return the visible rows that hold ``term``, and how often."""
        rows, times = self.corpus.postings(field, term)
        if not self.all_visible and len(rows):
            seen = self.visible[rows]
            rows, times = rows[seen], times[seen]
        return rows, times.astype(np.float32, copy=False)

    @cached_property
    def nothing(self) -> Floats:
        """A signal that is 0 everywhere, read-only; it takes no memory."""
        return np.broadcast_to(np.float32(0), len(self.visible))

    @cached_property
    def lengths(self) -> Floats:
        """The number of terms in each text."""
        return self.corpus.lengths("text").astype(np.float32)

    @cached_property
    def total(self) -> float:
        """The number of terms in all visible texts."""
        return float(self.lengths.sum(where=self.visible, dtype=np.float64))

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbours of each row among the visible ones."""
        return self.corpus.neighbours(self.visible)

    @cached_property
    def before(self) -> Rows:
        """The row before each row, or -1; a further last entry maps -1 to itself."""
        return np.append(self.neighbours.previous, np.int32(-1))

    @cached_property
    def after(self) -> Rows:
        """The row after each row, in the same form as `before`."""
        return np.append(self.neighbours.following, np.int32(-1))

    @cached_property
    def has_neighbours(self) -> bool:
        """Whether any row has a neighbour."""
        return bool((self.neighbours.place > 0).any())

    @cached_property
    def nearby_lengths(self) -> Floats:
        """The number of terms in each text and its neighbours, weighted by `BEFORE` and `AFTER`."""
        if not self.has_neighbours:
            return self.lengths
        total = np.where(self.visible, self.lengths, np.float32(0))
        order = self.neighbours.order
        own, place = total[order], self.neighbours.place[order]
        every = own.copy()
        for away, weight in enumerate(BEFORE, 1):
            every[away:] += np.float32(weight) * np.where(place[away:] >= away, own[:-away], np.float32(0))
        for away, weight in enumerate(AFTER, 1):
            every[:-away] += np.float32(weight) * np.where(place[away:] >= away, own[away:], np.float32(0))
        total[order] = every
        return total

    @cached_property
    def side_by_side(self) -> Rows:
        """All rows, in an order in which neighbours stand side by side."""
        order = self.neighbours.order
        return np.append(order, np.flatnonzero(self.neighbours.place < 0).astype(np.int32))

    @cached_property
    def places(self) -> Rows:
        """The place of each row in `side_by_side`."""
        places = np.empty(len(self.visible), np.int32)
        places[self.side_by_side] = np.arange(len(places), dtype=np.int32)
        return places

    @cached_property
    def before_weights(self) -> list[Floats]:
        """One array for each weight in `BEFORE`, for `side_by_side` from its 2nd, 3rd, ... row.

        An entry is 0 where the neighbour would be outside of the conversation.
        """
        return self._weights(BEFORE)

    @cached_property
    def after_weights(self) -> list[Floats]:
        """One array for each weight in `AFTER`, for `side_by_side` without its last rows.

        An entry is 0 where the neighbour would be outside of the conversation.
        """
        return self._weights(AFTER)

    def _weights(self, weights: Sequence[float]) -> list[Floats]:
        place = self.neighbours.place[self.side_by_side]
        return [
            np.where(place[away:] >= away, np.float32(weight), np.float32(0))
            for away, weight in enumerate(weights, 1)
        ]

    @cached_property
    def total_nearby(self) -> float:
        """The sum of `nearby_lengths` of the visible rows."""
        # In 64 bits the sum does not depend on hidden rows between the visible ones.
        return float(self.nearby_lengths.sum(where=self.visible, dtype=np.float64))

    @cached_property
    def conversation_lengths(self) -> Floats:
        """The number of terms in each conversation."""
        if not self.conversations:
            return np.zeros(0, np.float32)
        there = self.visible & (self.corpus.conversation >= 0)
        groups = self.corpus.conversation[there]
        return np.bincount(groups, self.lengths[there], self.conversations).astype(np.float32)

    @cached_property
    def conversations(self) -> int:
        """One more than the highest number of a conversation."""
        return int(self.corpus.conversation.max(initial=-1)) + 1

    @cached_property
    def contexts(self) -> int:
        """How many conversations are visible; a memory outside of conversations counts as one."""
        if not self.conversations:
            return self.count
        group = self.corpus.conversation[self.visible]
        there = group[group >= 0]
        return int(np.count_nonzero(np.bincount(there))) + len(group) - len(there)

    @cached_property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """The place in `KINDS` of each row's kind: a turn or a note."""
        talk, note = KINDS.index("conversation"), KINDS.index("note")
        return np.where(self.neighbours.place >= 0, np.uint8(talk), np.uint8(note))

    def kinds_for(self, *, dated: bool) -> npt.NDArray[np.uint8]:
        """Return `kinds`; if ``dated``, all notes count as dated notes."""
        if not dated:
            return self.kinds
        return np.where(self.kinds == KINDS.index("note"), np.uint8(KINDS.index("dated note")), self.kinds)

    @cached_property
    def has_notes(self) -> bool:
        """Whether any visible row is a note."""
        return bool((self.visible & (self.kinds == KINDS.index("note"))).any())

    # -- signals that are the same for every query -------------------------

    @cached_property
    def length(self) -> Floats:
        """The logarithm of the number of words, at most `LONG`."""
        return np.log1p(np.minimum(self.lengths, np.float32(LONG)))

    @cached_property
    def question(self) -> Floats:
        """1 for questions."""
        return _ones((self.corpus.flags & QUESTION) != 0)

    @cached_property
    def temporal(self) -> Floats:
        """1 for memories that name a time."""
        return _ones((self.corpus.flags & TEMPORAL) != 0)

    @cached_property
    def opening(self) -> Floats:
        """1 for the first memories of a conversation."""
        place = self.neighbours.place
        return _ones((place >= 0) & (place < OPENING))

    @cached_property
    def reply(self) -> Floats:
        """1 for memories that follow another author's question."""
        if not self.has_neighbours:
            return self.nothing
        before, author = self.before[:-1], self.corpus.author
        return _ones((before >= 0) & (self.question[before] > 0) & (author[before] != author))

    def shifted(self, values: Floats, step: Rows) -> Floats:
        """Return the values of the rows to which ``step`` leads, 0 if it leads nowhere."""
        return np.append(values, np.float32(0))[step[:-1]]


def _ones(mask: Mask) -> Floats:
    return mask.astype(np.float32)
