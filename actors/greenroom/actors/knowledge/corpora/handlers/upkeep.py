"""Maintain a corpus: compact its index, erase a person's data, verify the corpus.

A corpus has texts, counts, mentions and an index; all but the texts can be rebuilt from the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.knowledge.corpora.handlers import embedding
from greenroom.actors.knowledge.corpora.handlers.indexing import SWEEP
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import (
    CorpusVerified,
    NextChunk,
    VerifyCorpus,
)
from greenroom.actors.knowledge.corpora.storage import entity_records, mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable, can_match
from greenroom.actors.knowledge.corpora.storage.preparation import make_indexed
from greenroom.actors.knowledge.corpora.storage.records import CorpusHeader, DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, count_document
from greenroom.actors.search.index import Document as IndexedChunk
from greenroom.actors.search.index import TidyIndex
from greenroom.actors.search.index import index as index_module
from greenroom.runtime import (
    Context,
    GreenroomError,
    Procedure,
    ProcedureContext,
    Restate,
    Slices,
    StoreDamagedError,
)

_MOST: Final = 100
"""At most this many problems with documents are listed."""
_AT_ONCE: Final = 500
"""One message of an erasure deletes at most this many records."""


def erase(repository: CorpusRepository, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Erase a person's corpus in steps, or count its documents in a dry run."""
    if not request.person.has_root(context.address.key):
        return ErasedPart(counts={})
    documents = repository.header.documents
    counts = {"documents": documents} if documents else {}
    if request.dry_run:
        return ErasedPart(counts=counts)
    context.use_reserve()
    most = context.most_rows(_AT_ONCE)
    keys = [key for key, _ in islice(context.scan(msgspec.Raw), most)]
    if not repository.header.is_dropped:
        embedding.unmark(repository, context)
        repository.index.unload()
        context.cancel_timer(index_module.TIMER)
    context.cancel_timer(SWEEP)
    context.cancel_timer(mentions.TIMER)
    # The header is deleted last: until then, it marks the corpus as dropped.
    for key in keys:
        context.delete(key)
        yield
    repository.header = records.CorpusHeader(is_dropped=True)
    repository.answers.clear()
    repository.entities = EntityTable()
    repository.runs = {}
    remaining = len(keys) == most
    if remaining:
        context.put(records.HEADER, repository.header)
    return ErasedPart(counts=counts, remaining=remaining)


def next_chunk(repository: CorpusRepository, _: NextChunk, __: Context) -> int:
    """Return the number of the next chunk."""
    return repository.header.next_chunk


def tidy(repository: CorpusRepository, _: TidyIndex, context: Context) -> Slices[None]:
    """Do one step of compacting the index."""
    if not repository.header.is_dropped:
        yield from repository.index.compact(context)


def restate(repository: CorpusRepository, _: Restate, context: Context) -> None:
    """Write the embedder's index rows again."""
    context.use_reserve()
    embedding.restate(repository, context)


