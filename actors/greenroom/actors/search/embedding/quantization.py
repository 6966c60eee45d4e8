"""Vectors as arrays: of unit length, and quantized to int8."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding.vector_messages import Vectors

Floats = npt.NDArray[np.float32]

_MOST = 127  # the largest int8 used; -128 is not used, so that a vector and its opposite are stored alike


def normalize(rows: Floats) -> Floats:
    """Scale rows to unit length; a row of zeros stays as it is."""
    lengths = np.sqrt(np.einsum("...i,...i->...", rows, rows))[..., np.newaxis]
    made: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return made


def quantize(sentence: Floats, tokens: Floats | None = None) -> Vectors:
    """Return a text's vectors in the stored form."""
    small = _to_int8(sentence)
    length = float(np.sqrt(np.einsum("i,i->", small, small, dtype=np.float64)))
    scale = 1 / length if length else 0.0  # from the rounded numbers, so that the length is exactly 1
    if tokens is None:
        return Vectors(scale=scale, values=small.tobytes())
    rows = normalize(tokens)
    token_scale = float(np.abs(rows).max(initial=0.0)) / _MOST
    return Vectors(
        scale=scale, values=small.tobytes(), tokens=_to_int8(rows).tobytes(), token_scale=token_scale
    )


def _to_int8(numbers: Floats) -> npt.NDArray[np.int8]:
    """Scale numbers to integers; the largest becomes 127."""
    most = np.abs(numbers).max(initial=0.0)
    return np.rint(numbers * (_MOST / most) if most else numbers).astype(np.int8)
