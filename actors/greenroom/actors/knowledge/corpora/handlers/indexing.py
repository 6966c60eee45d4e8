"""Store documents in a corpus and remove them; remove a dropped corpus in steps."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import UNSET

from greenroom.actors.content.documents.document_types import MAX_PATH, Document
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.replies.damage import damaged_entry, filter_damage, note_damage
from greenroom.actors.core.validation.times import optional_datetime, to_datetime
from greenroom.actors.knowledge.corpora.handlers import embedding, ingest_runs
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Prepared
from greenroom.actors.knowledge.corpora.storage import mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable
from greenroom.actors.knowledge.corpora.storage.preparation import is_usable, make_indexed, prepare
from greenroom.actors.knowledge.corpora.storage.readers import is_newer, mark_too_much, unread_by
from greenroom.actors.knowledge.corpora.storage.records import (
    ChunkPlace,
    CorpusHeader,
    DocumentRecord,
    DocumentSummary,
    Passage,
)
from greenroom.actors.knowledge.corpora.storage.repository import (
    CorpusRepository,
    count_document,
    count_waiting,
)
from greenroom.actors.knowledge.entities import is_manifest
from greenroom.actors.search.index import index as index_module
from greenroom.actors.search.index.memtable import Part, Run
from greenroom.runtime import Context, Message, RecordDamagedError, Refusal, Slices

if TYPE_CHECKING:
    from greenroom.actors.search.index.runs import ReadRun

SWEEP: Final = "sweep"
_SWEPT: Final = 200
"""One step of removing a dropped corpus deletes at most this many records."""
_REMOVED: Final = 20_000
"""One commit of removing documents deletes about this many records at most."""


class SweepCorpus(Message[None], frozen=True):
    """A dropped corpus's message to itself: it must remove more records."""


def put(
    repository: CorpusRepository, request: corpus_requests.PutDocument, context: Context
) -> Slices[corpus_requests.DocumentStored]:
    """Store a document; replace the document that has the same path."""
    added: list[tuple[Part, ReadRun]] = []
    stored = yield from _put(repository, request, context, added)
    yield from _index_added(repository, context, added)
    return stored


def put_all(
    repository: CorpusRepository, request: corpus_requests.PutDocuments, context: Context
) -> Slices[list[corpus_requests.DocumentStored]]:
    """Store documents as `put` does, and index their chunks as one segment."""
    added: list[tuple[Part, ReadRun]] = []
    stored: list[corpus_requests.DocumentStored] = []
    paths: set[str] = set()
    for each in request.puts:
        path = compose(each.document.path)
        if path in paths:  # it may replace a document whose chunks are not in the index yet
            yield from _index_added(repository, context, added)
            added.clear()
        paths.add(path)
        stored.append((yield from _put(repository, each, context, added)))
        yield
    yield from _index_added(repository, context, added)
    return stored


