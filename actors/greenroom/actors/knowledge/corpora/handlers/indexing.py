"""Putting documents into a corpus and removing them; what a dropped corpus had is removed in steps."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.corpus.preparing import indexed_chunk, is_of_use, prepared
from greenroom.actors.entities import is_manifest
from greenroom.actors.knowledge.corpora.handlers import embedding, ingest_runs
from greenroom.actors.knowledge.corpora.requests import corpus_requests as requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Document, Prepared
from greenroom.actors.knowledge.corpora.storage import mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, too_much_for, unread_by
from greenroom.actors.knowledge.corpora.storage.records import (
    ChunkPlace,
    CorpusHeader,
    DocumentRecord,
    DocumentSummary,
    Passage,
)
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository, moved, waiting
from greenroom.actors.search.index import index as index_module
from greenroom.actors.search.index.prepared_terms import Run
from greenroom.runtime import Context, Message, Refusal, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.runs import ReadRun

SWEEP: Final = "sweep"
_SWEPT: Final = 200
"""Records that one step of removing a dropped corpus deletes."""
_REMOVED: Final = 20_000
"""Records that removing documents deletes in one commit, about."""


class SweepCorpus(Message[None], frozen=True):
    """A dropped corpus's word to itself that there is more to remove."""


def put(
    repository: CorpusRepository, request: requests.PutDocument, context: Context
) -> Slices[requests.DocumentStored]:
    """Put a document in, in the place of the one with its path."""
    repository.check(context.principal, request.corpus)
    _check(request.document)
    document = _as_known(repository, context, request.document)
    ingest_runs.forget(context, document.path)
    old = repository.document(context, document.path)
    is_same = old is not None and old.digest.hex() == document.digest
    if old is not None and is_same and not is_newer(request.reader, old.reader):
        return requests.DocumentStored(state="unchanged", chunks=len(old.places), kept=len(old.places))
    if request.only_same and not is_same:
        return requests.DocumentStored(state="unchanged", chunks=0, kept=0)
    header = repository.header if old is None else moved(repository.header, old, -1)
    number = header.next_document if old is None else old.number
    ready = request.prepared
    if ready is None or not is_of_use(ready, document, is_code=repository.is_code):
        ready = yield from prepared(document, context.should_yield, is_code=repository.is_code)
    if context.should_yield():
        yield
    ids, kept, next_chunk = _numbered(list(records.fingerprints(ready.prints)), old, header.next_chunk)
    if next_chunk > requests.MAX_NUMBER:
        raise Refusal(
            "QUOTA_EXCEEDED",
            f"the corpus has used all {requests.MAX_NUMBER:,} ids of passages; take its files into a new one",
            limit=requests.MAX_NUMBER,
        )
    run = yield from _read(repository, context, ready.run, [own not in kept for own in ids])
    fresh = DocumentRecord(
        number=number,
        path=document.path,
        title=document.title,
        kind=document.kind,
        digest=bytes.fromhex(document.digest),
        file_bytes=document.bytes,
        modified_at=document.modified_at,
        indexed_at=context.now,
        places=[
            ChunkPlace(own, each.first_line, each.last_line, each.first_byte, each.last_byte, each.page)
            for own, each in zip(ids, document.chunks, strict=True)
        ],
        prints=ready.prints,
        blocks=[start for start, _ in ready.blocks],
        text_bytes=sum(len(chunk.text.encode()) for chunk in document.chunks),
        stored_bytes=sum(len(block) for _, block in ready.blocks),
        is_file=document.is_file,
        reader=request.reader,
    )
    where = records.path_key(document.path)
    context.put(where, fresh)
    repository.count_reader(document.path, fresh.reader, 1)
    if old is not None:
        repository.count_reader(document.path, old.reader, -1)
    context.put(records.number_key(number), where)
    if request.facts is not None:
        context.put(records.facts_key(number), request.facts)
    elif old is not None:
        context.delete(records.facts_key(number))
    yield from _put_texts(context, number, ready, old)
    yield from _index(repository, context, fresh, run, kept, old)
    passages = [Passage(each.text, each.headings) for each in document.chunks]
    yield from mentions.put(repository, context, fresh, passages)
    if is_manifest(document.path):
        repository.entities.note_manifest(context)
    counted = moved(header, fresh, 1)
    repository.put_header(
        context,
        msgspec.structs.replace(
            counted,
            next_chunk=next_chunk,
            next_document=max(header.next_document, number + 1),
            indexed_at=context.now,
        ),
    )
    repository.publish(context, document.path)
    return requests.DocumentStored(
        state="added" if old is None else "changed", chunks=len(ids), kept=len(kept)
    )


def _as_known(repository: CorpusRepository, context: Context, document: Document) -> Document:
    """Return a text under the path that it is known by; a file is under its own."""
    if document.is_file or document.path.isascii():
        return document
    return msgspec.structs.replace(document, path=_known_path(repository, context, document.path))


def _known_path(repository: CorpusRepository, context: Context, path: str) -> str:
    """Return the stored path of a text whose path may have another form of Unicode.

    Files are not meant: two may lie under two forms of a path.
    """
    found = None if path.isascii() else repository.find_document(context, path)
    return path if found is None or found.is_file else found.path


