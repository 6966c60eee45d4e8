"""Complete the paths of a corpus's documents, and the symbols of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusName
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.facts import unpack_symbols
from greenroom.actors.knowledge.corpora.storage.records import DocumentSummary
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.corpora.tools.query_service import find_row
from greenroom.runtime import Context, Message, Procedure, ProcedureContext, Refusal, Slices, pass_over

MAX_VALUES: Final = 100
"""The limit of MCP."""
NameKind = Literal["path", "symbol"]
Begun = Annotated[str, Meta(max_length=4_096, description="what is typed so far")]


class NameCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """Possible names, the likeliest first, and whether there may be more."""

    values: list[str]
    has_more: bool


class FindNames(Message[NameCompletion], frozen=True, kw_only=True):
    """Find names by the beginning of the name or a part; not a tool.

    For symbols, it searches the document at ``path``; without a path, all documents.
    """

    corpus: CorpusName
    kind: NameKind
    value: Begun = ""
    path: Begun = ""


class CompleteNames(Procedure[NameCompletion], frozen=True, kw_only=True):
    """Complete a path or a symbol of a corpus; a hidden corpus has none."""

    corpus: CorpusName
    kind: NameKind
    value: Begun = ""
    path: Begun = ""

    async def run(self, context: ProcedureContext) -> NameCompletion:
        """Ask the corpus."""
        try:
            row = await find_row(context, self.corpus)
            request = FindNames(corpus=row.full_name, kind=self.kind, value=self.value, path=self.path)
            return await context.ask(corpus_address(row), request)
        except Refusal as refusal:
            if refusal.code != "CORPUS_NOT_FOUND":
                raise
            return NameCompletion(values=[], has_more=False)


def find(repository: CorpusRepository, request: FindNames, context: Context) -> Slices[NameCompletion]:
    """Find names in which a part begins with a text; short names come first."""
    repository.check(context.principal, request.corpus)
    separator = "/" if request.kind == "path" else "."
    begun = compose(request.value).lower()
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
            lowered = compose(name).lower()
            is_whole = lowered.startswith(begun)
            if is_whole or f"{separator}{begun}" in lowered:
                found[name] = (not is_whole, len(name), name)
        if len(found) > 2 * MAX_VALUES:
            has_more = True
            found = {name: found[name] for name in sorted(found, key=found.__getitem__)[:MAX_VALUES]}
        yield
    values = sorted(found, key=found.__getitem__)
    return NameCompletion(values=values[:MAX_VALUES], has_more=has_more or len(values) > MAX_VALUES)


def _paths(context: Context) -> Iterator[list[str]]:
    documents = context.scan(DocumentSummary, prefix=records.DOCUMENTS, on_damage=pass_over)
    for _, document in documents:
        yield [document.path]


def _symbols(context: Context) -> Iterator[list[str]]:
    for _, packed in context.scan(bytes, prefix=records.FACTS, on_damage=pass_over):
        yield [each.path for each in unpack_symbols(packed)]


def _symbols_of(repository: CorpusRepository, path: str, context: Context) -> Iterator[list[str]]:
    document = repository.find_document(context, path)
    packed = None if document is None else context.get(records.facts_key(document.number), bytes)
    if packed is not None:
        yield [each.path for each in unpack_symbols(packed)]
