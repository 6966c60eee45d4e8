"""The documents of one corpus: its records and its index."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import UNSET

from greenroom.actors.content.documents import MASKING, mask_text
from greenroom.actors.core.auth import corpora, policy
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.namespaces import PROJECT, segment
from greenroom.actors.core.auth.policy import ChangeLabel
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import CODE, KNOWLEDGE
from greenroom.actors.core.base.unicode_forms import forms
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.core.replies.damage import damaged_entry
from greenroom.actors.core.resources.resource_uris import (
    corpus_uri,
    document_uri,
    project_topic,
    workspace_uri,
)
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_not_found
from greenroom.actors.knowledge.corpora.requests.code_requests import FoundCode
from greenroom.actors.knowledge.corpora.requests.corpus_requests import FoundChunks, FreshnessView
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable
from greenroom.actors.knowledge.corpora.storage.file_names import unpack_names
from greenroom.actors.knowledge.corpora.storage.preparation import get_rules, make_indexed
from greenroom.actors.knowledge.corpora.storage.readers import reader_to_count, unread_by
from greenroom.actors.knowledge.corpora.storage.records import (
    ChunkPlace,
    CorpusHeader,
    DocumentRecord,
    DocumentSummary,
    Passage,
)
from greenroom.actors.search.index import Document as IndexedChunk
from greenroom.actors.search.index import MemoryIndex
from greenroom.runtime import Actor, Context, RecordDamagedError, Slices, StoreDamagedError, pass_over

if TYPE_CHECKING:
    from greenroom.actors.content.documents.document_types import Document
    from greenroom.actors.knowledge.corpora.storage.symbol_table import SymbolTable
    from greenroom.actors.search.ranking.chunks import Chunks
    from greenroom.actors.search.ranking.code_signals import SourceView


_METADATA_BYTES: Final = 400
_FULL_BYTES: Final = 2_500
"""Estimated memory of one result."""
_PATH_BYTES: Final = 250
"""Estimated memory of a document's path."""


class Located(NamedTuple):
    """A chunk, as its document and its number in the document."""

    document: DocumentRecord
    number: int

    @property
    def place(self) -> ChunkPlace:
        """The chunk's place in the file."""
        return self.document.places[self.number]


class Run(NamedTuple):
    """Progress of an ingest run, and the time of the report."""

    looked_at: int
    of: int
    at: int