def note_reader(repository: CorpusRepository, request: requests.NoteReader, context: Context) -> None:
    """Note which reader failed at a document; what the last one found stays."""
    repository.check(context.principal, request.corpus)
    old = repository.document(context, request.path)
    if old is None or old.digest.hex() != request.digest or not is_newer(request.reader, old.reader):
        return
    reader = too_much_for(request.reader) if unread_by(old.reader) else request.reader
    context.put(records.path_key(request.path), msgspec.structs.replace(old, reader=reader))
    repository.count_reader(request.path, reader, 1)
    repository.count_reader(request.path, old.reader, -1)


def _read(repository: CorpusRepository, context: Context, run: Run, kept: list[bool]) -> Slices[ReadRun]:
    """Return what some chunks are found by; whoever prepared it is told of what is wrong."""
    try:
        return (yield from repository.index.read_run(context, run, kept))
    except ValueError as error:
        raise auth_errors.invalid("prepared", f"prepared: this is no run of the document: {error}") from None


def _put_texts(context: Context, number: int, ready: Prepared, old: DocumentRecord | None) -> Slices[None]:
    """Stage what the chunks say."""
    for block, (_, packed) in enumerate(ready.blocks):
        context.put(records.text_key(number, block), packed)
        if context.should_yield():
            yield
    for block in range(len(ready.blocks), 0 if old is None else len(old.blocks)):
        context.delete(records.text_key(number, block))


def _index(
    repository: CorpusRepository,
    context: Context,
    fresh: DocumentRecord,
    run: ReadRun,
    kept: set[int],
    old: DocumentRecord | None,
) -> Slices[None]:
    """Stage the index's part of a document that is new or has changed; chunks that were kept stay there."""
    for place in () if old is None else old.places:
        if place.id not in kept:
            repository.index.remove(context, place.id)
            if context.should_yield():
                yield
    ids = [place.id for place in fresh.places if place.id not in kept]
    if ids:
        like = indexed_chunk(fresh, 0, Passage("", []), is_code=repository.is_code)
        yield from repository.index.add_run(context, ids, like, run)
        embedding.wait(repository, context)


def remove(
    repository: CorpusRepository, request: requests.RemoveDocuments, context: Context
) -> Slices[requests.DocumentsRemoved]:
    """Remove documents."""
    repository.check(context.principal, request.corpus)
    context.use_reserve()
    yield from repository.entities.loaded(context)
    header = repository.header
    removed: list[str] = []
    paths = list(dict.fromkeys(request.paths))
    room = context.most_rows(_REMOVED)
    for at, given in enumerate(paths):
        if not requests.is_text(given):
            continue
        path = _known_path(repository, context, given)
        ingest_runs.forget(context, path)
        document = repository.document(context, path)
        if document is None:
            continue
        room -= len(document.places) + len(document.blocks) + 3
        if room < 0 and removed:
            _note_removed(repository, context, header, removed)
            return requests.DocumentsRemoved(removed=removed, left=paths[at:])
        header = moved(header, document, -1)
        context.delete(records.path_key(path))
        repository.count_reader(path, document.reader, -1)
        context.delete(records.number_key(document.number))
        context.delete(records.facts_key(document.number))
        mentions.remove(repository, context, document.number)
        if is_manifest(path):
            repository.entities.note_manifest(context)
        for block in range(len(document.blocks)):
            context.delete(records.text_key(document.number, block))
        for place in document.places:
            repository.index.remove(context, place.id)
            if context.should_yield():
                yield
        removed.append(path)
    if removed:
        _note_removed(repository, context, header, removed)
    return requests.DocumentsRemoved(removed=removed)


def _note_removed(
    repository: CorpusRepository, context: Context, header: CorpusHeader, removed: list[str]
) -> None:
    repository.put_header(context, msgspec.structs.replace(header, indexed_at=context.now))
    repository.publish(context, *removed)


def page(
    repository: CorpusRepository, request: requests.ListDocuments, context: Context
) -> Slices[requests.DocumentPage]:
    """Answer a page of documents."""
    repository.check(context.principal, request.corpus)
    if request.path is not None:
        one = repository.find_document(context, request.path) if requests.is_text(request.path) else None
        return requests.DocumentPage(documents=[] if one is None else [_listed(one)], after=None)
    start = None if request.after is None else _after(request.after)
    found: list[requests.DocumentListed] = []
    last: bytes | None = None
    looked_at = 0
    holding = composed(request.holding).casefold()
    for key, document in context.scan(DocumentSummary, prefix=records.DOCUMENTS, start=start):
        if context.should_yield():
            yield
        if key == start:  # where names are hidden, there is no key that comes right after another
            continue
        looked_at += 1
        is_wanted = _is_wanted(document, request.kind, holding)
        if looked_at > requests.MOST_LOOKED_AT or (is_wanted and len(found) == request.limit):
            return requests.DocumentPage(documents=found, after=None if last is None else last.hex())
        last = key
        if is_wanted:
            found.append(_listed(document))
    return requests.DocumentPage(documents=found, after=None)


