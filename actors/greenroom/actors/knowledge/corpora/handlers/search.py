"""Search in one corpus: rank its chunks, read the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from greenroom.actors.content.text.languages import is_another_language
from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.replies.grades import Least
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.corpus.said import rows_saying
from greenroom.actors.knowledge.corpora.handlers import embedding
from greenroom.actors.knowledge.corpora.handlers.chunks import files_of, locate, result
from greenroom.actors.knowledge.corpora.requests import corpus_requests as requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import ChunkFound, FoundChunks, QueryAnalysis
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.corpora.tools.query_form import Route, route
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.chunks import Chunks
    from greenroom.actors.search.ranking.documents import RankedChunks

KEPT = 64
"""Answers that are kept for who asks the same again."""
_COMPARED = 5
"""Chunks whose language is compared with the query's."""
_DIGITS = 16  # of the highest id
_NO_CHUNKS = "no chunk has a vector yet"


def find(repository: CorpusRepository, request: requests.FindChunks, context: Context) -> Slices[FoundChunks]:
    """Answer the best chunks."""
    repository.check(context.principal, request.corpus)
    # Of each principal's own: that an answer is known tells nobody what somebody else asked.
    asked = (
        None if context.principal is None else context.principal.sight,
        msgspec.msgpack.encode(request),
    )
    known = repository.answers.get(asked)
    if known is not None:
        return msgspec.structs.replace(known, cache_hit=True, freshness=repository.freshness(context))
    yield from imported("greenroom.actors.search.ranking.documents")
    corpus = yield from repository.index.loaded(context)
    embedding.look(repository, context, corpus)
    vectors = None
    absence = request.absence
    if request.vectors is not None:
        vectors = request.vectors.in_space(embedding.serving(repository, context))
        if vectors is None:
            absence = _NO_CHUNKS
    elif absence is None:
        absence = "there is no embedder"
    taken = route(request.query, request.strategy, absence if vectors is None else None)
    yield from repository.entities.loaded(context)
    ranked, taken, cut = yield from _chosen(repository, corpus, request, vectors, taken, context)
    results: list[ChunkFound] = []
    documents: dict[int, DocumentRecord] = {}

    def shown(row: int, relevance: float, match: float, rank: int) -> ChunkFound:
        near = locate(repository, context, corpus, int(corpus.ids[row]), documents)
        assert near is not None, "what is in the index is in the store"
        full = request.detail_level == "full"
        passage = repository.passage(context, near) if full else None
        speaks_of = repository.entities.of_chunk(context, near.document.number, near.place.id)
        return result(
            near.document,
            near.place,
            passage,
            speaks_of,
            (relevance, match),
            id_prefix=request.id_prefix,
            rank=rank,
        )

    found = zip(ranked.rows.tolist(), ranked.scores.tolist(), ranked.matches.tolist(), strict=True)
    for number, (row, relevance, match) in enumerate(found, 1):
        results.append(shown(row, relevance, match, number))
        if context.should_yield():
            yield
    told = ranked.about
    answer = FoundChunks(
        results=results,
        total=ranked.total,
        strategy=taken.strategy,
        analysis=QueryAnalysis(
            form=taken.form,
            reason=taken.reason,
            corrected={word: list(meant) for word, meant in ranked.corrected.items()},
            unknown=list(ranked.unknown),
        ),
        freshness=repository.freshness(context),
        cache_hit=False,
        partial=cut,
        is_nothing=request.may_be_nothing
        and ranked.is_nothing
        and not is_another_language(
            request.query, _texts(repository, context, corpus, ranked.rows[:_COMPARED])
        ),
        files=files_of(documents.values()),
        parts=[dict(parts) for parts in ranked.parts],
        about=None
        if told is None
        else (
            shown(told.row, told.score, told.match, told.place or 0),
            NamedResult(score=round(told.score, 4), place=told.place, parts=dict(told.parts)),
        ),
    )
    while len(repository.answers) >= KEPT:
        del repository.answers[next(iter(repository.answers))]
    if not answer.partial:  # another time it may have more
        repository.answers[asked] = answer
    return answer


def _texts(repository: CorpusRepository, context: Context, corpus: Any, rows: Any) -> Iterator[str]:
    """Yield what chunks say."""
    for row in rows.tolist():
        near = locate(repository, context, corpus, int(corpus.ids[row]), {})
        if near is not None:
            yield repository.passage(context, near).text


def load(repository: CorpusRepository, context: Context) -> Slices[None]:
    """Read the index into memory."""
    if not repository.header.is_dropped:
        yield from imported("greenroom.actors.search.ranking.documents")
        yield from repository.index.loaded(context)


