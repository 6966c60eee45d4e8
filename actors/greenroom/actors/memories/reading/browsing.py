"""Browse memories by columns of the index: filter, order, facets."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.content.text.analyze import tokens
from greenroom.actors.content.text.verbatim import MOST_READ, NEWEST_ALONE, Verbatim, build_verbatim
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import skip_damaged
from greenroom.actors.core.replies.memory_types import import_source
from greenroom.actors.core.validation.times import DAY, optional_datetime, to_datetime
from greenroom.actors.memories.reading.search_root import all_texts, by_entries
from greenroom.actors.memories.reading.statistics import AGES, OLDER
from greenroom.actors.memories.requests import review
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.memories.storage import indexing, links
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.views import ALL
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.memories.storage.vector_filters import RowFilter
    from greenroom.actors.search.index.corpus import Corpus

    Mask = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.intp]
    Keys = npt.NDArray[np.int64]

UNUSED_AFTER = 90 * DAY
EXPIRING_WITHIN = 7 * DAY
LIST_PREVIEW = 300
LISTED_TAGS = 50
"""A list has at most this many tags of a memory, which may have a megabyte of them."""
MOST_NAMESPACES = 100
MOST_TAGS = 50
MOST_AUTHORS = 20
_LARGE = 262_144  # bytes; a larger content would be read whole for one line, so it has no preview
_AGE_NAMES = (*(name for name, _ in AGES), OLDER)
_PLACE = Struct(">qQ")
_RATING_STEPS = 1_000_000


def browse(
    repository: MemoryRepository, request: review.BrowseMemories, context: Context
) -> Slices[review.MemoriesBrowsed]:
    """Return a page; a changed memory may be listed twice or not at all."""
    namespace = request.namespace or repository.root
    if not repository.counter:
        facets = review.MemoryFacets(by_namespace={}, by_tag={}, by_kind={}, by_author={}, by_age={})
        return review.MemoriesBrowsed(
            namespace=namespace, memories=[], total=0, facets=facets, waiting={}, next_cursor=None
        )
    yield from indexing.finish(repository, context)
    corpus = yield from repository.index.loaded(context)
    yield from import_in_thread("greenroom.actors.memories.storage.vector_filters")
    everything = yield from _filter(repository, context, corpus, MemoryFilters(namespace=namespace))
    waiting = _count_states(corpus, everything.wanted, context.now)
    filters = request.filters or ALL
    filters = msgspec.structs.replace(filters, namespace=filters.namespace or namespace)
    fitting = yield from _filter(repository, context, corpus, filters)
    yield from by_entries(repository, context, corpus, fitting, filters)
    wanted = fitting.wanted
    is_cut = False
    if request.text is not None:
        wanted = wanted & (yield from _with_words(corpus, request.text))
        if (words := build_verbatim(request.text)) is not None:
            is_cut = int(wanted.sum()) > MOST_READ
            wanted = yield from _with_verbatim(repository, context, corpus, wanted, words)
    if request.state is not None:
        wanted = wanted & _in_state(corpus, request.state, context.now)
    if request.age is not None:
        wanted = wanted & (_age_places(corpus.created, context.now) == _AGE_NAMES.index(request.age))
    repository.note_unread(context)
    facets = yield from _facets(corpus, wanted, context)
    rows, next_cursor = _page(corpus, wanted, request)
    memories: list[review.ListedMemory] = []
    for row in rows:
        memory = yield from skip_damaged(context, _row(repository, context, int(corpus.ids[row])))
        memories += [] if memory is None else [memory]
        yield
    return review.MemoriesBrowsed(
        namespace=namespace,
        memories=memories,
        total=int(wanted.sum()),
        facets=facets,
        waiting=waiting,
        next_cursor=next_cursor,
        partial=True if is_cut else UNSET,
        partial_reason=NEWEST_ALONE if is_cut else UNSET,
    )


def _row(repository: MemoryRepository, context: Context, update: int) -> Slices[review.ListedMemory]:
    return (yield from to_listed(repository, context, repository.indexed(context, update).entry))


def to_listed(
    repository: MemoryRepository, context: Context, entry: Entry, preview: int = LIST_PREVIEW
) -> Slices[review.ListedMemory]:
    """Return an entry with the beginning of its text, unless it is very large."""
    details = entry.details or PLAIN
    text = ""
    if entry.value_size <= _LARGE:
        text = yield from repository.beginning(context, entry, preview)
    quality = repository.uses.quality(context, entry)
    return review.ListedMemory(
        memory_id=repository.memory_id(entry.number),
        key=entry.key,
        namespace=repository.namespace(entry.sub),
        version=entry.version,
        preview=text,
        kind=details.kind,
        tags=list(details.tags[:LISTED_TAGS]),
        more_tags=max(0, len(details.tags) - LISTED_TAGS),
        importance=details.importance,
        scope=repository.partition(entry).scope,
        author=repository.author(entry),
        imported=import_source(details.imported),
        created_at=to_datetime(entry.created_at),
        updated_at=to_datetime(entry.updated_at),
        expires_at=optional_datetime(entry.expires_at),
        size_bytes=entry.stored_size,
        uses=quality.uses,
        last_used=optional_datetime(quality.last_used),
        rating=round(quality.rating, 4),
        ratings=quality.ratings,
        unreviewed=details.unreviewed,
        superseded=links.successor(repository, context, entry) is not None,
    )


def _filter(
    repository: MemoryRepository, context: Context, corpus: Corpus, filters: MemoryFilters
) -> Slices[RowFilter]:
    from greenroom.actors.memories.storage.vector_filters import RowFilter  # noqa: PLC0415 - needs numpy, loaded by now

    found = RowFilter(repository.views.of(corpus, context.principal, context.now))
    yield from found.apply(filters, context.now)
    return found


def _with_words(corpus: Corpus, text: str) -> Slices[Mask]:
    """Return the rows that have every word of a text."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    found = np.ones(corpus.size, np.bool_)
    for term in {term for token in tokens(text) for term in token.posted}:
        rows, _ = corpus.postings("text", term)
        holds = np.zeros(corpus.size, np.bool_)
        holds[rows] = True
        found &= holds
        yield
    return found


