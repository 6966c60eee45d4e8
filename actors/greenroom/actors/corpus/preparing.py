"""A document made ready to be stored, wherever it was read: its terms, and its text compressed."""

from __future__ import annotations

from typing import Final

from greenroom.actors.content.text.analyze import code_rules, current_rules
from greenroom.actors.content.text.words import TextRules
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Document, Prepared
from greenroom.actors.knowledge.corpora.storage import records
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, Passage
from greenroom.actors.search.index.document import Document as IndexedChunk
from greenroom.actors.search.index.document import ShouldYield
from greenroom.actors.search.index.memtable import run_of
from greenroom.actors.search.index.source_code import source_document
from greenroom.actors.syntax import language_of
from greenroom.runtime import Slices

_MOST_CHARACTERS: Final = 1_048_576


def rules_of(*, is_code: bool) -> TextRules:
    """Return the rules by which the texts of a corpus become terms, or those of a workspace."""
    return code_rules() if is_code else current_rules()


def prepared(document: Document, should_yield: ShouldYield, *, is_code: bool = False) -> Slices[Prepared]:
    """Make a document of a corpus ready, or of a workspace; yields when ``should_yield()``."""
    prints: list[bytes] = []
    for chunk in document.chunks:
        prints.append(records.fingerprint(chunk))
        if should_yield():
            yield
    blocks: list[tuple[int, bytes]] = []
    for block in records.packed(document.chunks):
        blocks.append(block)
        if should_yield():
            yield
    chunks = (
        indexed_chunk(document, 0, Passage(each.text, each.headings), is_code=is_code)
        for each in document.chunks
    )
    run = yield from run_of(chunks, should_yield, rules_of(is_code=is_code))
    return Prepared(run, b"".join(prints), blocks)


def prepared_at_once(document: Document, *, is_code: bool = False) -> Prepared:
    """Make a document ready where nothing else waits."""
    making = prepared(document, lambda: False, is_code=is_code)
    try:
        next(making)
    except StopIteration as made:
        found: Prepared = made.value
        return found
    raise AssertionError("it yielded though it should not")


def is_large(document: Document) -> bool:
    """Return whether a document is made ready where it is stored: what is not is checked at once."""
    return sum(len(chunk.text) for chunk in document.chunks) > _MOST_CHARACTERS


def is_of_use(prepared: Prepared, document: Document, *, is_code: bool) -> bool:
    """Return whether this document was prepared, by the rules that hold here; its run is not looked at."""
    if prepared.run.rules != rules_of(is_code=is_code).name or is_large(document):
        return False
    parts = list(records.parts(document.chunks))
    return (
        len(prepared.prints) == records.PRINT_BYTES * len(document.chunks)
        and [start for start, _ in prepared.blocks] == [start for start, _ in parts]
        and all(
            records.is_packed(block, part)
            for (_, block), (_, part) in zip(prepared.blocks, parts, strict=True)
        )
    )


def indexed_chunk(
    document: Document | DocumentRecord, id: int, passage: Passage, *, is_code: bool
) -> IndexedChunk:
    """Return a chunk as the index of a corpus gets it, or that of a workspace."""
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
