"""Where the index lies among its actor's records. All keys begin with ``i``; numbers are big-endian.

"im"                      the manifest
"ir" id                   a row of the tail
"it" id, part             more terms of that row, when it has many
"ip" id                   what changed of a row since it was written
"iv" space, chunk         vectors of several rows
"iw" space, id            vectors of one row's tokens
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from greenroom.actors.index._document import Field

FORMAT = 1
MANIFEST = b"im"
ROWS = b"ir"
MORE = b"it"
PATCHES = b"ip"
VECTORS = b"iv"
TOKENS = b"iw"

Counts = Mapping[Field, Mapping[str, int]]
Patch = dict[str, float | bool]
"""New values by column; ``dead`` for a memory that is gone."""


class Space(msgspec.Struct, array_like=True):
    """A space of vectors.

    Attributes:
        number: What stands for it in keys.
        dimensions: Of its vectors.
        next_chunk: The number of the next chunk.
        has_tokens: Whether there may be vectors of tokens.
    """

    number: int
    dimensions: int
    next_chunk: int = 0
    has_tokens: bool = False


class Manifest(msgspec.Struct, array_like=True):
    """What the index consists of.

    Attributes:
        format: `FORMAT` when it was made.
        analysis: How texts became terms.
        next_space: The number of the next space.
        spaces: The spaces by name.
    """

    format: int
    analysis: str
    next_space: int = 0
    spaces: dict[str, Space] = {}


class RowRecord(msgspec.Struct, frozen=True, array_like=True):
    """A row of the tail as stored; ``shelf`` is msgpack, the rest is as in `Document`.

    Attributes:
        counts: The first of its terms.
        parts: How many records hold the others.
    """

    shelf: bytes
    namespace: str
    author: str
    kind: str
    conversation: str | None
    position: int | None
    created_at: int
    updated_at: int
    expires_at: int | None
    importance: float
    uses: int
    last_used: int | None
    rating: float
    superseded: bool
    flags: int
    counts: Counts
    parts: int


class VectorChunk(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of several rows: ids (uint64), scales (float32) and values (int8), all little-endian."""

    ids: bytes
    scales: bytes
    values: bytes


class TokenVectors(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of one row's tokens: one scale, and values (int8)."""

    scale: float
    values: bytes


def row_key(id: int) -> bytes:
    """Return where a row of the tail lies."""
    return ROWS + id.to_bytes(8)


def more_key(id: int, part: int) -> bytes:
    """Return where more terms of a row lie."""
    return MORE + id.to_bytes(8) + part.to_bytes(4)


def patch_key(id: int) -> bytes:
    """Return where it lies what changed of a row."""
    return PATCHES + id.to_bytes(8)


def vector_key(space: int, chunk: int) -> bytes:
    """Return where a chunk of vectors lies."""
    return VECTORS + space.to_bytes(2) + chunk.to_bytes(8)


def token_key(space: int, id: int) -> bytes:
    """Return where the vectors of a row's tokens lie."""
    return TOKENS + space.to_bytes(2) + id.to_bytes(8)


def id_of(key: bytes) -> int:
    """Return the id within a row's or a patch's key."""
    return int.from_bytes(key[2:10])
