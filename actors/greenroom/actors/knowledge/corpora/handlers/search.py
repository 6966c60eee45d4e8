"""Search one corpus: choose a strategy, rank the corpus's chunks, read the best chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from greenroom.actors.content.text.languages import is_another_language
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.replies.damage import add_damage, read_undamaged
from greenroom.actors.core.replies.grades import Least
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.knowledge.corpora.handlers import embedding
from greenroom.actors.knowledge.corpora.handlers.chunks import (
    find_literally,
    list_files,
    locate,
    make_result,
    render_each,
)
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.corpora.tools.query_service import Form, find_form
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.chunks import Chunks
    from greenroom.actors.search.ranking.documents import RankedChunks

MAX_CACHED = 64
"""At most this many results are cached for repeated requests."""
_COMPARED = 5
"""The language of this many chunks is compared with the query's language."""
_DIGITS = 16  # the highest id has this many
_NO_CHUNKS = "no chunk has a vector yet"


class Route(NamedTuple):
    """A strategy, and the reason for it."""

    form: Form
    strategy: corpus_requests.UsedStrategy
    reason: str


def choose_route(query: str, wanted: corpus_requests.Strategy, absence: str | None) -> Route:
    """Choose the strategy for a query; ``absence`` says why there are no vectors."""
    form = find_form(query)
    if absence is not None and wanted in {"auto", "hybrid", "vector"}:
        return Route(form, "bm25", f"by words alone: {absence}")
    if wanted != "auto":
        return Route(form, wanted, "as requested")
    if form == "quoted":
        return Route(form, "bm25", "what is quoted is looked for by its words")
    if form == "identifier":
        return Route(form, "bm25", "an identifier is looked for as it is written")
    kind = "a question" if form == "question" else "several words"
    return Route(form, "hybrid", f"{kind}: by words and meaning together")


def find(
    repository: CorpusRepository, request: corpus_requests.FindChunks, context: Context
) -> Slices[corpus_requests.FoundChunks]:
    """Return the best chunks."""
    repository.check(context.principal, request.corpus)
    # The cache is per principal: `cache_hit` must not reveal the queries of another principal.
    cache_key = (
        None if context.principal is None else context.principal.sight,
        msgspec.msgpack.encode(request),
    )
    known = repository.answers.get(cache_key)
    if known is not None:
        return msgspec.structs.replace(known, cache_hit=True, freshness=repository.freshness(context))
    yield from import_in_thread("greenroom.actors.search.ranking.documents")
    corpus = yield from repository.index.loaded(context)
    embedding.notify_embedder(repository, context, corpus)
    vectors = None
    absence = request.absence
    if request.vectors is not None:
        vectors = request.vectors.in_space(embedding.find_space(repository, context))
        if vectors is None:
            absence = _NO_CHUNKS
    elif absence is None:
        absence = "there is no embedder"
    taken = choose_route(request.query, request.strategy, absence if vectors is None else None)
    yield from repository.entities.load(context)
    ranked, taken, cut = yield from _choose(repository, corpus, request, vectors, taken, context)
    documents: dict[int, DocumentRecord] = {}

    def render(row: int, relevance: float, match: float, rank: int) -> corpus_requests.ChunkFound:
        near = locate(repository, context, corpus, int(corpus.ids[row]), documents)
        assert near is not None, "what is in the index is in the store"
        full = request.detail_level == "full"
        passage = repository.passage(context, near) if full else None
        speaks_of = repository.entities.find_in_chunk(context, near.document.number, near.place.id)
        return make_result(
            near.document,
            near.place,
            passage,
            speaks_of,
            (relevance, match),
            id_prefix=request.id_prefix,
            rank=rank,
        )

    given = zip(ranked.rows.tolist(), ranked.scores.tolist(), ranked.matches.tolist(), count(1))
    results = yield from render_each(context, render, given)
    explained = ranked.about
    about = (
        None
        if explained is None
        else read_undamaged(
            context, render, explained.row, explained.score, explained.match, explained.place or 0
        )
    )
    answer = corpus_requests.FoundChunks(
        results=list(results.values()),
        total=ranked.total,
        strategy=taken.strategy,
        analysis=corpus_requests.QueryAnalysis(
            form=taken.form,
            reason=taken.reason,
            corrected={word: list(meant) for word, meant in ranked.corrected.items()},
            unknown=list(ranked.unknown),
        ),
        freshness=repository.freshness(context),
        cache_hit=False,
        is_nothing=request.may_be_nothing
        and ranked.is_nothing
        and not is_another_language(
            request.query, _read_texts(repository, context, corpus, ranked.rows[:_COMPARED])
        ),
        files=list_files(documents.values()),
        parts=[dict(parts) for at, parts in enumerate(ranked.parts) if at in results],
        about=None
        if explained is None or about is None
        else (
            about,
            NamedResult(score=round(explained.score, 4), place=explained.place, parts=dict(explained.parts)),
        ),
        partial=add_damage(context, cut),
    )
    while len(repository.answers) >= MAX_CACHED:
        del repository.answers[next(iter(repository.answers))]
    if not answer.partial:  # a cut result may be complete next time
        repository.answers[cache_key] = answer
    return answer


def _read_texts(repository: CorpusRepository, context: Context, corpus: Any, rows: Any) -> Iterator[str]:
    for row in rows.tolist():
        near = read_undamaged(context, locate, repository, context, corpus, int(corpus.ids[row]), {})
        passage = None if near is None else read_undamaged(context, repository.passage, context, near)
        if passage is not None:
            yield passage.text