def _put(
    repository: CorpusRepository,
    request: corpus_requests.PutDocument,
    context: Context,
    added: list[tuple[Part, ReadRun]],
) -> Slices[corpus_requests.DocumentStored]:
    """Stage a document, and add the index entries of its new chunks to ``added``."""
    repository.check(context.principal, request.corpus)
    _check_document(request.document)
    document = _use_stored_path(repository, context, request.document)
    ingest_runs.delete_failure(context, document.path)
    old = repository.document(context, document.path)
    is_same = old is not None and old.digest.hex() == document.digest
    if old is not None and is_same and not _is_better(request.reader, document, old):
        return corpus_requests.DocumentStored(state="unchanged", chunks=len(old.places), kept=len(old.places))
    if request.only_same and not is_same:
        return corpus_requests.DocumentStored(state="unchanged", chunks=0, kept=0)
    header = repository.header if old is None else count_document(repository.header, old, -1)
    number = header.next_document if old is None else old.number
    ready = yield from _get_prepared(repository, request.prepared, document)
    yield
    ids, kept, next_chunk = _number_chunks(list(records.fingerprints(ready.prints)), old, header.next_chunk)
    if next_chunk > corpus_requests.MAX_NUMBER:
        raise Refusal(
            "QUOTA_EXCEEDED",
            f"the corpus has used all {corpus_requests.MAX_NUMBER:,} ids of passages; "
            "take its files into a new one",
            limit=corpus_requests.MAX_NUMBER,
        )
    run = yield from _read_run(repository, ready.run, [own not in kept for own in ids])
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
        masking=document.masking,
        masked=document.masked[: records.MOST_MASKED],
        marks=document.marks if len(document.marks) <= records.MOST_MASKED else [],
    )
    where = records.path_key(document.path)
    context.put(where, fresh)
    records.put_masked(context, repository.header.root, fresh, old)
    repository.count_reader(document.path, fresh.reader, 1)
    repository.note_names(number, fresh, request.facts)
    if old is not None:
        repository.count_reader(document.path, old.reader, -1)
    context.put(records.number_key(number), where)
    for key, value in (
        (records.facts_key(number), request.facts),
        (records.origin_key(number), request.origin),
    ):
        if value is not None:
            context.put(key, value)
        elif old is not None:
            context.delete(key)
    yield from _put_texts(context, number, ready, old)
    yield from _remove_chunks(repository, context, kept, old)
    if new := [own for own in ids if own not in kept]:
        added.append((Part(new, make_indexed(fresh, 0, Passage("", []), is_code=repository.is_code)), run))
    passages = [Passage(each.text, each.headings) for each in document.chunks]
    yield from mentions.put(repository, context, fresh, passages)
    if is_manifest(document.path):
        repository.entities.mark_manifests(context)
    counted = count_document(header, fresh, 1)
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
    return corpus_requests.DocumentStored(
        state="added" if old is None else "changed", chunks=len(ids), kept=len(kept)
    )


def _is_better(reader: str, document: Document, old: DocumentRecord) -> bool:
    """Return whether a newer reader or masking read the same bytes."""
    if document.masking != old.masking:
        return document.masking > old.masking
    return is_newer(reader, old.reader)


def _get_prepared(
    repository: CorpusRepository, given: Prepared | None, document: Document
) -> Slices[Prepared]:
    is_code = repository.is_code
    if given is not None and (yield from is_usable(given, document, is_code=is_code)):
        return given
    return (yield from prepare(document, is_code=is_code))


def _use_stored_path(repository: CorpusRepository, context: Context, document: Document) -> Document:
    """Return a sent text as a document under its stored path; files keep their paths."""
    if document.is_file or document.path.isascii():
        return document
    return msgspec.structs.replace(document, path=_find_stored_path(repository, context, document.path))


def _find_stored_path(repository: CorpusRepository, context: Context, path: str) -> str:
    """Return the stored path of a text; it may have another Unicode form.

    A file does not count: two files may have paths that differ only in their Unicode form.
    """
    found = None if path.isascii() else repository.find_document(context, path)
    return path if found is None or found.is_file else found.path


def record_reader(
    repository: CorpusRepository, request: corpus_requests.NoteReader, context: Context
) -> None:
    """Record which reader failed at a document; the text from the last reader stays."""
    repository.check(context.principal, request.corpus)
    old = repository.document(context, request.path)
    if old is None or old.digest.hex() != request.digest or not is_newer(request.reader, old.reader):
        return
    reader = mark_too_much(request.reader) if unread_by(old.reader) else request.reader
    context.put(records.path_key(request.path), msgspec.structs.replace(old, reader=reader))
    repository.count_reader(request.path, reader, 1)
    repository.count_reader(request.path, old.reader, -1)


def _read_run(repository: CorpusRepository, run: Run, kept: list[bool]) -> Slices[ReadRun]:
    """Return the index run of some chunks."""
    try:
        return (yield from repository.index.read_run(run, kept))
    except ValueError as error:
        raise auth_errors.invalid("prepared", f"prepared: this is no run of the document: {error}") from None


def _put_texts(context: Context, number: int, ready: Prepared, old: DocumentRecord | None) -> Slices[None]:
    for block, (_, packed) in enumerate(ready.blocks):
        context.put(records.text_key(number, block), packed)
        yield
    for block in range(len(ready.blocks), 0 if old is None else len(old.blocks)):
        context.delete(records.text_key(number, block))


