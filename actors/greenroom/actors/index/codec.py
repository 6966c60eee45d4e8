"""Vectors as an embedder makes them, as the index keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.index.arrays import vector_chunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from greenroom.actors.index.records import TokenVectors, VectorChunk
    from greenroom.actors.schemas.vectors import Vectors


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
