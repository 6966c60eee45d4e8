"""The order of the chunks of documents for a query: a sum of absolute signals, and its weights.

    strength = sum of weight * signal
    share    = strength / (what the query's words are worth together + EVEN)
    score    = 1 / (1 + exp(-(share - middle) / width))

Nothing here depends on what else is found, so scores can be compared between queries. The weights are round
numbers that stood before anything was measured. On 120 headings of the documentation of four public
repositories, each asked for its section, none that were fitted to three of them did better on the fourth
(they lost 1 to 3 points of MRR), so they stayed. Middles and widths were chosen on the same headings: the
right section is to have 0.7 mostly.

A chunk is found by its text, by the headings above it and by the path of its file, and by what the rest of
its file says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.ranking import meaning
from greenroom.actors.ranking.lexical import FEW, idf
from greenroom.actors.ranking.query import RankQuery
from greenroom.actors.ranking.spelling import Correction, corrections
from greenroom.actors.ranking.view import View
from greenroom.runtime import Slices

if TYPE_CHECKING:
    from greenroom.actors.index.corpus import Corpus
    from greenroom.actors.ranking.view import Floats, Rows

    Postings = tuple[Rows, Floats]

_WEIGHTS: Final[Mapping[str, float]] = {
    "text": 1.0,
    "headings": 0.6,
    "heading": 0.6,
    "path": 0.2,
    "file": 0.3,
    "coverage": 4.0,
    "titled": 4.0,
}
MEANING: Final = 12.0
"""The weight of the signal ``meaning``."""
ALL_COMPARED: Final = 16_384
"""Chunks of which each is compared with what the query means; of more those that its words find best."""
BEST_COMPARED: Final = 4_096
ENOUGH: Final = 0.6
"""The share of the query that some chunk must have for that; else all are compared."""
SIGNALS: Final[Mapping[str, str]] = {
    "text": "A chunk that says the query's words is wanted; rare words say more than common ones (BM25).",
    "headings": "The document's title and the headings above a chunk say what it is about (BM25).",
    "heading": "... the nearest of them most.",
    "path": "Files and folders are named by what they are about (BM25).",
    "file": "A document about what is asked is where to look (BM25 of all its chunks together).",
    "coverage": "Which share of the query, by rarity, the chunk and its headings say.",
    "titled": "The nearest heading is the query, or which share of it is (both ways, by rarity).",
    "meaning": "The chunk means what is asked, whatever its words (cosine).",
}
"""The signals, and why there is each."""

_SCALES: Final[Mapping[str, tuple[float, float]]] = {
    "words": (0.75, 0.35),
    "both": (1.0, 0.4),
    "meaning": (0.5, 0.18),
}
"""The share that is a score of a half, and how much more makes it three quarters (1.1 times that)."""
EVEN: Final = 8.0
"""Added to what a query's words are worth, so that one common word is not answered with certainty."""
_FIELDS: Final = {"text": "text", "key": "headings", "tags": "heading", "author": "path"}
"""The signals of the index's fields."""
_COVERING: Final = frozenset({"text", "key"})
_K: Final = 1.2
_B: Final = 0.6
_K_NAMES: Final = 0.8


class RankedChunks(NamedTuple):
    """The best rows, best first.

    Attributes:
        rows: Their numbers in the index.
        scores: 0 to 1.
        total: How many rows have a word of the query, or a score of a half, and the least score at least; not
            fewer than are returned.
        corrected: What was looked for instead of terms that no chunk has.
        unknown: Terms that no chunk has, and that nothing is like.
        has_vectors: Whether meaning was compared.
    """

    rows: npt.NDArray[np.intp]
    scores: Floats
    total: int
    corrected: Mapping[str, tuple[str, ...]]
    unknown: Sequence[str]
    has_vectors: bool


class Chunks(View):
    """The chunks that there are, and what every query needs to know of them."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus, corpus.alive.copy())
        self._corpus = corpus
        self._arrangement = corpus.arrangement

    def is_of(self, corpus: Corpus) -> bool:
        """Return whether it tells of the rows that a corpus has now."""
        return corpus is self._corpus and corpus.arrangement == self._arrangement

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean length of each field."""
        count = max(1, self.count)
        return {
            field: max(1.0, float(self.field(field).sum(where=self.visible, dtype=np.float64)) / count)
            for field in ("text", "key", "tags", "author")
        }

    def field(self, name: str) -> Floats:
        """Return the terms of a field, by row."""
        found: dict[str, Floats] = self.__dict__.setdefault("_fields", {})
        if name not in found:
            found[name] = self.corpus.lengths(name).astype(np.float32)
        return found[name]

    @cached_property
    def files(self) -> int:
        """How many documents there are."""
        return int(np.count_nonzero(self.file_lengths))

    @cached_property
    def file_lengths(self) -> Floats:
        """Terms of each document's chunks."""
        of_files = self.corpus.author[self.visible]
        return np.bincount(of_files, self.field("text")[self.visible], len(self.corpus.authors)).astype(
            np.float32
        )


