"""Completing the paths of a corpus's documents, and the symbols of a workspace."""

from __future__ import annotations

from collections.abc import Iterator

from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.facts import symbols_in
from greenroom.actors.knowledge.corpora.storage.records import DocumentSummary
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.corpora.tools.query_service import corpus_row
from greenroom.actors.schemas.completion import MAX_VALUES, Begun, FindNames, NameCompletion, NameKind
from greenroom.runtime import Context, Procedure, ProcedureContext, Refusal, Slices


class CompleteNames(Procedure[NameCompletion], frozen=True, kw_only=True):
    """Complete a path or a symbol of a corpus; there are none of one that the caller may not see."""

    corpus: CorpusName
    kind: NameKind
    value: Begun = ""
    path: Begun = ""

    async def run(self, context: ProcedureContext) -> NameCompletion:
        """Ask the corpus."""
        try:
            row = await corpus_row(context, self.corpus)
            request = FindNames(corpus=row.full_name, kind=self.kind, value=self.value, path=self.path)
            return await context.ask(corpus_address(row), request)
        except Refusal as refusal:
            if refusal.code != "CORPUS_NOT_FOUND":
                raise
            return NameCompletion(values=[], has_more=False)


def find(repository: CorpusRepository, request: FindNames, context: Context) -> Slices[NameCompletion]:
    """Answer names that begin like something, those first that do as a whole, short ones before long ones."""
    repository.check(context.principal, request.corpus)
    separator = "/" if request.kind == "path" else "."
    begun = composed(request.value).lower()
    found: dict[str, tuple[bool, int, str]] = {}
    has_more = False
    if request.kind == "path":
        looked_at = _paths(context)
    elif request.path:
        looked_at = _symbols_of(repository, request.path, context)
    else:
        looked_at = _symbols(context)
    for names in looked_at:
        for name in names:
            lowered = composed(name).lower()
            is_whole = lowered.startswith(begun)
            if is_whole or f"{separator}{begun}" in lowered:
                found[name] = (not is_whole, len(name), name)
        if len(found) > 2 * MAX_VALUES:
            has_more = True
            found = {name: found[name] for name in sorted(found, key=found.__getitem__)[:MAX_VALUES]}
        if context.should_yield():
            yield
    values = sorted(found, key=found.__getitem__)
    return NameCompletion(values=values[:MAX_VALUES], has_more=has_more or len(values) > MAX_VALUES)


def _paths(context: Context) -> Iterator[list[str]]:
    for _, document in context.scan(DocumentSummary, prefix=records.DOCUMENTS):
        yield [document.path]


def _symbols(context: Context) -> Iterator[list[str]]:
    for _, packed in context.scan(bytes, prefix=records.FACTS):
        yield [each.path for each in symbols_in(packed)]


def _symbols_of(repository: CorpusRepository, path: str, context: Context) -> Iterator[list[str]]:
    document = repository.find_document(context, path)
    packed = None if document is None else context.get(records.facts_key(document.number), bytes)
    if packed is not None:
        yield [each.path for each in symbols_in(packed)]
