"""MiniLM in numpy, which runs everywhere."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding.models.minilm_weights import HEAD_SIZE, Norm, Weights
from greenroom.actors.search.embedding.quantization import Floats

_EPSILON: Final = 1e-12
_CUBIC: Final = 0.044715
_AT_ONCE: Final = 128  # rows of the wide part that stay in a core's cache during Gelu


class NumpyModel:
    """The encoder; see `Model`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def run(self, ids: npt.NDArray[np.int64], mask: Floats) -> Floats:
        """Return the vectors of tokens, by text and place."""
        texts, places = ids.shape
        rows = self._weights.embedded(ids).reshape(texts * places, -1)
        rows = _normalize(rows, self._weights.first_norm)
        for layer in self._weights.layers:
            found = layer.joined(_attend(layer.attention(rows), mask, self._weights.heads))
            found += rows
            rows = _normalize(found, layer.joined_norm)
            found = layer.outer(_gelu(layer.inner(rows)))
            found += rows
            rows = _normalize(found, layer.outer_norm)
        return rows.reshape(texts, places, -1)


def _attend(rows: Floats, mask: Floats, heads: int) -> Floats:
    """Return the output of all attention heads, from query, key and value of each token."""
    texts, places = mask.shape
    query, key, value = rows.reshape(texts, places, 3, heads, HEAD_SIZE).transpose(2, 0, 3, 1, 4)
    weights: Floats = query @ key.swapaxes(2, 3)
    weights *= np.float32(1 / math.sqrt(HEAD_SIZE))
    weights += mask[:, np.newaxis, np.newaxis]
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    found: Floats = (weights @ value).swapaxes(1, 2).reshape(texts * places, -1)
    return found


def _normalize(rows: Floats, norm: Norm) -> Floats:
    """Normalize rows, in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", rows, rows) / np.float32(rows.shape[1])
    rows *= (1 / np.sqrt(variance + np.float32(_EPSILON)))[:, np.newaxis]
    rows *= norm.weight
    rows += norm.bias
    return rows


def _gelu(rows: Floats) -> Floats:
    """Apply Gelu in place, approximated with tanh to within 0.0005."""
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        found = some * some
        found *= _CUBIC
        found += 1
        found *= some
        found *= math.sqrt(2 / math.pi)
        np.tanh(found, out=found)
        found += 1
        found *= 0.5
        some *= found
    return rows
