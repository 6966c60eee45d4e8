"""Files of a workspace that are like one of it, as its index says it."""

from __future__ import annotations

from collections.abc import Iterator

from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.corpus.code_search import files_below, view_of
from greenroom.actors.knowledge.corpora.requests.code_filters import recency
from greenroom.actors.knowledge.corpora.requests.code_relations import FindSimilar, FoundSimilar, Similar
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.runtime import Context, Slices


def find(repository: CorpusRepository, request: FindSimilar, context: Context) -> Slices[FoundSimilar | None]:
    """Answer the files that are most like one; None where that one is not in the index."""
    repository.check(context.principal, request.corpus)
    document = repository.document(context, request.path)
    if document is None:
        return None
    yield from imported("greenroom.actors.search.ranking.likeness")
    from greenroom.actors.search.ranking.likeness import like_files, said_in  # noqa: PLC0415 - loaded by now

    corpus = yield from repository.index.loaded(context)
    view = view_of(repository, corpus)
    terms = yield from said_in(_texts(repository, document, context), context.should_yield)
    found = yield from like_files(
        view,
        document.path,
        terms,
        context.should_yield,
        limit=request.limit,
        below=files_below(corpus, request.folder, request.filters),
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
                recency=recency(other.modified_at, context.now),
            )
        )
        if context.should_yield():
            yield
    return FoundSimilar(files=files)


def _texts(repository: CorpusRepository, document: DocumentRecord, context: Context) -> Iterator[str]:
    """Yield the passages of a file."""
    for block in range(len(document.blocks)):
        yield from (each.text for each in repository.passages(context, document, block))
