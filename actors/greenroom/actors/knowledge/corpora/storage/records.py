"""The records of a corpus and their keys. Numbers are big-endian.

    k                   what holds for the whole corpus
    w                   of a workspace: who keeps it up to date, and how far it is
    d digest            a document, by a digest of its path
    n document          where that document's record is, by its number
    f document          of source code what its syntax says, compressed
    o digest            a file that could not be taken in, by a digest of its path
    r                   when files were last gone through to the end
    t document, block   some chunks of a document, compressed
    i …                 the index

A chunk's number and a document's are never used twice; what an id is outside says `schemas.corpus.chunk_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import msgspec

from greenroom.actors.core.base.zstd import compressed, decompressed
from greenroom.actors.knowledge.corpora.requests.corpus_requests import Chunk

HEADER = b"k"
KEEPER = b"w"
DOCUMENTS = b"d"
NUMBERS = b"n"
FACTS = b"f"
TEXTS = b"t"
FAILURES = b"o"
LAST_RUN = b"r"
FORMAT = 1
BLOCK_BYTES = 65_536
"""Text and headings in one block, about: so much is decompressed to read one chunk (0.3 ms)."""
PRINT_BYTES = 8
_PATH_BYTES = 16
_LEVEL = 9  # in less time than zlib, at its best, makes more of it
_encode = msgspec.msgpack.Encoder().encode


class CorpusHeader(msgspec.Struct, frozen=True, array_like=True):
    """What holds for a whole corpus.

    Attributes:
        format: `FORMAT` when it was made.
        name: What it is called, in full; empty until it is told.
        next_chunk: The number of the next chunk.
        next_document: The number of the next document.
        documents: How many there are.
        chunks: How many chunks they have.
        file_bytes: Of the files.
        text_bytes: Of the chunks' texts.
        stored_bytes: Of the same, as they are stored.
        indexed_at: When something last changed.
        is_dropped: Whether it is being removed: then it is there for nobody, for ever.
        root: Of a workspace the folder that it is the index of.
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


class ChunkPlace(msgspec.Struct, frozen=True, array_like=True):
    """A chunk's number, and where it stands; see `schemas.corpus.Chunk`."""

    id: int
    first_line: int
    last_line: int
    first_byte: int
    last_byte: int
    page: int | None = None


class DocumentRecord(msgspec.Struct, frozen=True, array_like=True):
    """A document without its text.

    Attributes:
        number: What it is known by inside.
        path: What it is known by outside.
        title: What it is called.
        kind: What kind of file it is.
        digest: Of its bytes.
        file_bytes: How many these are.
        modified_at: When the file was changed.
        indexed_at: When it was put in.
        places: Its chunks, in order.
        prints: What tells chunks apart by what they say, one after the other.
        blocks: The first chunk of each block of text, counted from 0.
        text_bytes: Of its chunks' texts.
        stored_bytes: Of the blocks.
        is_file: Whether it was read from the file at its path.
        reader: What read it, see `corpus.readers`; empty if that was not noted.
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


class Passage(msgspec.Struct, frozen=True, array_like=True):
    """A chunk as it is stored."""

    text: str
    headings: list[str]


_decode = msgspec.msgpack.Decoder(list[Passage]).decode


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a key digests of paths are."""
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
    """Return the key of the row that says where the document with a number is."""
    return NUMBERS + number.to_bytes(8)


def facts_key(number: int) -> bytes:
    """Return the record key of what the syntax of the document with a number says."""
    return FACTS + number.to_bytes(8)


def text_key(number: int, block: int) -> bytes:
    """Return the record key of a block of text."""
    return TEXTS + number.to_bytes(8) + block.to_bytes(4)


def fingerprint(chunk: Chunk) -> bytes:
    """Return what is the same for chunks that say and are headed the same."""
    said = _encode([chunk.title, chunk.headings, chunk.text])
    return blake2b(said, digest_size=PRINT_BYTES).digest()


def fingerprints(prints: bytes) -> Iterator[bytes]:
    """Yield the fingerprints of a document's chunks in order."""
    return (prints[at : at + PRINT_BYTES] for at in range(0, len(prints), PRINT_BYTES))


def parts(chunks: Sequence[Chunk]) -> Iterator[tuple[int, bytes]]:
    """Yield what the blocks of a document's chunks hold: which is the first in it, and the chunks encoded."""
    start = size = 0
    for place, chunk in enumerate(chunks):
        size += len(chunk.text) + sum(map(len, chunk.headings))
        if size >= BLOCK_BYTES or place + 1 == len(chunks):
            passages = [Passage(each.text, each.headings) for each in chunks[start : place + 1]]
            yield start, _encode(passages)
            start, size = place + 1, 0


def packed(chunks: Sequence[Chunk]) -> Iterator[tuple[int, bytes]]:
    """Yield the blocks of a document's chunks, compressed, with what is the first in each."""
    return ((start, compressed(part, _LEVEL)) for start, part in parts(chunks))


def is_packed(block: bytes, part: bytes) -> bool:
    """Return whether a block is this part compressed; whatever it is, little memory is taken."""
    try:
        return decompressed(block, len(part)) == part
    except ValueError:
        return False


def unpacked(block: bytes) -> list[Passage]:
    """Return the chunks of a block.

    Raises:
        ValueError: it is damaged.
    """
    return _decode(decompressed(block))