class _Group(NamedTuple):
    """A term of the query.

    Attributes:
        asked: The term itself.
        chunks: How many have it, or what it may have been meant to be.
        weight: How rare it is.
        found: The chunks that have it, by field.
    """

    asked: str
    chunks: int
    weight: float
    found: Mapping[str, Postings]


def rank_chunks(
    view: Chunks,
    query: RankQuery,
    should_yield: Callable[[], bool],
    *,
    limit: int,
    least: float = 0.0,
    only: str | None = None,
) -> Slices[RankedChunks]:
    """Return the ``limit`` best chunks; yields when ``should_yield()``.

    Args:
        view: The chunks.
        query: What is looked for.
        should_yield: Whether to yield.
        limit: How many are returned at most.
        least: The score that they have at least.
        only: ``words`` or ``meaning``, to go by these alone.
    """
    groups, corrected, unknown = yield from _read(view, query, should_yield)
    values: dict[str, Floats] = {}
    strength = np.zeros(len(view.visible), np.float32)
    towards = None if only == "words" else _towards(view, query, groups)
    if only != "meaning":
        values = yield from word_signals(view, groups, should_yield)
        for name, value in values.items():
            strength += np.float32(_WEIGHTS[name]) * value
    cosine: Floats | None = None
    if towards is not None:
        assert query.vectors is not None, "it is made of them"
        compared = _compared(strength, values.get("coverage"))
        cosine = yield from _cosines(view, query.vectors.space, towards, compared, should_yield)
    if cosine is not None:
        strength += np.float32(MEANING) * cosine
    if should_yield():
        yield
    worth = 0.0 if only == "meaning" else sum(group.weight for group in groups)
    middle, width = _SCALES["words" if cosine is None else only or "both"]
    share = strength / np.float32(worth + EVEN)
    scores = 1 / (1 + np.exp((np.float32(middle) - share) / np.float32(width)))
    found = view.visible & (scores >= least)
    related = values.get("coverage", np.zeros(1, np.float32)) > 0
    if cosine is None:
        found &= related
    rows = np.flatnonzero(found)
    best = rows[_best(strength[rows], limit)]
    # What is meant is near everything, more or less: that alone says nothing of how many there are.
    total = max(len(best), int(np.count_nonzero(found & (related | (scores >= 0.5)))))  # noqa: PLR2004
    return RankedChunks(best, scores[best], total, corrected, unknown, cosine is not None)


def word_signals(
    view: Chunks, groups: Sequence[_Group], should_yield: Callable[[], bool]
) -> Slices[dict[str, Floats]]:
    """Return the signals that need no embedder."""
    size = len(view.visible)
    values = {name: np.zeros(size, np.float32) for name in (*_FIELDS.values(), "coverage")}
    files = np.zeros(len(view.file_lengths), np.float32)
    titled = np.zeros(size, np.float32)
    covered = np.zeros(size, np.int16)  # the last term that a row has
    everything = sum(group.weight for group in groups) or 1.0
    for number, group in enumerate(groups, 1):
        weight = np.float32(group.weight)
        for field, (rows, times) in group.found.items():
            k = _K if field == "text" else _K_NAMES
            relative = view.field(field).take(rows) / np.float32(view.means[field])
            values[_FIELDS[field]][rows] += weight * _saturated(times, relative, k)
            if field in _COVERING:
                fresh = rows if field == "text" else rows[covered[rows] != number]
                values["coverage"][fresh] += np.float32(group.weight / everything)
                covered[rows] = number
            if field == "tags":
                titled[rows] += weight
            if field == "text":
                _add_files(view, files, rows, times)
            if should_yield():
                yield
    values["file"] = files[view.corpus.author] if size else np.zeros(0, np.float32)
    # Of a heading's words as many as are not in the query count as words of middling rarity.
    more = np.maximum(view.field("tags") - np.float32(len(groups)), 0)
    more *= np.float32(everything / max(1, len(groups)))
    values["titled"] = titled / (np.float32(everything) + more)
    return values


def _add_files(view: Chunks, files: Floats, rows: Rows, times: Floats) -> None:
    """Add what one term's rows are worth to their documents."""
    said = np.bincount(view.corpus.author[rows], times, len(files)).astype(np.float32)
    which = np.flatnonzero(said)
    mean = max(1.0, view.total / max(1, view.files))
    relative = view.file_lengths[which] / np.float32(mean)
    rare = idf(len(which), max(FEW, view.files))
    files[which] += np.float32(rare) * _saturated(said[which], relative, _K)


