"""Find near-duplicates of a new memory, and older notes that it probably supersedes: conflicts.

Conflicts are proposed and never applied: the caller passes `supersedes`, or keeps both notes. Two notes on
one matter share rare words and have a similar meaning, and the newer one often has words of change. These
signals give the logit of a supersession; its weights are fitted to generated pairs of notes.

"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.memories.writing.writes import Draft
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.corpus import Corpus

    Mask = npt.NDArray[np.bool_]
    Rows = npt.NDArray[np.int32]
    from collections.abc import Sequence

    Floats = npt.NDArray[np.floating]
    Places = npt.NDArray[np.intp]

AT_LEAST = 0.8
"""The least similarity (0-1) of a near-duplicate."""
MOST = 5
_COMPARED_CHARACTERS = 2_000
_LOOKED_UP = 16  # terms of the text that are looked up: the longest, which are mostly the rarest
_RARE = 6  # of these, the rarest that occur are compared
_COMPARED = 12  # memories that share most of these are compared
PREVIEW = 120
_LEEWAY = 0.8  # sizes are in bytes, which differ from characters, also between upper and lower case


class SimilarMemories(NamedTuple):
    """Near-duplicates, and memories that are probably superseded."""

    similar: list[replies.SimilarMemory]
    conflicts: list[replies.SimilarMemory]


def find_similar(
    repository: MemoryRepository, context: Context, entry: Entry, draft: Draft, space: str | None
) -> Slices[SimilarMemories]:
    """Return visible memories of the same namespace that are similar to a new one.

    Memories that it supersedes, superseded memories and unreviewed ones are left out: the reply shows how a
    memory begins, and the caller did not request these.
    """
    if repository.indexed_to is not None or repository.counter == 1:
        return SimilarMemories([], [])
    text = start(draft.value, draft.form)
    if not text.strip():
        return SimilarMemories([], [])
    corpus = yield from repository.index.loaded(context)
    yield from import_in_thread("greenroom.actors.memories.storage.vector_filters")
    from greenroom.actors.memories.storage.vector_filters import unreviewed  # noqa: PLC0415 - needs numpy, loaded by now

    seen = repository.views.of(corpus, context.principal, context.now)
    others = seen.view.visible & (corpus.ids != entry.update) & ~unreviewed(corpus)
    if seen.superseded is not None:
        others &= ~seen.superseded
    rarest = rarest_of(corpus, others, text)
    found = yield from find_near_duplicates(repository, context, corpus, rarest, entry, text)
    superseded = yield from find_conflicts(
        repository, context, corpus, seen.view.count, rarest, entry, text, space
    )
    return SimilarMemories(found[:MOST], superseded)


def find_near_duplicates(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    rarest: Sequence[Rows],
    entry: Entry,
    text: str,
) -> Slices[list[replies.SimilarMemory]]:
    """Return the near-duplicates of an entry, most similar first.

    ``rarest`` are the rows to compare, as from `rarest_of`; ``text`` is the beginning, as from `start`.
    """
    found: list[replies.SimilarMemory] = []
    for update in candidates(corpus, rarest):
        read = yield from repository.read_row(context, update)
        if read is None:
            continue
        other, value, form = read
        small, large = sorted((entry.value_size, other.value_size))
        if small < _COMPARED_CHARACTERS and 2 * small < AT_LEAST * (small + large) * _LEEWAY:
            continue  # their sizes rule it out; of long contents, only the beginnings are compared
        other_text = start(value, form)
        similarity = _similarity(text, other_text)
        if similarity >= AT_LEAST:
            found.append(
                replies.SimilarMemory(
                    memory_id=repository.memory_id(other.number),
                    key=other.key,
                    namespace=repository.namespace(other.sub),
                    similarity=round(similarity, 3),
                    preview=other_text[:PREVIEW],
                )
            )
        yield
    found.sort(key=lambda one: -one.similarity)
    return found


def start(value: bytes, form: int) -> str:
    """Return the beginning of a content; "" for large JSON, which is not parsed."""
    if not form & records.TEXT and len(value) > 4 * _COMPARED_CHARACTERS:
        return ""
    return beginning(value, form, _COMPARED_CHARACTERS)


def candidates(corpus: Corpus, rarest: Sequence[Rows]) -> list[int]:
    """Return the update numbers of memories that share most rare terms."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    if not rarest:
        return []
    shared = np.zeros(corpus.size, np.int8)
    for holding in rarest:
        shared[holding] += 1
    rows = np.flatnonzero(3 * shared >= 2 * len(rarest))
    best = np.lexsort((-rows, -shared[rows]))[:_COMPARED]
    return [int(corpus.ids[rows[at]]) for at in best]


