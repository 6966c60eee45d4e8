"""Convert rows, postings and vectors to records and back; hold one space's vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from greenroom.actors.core.base.zstd import compress_bytes, decompress_bytes
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.actors.search.index.records import BlockRecord, ChunkRecord, TokenVectors, VectorChunk
from greenroom.actors.search.index.rows import CHANGING, NAMED, TYPES, Rows
from greenroom.actors.search.index.segment import Chunk, JoinedTerms, join_terms
from greenroom.runtime import Slices

LASTING = tuple(name for name in TYPES if name not in CHANGING and name not in NAMED)
"""Immutable columns that hold plain values, not numbers of names."""
_LEAST = 64
_LEVEL = 3
_PACKED = "packed"
_decode_columns = msgspec.msgpack.Decoder(dict[str, bytes]).decode
_decode_chunk = msgspec.msgpack.Decoder(tuple[str | list[str], bytes, bytes, bytes]).decode
_MOVED = 4_096  # rows moved without a pause (0.5 ms)


def to_bytes(array: npt.NDArray[Any]) -> bytes:
    """Return an array's bytes, little-endian."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def from_bytes(stored: bytes, dtype: Any) -> npt.NDArray[Any]:
    """Return the array of these bytes, read-only."""
    return np.frombuffer(stored, np.dtype(dtype).newbyteorder("<"))


def block_record(corpus: Rows, rows: npt.NDArray[np.intp], *, packed: bool = False) -> BlockRecord:
    """Return the immutable columns of ``rows``, compressed if ``packed``."""
    columns = {name: to_bytes(corpus.column(name)[rows]) for name in LASTING}
    names: dict[str, list[Any]] = {}
    for name in NAMED:
        used, local = np.unique(corpus.column(name)[rows], return_inverse=True)
        if len(used) and used[0] < 0:
            used, local = used[1:], local - 1
        columns[name] = to_bytes(local.astype(np.int32))
        known = corpus.names[name].names
        names[name] = [known[number] for number in used]
    partitions = [msgspec.msgpack.encode(partition) for partition in names.pop("partition")]
    return BlockRecord(_columns(columns, packed=packed), names, partitions)


def block_of(
    columns: Mapping[str, npt.NDArray[Any]],
    names: Mapping[str, list[str]],
    partitions: list[bytes],
    *,
    packed: bool,
) -> tuple[BlockRecord, dict[str, bytes]]:
    """Return the records of a block in which the names are already numbered."""
    stored = {name: to_bytes(column) for name, column in columns.items()}
    changing = {name: stored.pop(name) for name in CHANGING}
    lasting = BlockRecord(_columns(stored, packed=packed), names, partitions)
    return lasting, _columns(changing, packed=packed)


def changing_record(corpus: Rows, rows: npt.NDArray[np.intp], *, packed: bool = False) -> dict[str, bytes]:
    """Return the mutable columns of ``rows``, compressed if ``packed``."""
    return _columns({name: to_bytes(corpus.column(name)[rows]) for name in CHANGING}, packed=packed)


def _columns(columns: dict[str, bytes], *, packed: bool) -> dict[str, bytes]:
    return {_PACKED: compress_bytes(msgspec.msgpack.encode(columns), _LEVEL)} if packed else columns


def _unpacked(columns: Mapping[str, bytes]) -> Mapping[str, bytes]:
    packed = columns.get(_PACKED)
    return columns if packed is None else _decode_columns(decompress_bytes(packed))


def add_block(
    corpus: Rows, block: BlockRecord, changing: Mapping[str, bytes], partition: Callable[[bytes], Any]
) -> None:
    """Add the rows of a block, without their postings."""
    lasting, changing = _unpacked(block.columns), _unpacked(changing)
    columns = {name: from_bytes(lasting[name], TYPES[name]) for name in LASTING}
    columns |= {name: from_bytes(changing[name], TYPES[name]) for name in CHANGING}
    for name in NAMED:
        used = (
            [partition(stored) for stored in block.partitions] if name == "partition" else block.names[name]
        )
        number = corpus.names[name].number
        # The last entry is for -1.
        numbers = np.array([*map(number, used), -1], np.int32)
        columns[name] = numbers[from_bytes(lasting[name], np.int32)]
    corpus.extend(len(columns["id"]), columns)


def chunk_record(chunk: Chunk, *, packed: bool = False) -> ChunkRecord:
    """Return a chunk of postings as a record, compressed if ``packed``."""
    if not packed:
        return ChunkRecord(
            list(chunk.terms),
            to_bytes(chunk.ends),
            to_bytes(chunk.rows),
            to_bytes(chunk.times.astype(np.uint16, copy=False)),
        )
    counts = chunk.counts()
    steps = np.diff(chunk.rows, prepend=np.int32(0)).astype(np.int32)
    terms = join_terms(chunk.terms)
    parts = (
        terms.text if isinstance(terms, JoinedTerms) else list(terms),
        _shuffle(counts),
        _shuffle(steps),
        _shuffle(chunk.times.astype(np.uint16, copy=False)),
    )
    return ChunkRecord([], b"", b"", b"", compress_bytes(msgspec.msgpack.encode(parts), _LEVEL))