def _remove_chunks(
    repository: CorpusRepository, context: Context, kept: set[int], old: DocumentRecord | None
) -> Slices[None]:
    """Stage the removal of a changed document's chunks from the index; unchanged chunks stay."""
    for place in () if old is None else old.places:
        if place.id not in kept:
            repository.index.remove(context, place.id)
            yield


def _index_added(
    repository: CorpusRepository, context: Context, added: list[tuple[Part, ReadRun]]
) -> Slices[None]:
    """Stage the index entries of the chunks of new or changed documents."""
    if added:
        yield from repository.index.add_runs(context, added)
        embedding.mark_waiting(repository, context)


def remove(
    repository: CorpusRepository, request: corpus_requests.RemoveDocuments, context: Context
) -> Slices[corpus_requests.DocumentsRemoved]:
    """Remove documents."""
    repository.check(context.principal, request.corpus)
    context.use_reserve()
    yield from repository.entities.load(context)
    header = repository.header
    removed: list[str] = []
    paths = list(dict.fromkeys(request.paths))
    room = context.most_rows(_REMOVED)
    for at, given in enumerate(paths):
        if not corpus_requests.is_text(given):
            continue
        path = _find_stored_path(repository, context, given)
        ingest_runs.delete_failure(context, path)
        document = repository.document(context, path)
        if document is None:
            continue
        room -= len(document.places) + len(document.blocks) + 3
        if room < 0 and removed:
            _record_removal(repository, context, header, removed)
            return corpus_requests.DocumentsRemoved(removed=removed, left=paths[at:])
        header = count_document(header, document, -1)
        context.delete(records.path_key(path))
        repository.count_reader(path, document.reader, -1)
        repository.note_names(document.number, None, None)
        context.delete(records.number_key(document.number))
        context.delete(records.facts_key(document.number))
        context.delete(records.origin_key(document.number))
        records.delete_masked(context, document)
        mentions.remove(repository, context, document.number)
        if is_manifest(path):
            repository.entities.mark_manifests(context)
        for block in range(len(document.blocks)):
            context.delete(records.text_key(document.number, block))
        for place in document.places:
            repository.index.remove(context, place.id)
            yield
        removed.append(path)
    if removed:
        _record_removal(repository, context, header, removed)
    return corpus_requests.DocumentsRemoved(removed=removed)


def _record_removal(
    repository: CorpusRepository, context: Context, header: CorpusHeader, removed: list[str]
) -> None:
    repository.put_header(context, msgspec.structs.replace(header, indexed_at=context.now))
    repository.publish(context, *removed)


def list_documents(
    repository: CorpusRepository, request: corpus_requests.ListDocuments, context: Context
) -> Slices[corpus_requests.DocumentPage]:
    """Return a page of documents."""
    repository.check(context.principal, request.corpus)
    if request.path is not None:
        one = (
            repository.find_document(context, request.path) if corpus_requests.is_text(request.path) else None
        )
        return corpus_requests.DocumentPage(documents=[] if one is None else [_make_row(one)], after=None)
    start = None if request.after is None else _parse_position(request.after)
    found: list[corpus_requests.DocumentListed] = []
    last: bytes | None = None
    looked_at = 0
    holding = compose(request.holding).casefold()

    def met(error: RecordDamagedError) -> None:
        note_damage(context, damaged_entry(error, "a document"))

    only = filter_damage(context, records.DOCUMENTS, met)
    for key, document in context.scan(DocumentSummary, prefix=records.DOCUMENTS, start=start, on_damage=only):
        yield
        if key == start:  # names in keys are hidden, so no key directly follows `start`
            continue
        looked_at += 1
        is_wanted = _is_wanted(document, request.kind, holding)
        if looked_at > corpus_requests.MOST_LOOKED_AT or (is_wanted and len(found) == request.limit):
            return corpus_requests.DocumentPage(documents=found, after=None if last is None else last.hex())
        last = key
        if is_wanted:
            found.append(_make_row(document))
    return corpus_requests.DocumentPage(documents=found, after=None)


def _is_wanted(document: DocumentSummary, kind: str | None, holding: str) -> bool:
    if kind not in {None, document.kind}:
        return False
    return not holding or holding in compose(f"{document.path}\n{document.title}").casefold()


def _make_row(document: DocumentRecord | DocumentSummary) -> corpus_requests.DocumentListed:
    return corpus_requests.DocumentListed(
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
        masking=document.masking,
        masked=document.masked,
        marks=document.marks,
    )