def _chosen(
    repository: CorpusRepository,
    corpus: Any,
    request: requests.FindChunks,
    vectors: Any,
    taken: Route,
    context: Context,
) -> Slices[tuple[RankedChunks, Route, str]]:
    """Return the best chunks, how they were found, and what was not read."""
    by_words = taken.strategy != "vector"
    said = (yield from rows_saying(repository, context, corpus, request.query)) if by_words else None
    cut = "" if said is None else said.cut
    if said is not None and said.likeness:
        reason = "words that are nearly everywhere are looked for as they follow one another"
        taken = taken._replace(strategy="bm25", reason=reason)
        return _as_it_stands(corpus, said.likeness, request), taken, cut
    return (yield from _ranked(repository, corpus, request, vectors, taken, context)), taken, cut


def _ranked(
    repository: CorpusRepository,
    corpus: Any,
    request: requests.FindChunks,
    vectors: Any,
    taken: Route,
    context: Context,
) -> Slices[RankedChunks]:
    from greenroom.actors.search.ranking.documents import rank_chunks  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.search.ranking.negation import COMPARED, is_negated  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.query import RankQuery  # noqa: PLC0415 - as above

    view = view_of(repository, corpus)
    query = RankQuery.read(request.query, vectors)
    only = {"bm25": "words", "vector": "meaning"}.get(taken.strategy)
    is_denial = is_negated(request.query)
    ranked = yield from rank_chunks(
        view,
        query,
        context.should_yield,
        limit=max(request.top_k, COMPARED if is_denial else 0),
        least=Least(request.min_score, request.min_relevance),
        only=only,
        explain=request.explain,
        about=rows_named(corpus, request.about, request.id_prefix),
    )
    if is_denial:
        ranked = yield from _by_negation(repository, context, corpus, ranked, request.top_k)
    return ranked


def _by_negation(
    repository: CorpusRepository, context: Context, corpus: Any, ranked: RankedChunks, limit: int
) -> Slices[RankedChunks]:
    """Return the best chunks, those that deny what the query says before those that affirm it."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    from greenroom.actors.search.ranking.negation import COMPARED, reordered, said_of, weighed

    weights = weighed(ranked.weights)
    said = []
    for text in _texts(repository, context, corpus, ranked.rows[:COMPARED]):
        said.append(said_of(text, weights))
        if context.should_yield():
            yield
    chances = np.clip(ranked.scores[: len(said)].astype(np.float64), 1e-9, 1 - 1e-9)
    order = reordered(np.log(chances / (1 - chances)), said, weights).tolist()
    return ranked.moved([*order, *range(len(said), len(ranked.rows))], limit)


def _as_it_stands(corpus: Any, likeness: Mapping[int, float], request: requests.FindChunks) -> RankedChunks:
    """Rank chunks by the literal text of a query that has only stop words."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    from greenroom.actors.ranking.sums import Asked  # noqa: PLC0415 - as above
    from greenroom.actors.search.ranking.documents import RankedChunks  # noqa: PLC0415 - needs numpy, loaded by now

    least = max(request.min_score, request.min_relevance)
    order = sorted((row for row in likeness if likeness[row] >= least), key=lambda row: -likeness[row])
    rows = order[: request.top_k]
    scores = np.array([likeness[row] for row in rows], np.float32)
    about = rows_named(corpus, request.about, request.id_prefix)
    told = None
    if about:
        row = max(about, key=lambda row: likeness.get(row, 0.0))
        place = order.index(row) + 1 if row in order else None
        told = Asked(row, likeness.get(row, 0.0), likeness.get(row, 0.0), place, {})
    return RankedChunks(
        rows=np.array(rows, np.intp),
        shares=scores,
        scores=scores,
        matches=scores,
        total=len(order),
        corrected={},
        unknown=(),
        has_vectors=False,
        is_nothing=False,
        parts=[{} for _ in rows],
        about=told,
    )


def view_of(repository: CorpusRepository, corpus: Any) -> Chunks:
    """Return what every search of the present index needs."""
    from greenroom.actors.search.ranking.chunks import Chunks  # noqa: PLC0415 - needs numpy, loaded by now

    if repository.view is None or not repository.view.is_of(corpus):
        repository.view = Chunks(corpus)
    return repository.view


def rows_named(corpus: Any, name: str, id_prefix: int) -> Sequence[int]:
    """Return the rows of a chunk, by its id, or of a document, by its path; none for no name."""
    if name.isdecimal() and len(name) <= _DIGITS:
        prefix, chunk = requests.split_id(int(name))
        if prefix == id_prefix and (row := corpus.row(chunk)) is not None:
            return [row]
    number = corpus.names["author"].find(name) if name else None
    if number is None:
        return ()
    rows: list[int] = (corpus.alive & (corpus.author == number)).nonzero()[0].tolist()
    return rows
