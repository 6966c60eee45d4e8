"""The records of the index, and their keys, which begin with ``i``; numbers are big-endian.

    "im"                            the manifest
    "ir" id                         a row of the tail
    "it" id, part                   more terms of that row, when it has many
    "ip" id                         a patch: changes of a row since it was written
    "is" segment "c" block          immutable columns of a block of rows
    "is" segment "d" block          mutable columns of the same rows
    "is" segment "p" field, chunk   postings
    "iv" space, chunk               vectors of several rows
    "iw" space, id                  vectors of one row's tokens

Arrays are stored as in RAM (little-endian) or packed. Packed ones are compressed to a third; this is for
large arrays that seldom change. Each record states its form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from greenroom.actors.search.index.document import FIELDS, Field

FORMAT = 2
ALL = b"i"
MANIFEST = b"im"
ROWS = b"ir"
MORE = b"it"
PATCHES = b"ip"
SEGMENTS = b"is"
VECTORS = b"iv"
TOKENS = b"iw"

BLOCK_ROWS = 2_048
"""Rows of a block of columns, 0.2 MB."""

Counts = Mapping[Field, Mapping[str, int]]
Patch = dict[str, Any]
"""New values by column."""


class Space(msgspec.Struct, array_like=True):
    """A space of vectors."""

    number: int
    dimensions: int
    next_chunk: int = 0
    has_tokens: bool = False


class SegmentRecord(msgspec.Struct, frozen=True, array_like=True):
    """A segment; every block but the last has ``block_rows`` rows."""

    number: int
    rows: int
    chunks: Mapping[Field, int]
    block_rows: int

    @property
    def blocks(self) -> int:
        """How many blocks of columns it has."""
        return -(-self.rows // self.block_rows)


class Manifest(msgspec.Struct, array_like=True):
    """The manifest of the index: its segments, spaces and rules.

    Attributes:
        format: The `FORMAT` of the program that made it.
        analysis: The name of the rules by which texts became terms.
        segments: The segments in order of their rows; these are older than the rows of the tail.
        building: The number of a segment that is not complete.
        doomed: The numbers of segments to delete.
    """

    format: int
    analysis: str
    spaces: dict[str, Space] = msgspec.field(default_factory=dict)
    next_space: int = 0
    segments: list[SegmentRecord] = msgspec.field(default_factory=list)
    next_segment: int = 0
    building: int | None = None
    doomed: list[int] = msgspec.field(default_factory=list)


class RowRecord(msgspec.Struct, frozen=True, array_like=True):
    """A stored row of the tail, with a first part of its terms; see `Document`."""

    partition: bytes
    namespace: str
    author: str
    kind: str
    conversation: str | None
    position: int | None
    number: int
    created_at: int
    updated_at: int
    expires_at: int | None
    importance: float
    uses: int
    last_used: int | None
    rating: float
    supersedes: int | None
    flags: int
    counts: Counts
    parts: int


class BlockRecord(msgspec.Struct, frozen=True, array_like=True):
    """Columns of a block of rows.

    Attributes:
        columns: Arrays by column; numbers of names are valid only in this block. If compressed, all arrays
            are in a single one, ``packed``.
        names: The names, by column, without partitions.
        partitions: The partitions, as msgpack.
    """

    columns: Mapping[str, bytes]
    names: Mapping[str, list[str]]
    partitions: list[bytes]


class ChunkRecord(msgspec.Struct, frozen=True, array_like=True):
    """A chunk of postings, see `segment.Chunk`; if it is compressed, ``packed`` has everything."""

    terms: list[str]
    ends: bytes
    rows: bytes
    times: bytes
    packed: bytes = b""


class VectorChunk(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of several rows: ids (uint64), scales (float32) and values (int8)."""

    ids: bytes
    scales: bytes
    values: bytes


class TokenVectors(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of one row's tokens: one scale, and values (int8)."""

    scale: float
    values: bytes


def row_key(id: int) -> bytes:
    """Return the record key of a row of the tail."""
    return ROWS + id.to_bytes(8)


def more_key(id: int, part: int) -> bytes:
    """Return the record key of a further part of a row's terms."""
    return MORE + id.to_bytes(8) + part.to_bytes(4)


def patch_key(id: int) -> bytes:
    """Return the record key of a row's patch."""
    return PATCHES + id.to_bytes(8)


def segment_prefix(segment: int) -> bytes:
    """Return the prefix of the keys of a segment."""
    return SEGMENTS + segment.to_bytes(4)


def block_key(segment: int, block: int) -> bytes:
    """Return the record key of a block's immutable columns."""
    return segment_prefix(segment) + b"c" + block.to_bytes(4)


def changing_key(segment: int, block: int) -> bytes:
    """Return the record key of a block's mutable columns."""
    return segment_prefix(segment) + b"d" + block.to_bytes(4)


def chunk_key(segment: int, field: Field, chunk: int) -> bytes:
    """Return the record key of a chunk of postings."""
    return segment_prefix(segment) + b"p" + FIELDS.index(field).to_bytes(1) + chunk.to_bytes(4)


def space_prefix(kind: bytes, space: int) -> bytes:
    """Return the prefix of the keys of a space's `VECTORS` or `TOKENS`."""
    return kind + space.to_bytes(2)


def vector_key(space: int, chunk: int) -> bytes:
    """Return the record key of a chunk of vectors."""
    return space_prefix(VECTORS, space) + chunk.to_bytes(8)


def token_key(space: int, id: int) -> bytes:
    """Return the record key of the vectors of a row's tokens."""
    return space_prefix(TOKENS, space) + id.to_bytes(8)


def id_of(key: bytes) -> int:
    """Return the id within a row's or a patch's key."""
    return int.from_bytes(key[2:10])


def space_of(key: bytes) -> int:
    """Return the number of the space within the key of `VECTORS` or `TOKENS`."""
    return int.from_bytes(key[2:4])


def token_id(key: bytes) -> int:
    """Return the id within the key of `TOKENS`."""
    return int.from_bytes(key[4:12])


def chunk_of(key: bytes) -> int:
    """Return the number of a chunk of vectors."""
    return int.from_bytes(key[4:12])
