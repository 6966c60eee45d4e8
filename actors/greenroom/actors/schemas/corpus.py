"""Corpora of documents: what is put into one, and requests about it. Times inside are microseconds since 1970.

A *corpus* belongs to a user, to a project or to all. It is named by a word, such as ``docs``, which means
one's own and else one of all; or in full: ``user:alice:docs``, ``project:atlas:docs``, ``all:docs``. A
*document* is one file or text of it, a *chunk* a passage that is found alone.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.runtime import Message

DEFAULT_CORPUS = "default"
MAX_CHUNKS = 100_000
MAX_DOCUMENT_BYTES = 64 * 1_048_576
"""The most text that one document has, all chunks together."""

_OWNER_NAME = "[A-Za-z0-9_.@+~-]{1,100}"
_NAME = "[A-Za-z0-9_.@+-]{1,64}"
CorpusName = Annotated[
    str,
    Meta(
        pattern=f"^(((user|project):{_OWNER_NAME}|all):)?{_NAME}(?!\\n)$",
        description="where to look",
        extra={
            "takes": "1 to 64 characters of A-Z, a-z, 0-9, _ . @ + -, which may follow user:NAME:, "
            "project:NAME: or all:"
        },
    ),
]
DocumentPath = Annotated[str, Meta(min_length=1, max_length=4_096)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{32}(?!\\n)$", extra={"takes": "32 hexadecimal digits"})]


class Chunk(msgspec.Struct, frozen=True):
    """A passage of a document, as a chunker makes it.

    Attributes:
        text: What it says, without its headings.
        headings: The headings above it, from the outermost.
        title: The title of its document.
        first_line: Its first line in the file, counted from 1.
        last_line: Its last line.
        first_byte: Where it begins in the file.
        last_byte: The first byte after it.
        page: Its page, in a document that has pages and no lines.
    """

    text: str
    headings: list[str]
    title: str
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    page: int | None = None


class Document(msgspec.Struct, frozen=True):
    """A document with its chunks, in their order.

    Attributes:
        path: What it is known by in its corpus.
        title: What it is called.
        kind: What kind of file it is, such as ``markdown``.
        digest: BLAKE2b of its bytes, 16 bytes as hexadecimal digits.
        bytes: How many bytes it has.
        modified_at: When it was changed last.
        chunks: Its passages.
    """

    path: DocumentPath
    title: str
    kind: str
    digest: Digest
    bytes: int
    modified_at: int
    chunks: list[Chunk]


# -- filling a corpus: messages to its actor; not tools -----------------------------------


class DocumentStored(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `PutDocument`.

    Attributes:
        state: ``unchanged`` where the corpus had these very bytes: then nothing was done.
        chunks: How many it has.
        kept: How many of these were there before and have kept their ids.
    """

    state: Literal["added", "changed", "unchanged"]
    chunks: int
    kept: int


class PutDocument(Message[DocumentStored], frozen=True, kw_only=True):
    """Put a document in, or in the place of the one with its path: all of it or nothing."""

    corpus: CorpusName
    document: Document


class DocumentsRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `RemoveDocuments`: which paths there were."""

    removed: list[str]


class RemoveDocuments(Message[DocumentsRemoved], frozen=True, kw_only=True):
    """Remove documents, all of them or none; an unknown path is no error."""

    corpus: CorpusName
    paths: Annotated[list[str], Meta(max_length=1_000)]


class DocumentListed(msgspec.Struct, frozen=True, kw_only=True):
    """A document in a listing."""

    path: str
    digest: str
    title: str
    kind: str
    bytes: int
    modified_at: int
    indexed_at: int
    chunks: int


class DocumentPage(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ListDocuments`: in no order that means anything.

    Attributes:
        after: Where the next page begins; None at the end.
    """

    documents: list[DocumentListed]
    after: str | None


class ListDocuments(Message[DocumentPage], frozen=True, kw_only=True):
    """List the documents of a corpus, in pages; what is put in or removed meanwhile may be missed."""

    corpus: CorpusName
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
