"""Search in the corpus of a workspace: rank its files, read the best passage of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from greenroom.actors.base.threads import imported
from greenroom.actors.base.times import to_datetime
from greenroom.actors.corpus import embedding
from greenroom.actors.corpus.code_filters import excerpt, wanted, with_recency
from greenroom.actors.corpus.reading import locate
from greenroom.actors.corpus.records import DocumentRecord
from greenroom.actors.corpus.repository import CorpusRepository, Located
from greenroom.actors.schemas.code import CodeFile, CodeFilters, FindCode, FoundCode
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.ranking.chunks import Chunks

KEPT = 64
"""Answers that are kept for who asks the same again."""
_PASSAGES = 8
"""Passages that are ranked for each file that is wanted: the best ones may be of one file."""
_RECENT = 4
"""Files that are ranked for each that is wanted, where it counts when they were changed."""


class RankedFile(NamedTuple):
    """A file that was found: its score, and the row of its best passage."""

    score: float
    row: int


def find(repository: CorpusRepository, request: FindCode, context: Context) -> Slices[FoundCode]:
    """Answer the best files."""
    repository.check(context.principal, request.corpus)
    asked = (context.principal.identity, msgspec.msgpack.encode(request))
    known = repository.code_answers.get(asked)
    if known is not None:
        return msgspec.structs.replace(known, cache_hit=True)
    yield from imported("greenroom.actors.ranking.documents")
    corpus = yield from repository.index.loaded(context)
    embedding.look(repository, context, corpus)
    weight = request.filters.recency_weight
    ranked, total, unknown = yield from _ranked(repository, corpus, request, context)
    documents: dict[int, DocumentRecord] = {}
    found: list[tuple[float, Located]] = []
    for each in ranked:
        near = locate(repository, context, corpus, int(corpus.ids[each.row]), documents)
        assert near is not None, "what is in the index is in the store"
        score = with_recency(each.score, weight, near.document.modified_at, context.now)
        found.append((score, near))
        if context.should_yield():
            yield
    found.sort(key=lambda each: -each[0])
    results = []
    for score, near in found[: request.limit]:
        results.append(
            CodeFile(
                file_path=near.document.path,
                relevance_score=round(score, 4),
                line_range=[near.place.first_line, near.place.last_line],
                excerpt=excerpt(repository.passage(context, near).text, request.query),
                last_modified=to_datetime(near.document.modified_at),
            )
        )
        if context.should_yield():
            yield
    answer = FoundCode(results=results, total=total, unknown=unknown, cache_hit=False)
    while len(repository.code_answers) >= KEPT:
        del repository.code_answers[next(iter(repository.code_answers))]
    if not weight:  # what is late changes with the time
        repository.code_answers[asked] = answer
    return answer


def _ranked(
    repository: CorpusRepository, corpus: Any, request: FindCode, context: Context
) -> Slices[tuple[list[RankedFile], int, list[str]]]:
    """Return the best files, how many there are, and which words no file has."""
    from greenroom.actors.ranking.chunks import Chunks  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.ranking.documents import rank_chunks  # noqa: PLC0415 - as above
    from greenroom.actors.ranking.query import RankQuery  # noqa: PLC0415 - as above

    view = repository.view
    if view is None or not view.is_of(corpus):
        view = repository.view = Chunks(corpus)
    view = _narrowed(view, corpus, request.folder, request.filters)
    vectors = None
    if request.vectors is not None:
        vectors = request.vectors.in_space(embedding.serving(repository, context))
    many = request.limit * (_RECENT if request.filters.recency_weight else 1)
    query = RankQuery.read(request.query, vectors)
    ranked = yield from rank_chunks(
        view, query, context.should_yield, limit=many * _PASSAGES, least=request.min_relevance
    )
    best: dict[int, RankedFile] = {}
    for row, score in zip(ranked.rows.tolist(), ranked.scores.tolist(), strict=True):
        best.setdefault(int(view.corpus.author[row]), RankedFile(score, row))
    return list(best.values())[:many], max(len(best), ranked.total), list(ranked.unknown)


def _narrowed(view: Chunks, corpus: Any, folder: str, filters: CodeFilters) -> Chunks:
    """Return the passages of the files that are looked at."""
    is_wanted = wanted(folder, filters)
    if is_wanted is None:
        return view
    import numpy as np  # noqa: PLC0415 - as above

    from greenroom.actors.ranking.chunks import Chunks  # noqa: PLC0415 - as above

    files = np.fromiter(map(is_wanted, corpus.authors), np.bool_, len(corpus.authors))
    return Chunks(corpus, files[corpus.author])
