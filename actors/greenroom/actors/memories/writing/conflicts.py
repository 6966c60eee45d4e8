"""Conflicts: older notes that a new note probably supersedes.

They are proposed and never applied: the caller passes `supersedes`, or leaves both. Two notes on one matter
share rare words and have a similar meaning, and the newer one often has words of change. From these comes
the logit of a supersession, fitted to generated pairs of notes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.corpus import Corpus

    Rows = npt.NDArray[np.int32]
    Floats = npt.NDArray[np.floating]
    Places = npt.NDArray[np.intp]

MOST: Final = 3
_AT_LEAST: Final = -3.2
"""The least logit of a proposal; a note that supersedes nothing gets a proposal in one case of eight."""
_SHARED, _WORDS, _CHANGE, _ALREADY = 2.8, -10.8, 2.8, -3.5
_SHARED_BESIDE_COSINE, _COSINE, _VECTORS = 0.7, 9.0, -9.75
"""Weights: logarithm of the shared rarity, cosine, words of change in the new note and in the older."""
_COMMON: Final = 8
"""A term in more than one of so many notes is no evidence of the same matter."""
_FEW: Final = 50
_COMPARED: Final = 12
_READ: Final = 600  # characters of a note
PREVIEW: Final = 120


def find_conflicts(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    count: int,
    sharing: Sequence[Rows],
    entry: Entry,
    text: str,
    space: str | None,
) -> Slices[list[replies.SimilarMemory]]:
    """Return the notes that a new one probably supersedes, likeliest first, at most `MOST`.

    Args:
        repository: The repository of the root.
        context: The context of the message.
        corpus: The index.
        count: The number of rows that the caller may see.
        sharing: For each of the new note's rarest terms, the other visible rows with it.
        entry: The new note.
        text: Its text.
        space: The embedding space; None without vectors.
    """
    if not sharing or (entry.details or PLAIN).conversation is not None:
        return []
    from greenroom.actors.search.ranking.supersession import states_change  # noqa: PLC0415 - needs numpy, loaded by now

    tells = _CHANGE * states_change(text[:_READ])
    rows, logits = _likely(corpus, _shared_rarity(corpus, max(_FEW, count), sharing), entry.update, space)
    likely = logits + tells >= _AT_LEAST
    rows, logits = rows[likely], logits[likely] + tells
    found: list[tuple[float, replies.SimilarMemory]] = []
    for row, logit in zip(rows.tolist(), logits.tolist(), strict=True):
        read = yield from repository.read_row(context, int(corpus.ids[row]))
        if read is None:
            continue
        other, value, form = read
        if other.sub != entry.sub or other.session_id != entry.session_id:
            continue
        other_text = beginning(value, form, _READ)
        already = _ALREADY * states_change(other_text)
        if logit + already >= _AT_LEAST and other_text != text[:_READ]:
            conflict = replies.SimilarMemory(
                memory_id=repository.memory_id(other.number),
                key=other.key,
                namespace=repository.namespace(other.sub),
                similarity=round(1 / (1 + math.exp(-logit - already)), 3),
                preview=other_text[:PREVIEW],
            )
            found.append((logit + already, conflict))
        yield
    found.sort(key=lambda each: -each[0])
    return [conflict for _, conflict in found[:MOST]]


def _shared_rarity(corpus: Corpus, count: int, sharing: Sequence[Rows]) -> Floats:
    """Return the rarity of the new note's terms by row; 0 for conversations."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    shared = np.zeros(corpus.size, np.float32)
    for rows in sharing:
        if len(rows) <= count / _COMMON:
            shared[rows] += math.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5))
    shared[corpus.conversation >= 0] = 0
    return shared


def _likely(corpus: Corpus, shared: Floats, update: int, space: str | None) -> tuple[Places, Floats]:
    """Return the rows that share most, and the logit of each."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    rows = np.flatnonzero(shared)
    rows = rows[np.argsort(-shared[rows], kind="stable")[:_COMPARED]]
    rarity = np.log1p(shared[rows])
    logits = _WORDS + _SHARED * rarity
    cosines = _cosines(corpus, update, rows, space)
    if cosines is not None:
        by_vectors = _VECTORS + _SHARED_BESIDE_COSINE * rarity + _COSINE * cosines
        logits = np.where(np.isnan(cosines), logits, by_vectors)
    return rows, logits


def _cosines(corpus: Corpus, update: int, rows: Places, space: str | None) -> Floats | None:
    """Return the cosines of rows with the new note, NaN or None without vectors."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = None if space is None else corpus.vectors(space)
    (own,) = corpus.rows_of(np.array([update], np.uint64))
    if found is None or own < 0 or not found[2][own]:
        return None
    values, scales, has = found
    vector = values[own].astype(np.float32) * scales[own]
    cosines: Floats = np.vecdot(values[rows].astype(np.float32), vector) * scales[rows]
    return np.where(has[rows], cosines, np.nan)
