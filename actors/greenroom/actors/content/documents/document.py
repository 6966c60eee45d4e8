"""A file's bytes to a document with its chunks.

Of kinds that are text each chunk is a part of the file as it is, so that nothing gets lost between two; of
others it is text that was made of a part.
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
from greenroom.actors.content.documents.blocks import Blocks, packed
from greenroom.actors.content.documents.decode import SourceText, shown
from greenroom.actors.content.documents.kinds import Kind
from greenroom.actors.content.documents.sections import Section, Sections, bodies
from greenroom.actors.content.documents.splitting import CODE, PROSE, pieces
from greenroom.actors.documents.errors import UnreadableDocumentError
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Chunk, Document

MAX_TITLE: Final = 200
_HEADINGS_FREE: Final = 262_144
"""How many characters the headings that chunks repeat may have in one document, beside twice its text."""


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
    """Return what tells a file's bytes from others."""
    return blake2b(data, digest_size=16).hexdigest()


def document_of(path: str, kind: Kind, data: bytes, modified_at: int = 0) -> Document:
    """Return the document that a file is.

    Args:
        path: What it is known by; its last part is its title, where it has no other.
        kind: Its kind, as `kind_of` tells.
        data: Its bytes.
        modified_at: When it was changed, in microseconds.

    Raises:
        UnreadableDocumentError: it has no text.
    """
    name = path.rpartition("/")[2]
    if kind in _CONTAINERS:
        blocks = _CONTAINERS[kind](data)
        chunks = _paged(blocks, _title(blocks.title, name), len(data))
    elif kind in _BLOCKS:
        source = SourceText(data)
        blocks = _BLOCKS[kind](source)
        chunks = _placed(source, blocks, _title(blocks.title, name))
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


def _bounded(chunks: list[Chunk]) -> list[Chunk]:
    """Return chunks with their nearest heading, or none, where all would take far more than what is said."""
    room = _HEADINGS_FREE + 2 * sum(len(chunk.text) for chunk in chunks)
    for kept in (slice(-1, None), slice(0)):
        if sum(len(heading) for chunk in chunks for heading in chunk.headings) <= room:
            break
        chunks = [msgspec.structs.replace(chunk, headings=chunk.headings[kept]) for chunk in chunks]
    return chunks


def _title(own: str, name: str) -> str:
    return shown(own)[:MAX_TITLE] or name[:MAX_TITLE]


def _cut(
    source: SourceText, sections: Sections, title: str, separators: tuple[re.Pattern[str], ...]
) -> list[Chunk]:
    """Return the chunks of a text: parts of it."""
    text = source.text
    found = [
        (first, last, headings)
        for begin, end, headings in bodies(text, sections.all)
        for first, last in pieces(text, begin, end, separators)
    ]
    at = source.byte_offsets([offset for first, last, _ in found for offset in (first, last)])
    return [
        Chunk(
            text=shown(text[first:last]),
            headings=[shown(heading) for heading in headings],
            title=title,
            first_line=source.line_of(first),
            last_line=source.line_of(last - 1),
            first_byte=at[first],
            last_byte=at[last],
        )
        for first, last, headings in found
    ]


def _placed(source: SourceText, blocks: Blocks, title: str) -> list[Chunk]:
    """Return the chunks of what stands in a text between marks."""
    found = list(packed(blocks.all))
    at = source.byte_offsets([offset for block in found for offset in (block.first, block.last)])
    return [
        Chunk(
            text=shown(block.text),
            headings=[shown(heading) for heading in block.headings],
            title=title,
            first_line=source.line_of(block.first),
            last_line=source.line_of(max(block.first, block.last - 1)),
            first_byte=at[block.first],
            last_byte=at[block.last],
        )
        for block in found
    ]


def _paged(blocks: Blocks, title: str, size: int) -> list[Chunk]:
    """Return the chunks of a container, which has no lines; in some there are pages."""
    return [
        Chunk(
            text=shown(block.text),
            headings=[shown(heading) for heading in block.headings],
            title=title,
            first_line=0,
            last_line=0,
            first_byte=0,
            last_byte=size,
            page=block.first or None,
        )
        for block in packed(blocks.all)
    ]
