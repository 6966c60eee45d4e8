"""Conflicts: older notes that one which was just stored probably takes the place of.

They are offered and never applied: whoever stored the note says `supersedes`, or lets both stand. Two notes
on one matter share rare words and mean something similar, and the newer one often tells of a change. From
these comes the logit of having succeeded the older one, fitted to pairs of notes of our own making.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.storage import records
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
"""The logit from which on a note is offered; of notes that replace nothing one in eight is offered one."""
_SHARED, _WORDS, _CHANGE, _ALREADY = 2.8, -10.8, 2.8, -3.5
_SHARED_BESIDE_COSINE, _COSINE, _VECTORS = 0.7, 9.0, -9.75
"""What the shared rarity's logarithm, the cosine and words of a change count, in it and in the older one."""
_COMMON: Final = 8
"""A term that more than one of so many notes has is no sign of the same matter."""
_FEW: Final = 50
_COMPARED: Final = 12
_READ: Final = 600  # characters of a note
PREVIEW: Final = 120


def replaced(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    count: int,
    sharing: Sequence[Rows],
    entry: Entry,
    text: str,
    space: str | None,
) -> Slices[list[replies.SimilarMemory]]:
    """Return the notes that a new one probably replaces, the likeliest first, `MOST` at most.

    Args:
        repository: The root's.
        context: The message's.
        corpus: The index.
        count: How many rows the sender sees.
        sharing: Of each of the new note's rarest terms the other rows that the sender sees.
        entry: The new note.
        text: What it says.
        space: The space of the vectors, if there are any.
    """
    if not sharing or (entry.details or PLAIN).conversation is not None:
        return []
    from greenroom.actors.search.ranking.supersession import tells_change  # noqa: PLC0415 - needs numpy, loaded by now

    tells = _CHANGE * tells_change(text[:_READ])
    rows, logits = _likely(corpus, _shared(corpus, max(_FEW, count), sharing), entry.update, space)
    likely = logits + tells >= _AT_LEAST
    rows, logits = rows[likely], logits[likely] + tells
    found: list[tuple[float, replies.SimilarMemory]] = []
    for row, logit in zip(rows.tolist(), logits.tolist(), strict=True):
        stored = repository.by_update(context, int(corpus.ids[row]))
        assert stored is not None, "what is in the index is in the store"
        other = stored.entry
        if other.sub != entry.sub or other.session_id != entry.session_id:
            continue
        value, version = yield from repository.value(context, other)
        form = records.JSON if version.details is None else version.details.form
        said = beginning(value, form, _READ)
        already = _ALREADY * tells_change(said)
        if logit + already >= _AT_LEAST and said != text[:_READ]:
            conflict = replies.SimilarMemory(
                memory_id=repository.memory_id(other.number),
                key=other.key,
                namespace=repository.namespace(other.sub),
                similarity=round(1 / (1 + math.exp(-logit - already)), 3),
                preview=said[:PREVIEW],
            )
            found.append((logit + already, conflict))
        if context.should_yield():
            yield
    found.sort(key=lambda each: -each[0])
    return [conflict for _, conflict in found[:MOST]]


def _shared(corpus: Corpus, count: int, sharing: Sequence[Rows]) -> Floats:
    """Return the rarity of what each row shares with the new note; 0 for turns of conversations."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    shared = np.zeros(corpus.size, np.float32)
    for rows in sharing:
        if len(rows) <= count / _COMMON:
            shared[rows] += math.log(1 + (count - len(rows) + 0.5) / (len(rows) + 0.5))
    shared[corpus.conversation >= 0] = 0
    return shared


def _likely(corpus: Corpus, shared: Floats, update: int, space: str | None) -> tuple[Places, Floats]:
    """Return the rows that share most, and what speaks for each."""
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
    """Return the cosines of rows with the new note, not a number for those without a vector.

    None as long as the new note itself has none.
    """
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = None if space is None else corpus.vectors(space)
    (own,) = corpus.rows_of(np.array([update], np.uint64))
    if found is None or own < 0 or not found[2][own]:
        return None
    values, scales, has = found
    vector = values[own].astype(np.float32) * scales[own]
    cosines: Floats = np.vecdot(values[rows].astype(np.float32), vector) * scales[rows]
    return np.where(has[rows], cosines, np.nan)