def _is_wanted(document: DocumentSummary, kind: str | None, holding: str) -> bool:
    if kind not in {None, document.kind}:
        return False
    return not holding or holding in composed(f"{document.path}\n{document.title}").casefold()


def _listed(document: DocumentRecord | DocumentSummary) -> requests.DocumentListed:
    return requests.DocumentListed(
        path=document.path,
        digest=document.digest.hex(),
        title=document.title,
        kind=document.kind,
        bytes=document.file_bytes,
        modified_at=document.modified_at,
        indexed_at=document.indexed_at,
        chunks=len(document.places),
        is_file=document.is_file,
        reader=document.reader,
    )


def describe(
    repository: CorpusRepository, request: requests.DescribeCorpus, context: Context
) -> requests.CorpusView:
    """Answer what is in the corpus."""
    name = request.row.full_name
    repository.check(context.principal, name)
    header = repository.header
    return requests.CorpusView(
        corpus=name,
        root=UNSET if header.root is None else header.root,
        created_at=to_datetime(request.row.created_at),
        documents=header.documents,
        chunks=header.chunks,
        bytes=header.file_bytes,
        text_bytes=header.text_bytes,
        stored_bytes=header.stored_bytes,
        indexed_at=optional_datetime(header.indexed_at),
        waiting_for_vectors=waiting(context),
        failed_files=ingest_runs.count_failed(context) or UNSET,
    )


def call(repository: CorpusRepository, request: requests.CallCorpus, context: Context) -> None:
    """Take note of the corpus's name, and of its folder."""
    if not repository.header.is_dropped:
        repository.publish(context)
        if request.root != repository.header.root:
            repository.index.unload()  # what texts become is told by other rules
        called = msgspec.structs.replace(repository.header, name=request.name, root=request.root)
        repository.put_header(context, called)
        repository.publish(context)


def discard(repository: CorpusRepository, context: Context) -> None:
    """Be there for nobody any more, and begin to remove what there is."""
    context.use_reserve()
    repository.publish(context)
    repository.put_header(context, CorpusHeader(is_dropped=True))
    repository.index.unload()
    repository.entities = EntityTable()
    repository.readers = None
    repository.runs = {}
    context.cancel_timer(index_module.TIMER)
    context.cancel_timer(mentions.TIMER)
    embedding.forget(repository, context)
    context.set_timer(SWEEP, context.now, SweepCorpus())


def sweep(repository: CorpusRepository, context: Context) -> Slices[None]:
    """Remove some records of a dropped corpus, and come back for the rest."""
    if not repository.header.is_dropped:
        return
    context.use_reserve()
    most = context.most_rows(_SWEPT)
    found = (key for key, _ in context.scan(msgspec.Raw) if key != records.HEADER)
    count = 0
    for key in islice(found, most):
        context.delete(key)
        count += 1
        if context.should_yield():
            yield
    if count == most:
        context.set_timer(SWEEP, context.now, SweepCorpus())


def _check(document: Document) -> None:
    """Check what a chunker may do wrong.

    Raises:
        Refusal: ``VALIDATION_ERROR``.
    """
    texts = [document.path, document.title, document.kind]
    for chunk in document.chunks:
        texts += [chunk.text, chunk.title, *chunk.headings]
    if not all(map(requests.is_text, texts)):
        raise auth_errors.invalid("document", "document: a text of it is no Unicode: it has lone surrogates")
    if len(document.chunks) > requests.MAX_CHUNKS:
        raise auth_errors.invalid(
            "document",
            f"document: it has {len(document.chunks):,} chunks and the limit is {requests.MAX_CHUNKS:,}",
            limit=requests.MAX_CHUNKS,
            size=len(document.chunks),
        )
    size = sum(map(len, texts))
    if size > requests.MAX_DOCUMENT_BYTES:
        raise auth_errors.too_large("document", size, requests.MAX_DOCUMENT_BYTES)
    if not document.path or len(document.path) > requests.MAX_PATH:
        raise auth_errors.invalid("document", "document: its path has 1 to 4,096 characters")


def _numbered(
    prints: list[bytes], old: DocumentRecord | None, next_chunk: int
) -> tuple[list[int], set[int], int]:
    """Return the ids of chunks, which of them were there before, and the next id after them."""
    known: dict[bytes, deque[int]] = defaultdict(deque)
    if old is not None:
        for found, place in zip(records.fingerprints(old.prints), old.places, strict=True):
            known[found].append(place.id)
    ids: list[int] = []
    kept: set[int] = set()
    for found in prints:
        if waiting := known.get(found):
            ids.append(waiting.popleft())
            kept.add(ids[-1])
        else:
            ids.append(next_chunk)
            next_chunk += 1
    return ids, kept, next_chunk


def _after(position: str) -> bytes:
    """Return the last key before a position in a listing.

    Raises:
        Refusal: ``VALIDATION_ERROR``: it is none.
    """
    try:
        return bytes.fromhex(position)
    except ValueError:
        raise auth_errors.invalid("after", "after: it is no position of list_documents") from None
