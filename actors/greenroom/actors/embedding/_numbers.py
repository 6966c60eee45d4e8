"""Vectors as numbers: of unit length, and as small integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from greenroom.actors.requests._vectors import Vectors

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

_MOST = 127  # of an int8, whose -128 is not used, so that a vector and its opposite are stored alike


def unit(rows: Floats) -> Floats:
    """Return rows of unit length; one of zeros stays as it is."""
    lengths = np.sqrt(np.einsum("...i,...i->...", rows, rows))[..., np.newaxis]
    made: Floats = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return made


def kept(sentence: Floats, tokens: Floats | None = None) -> Vectors:
    """Return a text's vectors as they are kept.

    Args:
        sentence: The vector of the text, of any length.
        tokens: Those of its tokens, a row each.
    """
    scale, values = _small(unit(sentence))
    if tokens is None:
        return Vectors(scale=scale, values=values)
    token_scale, token_values = _small(unit(tokens))
    return Vectors(scale=scale, values=values, tokens=token_values, token_scale=token_scale)


def _small(numbers: Floats) -> tuple[float, bytes]:
    most = float(np.abs(numbers).max(initial=0.0))
    if most == 0.0:
        return 0.0, bytes(numbers.size)
    scale = most / _MOST
    return scale, np.rint(numbers / np.float32(scale)).astype(np.int8).tobytes()
