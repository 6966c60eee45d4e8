"""The rows that a caller sees, and what is counted over them. Nothing else is ever counted.

So a memory that is hidden from the caller changes no score that the caller gets.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from greenroom.runtime import Slices

    Mask = npt.NDArray[np.bool_]
    Rows = npt.NDArray[np.int32]
    Floats = npt.NDArray[np.float32]

BEFORE = (0.6, 0.45, 0.3, 0.2)
"""How much of a word counts that was said 1, 2, 3, 4 memories before: it tells what the talk is about."""
AFTER = (0.25, 0.2, 0.1)
"""The same of what was said after; it has less to do with it."""


_NEEDED = (
    "lengths",
    "total",
    "neighbours",
    "before",
    "after",
    "nearby_lengths",
    "conversation_lengths",
    "contexts",
)


class Neighbours(Protocol):
    """By row, -1 for none: the rows before and after it in its conversation, and its place there, from 0."""

    @property
    def previous(self) -> Rows: ...
    @property
    def following(self) -> Rows: ...
    @property
    def place(self) -> Rows: ...


class Corpus(Protocol):
    """What ranking reads of an index: rows 0..size-1, in order of insertion."""

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
    def postings(self, field: Any, term: str) -> tuple[Rows, npt.NDArray[np.uint16]]: ...
    def vocabulary(self, field: Any) -> Iterator[Sequence[str]]: ...
    def neighbours(self, mask: Mask) -> Neighbours: ...
    def vectors(self, space: str) -> tuple[npt.NDArray[np.int8], Floats, Mask] | None: ...
    def token_vectors(self, space: str, rows: Sequence[int]) -> list[npt.NDArray[np.int8] | None]: ...


class View:
    """The visible rows of a corpus. It is right until the corpus changes, and may serve many queries.

    Args:
        corpus: The index.
        visible: The rows that the caller may see; rows that are not alive are not among them.
    """

    def __init__(self, corpus: Corpus, visible: Mask) -> None:
        self.corpus = corpus
        self.visible = visible
        self.count = int(np.count_nonzero(visible))
        self.all_visible = self.count == len(visible)

    def prepare(self, pace: Callable[[], bool]) -> Slices[None]:
        """Calculate what every query needs, which is then kept; yields when ``pace`` says so."""
        for name in _NEEDED:
            getattr(self, name)
            if pace():
                yield

    def postings(self, field: str, term: str) -> tuple[Rows, Floats]:
        """Return the visible rows that hold ``term``, and how often."""
        rows, times = self.corpus.postings(field, term)
        if not self.all_visible and len(rows):
            seen = self.visible[rows]
            rows, times = rows[seen], times[seen]
        return rows, times.astype(np.float32)

    @cached_property
    def lengths(self) -> Floats:
        """Terms of each text."""
        return self.corpus.lengths("text").astype(np.float32)

    @cached_property
    def total(self) -> float:
        """Terms of all visible texts."""
        return float(self.lengths.sum(where=self.visible, dtype=np.float64))

    @cached_property
    def neighbours(self) -> Neighbours:
        """Who stands next to whom among the visible rows."""
        return self.corpus.neighbours(self.visible)

    @cached_property
    def before(self) -> Rows:
        """The previous row, or -1; one entry more, so that -1 leads to -1."""
        return np.append(self.neighbours.previous, np.int32(-1))

    @cached_property
    def after(self) -> Rows:
        """The following row, likewise."""
        return np.append(self.neighbours.following, np.int32(-1))

    @cached_property
    def nearby_lengths(self) -> Floats:
        """Terms of each text and, weighted by `BEFORE` and `AFTER`, of its neighbours'."""
        own = np.append(np.where(self.visible, self.lengths, 0), np.float32(0)).astype(np.float32)
        total = own[:-1].copy()
        for step, weights in ((self.before, BEFORE), (self.after, AFTER)):
            at = step[:-1]
            for weight in weights:
                total += np.float32(weight) * own[at]
                at = step[at]
        return total

    @cached_property
    def conversation_lengths(self) -> Floats:
        """Terms of each conversation."""
        there = self.visible & (self.corpus.conversation >= 0)
        groups = self.corpus.conversation[there]
        return np.bincount(groups, self.lengths[there], self.conversations).astype(np.float32)

    @cached_property
    def conversations(self) -> int:
        """One more than the highest number of a conversation."""
        return int(self.corpus.conversation.max(initial=-1)) + 1

    @cached_property
    def contexts(self) -> int:
        """How many conversations are visible; a memory outside of any is one of its own."""
        group = self.corpus.conversation[self.visible]
        there = group[group >= 0]
        return int(np.count_nonzero(np.bincount(there))) + len(group) - len(there)

    def shifted(self, values: Floats, step: Rows) -> Floats:
        """Return the values of the rows to which ``step`` leads, 0 where it leads nowhere."""
        return np.append(values, np.float32(0))[step[:-1]]