def _saturated(times: Floats, relative: Floats, k: float) -> Floats:
    """Return BM25 without the rarity; ``relative`` is the length by the mean one."""
    least, longer = np.float32(k * (1 - _B)), np.float32(k * _B)
    found: Floats = (times * np.float32(k + 1) / (times + least + longer * relative)).astype(
        np.float32, copy=False
    )
    return found


def _read(
    view: Chunks, query: RankQuery, should_yield: Callable[[], bool]
) -> Slices[tuple[list[_Group], dict[str, tuple[str, ...]], list[str]]]:
    """Return the query's terms, what was looked for instead of unknown ones, and what stays unknown."""
    groups: list[_Group] = []
    corrected: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    for term in query.terms:
        found = [_group(view, term.term, [Correction(term.term, 1.0, 0)])]
        if not found[0].chunks:
            found = [_group(view, part, [Correction(part, 1.0, 0)]) for part in term.instead]
            found = [group for group in found if group.chunks]
        if not found:
            meant = yield from corrections(view, term, should_yield)
            if meant:
                found = [_group(view, term.term, meant)]
                corrected[term.word] = tuple(correction.term for correction in meant)
            else:
                unknown.append(term.word)
        groups += found
        if should_yield():
            yield
    return groups, corrected, unknown


def _group(view: Chunks, asked: str, meant: Sequence[Correction]) -> _Group:
    """Look a term up in every field."""
    found = {field: _postings(view, field, meant) for field in _FIELDS}
    count = max(len(found["text"][0]), len(found["key"][0])) or len(found["author"][0])
    there = {field: postings for field, postings in found.items() if len(postings[0])}
    return _Group(asked, count, idf(count, max(FEW, view.count)), there)


def _postings(view: Chunks, field: str, meant: Sequence[Correction]) -> Postings:
    if len(meant) == 1:
        rows, times = view.postings(field, meant[0].term)
        return rows, times if meant[0].likeness == 1 else times * np.float32(meant[0].likeness)
    total: dict[int, float] = {}
    for correction in meant:
        rows, times = view.postings(field, correction.term)
        for row, often in zip(rows.tolist(), times.tolist(), strict=True):
            total[row] = total.get(row, 0.0) + often * correction.likeness
    order = sorted(total)
    return np.array(order, np.int32), np.array([total[row] for row in order], np.float32)


def _towards(view: Chunks, query: RankQuery, groups: Sequence[_Group]) -> Floats | None:
    """Return the query's vector, None where it has none."""
    vectors = query.vectors
    if vectors is None:
        return None
    counts = {group.asked: group.chunks for group in groups}
    weights = meaning.word_weights(
        view, vectors.words, frozenset(), counts, in_context=vectors.sentence is not None
    )
    return meaning.query_vector(vectors, weights)


def _compared(strength: Floats, coverage: Floats | None) -> npt.NDArray[np.intp] | None:
    """Return the rows to compare by meaning; None for all."""
    if coverage is None or len(strength) <= ALL_COMPARED or coverage.max(initial=0) < ENOUGH:
        return None
    return np.argpartition(strength, len(strength) - BEST_COMPARED)[-BEST_COMPARED:]


def _cosines(
    view: Chunks,
    space: str,
    towards: Floats,
    compared: npt.NDArray[np.intp] | None,
    should_yield: Callable[[], bool],
) -> Slices[Floats | None]:
    """Return the cosine of each row, 0 of those that are not compared; None where no row has a vector."""
    if compared is None:
        return (yield from meaning.cosines(view, space, towards, should_yield))
    found = view.corpus.vectors(space)
    if found is None or found[0].shape[1] != len(towards):
        return None
    values, scales, has = found
    there = has[compared]
    rows = np.sort(compared[there])
    if not len(rows):
        return None
    cosine = np.zeros(len(view.visible), np.float32)
    cosine[rows] = np.vecdot(values[rows].astype(np.float32), towards) * scales[rows]
    cosine[compared[~there]] = cosine[rows].mean()  # neither raised nor lowered
    if should_yield():
        yield
    return cosine


def _best(strength: Floats, limit: int) -> npt.NDArray[Any]:
    """Return the places of the ``limit`` strongest, strongest first; of equals what was put in first."""
    if len(strength) > limit:
        bound = np.partition(strength, len(strength) - limit)[len(strength) - limit]
        places = np.flatnonzero(strength >= bound)
    else:
        places = np.arange(len(strength))
    return places[np.lexsort((places, -strength[places]))][:limit]