class CorpusRepository(Actor):
    """The state of an active corpus.

    Attributes:
        index: The index of the corpus's chunks. ``author`` is the path of a chunk's document, ``key`` is the
            title and the headings, and the only tag is the nearest heading.
        answers: Cached results since the last change, by principal and request.
        runs: Progress of ingest runs by id; see `ingest_runs`.
        readers: The number of documents that each reader has read; None until needed.
        paths: The paths of documents by number; None until needed.
        unmasked: The numbers of those among them that `is_unmasked` tells.
        symbols: The table of a workspace's names; None until needed.
    """

    def activate(self, context: Context) -> None:
        """Read the header; everything else stays on disk."""
        self.owner = corpora.owner_of(context.address.key)
        self.header = context.get(records.HEADER, CorpusHeader) or CorpusHeader()
        self.index = MemoryIndex(
            str, self.iterate_chunks, rules=lambda: get_rules(is_code=self.is_code), packed=True
        )
        self.entities = EntityTable()
        self.embedder_notified = False
        self.answers: dict[tuple[Principal | None, bytes], FoundChunks] = {}
        self.code_answers: dict[tuple[str, bytes], FoundCode] = {}
        self.view: Chunks | None = None
        self.code_view: SourceView | None = None
        self.runs: Mapping[str, Run] = {}
        self.readers: Counter[str] | None = None
        self.paths: dict[int, str] | None = None
        self.unmasked: set[int] = set()
        self.symbols: SymbolTable | None = None

    @property
    def is_code(self) -> bool:
        """Whether the corpus is a workspace, so that its chunks have source code."""
        return self.header.root is not None

    def check(self, principal: Principal, name: str) -> None:
        """Refuse a sender who may not see the corpus; refuse everyone if it is dropped."""
        if not policy.may_see_corpus(principal, self.owner, self.header.root):
            raise auth_errors.denial(corpus_not_found(name))
        if self.header.is_dropped:
            raise corpus_not_found(name)

    def put_header(self, context: Context, header: CorpusHeader) -> None:
        """Stage the header, and keep it."""
        context.put(records.HEADER, header)
        self.header = header
        self.answers.clear()
        self.code_answers.clear()

    def count_reader(self, path: str, reader: str, sign: int) -> None:
        """Count a document for its reader; ``sign`` is 1 when added, -1 when removed."""
        if self.readers is not None:
            self.readers[reader_to_count(path, reader)] += sign

    def note_names(self, number: int, document: DocumentRecord | None, facts: bytes | None) -> None:
        """Update the tables of paths and names; without a document, it is removed."""
        if self.paths is not None:
            self.paths.pop(number, None)
            self.unmasked.discard(number)
            if document is not None:
                self._note_path(document)
        table = self.symbols
        if table is not None and (table.loaded is None or number < table.loaded):
            table.put(number, None if facts is None else unpack_names(facts))

    def list_paths(self, context: Context) -> Slices[dict[int, str]]:
        """Return the paths of all documents by number; a damaged record's path is missing."""
        paths = self.paths
        if paths is None:
            paths = self.paths = {}
            self.unmasked.clear()
            is_whole = False
            try:
                documents = context.scan(DocumentSummary, prefix=records.DOCUMENTS, on_damage=pass_over)
                for _, document in documents:
                    self._note_path(document)
                    yield
                is_whole = True
            finally:
                self.paths = paths if is_whole else None
        return paths

    def _note_path(self, document: DocumentRecord | DocumentSummary) -> None:
        assert self.paths is not None, "this is known"
        self.paths[document.number] = document.path
        if self.is_unmasked(document):
            self.unmasked.add(document.number)

    def unread(self, context: Context) -> Slices[dict[str, int]]:
        """Return how many documents were not parsed, for each value of `unread_by`."""
        if self.readers is None:
            counted: Counter[str] = Counter()
            documents = context.scan(DocumentSummary, prefix=records.DOCUMENTS, on_damage=pass_over)
            for _, document in documents:
                counted[reader_to_count(document.path, document.reader)] += 1
                yield
            self.readers = counted
        found: Counter[str] = Counter()
        for reader, count in self.readers.items():
            if count and (name := unread_by(reader)):
                found[name] += count
        return dict(found)

    def publish(self, context: Context, *paths: str) -> None:
        """Notify subscribers that the corpus and some documents changed."""
        name, scope = self.header.name, None if self.header.root is None else CODE
        label = ChangeLabel(policy.PUBLIC, owner=self.owner, scope=scope)
        if name:
            context.publish(corpus_uri(name), label)
            if self.header.root is not None:
                context.publish(workspace_uri(name), label)
                for project in sorted({self.header.project, project_of_path(self.header.root)} - {""}):
                    context.publish(project_topic(segment(project), CODE), label)
            if self.owner.startswith(PROJECT):
                needed = KNOWLEDGE if self.header.root is None else CODE
                context.publish(project_topic(self.owner[len(PROJECT) :], needed), label)
            for path in paths:
                context.publish(document_uri(name, path), label)

    def freshness(self, context: Context) -> FreshnessView:
        """Return the freshness of the corpus."""
        return FreshnessView(
            indexed_at=optional_datetime(self.header.indexed_at), waiting_for_vectors=count_waiting(context)
        )

    def document(self, context: Context, path: str) -> DocumentRecord | None:
        """Return the document with a path."""
        try:
            return context.get(records.path_key(path), DocumentRecord)
        except RecordDamagedError as error:
            raise damaged_entry(error, "the document", document=path) from error

    def find_number(self, context: Context, path: str) -> int | None:
        """Return the number of the document with a path."""
        try:
            found = context.get(records.path_key(path), DocumentSummary)
        except RecordDamagedError as error:
            raise damaged_entry(error, "the document", document=path) from error
        return None if found is None else found.number

    def find_document(self, context: Context, path: str) -> DocumentRecord | None:
        """Return a path's document, or the only document whose path differs in Unicode form."""
        exact = self.document(context, path)
        if exact is not None or path.isascii():
            return exact
        others = [found for form in forms(path) if (found := self.document(context, form)) is not None]
        return others[0] if len(others) == 1 else None

    def by_number(self, context: Context, number: int) -> DocumentRecord | None:
        """Return the document with a number."""
        try:
            where = context.get(records.number_key(number), bytes)
        except RecordDamagedError:
            documents = context.scan(DocumentSummary, prefix=records.DOCUMENTS, on_damage=pass_over)
            where = next((key for key, each in documents if each.number == number), None)
        try:
            return None if where is None else context.get(where, DocumentRecord)
        except RecordDamagedError as error:
            raise damaged_entry(error, "a document") from error

    def passages(self, context: Context, document: DocumentRecord, block: int) -> list[Passage]:
        """Return the chunks of one block of a document; secrets in code are masked."""
        found = self.stored_passages(context, document, block)
        if not self.is_unmasked(document):
            return found
        return [Passage(mask_text(each.text), list(map(mask_text, each.headings))) for each in found]

    def all_passages(self, context: Context, document: DocumentRecord) -> Iterator[Passage]:
        """Yield all chunks of a document in the form of `passages`."""
        for block in range(len(document.blocks)):
            yield from self.passages(context, document, block)

    def is_unmasked(self, document: DocumentRecord | DocumentSummary) -> bool:
        """Return whether an older version stored a workspace's file unmasked."""
        return self.is_code and document.masking < MASKING

    def stored_passages(self, context: Context, document: DocumentRecord, block: int) -> list[Passage]:
        """Return the chunks of one block of a document as they are stored and indexed."""
        try:
            stored = context.get(records.text_key(document.number, block), bytes)
        except RecordDamagedError as error:
            raise damaged_entry(error, "a text of the document", document=document.path) from error
        if stored is None:
            raise StoreDamagedError(f"a text of the document {document.path!r} is missing")
        return records.unpack_block(stored)

    def passage(self, context: Context, located: Located) -> Passage:
        """Return the text and headings of a chunk."""
        block = bisect_right(located.document.blocks, located.number) - 1
        found = self.passages(context, located.document, block)
        return found[located.number - located.document.blocks[block]]

    def iterate_chunks(
        self, context: Context, without: Collection[int] = ()
    ) -> Iterator[IndexedChunk | None]:
        """Yield the chunks that the index must have; yield None where the caller may pause."""
        for _, document in context.scan(DocumentRecord, prefix=records.DOCUMENTS):
            if document.number in without:
                continue
            ends = [*document.blocks[1:], len(document.places)]
            for block, (start, end) in enumerate(zip(document.blocks, ends, strict=True)):
                passages = self.stored_passages(context, document, block)
                for place, passage in zip(document.places[start:end], passages, strict=True):
                    yield make_indexed(document, place.id, passage, is_code=self.is_code)
                yield None

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        answers = sum(map(_answer_bytes, self.answers.values()))
        tables = _PATH_BYTES * len(self.paths or ()) + (0 if self.symbols is None else self.symbols.bytes)
        return self.size + self.index.resident_bytes() + self.entities.resident_bytes() + answers + tables