class CorporaVerified(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a verification; each of ``problems`` is a corpus's name and a sentence."""

    chunks: int
    problems: list[tuple[str, str]]
    rebuilt: list[str]


class VerifyCorpora(Procedure[CorporaVerified], frozen=True, kw_only=True):
    """Compare every corpus's index, counts and mentions with its texts; operator only."""

    rebuild: bool = False

    async def run(self, context: ProcedureContext) -> CorporaVerified:
        """Verify one corpus after the other, since each may have to read all its records."""
        chunks = 0
        problems: list[tuple[str, str]] = []
        rebuilt: list[str] = []
        for row in await context.query(AllCorpora()):
            try:
                found = await context.ask(corpus_address(row), VerifyCorpus(rebuild=self.rebuild))
            except GreenroomError as error:
                problems.append((row.full_name, str(error)))
                continue
            chunks += found.chunks
            problems += [(row.full_name, problem) for problem in found.problems]
            if found.rebuilt:
                rebuilt.append(row.full_name)
        return CorporaVerified(chunks=chunks, problems=problems, rebuilt=rebuilt)


def verify(repository: CorpusRepository, request: VerifyCorpus, context: Context) -> Slices[CorpusVerified]:
    """Compare a corpus with its texts; if `rebuild` is set, repair the differences."""
    if repository.header.is_dropped:
        return CorpusVerified(chunks=0, problems=[], rebuilt=False)
    yield from repository.entities.load(context)
    found = _Pass(repository, context)
    chunks = found.chunks()
    problems = yield from repository.index.check(context, chunks, "chunk")
    for each in chunks:  # the chunks that the index did not compare
        if each is None:
            yield
    yield from found.end()
    problems = [*found.sentences(), *problems]
    rebuilt = bool(problems) and request.rebuild
    if rebuilt:
        yield from repository.index.rebuild(context, repository.iterate_chunks(context, found.lost))
        found.repair()
    return CorpusVerified(chunks=found.header.chunks, problems=problems, rebuilt=rebuilt and not found.lost)


class _Pass:
    """One pass over the documents of a corpus; it collects problems.

    Attributes:
        header: The corpus's header with new counts.
        lost: Numbers of documents with damaged texts; these cannot be repaired.
    """

    def __init__(self, repository: CorpusRepository, context: Context) -> None:
        self.header = msgspec.structs.replace(
            repository.header, documents=0, chunks=0, file_bytes=0, text_bytes=0, stored_bytes=0
        )
        self.lost: set[int] = set()
        self._repository = repository
        self._context = context
        self._keys: dict[int, bytes] = {}
        self._unnumbered: list[int] = []
        self._strays: list[bytes] = []
        self._differs = False
        self._problems: list[str] = []
        self._count = 0

    def chunks(self) -> Iterator[IndexedChunk | None]:
        """Yield the chunks that the index must have; yield None where the caller may pause."""
        for key, document in self._context.scan(DocumentRecord, prefix=records.DOCUMENTS):
            self._keys[document.number] = key
            self._note(document)
            if self._context.get(records.number_key(document.number), bytes) != key:
                self._unnumbered.append(document.number)
                self._add(f"the document {document.path!r} is not found by its number")
            passages = self._passages(document)
            if passages is None:
                self.lost.add(document.number)
                self._add(
                    f"the document {document.path!r} lacks some of its text: remove it, and put it in again"
                )
                continue
            yield from self._compare_mentions(document, passages)
            for place, passage in zip(document.places, passages, strict=True):
                yield make_indexed(document, place.id, passage, is_code=self._repository.is_code)
                yield None

    def end(self) -> Slices[None]:
        """After all documents, check the other records."""
        for prefix in (records.NUMBERS, entity_records.MENTIONS):
            for key, _ in self._context.scan(msgspec.Raw, prefix=prefix):
                if int.from_bytes(key[len(prefix) :]) not in self._keys:
                    self._strays.append(key)
                yield
        if self._strays:
            self._add(f"there are {len(self._strays):,} records of documents that are not there")
        stored = self._repository.header
        wrong = [
            name
            for name in CorpusHeader.__struct_fields__
            if getattr(stored, name) != getattr(self.header, name)
        ]
        if wrong:
            self._add(f"what it says of itself is not so: {', '.join(wrong)}")

    def sentences(self) -> list[str]:
        more = self._count - len(self._problems)
        return [*self._problems, f"and {more:,} more"] if more else self._problems

    def repair(self) -> None:
        """Stage repairs, but not of lost texts; match mentions again."""
        repository, context = self._repository, self._context
        for number in self._unnumbered:
            context.put(records.number_key(number), self._keys[number])
        for key in self._strays:
            context.delete(key)
        repository.put_header(context, self.header)
        repository.entities.unload_mentions()
        if self._differs:
            mentions.start(repository, context)

    def _note(self, document: DocumentRecord) -> None:
        ids = [place.id + 1 for place in document.places]
        self.header = msgspec.structs.replace(
            count_document(self.header, document, 1),
            next_document=max(self.header.next_document, document.number + 1),
            next_chunk=max([self.header.next_chunk, *ids]),
        )

    def _passages(self, document: DocumentRecord) -> list[Passage] | None:
        try:
            passages = [
                passage
                for block in range(len(document.blocks))
                for passage in self._repository.stored_passages(self._context, document, block)
            ]
        except (StoreDamagedError, ValueError):  # a record is missing or wrong
            return None
        size = sum(len(passage.text.encode()) for passage in passages)
        is_whole = (len(passages), size) == (len(document.places), document.text_bytes)
        return passages if is_whole else None

    def _compare_mentions(self, document: DocumentRecord, passages: list[Passage]) -> Slices[None]:
        table = self._repository.entities
        first = table.header.matched_to
        if not can_match() or (first is not None and document.number >= first):
            return  # the document's names are not matched yet
        fresh = yield from mentions.match_document(self._repository, document, passages)
        if not table.has_mentions(self._context, document.number, fresh):
            self._differs = True
            self._add(f"what the document {document.path!r} mentions is not what is found in it")

    def _add(self, sentence: str) -> None:
        self._count += 1
        if self._count <= _MOST:
            self._problems.append(sentence)
