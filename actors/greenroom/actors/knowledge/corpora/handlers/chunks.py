"""Reading chunks: where one is by its id, what it says, and what stands around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from greenroom.actors.core.replies.grades import grade_of
from greenroom.actors.knowledge.corpora.requests import corpus_requests as replies
from greenroom.actors.knowledge.corpora.storage.entity_records import EntityRecord
from greenroom.actors.knowledge.corpora.storage.records import ChunkPlace, DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, Located, context_header
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus


def locate(
    repository: CorpusRepository,
    context: Context,
    corpus: Corpus,
    id: int,
    known: dict[int, DocumentRecord] | None = None,
) -> Located | None:
    """Return a chunk by its number, None for an unknown one; ``known`` documents are not read again."""
    row = corpus.row(id)
    if row is None:
        return None
    number = int(corpus.numbers[row])
    document = None if known is None else known.get(number)
    if document is None:
        document = repository.by_number(context, number)
        assert document is not None, "what is in the index is in the store"
        if known is not None:
            known[number] = document
    places = document.places
    guess = id - places[0].id  # of a document that was put in once
    if not (0 <= guess < len(places) and places[guess].id == id):
        guess = next(at for at, place in enumerate(places) if place.id == id)
    return Located(document, guess)


def read(
    repository: CorpusRepository, request: replies.ReadChunks, context: Context
) -> Slices[replies.ReadContent]:
    """Answer chunks in full, and which ids are unknown."""
    repository.check(context.principal, request.corpus)
    corpus = yield from repository.index.loaded(context)
    yield from repository.entities.loaded(context)
    chunks: list[replies.ChunkContent] = []
    unknown: list[int] = []
    documents: dict[int, DocumentRecord] = {}
    for asked in dict.fromkeys(request.chunk_ids):
        prefix, number = replies.split_id(asked)
        is_own = prefix == request.id_prefix
        located = locate(repository, context, corpus, number, documents) if is_own else None
        if located is None:
            unknown.append(asked)
        else:
            chunks.append(_content(repository, context, located, request))
        if context.should_yield():
            yield
    return replies.ReadContent(
        chunks=chunks,
        unknown=unknown,
        freshness=repository.freshness(context),
        files=files_of(documents.values()),
    )


def files_of(documents: Iterable[DocumentRecord]) -> list[replies.IndexedFile]:
    """Return the files that documents were read from."""
    return [
        replies.IndexedFile(each.path, each.digest.hex(), each.file_bytes, each.modified_at)
        for each in documents
        if each.is_file
    ]


def citation(document: DocumentRecord, place: ChunkPlace) -> str:
    """Return where a chunk begins, as one cites it."""
    if place.page is not None:
        return f"{document.path}#page={place.page}"
    return f"{document.path}:{place.first_line}" if place.first_line else document.path


def section(document: DocumentRecord, passage: Passage) -> str:
    """Return the nearest heading above a chunk."""
    return passage.headings[-1] if passage.headings else document.title


def _content(
    repository: CorpusRepository, context: Context, located: Located, request: replies.ReadChunks
) -> replies.ChunkContent:
    document = located.document
    first = max(0, located.number - request.around)
    last = min(len(document.places) - 1, located.number + request.around)
    numbers = range(first, last + 1)
    passages = {number: repository.passage(context, Located(document, number)) for number in numbers}
    own = passages[located.number]
    places = [document.places[number] for number in numbers]
    speaks_of = repository.entities.of_chunk(context, document.number, located.place.id)
    return replies.ChunkContent(
        chunk_id=replies.chunk_id(request.id_prefix, located.place.id),
        entity_id=speaks_of[0].id if speaks_of else None,
        source_file=document.path,
        entity_type=speaks_of[0].type if speaks_of else None,
        chunk_text=joined([passages[number] for number in numbers]),
        context_header=context_header(document, own),
        vendor_names=[entity.name for entity in speaks_of],
        section_title=section(document, own),
        citation=citation(document, places[0]),
        last_line=UNSET if places[-1].page is not None else places[-1].last_line,
        chunk_ids=[replies.chunk_id(request.id_prefix, place.id) for place in places]
        if request.around
        else UNSET,
    )


def joined(passages: list[Passage]) -> str:
    """Return passages as one text, with the headings that change between them."""
    parts: list[str] = []
    headings: list[str] | None = None
    for passage in passages:
        if headings is not None and passage.headings != headings and passage.headings:
            parts.append(f"{'#' * len(passage.headings)} {passage.headings[-1]}")
        headings = passage.headings
        parts.append(passage.text)
    return "\n\n".join(parts)


def result(
    document: DocumentRecord,
    place: ChunkPlace,
    passage: Passage | None,
    speaks_of: Sequence[EntityRecord],
    worth: tuple[float, float],
    *,
    id_prefix: int,
    rank: int,
) -> replies.ChunkFound:
    """Return a chunk as a search answers it, with what it is worth; metadata alone without a passage."""
    relevance, match = worth
    found = replies.ChunkFound(
        chunk_id=replies.chunk_id(id_prefix, place.id),
        entity_id=speaks_of[0].id if speaks_of else None,
        source_file=document.path,
        entity_type=speaks_of[0].type if speaks_of else None,
        hybrid_score=round(relevance, 4),
        score=round(match, 4),
        grade=grade_of(relevance),
        rank=rank,
    )
    if passage is None:
        return found
    return msgspec.structs.replace(
        found,
        chunk_text=passage.text,
        context_header=context_header(document, passage),
        vendor_names=[entity.name for entity in speaks_of],
        section_title=section(document, passage),
        citation=citation(document, place),
    )
