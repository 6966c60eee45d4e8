"""Semantic scores: cosine similarity of the memories' vectors with the query's.

Words of the query count by their rarity among the visible memories; otherwise names and everyday words
dominate a small model. A memory without a vector gets the average cosine, so it moves neither up nor
down.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.search.embedding.vector_messages import QueryVectors
from greenroom.actors.search.ranking.lexical import idf
from greenroom.actors.search.ranking.view import Floats, View
from greenroom.runtime import Slices

BLOCK = 4_096
"""Vectors compared without a pause (1 ms with 256 dimensions)."""
UNKNOWN = 0.35
"""The token similarity that a row without token vectors gets: an average row has it."""
_SINGLE = 200_000  # products of two numbers in one step
_FETCHED = 32  # rows whose tokens are compared without a pause (1 ms)
_STOP_WORD = 0.05  # a rare word weighs about 6
_NAME = 0.3
_EPSILON = 1e-9


def word_weights(
    count: int, words: list[str], names: AbstractSet[str], counts: Mapping[str, int], *, in_context: bool
) -> Floats:
    """Return the weight of each word of a query.

    ``names`` have a signal of their own. ``counts`` has the number of rows in which each known term occurs, 0
    for a mistyped one. The vectors of words ``in_context`` depend on the sentence, so even a stop word has a
    meaning.
    """
    return np.array(
        [_weight(count, word, names, counts, in_context=in_context) for word in words], np.float32
    )


def _weight(
    count: int, word: str, names: AbstractSet[str], counts: Mapping[str, int], *, in_context: bool
) -> float:
    terms = [term for token in tokens(word) for term, _ in token.terms]
    if not terms:
        return _STOP_WORD if in_context else 0.0
    if not names.isdisjoint(terms):
        return _NAME if in_context else 0.0
    return sum(idf(counts.get(term, 0), count) for term in terms) / len(terms)


def query_vector(vectors: QueryVectors, weights: Floats) -> Floats | None:
    """Return the unit vector of a query or its weighted words; None without a vector.

    The length of a word's vector already shows how much the word means, so only the root of its weight
    counts.
    """
    if vectors.sentence is not None:
        found = np.frombuffer(vectors.sentence, np.float32)
    elif not vectors.words:
        return None
    else:
        rows = np.frombuffer(vectors.rows, np.float32).reshape(len(vectors.words), -1)
        found = np.sqrt(weights if weights.any() else np.ones_like(weights)) @ rows
    length = float(np.linalg.norm(found))
    return (found / length).astype(np.float32) if length > _EPSILON else None


def cosines(view: View, space: str, query: Floats) -> Slices[Floats | None]:
    """Return the cosine of each row with the query; None without any vector."""
    found = view.corpus.vectors(space)
    if found is None or found[0].shape[1] != len(query):
        return None
    values, scales, has = found
    there = has & view.visible
    cosine = np.zeros(len(there), np.float32)
    rows: npt.NDArray[Any] | None = None if view.all_visible else np.flatnonzero(there)
    for start in range(0, len(there) if rows is None else len(rows), BLOCK):
        some = slice(start, start + BLOCK) if rows is None else rows[start : start + BLOCK]
        # Not `@`: on a busy machine the threads of a matrix library wait longer than they save.
        cosine[some] = np.vecdot(values[some].astype(np.float32), query) * scales[some]
        yield
    count = int(np.count_nonzero(there))
    if not count:
        return None
    if count < len(there):
        cosine[~there] = cosine.sum(where=there) / count
    return cosine


def best_of_conversation(view: View, cosine: Floats) -> Floats:
    """Return the highest cosine in each row's conversation, or the row's own without one."""
    if not view.conversations:
        return cosine
    number = view.corpus.conversation
    inside = view.visible & (number >= 0)
    best = np.full(view.conversations + 1, -1, np.float32)
    np.maximum.at(best, number[inside], cosine[inside])
    return np.where(number >= 0, best[number], cosine)


def max_similarities(view: View, vectors: QueryVectors, rows: npt.NDArray[Any]) -> Slices[Floats]:
    """Return, for each row, the best cosine of each query word with a token."""
    query = np.frombuffer(vectors.rows, np.float32).reshape(len(vectors.words), -1)
    query = query / (np.linalg.norm(query, axis=1, keepdims=True) + _EPSILON)
    best = np.full((len(rows), len(query)), UNKNOWN, np.float32)
    for start in range(0, len(rows), _FETCHED):
        some = rows[start : start + _FETCHED].tolist()
        fetched = view.corpus.token_vectors(vectors.space, some)
        there = [
            (place, found) for place, found in enumerate(fetched, start) if found is not None and len(found)
        ]
        if there:
            every = np.concatenate([found for _, found in there]).astype(np.float32)
            lengths = np.linalg.norm(every, axis=1, keepdims=True)
            cosines = _products(every, query) / (lengths + np.float32(_EPSILON))
            starts = np.cumsum([0, *(len(found) for _, found in there[:-1])])
            best[[place for place, _ in there]] = np.maximum.reduceat(cosines, starts, axis=0)
        yield
    return best


def _products(rows: Floats, query: Floats) -> Floats:
    """Return ``rows @ query.T``, in steps too small for a library's threads."""
    step = max(1, _SINGLE // query.size)
    found = np.empty((len(rows), len(query)), np.float32)
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], query.T, out=found[start : start + step])
    return found