def rarest_of(corpus: Corpus, others: Mask, text: str) -> list[Rows]:
    """Return the rows of each of the `_RARE` terms that are rarest among ``others``.

    Terms that none of the others has are left out.
    """
    every = {term for token in tokens(text) for term in token.posted}
    terms = sorted(every, key=lambda term: (-len(term), term))[:_LOOKED_UP]
    left_out = corpus.size - int(others.sum())
    counts = sorted((corpus.count("text", term), place) for place, term in enumerate(terms))
    found: list[tuple[int, int, npt.NDArray[np.int32]]] = []
    for count, place in counts:
        # A later term has at least `count - left_out` rows among the others, so none can be rarer.
        if len(found) >= _RARE and count - left_out > found[_RARE - 1][0]:
            break
        rows, _ = corpus.postings("text", terms[place])
        rows = rows[others[rows]]
        if len(rows):
            insort(found, (len(rows), place, rows), key=itemgetter(0, 1))
    return [rows for _, _, rows in found[:_RARE]]


def _similarity(text: str, other: str) -> float:
    """Return the similarity of two texts, 0-1; the order of words does not count."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - not before something is stored

    cutoff = 100 * AT_LEAST
    return fuzz.token_sort_ratio(text.casefold(), other.casefold(), score_cutoff=cutoff) / 100


MOST_CONFLICTS: Final = 3
_AT_LEAST: Final = -3.2
"""The least logit of a proposal; a note that supersedes nothing gets a proposal in one case of eight."""
_SHARED, _WORDS, _CHANGE, _ALREADY = 2.8, -10.8, 2.8, -3.5
_SHARED_BESIDE_COSINE, _COSINE, _VECTORS = 0.7, 9.0, -9.75
"""Weights: logarithm of the shared rarity, cosine, words of change in the new note and in the older."""
_COMMON: Final = 8
"""A term is no evidence of the same matter if more than one in this many notes has it."""
_FEW: Final = 50
_FEW_HAVE, _COMMON_WORD = 4, 25
"""A term that more notes than the first number and one in the second have names no matter."""
_APART: Final = 1.0
"""By this log-odds one note is more likely contradicted than the next; otherwise they are a series."""
_READ: Final = 600  # characters of a note


def find_conflicts(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    count: int,
    sharing: Sequence[Rows],
    entry: Entry,
    text: str,
    space: str | None,
    *,
    contradicted: bool = False,
) -> Slices[list[replies.SimilarMemory]]:
    """Return the notes that a new note probably supersedes, likeliest first, at most `MOST_CONFLICTS`.

    Args:
        repository: The repository of the root.
        context: The context of the message.
        corpus: The index.
        count: The number of rows that the caller may see.
        sharing: For each of the new note's rarest terms, the other visible rows with it.
        entry: The new note.
        text: Its text.
        space: The embedding space; None without vectors.
        contradicted: Whether to return only the one note that the new one seems to contradict.
    """
    if not sharing or (entry.details or PLAIN).conversation is not None:
        return []
    from greenroom.actors.memories.writing.contradictions import Note, contradicts  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.search.ranking.supersession import states_change  # noqa: PLC0415 - likewise

    newer, rarity = (
        Note.read(text[:_READ]) if contradicted else None,
        partial(_rarity, corpus, max(_FEW, count)),
    )
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
        if logit + already < _AT_LEAST or other_text == text[:_READ]:
            continue
        if newer is None or contradicts(newer, Note.read(other_text), rarity, logit + already):
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
    if contradicted and len(found) > 1 and found[0][0] - found[1][0] < _APART:
        return []  # a series of notes, each about its own time
    return [conflict for _, conflict in found[: 1 if contradicted else MOST_CONFLICTS]]


def _rarity(corpus: Corpus, count: int, term: str) -> float:
    """Return how rare a term is; 0 for one that shows no common matter."""
    having = corpus.count("text", term)
    return (
        math.log(1 + (count - having + 0.5) / (having + 0.5))
        if having <= max(_FEW_HAVE, count / _COMMON_WORD)
        else 0.0
    )


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
    """Return the rows that share the most rarity with the new note, and their logits."""
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
    """Return the cosines of rows with the new note; NaN or None without vectors."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = None if space is None else corpus.vectors(space)
    (own,) = corpus.rows_of(np.array([update], np.uint64))
    if found is None or own < 0 or not found[2][own]:
        return None
    values, scales, has = found
    vector = values[own].astype(np.float32) * scales[own]
    cosines: Floats = np.vecdot(values[rows].astype(np.float32), vector) * scales[rows]
    return np.where(has[rows], cosines, np.nan)
