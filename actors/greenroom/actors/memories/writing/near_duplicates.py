"""Look-alikes: which memories say nearly the same as one that was just stored, or what it replaces."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.core.base.threads import imported
from greenroom.actors.memories.requests import replies
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import beginning
from greenroom.actors.memories.writing import conflicts
from greenroom.actors.memories.writing.writes import Draft
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.search.index.corpus import Corpus

    Mask = npt.NDArray[np.bool_]
    Rows = npt.NDArray[np.int32]

AT_LEAST = 0.8
"""From which likeness on (0-1) memories are reported."""
MOST = 5
_COMPARED_CHARACTERS = 2_000
_LOOKED_UP = 16  # terms of the text that are looked up, the longest, which mostly are the rarest
_RARE = 6  # of these, the rarest that are there count
_COMPARED = 12  # memories that share most of these are compared
PREVIEW = 120
_LEEWAY = 0.8  # bytes are not characters, and other cases of letters have other sizes


class LookAlikes(NamedTuple):
    """Those that say nearly the same, and those that are probably replaced."""

    similar: list[replies.SimilarMemory]
    conflicts: list[replies.SimilarMemory]


def near(
    repository: MemoryRepository, context: Context, entry: Entry, draft: Draft, space: str | None
) -> Slices[LookAlikes]:
    """Return what of the sender's sight is like a new memory, of the same namespace and below the root.

    What the new memory supersedes, what is superseded, and what nobody has looked at is not among them: the
    answer tells how they begin, and nobody asked for that.

    Args:
        repository: The root's.
        context: The message's.
        entry: The new memory.
        draft: What it says.
        space: The space of the vectors, if there are any.
    """
    if repository.indexed_to is not None or repository.counter == 1:
        return LookAlikes([], [])
    text = start(draft.value, draft.form)
    if not text.strip():
        return LookAlikes([], [])
    corpus = yield from repository.index.loaded(context)
    yield from imported("greenroom.actors.memories.storage.vector_filters")
    from greenroom.actors.memories.storage.vector_filters import unreviewed  # noqa: PLC0415 - needs numpy, loaded by now

    seen = repository.views.of(corpus, context.principal, context.now)
    others = seen.view.visible & (corpus.ids != entry.update) & ~unreviewed(corpus)
    if seen.superseded is not None:
        others &= ~seen.superseded
    rarest = rarest_of(corpus, others, text)
    found = yield from alike(repository, context, corpus, rarest, entry, text)
    replaced = yield from conflicts.replaced(
        repository, context, corpus, seen.view.count, rarest, entry, text, space
    )
    return LookAlikes(found[:MOST], replaced)


def alike(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    rarest: Sequence[Rows],
    entry: Entry,
    text: str,
) -> Slices[list[replies.SimilarMemory]]:
    """Return which other memories say nearly the same as an entry, most alike first.

    Args:
        repository: The root's.
        context: The message's.
        corpus: The index.
        rarest: Of each of the text's rarest terms the rows that are compared, as `rarest_of` returns them.
        entry: The entry.
        text: What it says, as `start` returns it.
    """
    found: list[replies.SimilarMemory] = []
    for update in candidates(corpus, rarest):
        stored = repository.by_update(context, update)
        assert stored is not None, "what is in the index is in the store"
        other = stored.entry
        if not _may_be_alike(entry, other):
            continue
        value, version = yield from repository.value(context, other)
        form = records.JSON if version.details is None else version.details.form
        said = start(value, form)
        likeness = _likeness(text, said)
        if likeness >= AT_LEAST:
            found.append(
                replies.SimilarMemory(
                    memory_id=repository.memory_id(other.number),
                    key=other.key,
                    namespace=repository.namespace(other.sub),
                    similarity=round(likeness, 3),
                    preview=said[:PREVIEW],
                )
            )
        if context.should_yield():
            yield
    found.sort(key=lambda one: -one.similarity)
    return found


def _may_be_alike(entry: Entry, other: Entry) -> bool:
    """Return whether the sizes allow it; those of long contents, of which the beginnings count, always do."""
    small, large = sorted((entry.value_size, other.value_size))
    return small >= _COMPARED_CHARACTERS or 2 * small >= AT_LEAST * (small + large) * _LEEWAY


def start(value: bytes, form: int) -> str:
    """Return the beginning of a content; of a large JSON value nothing, since it is not parsed for this."""
    if not form & records.TEXT and len(value) > 4 * _COMPARED_CHARACTERS:
        return ""
    return beginning(value, form, _COMPARED_CHARACTERS)


def candidates(corpus: Corpus, rarest: Sequence[Rows]) -> list[int]:
    """Return the memories that share most of the rare terms of a text, most first, by update number."""
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
    """Return the rows of each of the `_RARE` terms of a text that the fewest of ``others`` hold, but some do.

    Nothing else is counted than the others.
    """
    every = {term for token in tokens(text) for term in token.posted}
    terms = sorted(every, key=lambda term: (-len(term), term))[:_LOOKED_UP]
    left_out = corpus.size - int(others.sum())
    counts = sorted((corpus.count("text", term), place) for place, term in enumerate(terms))
    found: list[tuple[int, int, npt.NDArray[np.int32]]] = []
    for count, place in counts:
        # Of the rows of this term and of those that come no more than these are left out.
        if len(found) >= _RARE and count - left_out > found[_RARE - 1][0]:
            break
        rows, _ = corpus.postings("text", terms[place])
        rows = rows[others[rows]]
        if len(rows):
            insort(found, (len(rows), place, rows), key=itemgetter(0, 1))
    return [rows for _, _, rows in found[:_RARE]]


def _likeness(text: str, other: str) -> float:
    """Return how much two texts are alike, 0-1; the order of words does not count."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - not before something is stored

    cutoff = 100 * AT_LEAST
    return fuzz.token_sort_ratio(text.casefold(), other.casefold(), score_cutoff=cutoff) / 100
