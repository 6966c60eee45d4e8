"""Read chunks: find a chunk by its id, and read its text and its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from greenroom.actors.content.text.verbatim import MOST_READ, build_verbatim
from greenroom.actors.core.replies.damage import damaged_entry, missing_record, read_undamaged
from greenroom.actors.core.replies.grades import grade_of
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.storage.entity_records import EntityRecord
from greenroom.actors.knowledge.corpora.storage.preparation import get_rules
from greenroom.actors.knowledge.corpora.storage.records import ChunkPlace, DocumentRecord, Passage
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, Located, context_header
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

T = TypeVar("T")


def locate(
    repository: CorpusRepository,
    context: Context,
    corpus: Corpus,
    id: int,
    known: dict[int, DocumentRecord] | None = None,
) -> Located | None:
    """Return a chunk by its number; None if unknown. ``known`` caches documents."""
    row = corpus.row(id)
    if row is None:
        return None
    number = int(corpus.numbers[row])
    document = None if known is None else known.get(number)
    if document is None:
        document = repository.by_number(context, number)
        if document is None:
            raise damaged_entry(missing_record("a document"), "a document")
        if known is not None:
            known[number] = document
    places = document.places
    guess = id - places[0].id  # right for a document that was stored only once
    if not (0 <= guess < len(places) and places[guess].id == id):
        guess = next(at for at, place in enumerate(places) if place.id == id)
    return Located(document, guess)


def render_each(
    context: Context, show: Callable[..., T], given: Iterable[tuple[Any, ...]]
) -> Slices[dict[int, T]]:
    """Render each item; leave out damaged items, which the reply will name."""
    found: dict[int, T] = {}
    for at, each in enumerate(given):
        one = read_undamaged(context, show, *each)
        if one is not None:
            found[at] = one
        yield
    return found


def read(
    repository: CorpusRepository, request: corpus_requests.ReadChunks, context: Context
) -> Slices[corpus_requests.ReadContent]:
    """Return chunks in full, and the unknown ids."""
    repository.check(context.principal, request.corpus)
    corpus = yield from repository.index.loaded(context)
    yield from repository.entities.load(context)
    chunks: list[corpus_requests.ChunkContent] = []
    unknown: list[int] = []
    documents: dict[int, DocumentRecord] = {}
    for chunk_id in dict.fromkeys(request.chunk_ids):
        prefix, number = corpus_requests.split_id(chunk_id)
        is_own = prefix == request.id_prefix
        located = locate(repository, context, corpus, number, documents) if is_own else None
        if located is None:
            unknown.append(chunk_id)
        else:
            chunks.append(_read_content(repository, context, located, request))
        yield
    return corpus_requests.ReadContent(
        chunks=chunks,
        unknown=unknown,
        freshness=repository.freshness(context),
        files=list_files(documents.values()),
    )


def list_files(documents: Iterable[DocumentRecord]) -> list[corpus_requests.IndexedFile]:
    """Return the files that documents were read from."""
    return [
        corpus_requests.IndexedFile(each.path, each.digest.hex(), each.file_bytes, each.modified_at)
        for each in documents
        if each.is_file
    ]


def cite(document: DocumentRecord, place: ChunkPlace) -> str:
    """Return the citation of a chunk: its file, and its page or first line."""
    if place.page is not None:
        return f"{document.path}#page={place.page}"
    return f"{document.path}:{place.first_line}" if place.first_line else document.path


def find_heading(document: DocumentRecord, passage: Passage) -> str:
    """Return the nearest heading above a chunk."""
    return passage.headings[-1] if passage.headings else document.title


def _read_content(
    repository: CorpusRepository, context: Context, located: Located, request: corpus_requests.ReadChunks
) -> corpus_requests.ChunkContent:
    document = located.document
    first = max(0, located.number - request.around)
    last = min(len(document.places) - 1, located.number + request.around)
    numbers = range(first, last + 1)
    passages = {number: repository.passage(context, Located(document, number)) for number in numbers}
    own = passages[located.number]
    places = [document.places[number] for number in numbers]
    speaks_of = repository.entities.find_in_chunk(context, document.number, located.place.id)
    return corpus_requests.ChunkContent(
        chunk_id=corpus_requests.chunk_id(request.id_prefix, located.place.id),
        entity_id=speaks_of[0].id if speaks_of else None,
        source_file=document.path,
        entity_type=speaks_of[0].type if speaks_of else None,
        chunk_text=join_passages([passages[number] for number in numbers]),
        context_header=context_header(document, own),
        vendor_names=[entity.name for entity in speaks_of],
        section_title=find_heading(document, own),
        citation=cite(document, places[0]),
        last_line=UNSET if places[-1].page is not None else places[-1].last_line,
        chunk_ids=[corpus_requests.chunk_id(request.id_prefix, place.id) for place in places]
        if request.around
        else UNSET,
    )


def join_passages(passages: list[Passage]) -> str:
    """Join passages to one text; insert a heading where it changes between two passages."""
    parts: list[str] = []
    headings: list[str] | None = None
    for passage in passages:
        if headings is not None and passage.headings != headings and passage.headings:
            parts.append(f"{'#' * len(passage.headings)} {passage.headings[-1]}")
        headings = passage.headings
        parts.append(passage.text)
    return "\n\n".join(parts)


def make_result(
    document: DocumentRecord,
    place: ChunkPlace,
    passage: Passage | None,
    speaks_of: Sequence[EntityRecord],
    worth: tuple[float, float],
    *,
    id_prefix: int,
    rank: int,
) -> corpus_requests.ChunkFound:
    """Return a chunk as a search result with scores; without a passage, only metadata."""
    relevance, match = worth
    found = corpus_requests.ChunkFound(
        chunk_id=corpus_requests.chunk_id(id_prefix, place.id),
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
        section_title=find_heading(document, passage),
        citation=cite(document, place),
    )


_REPLY_SHARE: Final = 0.15
"""This share of a search's time must be left for the reply."""


class LiteralMatches(NamedTuple):
    """Similarity of the rows that contain the query, and a text on unread passages."""

    likeness: dict[int, float]
    cut: str


def find_literally(
    repository: CorpusRepository, context: Context, corpus: Corpus, query: str
) -> Slices[LiteralMatches | None]:
    """Return the rows that contain a query of stop words; None for any other query."""
    words = build_verbatim(query, get_rules(is_code=repository.is_code))
    if words is None:
        return None
    likeness: dict[int, float] = {}
    cut = ""
    least = context.seconds_left() * _REPLY_SHARE
    for looked, chunk in enumerate(filter(None, repository.iterate_chunks(context))):
        if looked == MOST_READ or context.seconds_left() < least:
            cut = f"words that are nearly everywhere were looked for in the first {looked:,} passages alone"
            break
        text = "\n".join([chunk.text, chunk.key, chunk.author, *chunk.tags])
        found = yield from words.likeness(text)
        row = corpus.row(chunk.id) if found else None
        if row is not None:
            likeness[row] = found
        yield
    return LiteralMatches(likeness, cut)
