"""Build a document with its chunks from a file's bytes.

In text kinds, each chunk is an exact part of the file, so nothing between chunks is lost. In other kinds, a
chunk is extracted text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.content.documents import (
    html,
    markdown,
    notebook,
    pdf,
    restructured_text,
    table,
    word_document,
)
from greenroom.actors.content.documents.decode import SourceText, replace_unreadable
from greenroom.actors.content.documents.document_types import Chunk, Document
from greenroom.actors.content.documents.kinds import Kind, UnreadableDocumentError
from greenroom.actors.content.documents.sections import (
    CODE,
    PROSE,
    Block,
    Blocks,
    Section,
    Sections,
    bodies,
    pack_blocks,
    pieces,
)

MAX_TITLE: Final = 200
_HEADINGS_FREE: Final = 262_144
"""Characters of repeated headings that one document may have in addition to twice its text."""


def _plain(_source: SourceText) -> Sections:
    return Sections("", [Section(0, 0)])


_SECTIONS: Final[Mapping[Kind, Callable[[SourceText], Sections]]] = {
    "markdown": markdown.read,
    "rst": restructured_text.read,
    "csv": table.read,
    "text": _plain,
    "code": _plain,
}
_BLOCKS: Final[Mapping[Kind, Callable[[SourceText], Blocks]]] = {
    "html": html.read,
    "notebook": notebook.read,
}
_CONTAINERS: Final[Mapping[Kind, Callable[[bytes], Blocks]]] = {"pdf": pdf.read, "docx": word_document.read}
_BY_LINES: Final = frozenset({"code", "csv"})


def digest_of(data: bytes) -> str:
    """Return the digest of a file's bytes."""
    return blake2b(data, digest_size=16).hexdigest()


def build_document(
    path: str, kind: Kind, data: bytes, modified_at: int = 0, shows: Callable[[str], str] | None = None
) -> Document:
    """Build the document of a file.

    Without another title, the last part of the path is the title. ``shows`` transforms extracted text, such
    as the text of a page or a cell, before it is split.

    Raises:
        UnreadableDocumentError: the file has no text.
    """
    name = path.rpartition("/")[2]
    if kind in _CONTAINERS:
        blocks = _shown_by(shows, _CONTAINERS[kind](data))
        chunks = _paged(blocks, _title(blocks.title, name), len(data))
    elif kind in _BLOCKS:
        source = SourceText(data)
        blocks = _shown_by(shows, _BLOCKS[kind](source))
        chunks = _placed(source, list(pack_blocks(blocks.all)), _title(blocks.title, name))
    else:
        source = SourceText(data)
        sections = _SECTIONS[kind](source)
        chunks = _cut(source, sections, _title(sections.title, name), CODE if kind in _BY_LINES else PROSE)
    if not chunks:
        raise UnreadableDocumentError("it has no text")
    return Document(
        path=path,
        title=chunks[0].title,
        kind=kind,
        digest=digest_of(data),
        bytes=len(data),
        modified_at=modified_at,
        chunks=_bounded(chunks),
    )


def _shown_by(shows: Callable[[str], str] | None, blocks: Blocks) -> Blocks:
    if shows is None:
        return blocks
    return Blocks(shows(blocks.title), [each._replace(text=shows(each.text)) for each in blocks.all])


def _bounded(chunks: list[Chunk]) -> list[Chunk]:
    """Drop the outer headings of chunks, or all, if they take too much room."""
    room = _HEADINGS_FREE + 2 * sum(len(chunk.text) for chunk in chunks)
    for kept in (slice(-1, None), slice(0)):
        if sum(len(heading) for chunk in chunks for heading in chunk.headings) <= room:
            break
        chunks = [msgspec.structs.replace(chunk, headings=chunk.headings[kept]) for chunk in chunks]
    return chunks


def _title(own: str, name: str) -> str:
    return replace_unreadable(own)[:MAX_TITLE] or name[:MAX_TITLE]


def _cut(
    source: SourceText, sections: Sections, title: str, separators: tuple[re.Pattern[str], ...]
) -> list[Chunk]:
    """Return the chunks of a text kind: exact parts of the text."""
    text = source.text
    parts = [
        Block(text[first:last], first, last, headings)
        for begin, end, headings in bodies(text, sections.all)
        for first, last in pieces(text, begin, end, separators)
    ]
    return _placed(source, parts, title)


def _placed(source: SourceText, parts: list[Block], title: str) -> list[Chunk]:
    """Return the chunks of blocks that have offsets in a text."""
    at = source.byte_offsets([offset for part in parts for offset in (part.first, part.last)])
    lines = [(source.line_of(part.first), source.line_of(max(part.first, part.last - 1))) for part in parts]
    return [
        _chunk(part, title, own, (at[part.first], at[part.last]))
        for part, own in zip(parts, lines, strict=True)
    ]


def _paged(blocks: Blocks, title: str, size: int) -> list[Chunk]:
    """Return the chunks of a container, which may have pages but no lines."""
    return [_chunk(block, title, (0, 0), (0, size), block.first or None) for block in pack_blocks(blocks.all)]


def _chunk(
    part: Block, title: str, lines: tuple[int, int], span: tuple[int, int], page: int | None = None
) -> Chunk:
    return Chunk(
        replace_unreadable(part.text),
        [replace_unreadable(heading) for heading in part.headings],
        title,
        *lines,
        *span,
        page,
    )
