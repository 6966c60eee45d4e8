"""The records of a corpus and their keys. Numbers are big-endian.

    k                   the header of the corpus
    w                   for a workspace: its indexing lease, and progress
    d digest            a document, by a digest of its path
    n document          the key of a document's record, by its number
    f document          syntax facts of source code, compressed
    s document          where the text of source code comes from: `syntax.origins.Origin`
    o digest            a file that could not be ingested, by a digest of its path
    r                   the time at which a run last completed
    t document, block   some chunks of a document, compressed
    i …                 the index

Numbers of chunks and documents are never reused; `corpus_requests.chunk_id` makes public ids of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.content.documents.document_types import Chunk, MarkPlace
from greenroom.actors.core.base.zstd import compress_bytes, decompress_bytes
from greenroom.runtime import Context

HEADER = b"k"
KEEPER = b"w"
DOCUMENTS = b"d"
NUMBERS = b"n"
FACTS = b"f"
ORIGINS = b"s"
TEXTS = b"t"
FAILURES = b"o"
LAST_RUN = b"r"
FORMAT = 1
BLOCK_BYTES = 65_536
"""About this much text and headings form one block; reading a chunk decompresses its block (0.3 ms)."""
PRINT_BYTES = 8
MOST_MASKED = 1_000
"""At most this many masked lines are stored for a document."""
_PATH_BYTES = 16
_LEVEL = 9  # the result is smaller than zlib's best, in less time
_encode = msgspec.msgpack.Encoder().encode


class CorpusHeader(msgspec.Struct, frozen=True, array_like=True):
    """The header of a corpus.

    Attributes:
        format: The value of `FORMAT` when the corpus was created.
        name: The corpus's full name; empty until it is set.
        is_dropped: Whether the corpus is being removed, so that no request finds it.
        root: The folder of a workspace.
        project: As in `CorpusRow`.
    """

    format: int = FORMAT
    name: str = ""
    next_chunk: int = 1
    next_document: int = 1
    documents: int = 0
    chunks: int = 0
    file_bytes: int = 0
    text_bytes: int = 0
    stored_bytes: int = 0
    indexed_at: int | None = None
    is_dropped: bool = False
    root: str | None = None
    project: str = ""


class ChunkPlace(msgspec.Struct, frozen=True, array_like=True):
    """A chunk's number and its place in the file; see `chunks.Chunk`."""

    id: int
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    page: int | None = None


class DocumentRecord(msgspec.Struct, frozen=True, array_like=True):
    """A document without its text.

    Attributes:
        blocks: The first chunk of each block of text, counted from 0.
        is_file: Whether the document was read from the file at its path.
        reader: The document's reader, see `storage.readers`; empty if unknown.
        masking: The version of `documents.masking` that masked the document's secrets; 0 if none did.
        marks: As in `Document`.
    """

    number: int
    path: str
    title: str
    kind: str
    digest: bytes
    file_bytes: int
    modified_at: int
    indexed_at: int
    places: list[ChunkPlace]
    prints: bytes
    blocks: list[int]
    text_bytes: int
    stored_bytes: int
    is_file: bool = False
    reader: str = ""
    masking: int = 0
    masked: list[int] = []
    marks: list[MarkPlace] = []


class DocumentSummary(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a `DocumentRecord`, for listings."""

    number: int
    path: str
    title: str
    kind: str
    digest: bytes
    file_bytes: int
    modified_at: int
    indexed_at: int
    places: list[msgspec.Raw]
    prints: msgspec.Raw
    blocks: msgspec.Raw
    text_bytes: int
    stored_bytes: int
    is_file: bool = False
    reader: str = ""
    masking: int = 0
    masked: list[int] = []
    marks: list[MarkPlace] = []


class Passage(msgspec.Struct, frozen=True, array_like=True):
    """A chunk as it is stored."""

    text: str
    headings: list[str]


_decode = msgspec.msgpack.Decoder(list[Passage]).decode


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Return the positions of path digests in a key."""
    return ((1, len(key)),) if key.startswith((DOCUMENTS, FAILURES)) and len(key) > 1 else ()


def path_key(path: str) -> bytes:
    """Return the record key of the document with a path."""
    return DOCUMENTS + _digest(path)


def failure_key(path: str) -> bytes:
    """Return the record key of the failed file with a path."""
    return FAILURES + _digest(path)


def _digest(path: str) -> bytes:
    return blake2b(path.encode(), digest_size=_PATH_BYTES).digest()


def number_key(number: int) -> bytes:
    """Return the record key of a document's row by number."""
    return NUMBERS + number.to_bytes(8)


def facts_key(number: int) -> bytes:
    """Return the record key of a document's syntax facts."""
    return FACTS + number.to_bytes(8)


def origin_key(number: int) -> bytes:
    """Return the record key of a document's origin."""
    return ORIGINS + number.to_bytes(8)


def text_key(number: int, block: int) -> bytes:
    """Return the record key of a block of text."""
    return TEXTS + number.to_bytes(8) + block.to_bytes(4)


def fingerprint(chunk: Chunk) -> bytes:
    """Return a hash of a chunk's title, headings and text."""
    encoded = _encode([chunk.title, chunk.headings, chunk.text])
    return blake2b(encoded, digest_size=PRINT_BYTES).digest()


def fingerprints(prints: bytes) -> Iterator[bytes]:
    """Yield the fingerprints of a document's chunks in order."""
    return (prints[at : at + PRINT_BYTES] for at in range(0, len(prints), PRINT_BYTES))


def split_blocks(chunks: Sequence[Chunk]) -> Iterator[tuple[int, bytes]]:
    """Yield for each block the number of its first chunk, and the encoded chunks."""
    start = size = 0
    for place, chunk in enumerate(chunks):
        size += len(chunk.text) + sum(map(len, chunk.headings))
        if size >= BLOCK_BYTES or place + 1 == len(chunks):
            passages = [Passage(each.text, each.headings) for each in chunks[start : place + 1]]
            yield start, _encode(passages)
            start, size = place + 1, 0


def pack_blocks(chunks: Sequence[Chunk]) -> Iterator[tuple[int, bytes]]:
    """Yield the compressed blocks of a document, each with the number of its first chunk."""
    return ((start, compress_bytes(part, _LEVEL)) for start, part in split_blocks(chunks))


def is_packed(block: bytes, part: bytes) -> bool:
    """Return whether ``block`` is ``part`` compressed; memory is bounded for any block."""
    try:
        return decompress_bytes(block, len(part)) == part
    except ValueError:
        return False


def unpack_block(block: bytes) -> list[Passage]:
    """Decompress the chunks of a block.

    Raises:
        ValueError: The block is damaged.
    """
    return _decode(decompress_bytes(block))


MASKED_INDEX: Final = "masked"


class MaskedFile(msgspec.Struct, frozen=True, array_like=True):
    """The masked lines of a file, with its path and its workspace's folder."""

    root: str
    path: str
    lines: list[int]


def put_masked(
    context: Context, root: str | None, document: DocumentRecord, old: DocumentRecord | None
) -> None:
    """Stage the row of a document that is being stored; replace the older document's row."""
    if document.masked and root is not None:
        context.put_row(MASKED_INDEX, _masked_key(document), MaskedFile(root, document.path, document.masked))
    elif old is not None:
        delete_masked(context, old)


def delete_masked(context: Context, document: DocumentRecord) -> None:
    """Stage the removal of a document's row, if it has a row."""
    if document.masked:
        context.delete_row(MASKED_INDEX, _masked_key(document))


def _masked_key(document: DocumentRecord) -> bytes:
    return document.number.to_bytes(8)
