"""Prepare a document's terms and compressed text for storing; any process can do this."""

from __future__ import annotations

from greenroom.actors.content.documents.document_types import Document
from greenroom.actors.content.syntax import language_of
from greenroom.actors.content.text.analyze import code_rules, current_rules
from greenroom.actors.content.text.words import TextRules
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Prepared
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, Passage
from greenroom.actors.search.index.document import Document as IndexedChunk
from greenroom.actors.search.index.memtable import run_of
from greenroom.actors.search.index.source_code import source_document
from greenroom.runtime import Slices, finish


def get_rules(*, is_code: bool) -> TextRules:
    """Return the indexing rules of a workspace (``is_code``) or of another corpus."""
    return code_rules() if is_code else current_rules()


def prepare(document: Document, *, is_code: bool = False) -> Slices[Prepared]:
    """Prepare a document of a workspace (``is_code``) or of another corpus."""
    prints: list[bytes] = []
    for chunk in document.chunks:
        prints.append(records.fingerprint(chunk))
        yield
    blocks: list[tuple[int, bytes]] = []
    for block in records.pack_blocks(document.chunks):
        blocks.append(block)
        yield
    chunks = (
        make_indexed(document, 0, Passage(each.text, each.headings), is_code=is_code)
        for each in document.chunks
    )
    run = yield from run_of(chunks, get_rules(is_code=is_code))
    return Prepared(run, b"".join(prints), blocks)


def prepare_at_once(document: Document, *, is_code: bool = False) -> Prepared:
    """Prepare a document without pauses, outside of an actor."""
    return finish(prepare(document, is_code=is_code))


def is_usable(prepared: Prepared, document: Document, *, is_code: bool) -> Slices[bool]:
    """Return whether prepared parts fit this document and rules; the run is not checked."""
    if prepared.run.rules != get_rules(is_code=is_code).name:
        return False
    if len(prepared.prints) != records.PRINT_BYTES * len(document.chunks):
        return False
    blocks = iter(prepared.blocks)
    for start, part in records.split_blocks(document.chunks):
        found, block = next(blocks, (-1, b""))
        if found != start or not records.is_packed(block, part):
            return False
        yield
    return next(blocks, None) is None


def make_indexed(
    document: Document | DocumentRecord, id: int, passage: Passage, *, is_code: bool
) -> IndexedChunk:
    """Return a chunk as it is indexed in a workspace (``is_code``) or another corpus."""
    headings = passage.headings
    number = document.number if isinstance(document, DocumentRecord) else 0
    if is_code:
        found = language_of(document.path)
        language = "" if found is None else found.name
        if not language or not headings:
            text = "\n".join([*headings, passage.text])
            return source_document(id, number, document.path, language, text, [], "")
        scope, *symbols = headings
        return source_document(id, number, document.path, language, passage.text, symbols, scope)
    return IndexedChunk(
        id=id,
        partition="",
        namespace="",
        text=passage.text,
        key="\n".join([document.title, *headings]),
        author=document.path,
        tags=(headings[-1].strip() or document.title,) if headings else (document.title,),
        kind=document.kind,
        number=number,
    )
