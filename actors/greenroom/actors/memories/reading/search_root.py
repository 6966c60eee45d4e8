"""Search in one root: filter the rows, rank them, read the best memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from greenroom.actors.content.text.analyze import stretches, tokens
from greenroom.actors.content.text.languages import LONGEST, is_another_language
from greenroom.actors.content.text.verbatim import MOST_READ, NEWEST_ALONE, Verbatim, build_verbatim
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.base.unicode_forms import compose, forms, starts_with
from greenroom.actors.core.replies.damage import read_undamaged, skip_damaged
from greenroom.actors.memories.reading.reads import rows_of_key
from greenroom.actors.memories.reading.unindexed_search import ANSWERING, READING, newest_with_words
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import embedding, indexing, records
from greenroom.actors.memories.storage.records import PLAIN
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.values import to_search_text
from greenroom.actors.memories.storage.views import ALL, LARGE_BYTES, compressed_form, to_view
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.memories.storage.vector_filters import RowFilter
    from greenroom.actors.search.index.corpus import Corpus
    from greenroom.actors.search.ranking.query import RankQuery
    from greenroom.actors.search.ranking.rank import Ranked
    from greenroom.actors.search.ranking.view import View

ANSWER_BYTES = 4 * 1_048_576
"""One reply has about this many bytes of contents; further memories come without their content."""
BYTES_A_MEMORY = 500
COUNTED = 10_000
"""An exact search that has enough hits ends after it has read this many contents."""
_NEEDED = (
    "greenroom.actors.memories.storage.vector_filters",
    "greenroom.actors.memories.reading.ranking",
    "greenroom.actors.search.ranking.rank",
)
_COMPOSED_AT_ONCE = 16_384  # characters: about a millisecond
_SIGNS = str.maketrans(dict.fromkeys('{}[]:,"', " "))
_BOOSTED = 1_000
"""The quality ranks among at least this many of the most relevant hits."""
_BOOSTED_BY_TOKENS = 200
"""The same if vectors are compared token by token."""


class Hit(NamedTuple):
    """A row of the index that was found, with figures from 0 to 1.

    Attributes:
        quality: None if the quality does not count.
        components: The parts of the score, by name.
        odds: The odds that it is relevant; None if nothing was ranked.
        weighed_as: As in `replies.FoundMemory`.
    """

    row: int
    score: float
    relevance: float
    quality: float | None
    components: Mapping[str, float]
    odds: float | None = None
    weighed_as: tuple[str, str] | None = None
    match: float = 1.0
    nearness: float | None = None


class RankedEntries(NamedTuple):
    """The hits, best first, and what else `replies.RootSearchResult` has."""

    hits: Sequence[Hit]
    total: int
    model: str
    is_minimum: bool = False
    rivals: float = 0.0
    is_nothing: bool = False
    terms: Sequence[replies.TermRead] = ()
    cut: str = ""
    ordinary: Sequence[float] = ()
    compared: float = 1.0


def find(
    repository: MemoryRepository, request: requests.FindMemories, context: Context
) -> Slices[replies.RootSearchResult]:
    """Return the best memories that the caller may see and that pass the filters."""
    if not repository.counter:
        return replies.RootSearchResult(hits=[], total=0, counts={"visible": 0}, model="empty")
    left = context.seconds_left()
    yield from indexing.finish(repository, context)
    # A search without a text, or for an exact text, cannot be answered by words alone.
    has_way_out = request.text is not None and request.mode != "exact" and left != inf
    corpus = yield from repository.index.loaded_in_time(context, left * READING if has_way_out else 0.0)
    if corpus is None:
        return (yield from newest_with_words(repository, request, context, left * ANSWERING))
    for module in _NEEDED:
        yield from import_in_thread(module)
    from greenroom.actors.memories.storage.vector_filters import RowFilter  # noqa: PLC0415 - needs numpy, loaded by now

    is_query = request.text is not None or request.vectors is not None
    if is_query:  # a mere list needs no vectors, so it must not wake the embedder
        embedding.queue_missing(repository, context, corpus)
    seen = repository.views.of(corpus, context.principal, context.now)
    filters = request.filters or ALL
    row_filter = RowFilter(seen, request.unasked_for)
    yield from row_filter.apply(filters, context.now)
    yield from by_entries(repository, context, corpus, row_filter, filters)
    if not is_query:
        outcome = _list_newest(corpus, row_filter, request, context.now)
    elif request.mode == "exact":
        outcome = yield from _find_exact(repository, context, corpus, row_filter, request)
    else:
        words = None if request.times else build_verbatim(request.text or "")
        outcome = RankedEntries((), 0, "exact")
        if words is not None:
            outcome = yield from _find_verbatim(repository, context, corpus, row_filter, request, words)
        if not outcome.hits:
            cut = NEWEST_ALONE if outcome.is_minimum else ""
            ranked = yield from _rank(repository, context, seen.view, row_filter, request)
            outcome = ranked._replace(is_minimum=outcome.is_minimum, cut=cut)
    hits = yield from _read_hits(repository, context, corpus, outcome.hits, request)
    repository.note_unread(context)
    if request.use and hits:
        repository.uses.write_soon(context)
    return replies.RootSearchResult(
        hits=hits,
        total=outcome.total,
        is_minimum=outcome.is_minimum,
        counts=row_filter.counts,
        model=outcome.model,
        rivals=outcome.rivals,
        is_nothing=outcome.is_nothing,
        terms=list(outcome.terms),
        cut=outcome.cut,
        ordinary=list(outcome.ordinary),
        compared=outcome.compared,
    )


def count_uses(repository: MemoryRepository, request: requests.NoteUses, context: Context) -> None:
    """Count uses of memories that the caller may see."""
    for memory_id in request.memory_ids:
        stored = repository.find_id(context, memory_id)
        if stored is not None:
            repository.uses.note(stored.entry, context)
    repository.uses.write_soon(context)


def by_entries(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    row_filter: RowFilter,
    filters: replies.MemoryFilters,
) -> Slices[None]:
    """Apply the filters that the index does not support."""
    if filters.key is not None:
        row_filter.intersect("key", (yield from rows_of_key(repository, context, corpus, filters.key)))
    if not filters.key_prefix and filters.session_id is None:
        return
    rows: list[int] = []
    for row in row_filter.wanted.nonzero()[0].tolist():
        stored = read_undamaged(context, repository.by_update, context, int(corpus.ids[row]))
        if (
            stored is not None
            and starts_with(stored.entry.key, filters.key_prefix or "")
            and filters.session_id in {None, stored.entry.session_id}
        ):
            rows.append(row)
        yield
    row_filter.intersect("key_prefix" if filters.session_id is None else "session_id", rows)


def _list_newest(
    corpus: Corpus, row_filter: RowFilter, request: requests.FindMemories, now: int
) -> RankedEntries:
    """Return the filtered rows, newest first; with a boost, by quality."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    from greenroom.actors.memories.reading.ranking import quality_of  # noqa: PLC0415 - needs numpy, loaded by now

    rows = np.flatnonzero(row_filter.wanted)
    boost = _boost(request)
    goodness, parts = quality_of(corpus, rows, now)
    scores = (1 - boost) + boost * goodness
    best = np.lexsort((-rows, -corpus.created[rows], -scores if boost else np.zeros(len(rows))))
    hits = [
        Hit(
            int(rows[at]),
            float(scores[at]),
            1.0,
            float(goodness[at]),
            {f"quality.{name}": round(float(values[at]), 4) for name, values in parts.items()}
            if request.debug
            else {},
        )
        for at in best[: request.limit].tolist()
    ]
    return RankedEntries(hits, len(rows), "filters")