def describe(
    repository: CorpusRepository, request: corpus_requests.DescribeCorpus, context: Context
) -> corpus_requests.CorpusView:
    """Return a description of the corpus's content."""
    name = request.row.full_name
    repository.check(context.principal, name)
    header = repository.header
    return corpus_requests.CorpusView(
        corpus=name,
        root=UNSET if header.root is None else header.root,
        created_at=to_datetime(request.row.created_at),
        documents=header.documents,
        chunks=header.chunks,
        bytes=header.file_bytes,
        text_bytes=header.text_bytes,
        stored_bytes=header.stored_bytes,
        indexed_at=optional_datetime(header.indexed_at),
        waiting_for_vectors=count_waiting(context),
        failed_files=ingest_runs.count_failed(context) or UNSET,
    )


def set_name(repository: CorpusRepository, request: corpus_requests.CallCorpus, context: Context) -> None:
    """Store the corpus's name, its folder and the folder's project."""
    if not repository.header.is_dropped:
        repository.publish(context)
        if request.root != repository.header.root:
            repository.index.unload()  # code and documents are indexed by different rules
        called = msgspec.structs.replace(
            repository.header, name=request.name, root=request.root, project=request.project
        )
        repository.put_header(context, called)
        repository.publish(context)


def discard(repository: CorpusRepository, _: corpus_requests.DiscardCorpus, context: Context) -> None:
    """Drop the corpus, and start to remove its records."""
    context.use_reserve()
    repository.publish(context)
    repository.put_header(context, CorpusHeader(is_dropped=True))
    repository.index.unload()
    repository.entities = EntityTable()
    repository.readers = None
    repository.paths = repository.symbols = None
    repository.runs = {}
    context.cancel_timer(index_module.TIMER)
    context.cancel_timer(mentions.TIMER)
    embedding.unmark(repository, context)
    context.set_timer(SWEEP, context.now, SweepCorpus())


def sweep(repository: CorpusRepository, _: SweepCorpus, context: Context) -> Slices[None]:
    """Remove some records of a dropped corpus, and set a timer for the rest."""
    if not repository.header.is_dropped:
        return
    context.use_reserve()
    most = context.most_rows(_SWEPT)
    found = ((key, raw) for key, raw in context.scan(msgspec.Raw) if key != records.HEADER)
    count = 0
    for key, raw in islice(found, most):
        if key.startswith(records.DOCUMENTS):
            records.delete_masked(context, msgspec.msgpack.decode(raw, type=DocumentRecord))
        context.delete(key)
        count += 1
        yield
    if count == most:
        context.set_timer(SWEEP, context.now, SweepCorpus())


def _check_document(document: Document) -> None:
    """Check a document for errors that a chunker may make."""
    texts = [document.path, document.title, document.kind]
    for chunk in document.chunks:
        texts += [chunk.text, chunk.title, *chunk.headings]
    if not all(map(corpus_requests.is_text, texts)):
        raise auth_errors.invalid("document", "document: a text of it is no Unicode: it has lone surrogates")
    if len(document.chunks) > corpus_requests.MAX_CHUNKS:
        raise auth_errors.invalid(
            "document",
            f"document: it has {len(document.chunks):,} chunks "
            f"and the limit is {corpus_requests.MAX_CHUNKS:,}",
            limit=corpus_requests.MAX_CHUNKS,
            size=len(document.chunks),
        )
    size = sum(map(len, texts))
    if size > corpus_requests.MAX_DOCUMENT_BYTES:
        raise auth_errors.too_large("document", size, corpus_requests.MAX_DOCUMENT_BYTES)
    if not document.path or len(document.path) > MAX_PATH:
        raise auth_errors.invalid("document", "document: its path has 1 to 4,096 characters")


def _number_chunks(
    prints: list[bytes], old: DocumentRecord | None, next_chunk: int
) -> tuple[list[int], set[int], int]:
    """Return the chunks' ids, the ids that existed before, and the next free id."""
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


def _parse_position(position: str) -> bytes:
    try:
        return bytes.fromhex(position)
    except ValueError:
        raise auth_errors.invalid("after", "after: it is no position of list_documents") from None
