"""Search a workspace's corpus: rank its files, read the best passage of each file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from greenroom.actors.content.syntax.origins import NO_ORIGIN, Origin
from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.git.attributes import parse_rules
from greenroom.actors.core.replies.damage import add_damage, read_undamaged
from greenroom.actors.core.replies.grades import Least, grade_of
from greenroom.actors.core.replies.results_explained import NamedResult
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.handlers.chunks import find_literally, locate, render_each
from greenroom.actors.knowledge.corpora.requests.code_filters import (
    add_recency,
    compute_recency,
    cut_excerpt,
    make_filter,
)
from greenroom.actors.knowledge.corpora.requests.code_relations import FindSimilar, FoundSimilar, Similar
from greenroom.actors.knowledge.corpora.requests.code_requests import (
    CodeFile,
    CodeFilters,
    FindCode,
    FoundCode,
)
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, origin_key
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, Located
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.ranking.code import GetOrigin, RankedFile, RankedFiles
    from greenroom.actors.search.ranking.code_signals import SourceView
    from greenroom.actors.search.ranking.view import Mask

MAX_CACHED = 64
"""At most this many results are cached for repeated requests."""
_RECENT = 4
"""If recency counts, this many files are ranked for each wanted file."""


def find(repository: CorpusRepository, request: FindCode, context: Context) -> Slices[FoundCode]:
    """Return the best files."""
    repository.check(context.principal, request.corpus)
    cache_key = (context.principal.sight, msgspec.msgpack.encode(request))
    known = repository.code_answers.get(cache_key)
    if known is not None:
        return msgspec.structs.replace(known, cache_hit=True)
    yield from import_in_thread("greenroom.actors.search.ranking.code")
    corpus = yield from repository.index.loaded(context)
    weight = request.filters.recency_weight
    ranked, cut = yield from _rank(repository, corpus, request, context)
    documents: dict[int, DocumentRecord] = {}
    found: list[tuple[float, Located, RankedFile]] = []
    for each in ranked.files:
        near = read_undamaged(
            context, locate, repository, context, corpus, int(corpus.ids[each.rows[0]]), documents
        )
        if near is None:
            continue
        late = compute_recency(near.document.modified_at, context.now)
        score = add_recency(each.match, weight, late)
        found.append((score, near, each))
        yield
    enough = filter(lambda each: each[0] >= request.min_score, found)
    found = sorted(enough, key=lambda each: -each[0])

    def render(relevance: float, score: float, near: Located) -> CodeFile:
        return CodeFile(
            file_path=near.document.path,
            relevance_score=round(relevance, 4),
            score=round(score, 4),
            grade=grade_of(relevance),
            line_range=[near.place.first_line, near.place.last_line],
            excerpt=cut_excerpt(repository.passage(context, near).text, request.query, request.excerpt_bytes),
            last_modified=to_datetime(near.document.modified_at).replace(microsecond=0),
        )

    def render_named(ranked_file: Any) -> tuple[CodeFile, NamedResult]:
        first = int((corpus.alive & (corpus.author == ranked_file.row)).argmax())
        named = locate(repository, context, corpus, int(corpus.ids[first]), documents)
        assert named is not None, "what is in the index is known there"
        of_name = NamedResult(
            score=round(ranked_file.score, 4), place=ranked_file.place, parts=dict(ranked_file.parts)
        )
        return render(ranked_file.score, ranked_file.match, named), of_name

    best = found[: request.limit]
    results = yield from render_each(
        context, render, ((file.score, score, near) for score, near, file in best)
    )
    about = None if ranked.about is None else read_undamaged(context, render_named, ranked.about)
    cut = add_damage(context, cut)
    answer = FoundCode(
        results=list(results.values()),
        total=ranked.total,
        unknown=list(ranked.unknown),
        cache_hit=False,
        parts=[dict(file.parts) for at, (_, _, file) in enumerate(best) if at in results],
        corrected={word: list(meant) for word, meant in ranked.corrected.items()},
        about=about,
        partial=cut,
    )
    while len(repository.code_answers) >= MAX_CACHED:
        del repository.code_answers[next(iter(repository.code_answers))]
    if not weight and not cut:  # recency changes with time, and a cut result may be complete next time
        repository.code_answers[cache_key] = answer
    return answer


def _rank(
    repository: CorpusRepository, corpus: Any, request: FindCode, context: Context
) -> Slices[tuple[RankedFiles, str]]:
    """Rank files (more than wanted if recency counts); also return a text on unread passages."""
    from greenroom.actors.search.ranking.code import rank_files  # noqa: PLC0415 - needs numpy, which is already loaded
    from greenroom.actors.search.ranking.code_signals import CodeQuery  # noqa: PLC0415 - as above

    literal = yield from find_literally(repository, context, corpus, request.query)
    cut = "" if literal is None else literal.cut
    if literal is not None and literal.likeness:
        return _rank_literally(corpus, literal.likeness, request), cut
    many = _RECENT if request.filters.recency_weight else 1
    ranked = yield from rank_files(
        get_view(repository, corpus),
        CodeQuery.read(request.query),
        limit=request.limit * many,
        least=Least(0.0 if request.filters.recency_weight else request.min_score, request.min_relevance),
        below=select_files(corpus, request.folder, request.filters),
        about=_find_file(corpus, request.about),
        origin=_reads_origins(context, request.attributes),
    )
    return ranked, cut


def _reads_origins(context: Context, lines: tuple[str, ...]) -> GetOrigin:
    """Return what reads the origin of a file; ``lines`` are those of `FindCode.attributes`."""
    from greenroom.actors.search.ranking.code_origins import OriginOfFile  # noqa: PLC0415 - already loaded

    attributes = parse_rules(lines)

    def read(path: str, number: int) -> OriginOfFile:
        known = read_undamaged(context, context.get, origin_key(number), Origin)
        return OriginOfFile(
            path, known or NO_ORIGIN, attributes.is_generated(path), attributes.is_vendored(path)
        )

    return read


def _rank_literally(corpus: Any, likeness: Mapping[int, float], request: FindCode) -> RankedFiles:
    """Rank files by the literal text of a query of stop words, exact matches first."""
    from greenroom.actors.search.ranking.code import RankedFile, RankedFiles  # noqa: PLC0415 - needs numpy, which is already loaded
    from greenroom.actors.search.ranking.sums import RankedRow  # noqa: PLC0415 - as above

    least = max(request.min_score, request.min_relevance)
    below = select_files(corpus, request.folder, request.filters)
    rows: dict[int, list[int]] = {}
    for row in sorted(likeness, key=lambda row: -likeness[row]):
        number = int(corpus.author[row])
        if likeness[row] >= least and (below is None or below[number]):
            rows.setdefault(number, []).append(row)
    files = [
        RankedFile(corpus.authors[number], likeness[some[0]], likeness[some[0]], some, {})
        for number, some in rows.items()
    ]
    explained = None
    about = _find_file(corpus, request.about)
    if about is not None:
        score = likeness[rows[about][0]] if about in rows else 0.0
        explained = RankedRow(about, score, score, list(rows).index(about) + 1 if about in rows else None, {})
    return RankedFiles(files[: request.limit], len(files), {}, (), 1.0, explained)


def _find_file(corpus: Any, path: str) -> int | None:
    number: int | None = corpus.names["author"].find(path) if path else None
    if number is None or not (corpus.alive & (corpus.author == number)).any():
        return None
    return number


def get_view(repository: CorpusRepository, corpus: Any) -> SourceView:
    """Return the view of the current index that every search needs."""
    from greenroom.actors.search.ranking.code_signals import SourceView  # noqa: PLC0415 - needs numpy, which is already loaded

    view = repository.code_view
    if view is None or not view.is_of(corpus):
        view = repository.code_view = SourceView(corpus)
    return view


def select_files(corpus: Any, folder: str, filters: CodeFilters) -> Mask | None:
    """Return a mask of the files to search, by their numbers; None for all."""
    import numpy as np  # noqa: PLC0415 - already loaded

    is_wanted = make_filter(folder, filters)
    if is_wanted is None:
        return None
    return np.fromiter(map(is_wanted, corpus.authors), np.bool_, len(corpus.authors))


def find_similar(
    repository: CorpusRepository, request: FindSimilar, context: Context
) -> Slices[FoundSimilar | None]:
    """Return the files most similar to a file; None if that file is not indexed."""
    repository.check(context.principal, request.corpus)
    document = repository.document(context, request.path)
    if document is None:
        return None
    yield from import_in_thread("greenroom.actors.search.ranking.likeness")
    from greenroom.actors.search.ranking.likeness import count_terms, find_like_files  # noqa: PLC0415 - already loaded

    corpus = yield from repository.index.loaded(context)
    view = get_view(repository, corpus)
    terms = yield from count_terms(each.text for each in repository.all_passages(context, document))
    found = yield from find_like_files(
        view,
        document.path,
        terms,
        limit=request.limit,
        below=select_files(corpus, request.folder, request.filters),
    )
    files: list[Similar] = []
    for each in found:
        other = repository.document(context, each.path)
        assert other is not None, "what is in the index is in the store"
        files.append(
            Similar(
                path=each.path,
                signals=dict(each.signals),
                shared=list(each.shared),
                modified_at=to_datetime(other.modified_at),
                recency=compute_recency(other.modified_at, context.now),
            )
        )
        yield
    return FoundSimilar(files=files)