def _find_exact(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    row_filter: RowFilter,
    request: requests.FindMemories,
) -> Slices[RankedEntries]:
    """Return memories that contain the exact text, newest first."""
    assert request.text is not None, "an exact search has a text"
    wanted, text = row_filter.wanted, compose(request.text)
    for term in whole_terms(text):
        rows, _ = corpus.postings("text", term)
        mask = wanted & False
        mask[rows] = True
        wanted = wanted & mask
        yield
    hits: list[Hit] = []
    total = 0
    is_minimum = False
    for looked, row in enumerate(wanted.nonzero()[0][::-1].tolist()):
        if looked >= COUNTED and len(hits) == request.limit:
            is_minimum = True
            break
        if (yield from skip_damaged(context, _holds(repository, context, int(corpus.ids[row]), text))):
            total += 1
            if len(hits) < request.limit:
                hits.append(Hit(row, 1.0, 1.0, None, {}))
        yield
    return RankedEntries(hits, total, "exact", is_minimum)


def _find_verbatim(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    row_filter: RowFilter,
    request: requests.FindMemories,
    words: Verbatim,
) -> Slices[RankedEntries]:
    """Return memories with words that the index leaves out, newest first."""
    hits: list[Hit] = []
    others: list[Hit] = []
    is_minimum = False
    least = context.seconds_left() * ANSWERING
    for looked, row in enumerate(row_filter.wanted.nonzero()[0][::-1].tolist()):
        is_enough = looked >= MOST_READ or len(hits) == request.limit
        if is_enough or context.seconds_left() < least:
            is_minimum = True
            break
        text = yield from all_texts(repository, context, int(corpus.ids[row]))
        likeness = yield from words.likeness(text)
        if likeness and likeness >= max(request.min_relevance or 0.0, request.min_score):
            (hits if likeness == 1 else others).append(Hit(row, likeness, likeness, None, {}))
        yield
    found = hits + others
    return RankedEntries(found[: request.limit], len(found), "exact", is_minimum)