def chunk(record: ChunkRecord) -> Chunk:
    """Return the chunk of a record."""
    if record.packed:
        terms, counts, steps, times = _decode_chunk(decompress_bytes(record.packed))
        return Chunk(
            JoinedTerms(terms) if isinstance(terms, str) else terms,
            np.cumsum(_unshuffle(counts, np.uint32), dtype=np.uint32),
            np.cumsum(_unshuffle(steps, np.int32), dtype=np.int32),
            _unshuffle(times, np.uint16),
        )
    ends, rows = from_bytes(record.ends, np.uint32), from_bytes(record.rows, np.int32)
    return Chunk(record.terms, ends, rows, from_bytes(record.times, np.uint16))


def _shuffle(array: npt.NDArray[Any]) -> bytes:
    """Transpose the bytes of numbers, so that they compress well."""
    return np.frombuffer(to_bytes(array), np.uint8).reshape(-1, array.itemsize).T.tobytes()


def _unshuffle(stored: bytes, dtype: Any) -> npt.NDArray[Any]:
    size = np.dtype(dtype).itemsize
    return from_bytes(np.frombuffer(stored, np.uint8).reshape(size, -1).T.tobytes(), dtype)


def vector_chunk(
    ids: npt.NDArray[np.uint64], values: npt.NDArray[np.int8], scales: npt.NDArray[np.float32]
) -> VectorChunk:
    """Return vectors as a record."""
    return VectorChunk(to_bytes(ids), to_bytes(scales), values.tobytes())


def vectors(
    record: VectorChunk, dimensions: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return ids, values and scales of a record."""
    values = np.frombuffer(record.values, np.int8).reshape(-1, dimensions)
    return from_bytes(record.ids, np.uint64), values, from_bytes(record.scales, np.float32)


class VectorMatrix:
    """An int8 vector per row, with its scale; zeros for a row without a vector."""

    __slots__ = ("_has", "_scales", "_values", "dimensions")

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._values = np.zeros((_LEAST, dimensions), np.int8)
        self._scales = np.zeros(_LEAST, np.float32)
        self._has = np.zeros(_LEAST, np.bool_)

    def reserve(self, size: int) -> None:
        """Make room for ``size`` rows; untouched pages take no memory."""
        room = len(self._has)
        if size > room:
            room = max(size, room + room // 2)
            self._values = _grown(self._values, room)
            self._scales = _grown(self._scales, room)
            self._has = _grown(self._has, room)

    def set(
        self,
        rows: npt.NDArray[np.intp],
        values: npt.NDArray[np.int8],
        scales: npt.NDArray[np.float32],
    ) -> None:
        """Store the vectors of ``rows``."""
        self.reserve(int(rows.max(initial=-1)) + 1)
        self._values[rows] = values
        self._scales[rows] = scales
        self._has[rows] = True

    def view(self, size: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return, for ``size`` rows, views of values, scales, and which rows have a vector."""
        self.reserve(size)
        return self._values[:size], self._scales[:size], self._has[:size]

    def keep(self, rows: npt.NDArray[np.intp], size: int) -> Slices[None]:
        """Keep only the sorted ``rows`` of the first ``size`` rows."""
        self.reserve(size)
        for start in range(0, len(rows), _MOVED):
            moved = rows[start : start + _MOVED]
            end = start + len(moved)
            if moved[-1] >= end:  # otherwise all rows so far are in place
                for array in (self._values, self._scales, self._has):
                    array[start:end] = array[moved]
            yield
        for array in (self._values, self._scales, self._has):
            array[len(rows) : size] = 0

    def resident_bytes(self, size: int) -> int:
        """Return the bytes of ``size`` rows."""
        return size * (self.dimensions + 5)


def _grown(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    grown = np.zeros((room, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def pack(
    vectors: Sequence[tuple[int, Vectors]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int8], npt.NDArray[np.float32], VectorChunk]:
    """Return ids, values and scales of at least one vector, and their record."""
    ids = np.array([number for number, _ in vectors], np.uint64)
    values = np.frombuffer(b"".join(vector.values for _, vector in vectors), np.int8).reshape(len(ids), -1)
    scales = np.array([vector.scale for _, vector in vectors], np.float32)
    return ids, values, scales, vector_chunk(ids, values, scales)


def token_matrix(record: TokenVectors, dimensions: int) -> npt.NDArray[np.int8]:
    """Return the vectors of one row's tokens."""
    return np.frombuffer(record.values, np.int8).reshape(-1, dimensions)
