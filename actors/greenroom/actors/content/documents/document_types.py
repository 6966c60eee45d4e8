"""A document in chunks, in the form that readers build and corpora store."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MAX_PATH = 4_096
DocumentPath = Annotated[str, Meta(min_length=1, max_length=MAX_PATH)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{32}(?!\\n)$", extra={"takes": "32 hexadecimal digits"})]


class Chunk(msgspec.Struct, frozen=True):
    """A passage of a document.

    Attributes:
        text: Its text, without headings.
        headings: The headings above it, outermost first. For source code read by its syntax: the path of the
            enclosing symbol, empty at the top level, then the symbols that the chunk defines.
        first_line: Its first line in the file, from 1; 0 in a document without lines.
        first_byte: Where it starts in the file.
        last_byte: The first byte after the chunk.
        page: Its page, in a document with pages instead of lines.
    """

    text: str
    headings: list[str]
    title: str
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    page: int | None = None


MarkPlace = tuple[int, int, bytes]
"""Where the bytes of a masked value begin and end in its file, and the mark."""


class Document(msgspec.Struct, frozen=True):
    """A document with its chunks, in their order.

    Attributes:
        path: Its name in its corpus.
        kind: Its kind of file, such as ``markdown``.
        digest: BLAKE2b of its bytes, 16 bytes as hexadecimal digits.
        is_file: Whether it was read from the file at its path. If it was sent as text under that name,
            replies cannot report whether the file has changed.
        masking: The version of `documents.masking` that masked secrets; 0 for none.
        masked: The lines with masked values.
        marks: The masked values of a text in UTF-8, see `documents.Marks`; empty if that is unknown.
    """

    path: DocumentPath
    title: str
    kind: str
    digest: Digest
    bytes: int
    modified_at: int
    chunks: list[Chunk]
    is_file: bool = False
    masking: int = 0
    masked: list[int] = []
    marks: list[MarkPlace] = []