def all_texts(repository: MemoryRepository, context: Context, update: int) -> Slices[str]:
    """Return all searchable text of a memory: content, key, tags and author."""
    read = None
    if (yield from skip_damaged(context, _is_there(repository, context, update))):
        read = yield from repository.read_row(context, update)
    if read is None:
        return ""
    document = yield from repository.document(read.entry, read.value, records.Quality())
    return "\n".join([document.text, document.key, document.author, *document.tags])


def _is_there(repository: MemoryRepository, context: Context, update: int) -> Slices[bool]:
    yield from ()
    return repository.by_update(context, update) is not None


def _holds(repository: MemoryRepository, context: Context, update: int, text: str) -> Slices[bool]:
    """Return whether a memory contains a composed text."""
    stored = repository.by_update(context, update)
    if stored is None:
        return False
    value, version = yield from repository.value(context, stored.entry)
    is_held = text.encode() in value if value.isascii() else text in (yield from _compose(value.decode()))
    if is_held or version.form & records.TEXT:
        return is_held
    return text in (yield from _compose((yield from to_search_text(value, version.form))))


def _compose(text: str) -> Slices[str]:
    """Return the composed form of a text, which may have megabytes."""
    parts: list[str] = []
    for part in stretches(text, len(text) if text.isascii() else _COMPOSED_AT_ONCE):
        parts.append(compose(part))
        yield
    return "".join(parts)


def whole_terms(text: str) -> set[str]:
    """Return terms of a text's whole words: each memory with the text has them.

    Of JSON, only strings, numbers and field names are indexed. So words with its signs, escapes or ``null``
    do not count.
    """
    inner = text.split()
    if not text[:1].isspace():
        inner = inner[1:]
    if inner and not text[-1:].isspace():
        inner = inner[:-1]
    plain = " ".join(word for word in inner if "\\" not in word)
    spelt = (each for form in forms(plain) for each in (form, form.translate(_SIGNS)))
    return set.intersection(*map(_terms, spelt)) - _terms("null")


def _terms(text: str) -> set[str]:
    return {term for token in tokens(text) for term in token.posted}


def _rank(
    repository: MemoryRepository,
    context: Context,
    view: View,
    row_filter: RowFilter,
    request: requests.FindMemories,
) -> Slices[RankedEntries]:
    """Return the best rows by relevance and, with a boost, by quality."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    from greenroom.actors.memories.reading import ranking  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.search.ranking.denial_order import is_negated  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.intent import detect_state  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.ordinary import NOT_COMPARED, compare_with_ordinary  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.query import RankQuery  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.rank import rank  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.relevance import RIVALS, match_of, rivals  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.supersession import COMPARED  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.weights import KINDS  # noqa: PLC0415 - as above

    boost = _boost(request)
    vectors = None
    if request.vectors is not None:
        vectors = request.vectors.in_space(embedding.serving_space(repository, context))
    query = RankQuery.read(request.text or "", vectors, times=request.times)
    by_tokens = vectors is not None and vectors.sentence is not None
    boosted = (_BOOSTED_BY_TOKENS if by_tokens else _BOOSTED) if boost else 0
    state = detect_state(request.text or "")
    is_denial = is_negated(request.text or "")
    limit = max(request.limit, boosted, RIVALS, COMPARED if state or is_denial else 0)
    ranked = yield from rank(view, query, row_filter.wanted, limit=limit)
    corpus: Any = view.corpus
    if is_denial:
        ranked = yield from ranking.order_by_negation(repository, context, corpus, ranked)
    if state is not None:
        space = None if vectors is None else vectors.space
        ranked = yield from ranking.order_by_state(repository, context, corpus, ranked, space, state)
    goodness, parts = ranking.quality_of(corpus, ranked.rows, context.now)
    odds = np.exp(ranked.log_odds.astype(np.float64))
    together = rivals(odds)
    relevances = odds / (1 + np.maximum(odds, together))
    matches = match_of(ranked.log_odds, ranked.vectors)
    has_nothing = request.min_relevance is None and ranked.is_nothing
    if has_nothing and len(ranked.rows):
        texts = yield from _texts(repository, context, corpus.ids[ranked.rows[:RIVALS]].tolist())
        has_nothing = not is_another_language(request.text or "", texts)
    scores = (1 - boost) * relevances + boost * goodness
    order = np.lexsort((np.arange(len(scores)), -scores))
    is_enough = (relevances >= (request.min_relevance or 0.0)) & (matches >= request.min_score)
    order = order[is_enough[order]][: request.limit]
    if has_nothing and request.use:  # no other root is queried, so this is the reply
        order = order[:0]
    near = NOT_COMPARED
    if request.unasked_for is not None and vectors is not None:
        near = yield from compare_with_ordinary(view, vectors.space, row_filter.wanted, ranked, order)
    components = _components(ranked, parts, order if request.debug else order[: request.reasons])
    hits = [
        Hit(
            int(ranked.rows[at]),
            float(scores[at]),
            float(relevances[at]),
            float(goodness[at]),
            next(components, {}),
            float(odds[at]),
            (KINDS[ranked.kinds[at]], ranked.vectors) if request.debug else None,
            float(matches[at]),
            near.by_place.get(at),
        )
        for at in order.tolist()
    ]
    terms = _terms_read(query, ranked) if request.debug else ()
    return RankedEntries(
        hits,
        ranked.total,
        ranked.vectors,
        rivals=together,
        is_nothing=has_nothing,
        terms=terms,
        ordinary=near.ordinary,
        compared=near.share,
    )


def _texts(repository: MemoryRepository, context: Context, ids: Sequence[int]) -> Slices[list[str]]:
    """Return the beginnings of memories, by their numbers in the index."""
    texts: list[str] = []
    for number in ids:
        if (read := (yield from repository.read_row(context, number))) is not None:
            text = read.value[:LONGEST].decode(errors="replace")
            texts.append(text)
    return texts


def _components(ranked: Ranked, parts: Mapping[str, Any], places: Any) -> Iterator[dict[str, float]]:
    """Return the components of rows at some positions: signals, and parts of the quality."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    if not len(places):
        return iter(())
    named = ranked.parts_of(places) | {f"quality.{name}": part[places] for name, part in parts.items()}
    columns = np.round(np.stack(list(named.values()), axis=1, dtype=np.float64), 4).tolist()
    return iter([dict(zip(named, column, strict=True)) for column in columns])


