"""Search in the corpus of a workspace: rank its files, read the best passage of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.replies.grades import Least, grade_of
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.corpus.said import rows_saying
from greenroom.actors.knowledge.corpora.handlers.chunks import locate
from greenroom.actors.knowledge.corpora.requests.code_filters import excerpt, recency, wanted, with_recency
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, Located
from greenroom.actors.schemas.code import CodeFile, CodeFilters, FindCode, FoundCode
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.ranking.code import RankedFile, RankedFiles
    from greenroom.actors.search.ranking.code_signals import SourceView
    from greenroom.actors.search.ranking.view import Mask

KEPT = 64
"""Answers that are kept for who asks the same again."""
_RECENT = 4
"""Files that are ranked for each that is wanted, where it counts when they were changed."""


def find(repository: CorpusRepository, request: FindCode, context: Context) -> Slices[FoundCode]:
    """Answer the best files."""
    repository.check(context.principal, request.corpus)
    asked = (context.principal.sight, msgspec.msgpack.encode(request))
    known = repository.code_answers.get(asked)
    if known is not None:
        return msgspec.structs.replace(known, cache_hit=True)
    yield from imported("greenroom.actors.ranking.code")
    corpus = yield from repository.index.loaded(context)
    weight = request.filters.recency_weight
    ranked, cut = yield from _ranked(repository, corpus, request, context)
    documents: dict[int, DocumentRecord] = {}
    found: list[tuple[float, Located, RankedFile]] = []
    for each in ranked.files:
        near = locate(repository, context, corpus, int(corpus.ids[each.rows[0]]), documents)
        assert near is not None, "what is in the index is in the store"
        late = recency(near.document.modified_at, context.now)
        score = with_recency(each.match, weight, late)
        found.append((score, near, each))
        if context.should_yield():
            yield
    enough = filter(lambda each: each[0] >= request.min_score, found)
    found = sorted(enough, key=lambda each: -each[0])

    def shown(relevance: float, score: float, near: Located) -> CodeFile:
        return CodeFile(
            file_path=near.document.path,
            relevance_score=round(relevance, 4),
            score=round(score, 4),
            grade=grade_of(relevance),
            line_range=[near.place.first_line, near.place.last_line],
            excerpt=excerpt(repository.passage(context, near).text, request.query, request.excerpt_bytes),
            last_modified=to_datetime(near.document.modified_at).replace(microsecond=0),
        )

    results = []
    for score, near, file in found[: request.limit]:
        results.append(shown(file.score, score, near))
        if context.should_yield():
            yield
    about = None
    if (told := ranked.about) is not None:
        first = int((corpus.alive & (corpus.author == told.row)).argmax())
        named = locate(repository, context, corpus, int(corpus.ids[first]), documents)
        assert named is not None, "what is in the index is in the store"
        about = (
            shown(told.score, told.match, named),
            NamedResult(score=round(told.score, 4), place=told.place, parts=dict(told.parts)),
        )
    answer = FoundCode(
        results=results,
        total=ranked.total,
        unknown=list(ranked.unknown),
        cache_hit=False,
        parts=[dict(file.parts) for _, _, file in found[: request.limit]],
        corrected={word: list(meant) for word, meant in ranked.corrected.items()},
        about=about,
        partial=cut,
    )
    while len(repository.code_answers) >= KEPT:
        del repository.code_answers[next(iter(repository.code_answers))]
    if not weight and not cut:  # what is late changes with the time, and another time more is read
        repository.code_answers[asked] = answer
    return answer


def _ranked(
    repository: CorpusRepository, corpus: Any, request: FindCode, context: Context
) -> Slices[tuple[RankedFiles, str]]:
    """Return the best files, more than are wanted where lateness counts, and what was not read."""
    from greenroom.actors.ranking.code import rank_files  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.search.ranking.code_query import CodeQuery  # noqa: PLC0415 - as above

    said = yield from rows_saying(repository, context, corpus, request.query)
    cut = "" if said is None else said.cut
    if said is not None and said.likeness:
        return _as_it_stands(corpus, said.likeness, request), cut
    many = _RECENT if request.filters.recency_weight else 1
    ranked = yield from rank_files(
        view_of(repository, corpus),
        CodeQuery.read(request.query),
        context.should_yield,
        limit=request.limit * many,
        least=Least(0.0 if request.filters.recency_weight else request.min_score, request.min_relevance),
        below=files_below(corpus, request.folder, request.filters),
        about=_file_named(corpus, request.about),
    )
    return ranked, cut


def _as_it_stands(corpus: Any, likeness: Mapping[int, float], request: FindCode) -> RankedFiles:
    """Rank files by the literal text of a query of stop words; exact matches come first."""
    from greenroom.actors.ranking.code import RankedFile, RankedFiles  # noqa: PLC0415 - needs numpy, loaded by now
    from greenroom.actors.ranking.sums import Asked  # noqa: PLC0415 - as above

    least = max(request.min_score, request.min_relevance)
    below = files_below(corpus, request.folder, request.filters)
    rows: dict[int, list[int]] = {}
    for row in sorted(likeness, key=lambda row: -likeness[row]):
        number = int(corpus.author[row])
        if likeness[row] >= least and (below is None or below[number]):
            rows.setdefault(number, []).append(row)
    files = [
        RankedFile(corpus.authors[number], likeness[some[0]], likeness[some[0]], some, {})
        for number, some in rows.items()
    ]
    told = None
    about = _file_named(corpus, request.about)
    if about is not None:
        score = likeness[rows[about][0]] if about in rows else 0.0
        told = Asked(about, score, score, list(rows).index(about) + 1 if about in rows else None, {})
    return RankedFiles(files[: request.limit], len(files), {}, (), 1.0, told)


def _file_named(corpus: Any, path: str) -> int | None:
    """Return the number of a file that is in the index; None for no path, and where it is not."""
    number: int | None = corpus.names["author"].find(path) if path else None
    if number is None or not (corpus.alive & (corpus.author == number)).any():
        return None
    return number


def view_of(repository: CorpusRepository, corpus: Any) -> SourceView:
    """Return what every search of the index as it is now needs."""
    from greenroom.actors.search.ranking.code_signals import SourceView  # noqa: PLC0415 - needs numpy, loaded by now

    view = repository.code_view
    if view is None or not view.is_of(corpus):
        view = repository.code_view = SourceView(corpus)
    return view


def files_below(corpus: Any, folder: str, filters: CodeFilters) -> Mask | None:
    """Return which files of an index are looked at, by number; None for all."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    is_wanted = wanted(folder, filters)
    if is_wanted is None:
        return None
    return np.fromiter(map(is_wanted, corpus.authors), np.bool_, len(corpus.authors))