def load(repository: CorpusRepository, _: corpus_requests.LoadCorpus, context: Context) -> Slices[None]:
    """Load the index into memory."""
    if not repository.header.is_dropped:
        yield from import_in_thread("greenroom.actors.search.ranking.documents")
        yield from repository.index.loaded(context)


def _choose(
    repository: CorpusRepository,
    corpus: Any,
    request: corpus_requests.FindChunks,
    vectors: Any,
    taken: Route,
    context: Context,
) -> Slices[tuple[RankedChunks, Route, str]]:
    """Return the best chunks, the strategy used, and a text on unread passages."""
    by_words = taken.strategy != "vector"
    readings = (yield from find_literally(repository, context, corpus, request.query)) if by_words else None
    cut = "" if readings is None else readings.cut
    if readings is not None and readings.likeness:
        reason = "words that are nearly everywhere are looked for as they follow one another"
        taken = taken._replace(strategy="bm25", reason=reason)
        return _rank_literally(corpus, readings.likeness, request), taken, cut
    return (yield from _rank(repository, corpus, request, vectors, taken, context)), taken, cut


def _rank(
    repository: CorpusRepository,
    corpus: Any,
    request: corpus_requests.FindChunks,
    vectors: Any,
    taken: Route,
    context: Context,
) -> Slices[RankedChunks]:
    from greenroom.actors.search.ranking.denial_order import COMPARED, is_negated  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.documents import rank_chunks  # noqa: PLC0415 - needs numpy, which is already loaded
    from greenroom.actors.search.ranking.query import RankQuery  # noqa: PLC0415 - as above

    view = get_view(repository, corpus)
    query = RankQuery.read(request.query, vectors)
    only = {"bm25": "words", "vector": "meaning"}.get(taken.strategy)
    is_denial = is_negated(request.query)
    ranked = yield from rank_chunks(
        view,
        query,
        limit=max(request.top_k, COMPARED if is_denial else 0),
        least=Least(request.min_score, request.min_relevance),
        only=only,
        explain=request.explain,
        about=find_rows(corpus, request.about, request.id_prefix),
    )
    if is_denial:
        ranked = yield from _order_by_negation(repository, context, corpus, ranked, request.top_k)
    return ranked


def _order_by_negation(
    repository: CorpusRepository, context: Context, corpus: Any, ranked: RankedChunks, limit: int
) -> Slices[RankedChunks]:
    """Return the best chunks; chunks that deny something come before chunks that affirm it."""
    import numpy as np  # noqa: PLC0415 - already loaded

    from greenroom.actors.search.ranking.denial_order import (  # noqa: PLC0415 - needs numpy, which is already loaded
        COMPARED,
        find_order,
        read_sentences,
        weigh_terms,
    )

    weights = weigh_terms(ranked.weights)
    readings = []
    for text in _read_texts(repository, context, corpus, ranked.rows[:COMPARED]):
        readings.append(read_sentences(text, weights))
        yield
    chances = np.clip(ranked.scores[: len(readings)].astype(np.float64), 1e-9, 1 - 1e-9)
    order = find_order(np.log(chances / (1 - chances)), readings, weights).tolist()
    return ranked.reorder([*order, *range(len(readings), len(ranked.rows))], limit)


def _rank_literally(
    corpus: Any, likeness: Mapping[int, float], request: corpus_requests.FindChunks
) -> RankedChunks:
    """Rank chunks by the literal text of a query that has only stop words."""
    import numpy as np  # noqa: PLC0415 - already loaded

    from greenroom.actors.search.ranking.documents import RankedChunks  # noqa: PLC0415 - needs numpy, which is already loaded
    from greenroom.actors.search.ranking.sums import RankedRow  # noqa: PLC0415 - as above

    least = max(request.min_score, request.min_relevance)
    order = sorted((row for row in likeness if likeness[row] >= least), key=lambda row: -likeness[row])
    rows = order[: request.top_k]
    scores = np.array([likeness[row] for row in rows], np.float32)
    about = find_rows(corpus, request.about, request.id_prefix)
    explained = None
    if about:
        row = max(about, key=lambda row: likeness.get(row, 0.0))
        place = order.index(row) + 1 if row in order else None
        explained = RankedRow(row, likeness.get(row, 0.0), likeness.get(row, 0.0), place, {})
    return RankedChunks(
        rows=np.array(rows, np.intp),
        shares=scores,
        scores=scores,
        matches=scores,
        total=len(order),
        corrected={},
        unknown=(),
        is_nothing=False,
        parts=[{} for _ in rows],
        about=explained,
    )


def get_view(repository: CorpusRepository, corpus: Any) -> Chunks:
    """Return the view of the current index that every search needs."""
    from greenroom.actors.search.ranking.chunks import Chunks  # noqa: PLC0415 - needs numpy, which is already loaded

    if repository.view is None or not repository.view.is_of(corpus):
        repository.view = Chunks(corpus)
    return repository.view


def find_rows(corpus: Any, name: str, id_prefix: int) -> Sequence[int]:
    """Return the rows of a chunk id or document path; none for an empty name."""
    if name.isdecimal() and len(name) <= _DIGITS:
        prefix, chunk = corpus_requests.split_id(int(name))
        if prefix == id_prefix and (row := corpus.row(chunk)) is not None:
            return [row]
    number = corpus.names["author"].find(name) if name else None
    if number is None:
        return ()
    rows: list[int] = (corpus.alive & (corpus.author == number)).nonzero()[0].tolist()
    return rows