def _with_verbatim(
    repository: MemoryRepository, context: Context, corpus: Corpus, wanted: Mask, words: Verbatim
) -> Slices[Mask]:
    """Search the newest rows for words that the index leaves out; return the matching rows."""
    found = wanted & False
    for row in wanted.nonzero()[0][::-1][:MOST_READ].tolist():
        text = yield from all_texts(repository, context, int(corpus.ids[row]))
        found[row] = bool((yield from words.likeness(text)))
        yield
    return found


def _in_state(corpus: Corpus, state: review.State, now: int) -> Mask:
    if state == "expiring":
        return corpus.expires < now + EXPIRING_WITHIN
    if state == "disliked":
        return corpus.rating < 0
    return (corpus.updated < now - UNUSED_AFTER) & (corpus.last_used < now - UNUSED_AFTER)


def _count_states(corpus: Corpus, wanted: Mask, now: int) -> dict[str, int]:
    from greenroom.actors.memories.storage.vector_filters import unreviewed  # noqa: PLC0415 - loaded by now

    states: tuple[review.State, ...] = ("unused", "disliked", "expiring")
    masks = {"unreviewed": unreviewed(corpus)}
    masks |= {str(state): _in_state(corpus, state, now) for state in states}
    return {name: int((wanted & mask).sum()) for name, mask in masks.items()}


def _facets(corpus: Corpus, wanted: Mask, context: Context) -> Slices[review.MemoryFacets]:
    import numpy as np  # noqa: PLC0415 - loaded by now

    places = _age_places(corpus.created[wanted], context.now)
    ages = np.bincount(places, minlength=len(_AGE_NAMES)).tolist()
    by_tag = yield from _tag_counts(corpus, wanted)
    return review.MemoryFacets(
        by_namespace=_count_names(corpus.namespace[wanted], corpus.namespaces, MOST_NAMESPACES),
        by_tag=by_tag,
        by_kind=_count_names(corpus.kind[wanted], corpus.kinds, len(corpus.kinds)),
        by_author=_count_names(corpus.author[wanted], corpus.authors, MOST_AUTHORS),
        by_age=dict(zip(_AGE_NAMES, ages, strict=True)),
    )


def _tag_counts(corpus: Corpus, wanted: Mask) -> Slices[dict[str, int]]:
    from greenroom.actors.memories.storage.vector_filters import labels_of, rows_with  # noqa: PLC0415 - loaded by now

    counts = yield from corpus.frequent("labels", wanted, MOST_TAGS)
    if not all(map(str.isascii, counts)):
        labels = yield from labels_of(corpus, map(compose, counts))
        counts = {tag: int(wanted[rows_with(corpus, same)].sum()) for tag, same in labels.items()}
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def _count_names(numbers: npt.NDArray[np.int32], names: Sequence[str], most: int) -> dict[str, int]:
    """Count names by number, most frequent first."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    counts = np.bincount(numbers, minlength=1)
    order = np.argsort(-counts, kind="stable")[:most]
    return {names[at]: int(counts[at]) for at in order.tolist() if counts[at]}


def _age_places(created: Keys, now: int) -> Places:
    """Return, for each time of creation, the position of its age in `_AGE_NAMES`."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    return np.searchsorted(np.array([age for _, age in AGES]), now - created, side="right")


def _keys(corpus: Corpus, rows: Places, order: review.Order) -> Keys:
    """Return the sort keys of rows, ascending."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    if order == "newest":
        return np.zeros(len(rows), np.int64)  # ties are ordered by the newest version
    if order == "oldest":
        return corpus.ids[rows].astype(np.int64)
    if order == "untouched":
        return np.maximum(corpus.updated[rows], corpus.last_used[rows])
    if order == "used":
        return -corpus.uses[rows].astype(np.int64)
    if order == "worst":
        return (corpus.rating[rows] * np.float32(_RATING_STEPS)).astype(np.int64)
    return corpus.expires[rows]


def _page(corpus: Corpus, wanted: Mask, request: review.BrowseMemories) -> tuple[list[int], str | None]:
    """Return the rows of a page in order, and the cursor of the next page."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    listing = msgspec.structs.replace(request, cursor=None, limit=1)
    binding = f"browse {blake2b(msgspec.json.encode(listing), digest_size=8).hexdigest()}"
    rows = np.flatnonzero(wanted)
    keys, ids = _keys(corpus, rows, request.order), corpus.ids[rows]
    if request.cursor is not None:
        key, update = _PLACE.unpack(paging.decode(request.cursor, binding, _PLACE.size))
        behind = (keys > key) | ((keys == key) & (ids < update))
        rows, keys, ids = rows[behind], keys[behind], ids[behind]
    order = np.lexsort((-ids.astype(np.int64), keys))[: request.limit + 1]
    page = order[: request.limit]
    if len(order) == len(page):
        return rows[page].tolist(), None
    last = page[-1]
    return rows[page].tolist(), paging.encode(_PLACE.pack(int(keys[last]), int(ids[last])), binding)
