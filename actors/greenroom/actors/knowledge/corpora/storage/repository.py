"""The documents of one corpus: its records, and the index that goes with them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import corpora, policy
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth.namespaces import PROJECT, project_of_path, segment
from greenroom.actors.core.auth.policy import ChangeLabel
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.auth.scopes import CODE, KNOWLEDGE
from greenroom.actors.core.base.unicode_forms import forms
from greenroom.actors.core.resources.resource_uris import (
    corpus_uri,
    document_uri,
    project_topic,
    workspace_uri,
)
from greenroom.actors.core.validation.times import optional_datetime
from greenroom.actors.corpus.preparing import indexed_chunk, rules_of
from greenroom.actors.index import Document as IndexedChunk
from greenroom.actors.index import MemoryIndex
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_not_found
from greenroom.actors.knowledge.corpora.requests.corpus_requests import FoundChunks, FreshnessView
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable
from greenroom.actors.knowledge.corpora.storage.readers import counted_reader, unread_by
from greenroom.actors.knowledge.corpora.storage.records import (
    ChunkPlace,
    CorpusHeader,
    DocumentRecord,
    DocumentSummary,
    Passage,
)
from greenroom.actors.schemas.code import FoundCode
from greenroom.runtime import Context, Slices, StoreDamagedError

if TYPE_CHECKING:
    from greenroom.actors.knowledge.corpora.requests.corpus_requests import Document
    from greenroom.actors.search.ranking.chunks import Chunks
    from greenroom.actors.search.ranking.code_signals import SourceView


_METADATA_BYTES: Final = 400
_FULL_BYTES: Final = 2_500
"""What a result takes in memory, about."""


class Located(NamedTuple):
    """A chunk: its document, and which of its chunks it is."""

    document: DocumentRecord
    number: int

    @property
    def place(self) -> ChunkPlace:
        """Where it stands."""
        return self.document.places[self.number]


class Run(NamedTuple):
    """How far somebody is who puts files in, and when that was said."""

    looked_at: int
    of: int
    at: int


class CorpusRepository:
    """What an activation of a corpus knows.

    Attributes:
        header: What holds for all of it.
        index: Of its chunks; ``author`` is the path of a chunk's document there, ``key`` the title and the
            headings, and the only tag the heading next above it.
        entities: What is declared of entities, and which chunks mention them.
        embedder_notified: Whether the embedder knows that chunks lack vectors.
        answers: Searches answered since the last change, by who asked and the requests.
        code_answers: Searches for code, likewise.
        view: What every search of the present index needs.
        code_view: What every search for code needs.
        runs: How far they are who put files in, by what tells them apart; see `ingest_runs`.
        readers: How many documents each reader read; None until somebody asks.
    """

    def __init__(self, context: Context) -> None:
        self.owner = corpora.owner_of(context.address.key)
        self.header = context.get(records.HEADER, CorpusHeader) or CorpusHeader()
        self.index = MemoryIndex(str, self.indexed, rules=lambda: rules_of(is_code=self.is_code), packed=True)
        self.entities = EntityTable()
        self.embedder_notified = False
        self.answers: dict[tuple[Principal | None, bytes], FoundChunks] = {}
        self.code_answers: dict[tuple[str, bytes], FoundCode] = {}
        self.view: Chunks | None = None
        self.code_view: SourceView | None = None
        self.runs: Mapping[str, Run] = {}
        self.readers: Counter[str] | None = None

    @property
    def is_code(self) -> bool:
        """Whether it is a workspace, whose chunks are source code."""
        return self.header.root is not None

    def check(self, principal: Principal, name: str) -> None:
        """Check that the sender may know of the corpus, and that it is there.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``: either is not so.
        """
        if not policy.may_see_corpus(principal, self.owner, self.header.root):
            raise auth_errors.denial(corpus_not_found(name))
        if self.header.is_dropped:
            raise corpus_not_found(name)

    def put_header(self, context: Context, header: CorpusHeader) -> None:
        """Stage what holds for all of it, and take note of it."""
        context.put(records.HEADER, header)
        self.header = header
        self.answers.clear()
        self.code_answers.clear()

    def count_reader(self, path: str, reader: str, sign: int) -> None:
        """Take note of a document that is put in, or that is gone."""
        if self.readers is not None:
            self.readers[counted_reader(path, reader)] += sign

    def unread(self, context: Context) -> Slices[dict[str, int]]:
        """Return how many documents were not read by their syntax, by `unread_by`."""
        if self.readers is None:
            counted: Counter[str] = Counter()
            for _, document in context.scan(DocumentSummary, prefix=records.DOCUMENTS):
                counted[counted_reader(document.path, document.reader)] += 1
                if context.should_yield():
                    yield
            self.readers = counted
        found: Counter[str] = Counter()
        for reader, count in self.readers.items():
            if count and (name := unread_by(reader)):
                found[name] += count
        return dict(found)

    def publish(self, context: Context, *paths: str) -> None:
        """Tell subscribers that the corpus changed, and which documents."""
        name, scope = self.header.name, None if self.header.root is None else CODE
        label = ChangeLabel(policy.PUBLIC, owner=self.owner, scope=scope)
        if name:
            context.publish(corpus_uri(name), label)
            if self.header.root is not None:
                context.publish(workspace_uri(name), label)
                context.publish(project_topic(segment(project_of_path(self.header.root)), CODE), label)
            if self.owner.startswith(PROJECT):
                needed = KNOWLEDGE if self.header.root is None else CODE
                context.publish(project_topic(self.owner[len(PROJECT) :], needed), label)
            for path in paths:
                context.publish(document_uri(name, path), label)

    def freshness(self, context: Context) -> FreshnessView:
        """Return how fresh the corpus is."""
        return FreshnessView(
            indexed_at=optional_datetime(self.header.indexed_at), waiting_for_vectors=waiting(context)
        )

    def document(self, context: Context, path: str) -> DocumentRecord | None:
        """Return the document with a path."""
        return context.get(records.path_key(path), DocumentRecord)

    def find_document(self, context: Context, path: str) -> DocumentRecord | None:
        """Return the document with a path; where there is none, the only one in other forms of Unicode.

        Two files may lie under two forms of a path, so each has a document of its own.
        """
        exact = self.document(context, path)
        if exact is not None or path.isascii():
            return exact
        others = [found for form in forms(path) if (found := self.document(context, form)) is not None]
        return others[0] if len(others) == 1 else None

    def by_number(self, context: Context, number: int) -> DocumentRecord | None:
        """Return the document with a number."""
        where = context.get(records.number_key(number), bytes)
        return None if where is None else context.get(where, DocumentRecord)

    def passages(self, context: Context, document: DocumentRecord, block: int) -> list[Passage]:
        """Return the chunks of one block of a document."""
        stored = context.get(records.text_key(document.number, block), bytes)
        if stored is None:
            raise StoreDamagedError(f"a text of the document {document.path!r} is missing")
        return records.unpacked(stored)

    def passage(self, context: Context, located: Located) -> Passage:
        """Return what a chunk says."""
        block = bisect_right(located.document.blocks, located.number) - 1
        found = self.passages(context, located.document, block)
        return found[located.number - located.document.blocks[block]]

    def indexed(self, context: Context, without: Collection[int] = ()) -> Iterator[IndexedChunk | None]:
        """Yield the chunks that the index has to have, and None when the slice is over.

        Args:
            context: Where they are.
            without: Numbers of documents that are passed over.
        """
        for _, document in context.scan(DocumentRecord, prefix=records.DOCUMENTS):
            if document.number in without:
                continue
            ends = [*document.blocks[1:], len(document.places)]
            for block, (start, end) in enumerate(zip(document.blocks, ends, strict=True)):
                passages = self.passages(context, document, block)
                for place, passage in zip(document.places[start:end], passages, strict=True):
                    yield indexed_chunk(document, place.id, passage, is_code=self.is_code)
                if context.should_yield():
                    yield None

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        answers = sum(map(_answer_bytes, self.answers.values()))
        return self.index.resident_bytes() + self.entities.resident_bytes() + answers


def waiting(context: Context) -> int:
    """Return how many chunks have no vectors yet, about."""
    return 0 if context.sidecar is None else int(context.sidecar.waiting(context.address))


def _answer_bytes(answer: FoundChunks) -> int:
    """Return about how much memory an answer takes: passages in full take most of it."""
    is_full = any(result.chunk_text is not UNSET for result in answer.results[:1])
    return 1_000 + (_FULL_BYTES if is_full else _METADATA_BYTES) * len(answer.results)


def context_header(document: Document | DocumentRecord, passage: Passage) -> str:
    """Return a document's title and the headings above a chunk."""
    headings = passage.headings
    first = [] if headings and headings[0] == document.title else [document.title]
    return " > ".join(each for each in [*first, *headings] if each)


def embedded(document: Document | DocumentRecord, passage: Passage) -> str:
    """Return the text of a chunk that is embedded."""
    return f"{context_header(document, passage)}\n{passage.text}"


def moved(header: CorpusHeader, document: DocumentRecord, sign: int) -> CorpusHeader:
    """Return a header with a document more, or less."""
    return msgspec.structs.replace(
        header,
        documents=header.documents + sign,
        chunks=header.chunks + sign * len(document.places),
        file_bytes=header.file_bytes + sign * document.file_bytes,
        text_bytes=header.text_bytes + sign * document.text_bytes,
        stored_bytes=header.stored_bytes + sign * document.stored_bytes,
    )