def count_waiting(context: Context) -> int:
    """Return roughly how many chunks have no vectors yet."""
    return 0 if context.sidecar is None else int(context.sidecar.waiting(context.address))


def _answer_bytes(answer: FoundChunks) -> int:
    is_full = any(result.chunk_text is not UNSET for result in answer.results[:1])
    return 1_000 + (_FULL_BYTES if is_full else _METADATA_BYTES) * len(answer.results)


def context_header(document: Document | DocumentRecord, passage: Passage) -> str:
    """Return a document's title and the headings above a chunk."""
    headings = passage.headings
    first = [] if headings and headings[0] == document.title else [document.title]
    return " > ".join(each for each in [*first, *headings] if each)


def text_to_embed(document: Document | DocumentRecord, passage: Passage) -> str:
    """Return the text of a chunk to embed."""
    return f"{context_header(document, passage)}\n{passage.text}"


def count_document(header: CorpusHeader, document: DocumentRecord, sign: int) -> CorpusHeader:
    """Return a header with one document added or subtracted."""
    return msgspec.structs.replace(
        header,
        documents=header.documents + sign,
        chunks=header.chunks + sign * len(document.places),
        file_bytes=header.file_bytes + sign * document.file_bytes,
        text_bytes=header.text_bytes + sign * document.text_bytes,
        stored_bytes=header.stored_bytes + sign * document.stored_bytes,
    )
