"""Rows and postings as records, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from greenroom.actors.index.columns import CHANGING, NAMED, TYPES
from greenroom.actors.index.records import BlockRecord, ChunkRecord, VectorChunk
from greenroom.actors.index.segment import Chunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from greenroom.actors.index.rows import Rows

LASTING = tuple(name for name in TYPES if name not in CHANGING and name not in NAMED)
"""Columns that never change and hold their values themselves."""


def to_bytes(array: npt.NDArray[Any]) -> bytes:
    """Return an array's bytes, little-endian."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def from_bytes(stored: bytes, dtype: Any) -> npt.NDArray[Any]:
    """Return the array of these bytes; it is read-only."""
    return np.frombuffer(stored, np.dtype(dtype).newbyteorder("<"))


def block_record(corpus: Rows, rows: npt.NDArray[np.intp]) -> BlockRecord:
    """Return the lasting columns of ``rows``."""
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
    return BlockRecord(columns, names, partitions)


def changing_record(corpus: Rows, rows: npt.NDArray[np.intp]) -> dict[str, bytes]:
    """Return the changing columns of ``rows``."""
    return {name: to_bytes(corpus.column(name)[rows]) for name in CHANGING}


def add_block(
    corpus: Rows, block: BlockRecord, changing: dict[str, bytes], partition: Callable[[bytes], Any]
) -> None:
    """Add the rows of a block, whose postings follow.

    Args:
        corpus: Where to.
        block: Their lasting columns.
        changing: Their other columns.
        partition: Decodes partitions.
    """
    columns = {name: from_bytes(block.columns[name], TYPES[name]) for name in LASTING}
    columns |= {name: from_bytes(changing[name], TYPES[name]) for name in CHANGING}
    for name in NAMED:
        used = (
            [partition(stored) for stored in block.partitions] if name == "partition" else block.names[name]
        )
        number = corpus.names[name].number
        # The last place is what -1 means.
        numbers = np.array([*map(number, used), -1], np.int32)
        columns[name] = numbers[from_bytes(block.columns[name], np.int32)]
    corpus.extend(len(columns["id"]), columns)


def chunk_record(chunk: Chunk) -> ChunkRecord:
    """Return a chunk of postings as a record."""
    return ChunkRecord(list(chunk.terms), to_bytes(chunk.ends), to_bytes(chunk.rows), to_bytes(chunk.times))


def chunk(record: ChunkRecord) -> Chunk:
    """Return the chunk of a record."""
    ends, rows = from_bytes(record.ends, np.uint32), from_bytes(record.rows, np.int32)
    return Chunk(record.terms, ends, rows, from_bytes(record.times, np.uint16))


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
