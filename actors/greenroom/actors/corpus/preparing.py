"""A document made ready to be stored, wherever it was read: its terms, and its text compressed."""

from __future__ import annotations

from typing import Final

from greenroom.actors.corpus import records
from greenroom.actors.corpus.records import DocumentRecord, Passage
from greenroom.actors.index.document import Document as IndexedChunk
from greenroom.actors.index.document import ShouldYield
from greenroom.actors.index.memtable import run_of
from greenroom.actors.schemas.corpus import Document, Prepared
from greenroom.actors.text.analyze import current_rules
from greenroom.runtime import Slices

_MOST_CHARACTERS: Final = 1_048_576


def prepared(document: Document, should_yield: ShouldYield) -> Slices[Prepared]:
    """Make a document ready; yields when ``should_yield()``."""
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
    chunks = (indexed_chunk(document, 0, Passage(each.text, each.headings)) for each in document.chunks)
    run = yield from run_of(chunks, should_yield)
    return Prepared(run, b"".join(prints), blocks)


def prepared_at_once(document: Document) -> Prepared:
    """Make a document ready where nothing else waits."""
    making = prepared(document, lambda: False)
    try:
        next(making)
    except StopIteration as made:
        found: Prepared = made.value
        return found
    raise AssertionError("it yielded though it should not")


def is_large(document: Document) -> bool:
    """Return whether a document is made ready where it is stored: what is not is checked at once."""
    return sum(len(chunk.text) for chunk in document.chunks) > _MOST_CHARACTERS


def is_of_use(prepared: Prepared, document: Document) -> bool:
    """Return whether this document was prepared, by the rules that hold here; its run is not looked at."""
    if prepared.run.rules != current_rules().name or is_large(document):
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


def indexed_chunk(document: Document | DocumentRecord, id: int, passage: Passage) -> IndexedChunk:
    """Return a chunk as the index gets it."""
    headings = passage.headings
    return IndexedChunk(
        id=id,
        partition="",
        namespace="",
        text=passage.text,
        key="\n".join([document.title, *headings]),
        author=document.path,
        tags=(headings[-1].strip() or document.title,) if headings else (document.title,),
        kind=document.kind,
        number=document.number if isinstance(document, DocumentRecord) else 0,
    )