def _terms_read(query: RankQuery, ranked: Ranked) -> list[replies.TermRead]:
    """Return how each word of a query was interpreted."""
    names = {group.term for group in ranked.reading.mentions}
    found = {group.term: group for group in (*ranked.reading.groups, *ranked.reading.mentions)}
    read: list[replies.TermRead] = []
    for term in query.terms:
        groups = [found[each] for each in (term.term, *term.instead) if each in found]
        meant = [each for group in groups for each in group.meant if each != term.term]
        read.append(
            replies.TermRead(
                word=term.word,
                term=term.term,
                meant=meant,
                memories=max((len(group.rows) for group in groups), default=0),
                is_name=term.term in names,
            )
        )
    return read


def _read_hits(
    repository: MemoryRepository,
    context: Context,
    corpus: Corpus,
    hits: Sequence[Hit],
    request: requests.FindMemories,
) -> Slices[list[replies.FoundMemory]]:
    found: list[replies.FoundMemory] = []
    size = 0
    for hit in hits:
        stored = read_undamaged(context, repository.indexed, context, int(corpus.ids[hit.row]))
        if stored is None:
            continue
        entry = stored.entry
        is_packed = not request.decompress and bool((entry.details or PLAIN).form & records.COMPRESSED)
        bytes_sent = entry.stored_size if is_packed else entry.value_size
        size += bytes_sent + BYTES_A_MEMORY
        if request.use:
            repository.uses.note(entry, context)
        has_room = bytes_sent <= LARGE_BYTES and (size <= ANSWER_BYTES or not found)
        view = to_view(repository, context, entry, most=LARGE_BYTES if has_room and not is_packed else 0)
        memory = yield from skip_damaged(context, view)
        if memory is None:
            continue
        found.append(
            replies.FoundMemory(
                memory=memory,
                score=hit.score,
                quality=hit.quality,
                relevance=hit.relevance,
                match=hit.match,
                odds=hit.odds,
                components=dict(hit.components) if request.debug or hit.components else None,
                compressed=compressed_form(repository, context, entry) if has_room and is_packed else UNSET,
                own=_is_own(repository, context, entry),
                weighed_as=hit.weighed_as,
                nearness=hit.nearness,
            )
        )
        yield
    return found


def _is_own(repository: MemoryRepository, context: Context, entry: records.Entry) -> bool:
    """Return whether the caller owns a memory and wrote its newest version."""
    if not policy.owns_memory(context.principal, repository.partition(entry)):
        return False
    return repository.root == user_namespace(context.principal) or (entry.details or PLAIN).by_owner


def _boost(request: requests.FindMemories) -> float:
    return request.quality_boost if request.mode == "hybrid" else 0.0
