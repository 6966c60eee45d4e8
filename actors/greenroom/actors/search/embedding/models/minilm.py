"""MiniLM (all-MiniLM-L6-v2), installed by `greenroom embedder install`, and its encoder in numpy."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding import quantization, rows
from greenroom.actors.search.embedding.embedder import (
    LocalEmbedder,
    embedded_part,
    group_by_length,
    words_of,
    words_of_tokens,
)
from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models.installed_models import TOKENIZER, WEIGHTS
from greenroom.actors.search.embedding.models.minilm_weights import HEAD_SIZE, Norm, Weights, read_weights
from greenroom.actors.search.embedding.models.wordpiece import UNKNOWN, WordPiece
from greenroom.actors.search.embedding.quantization import Floats
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

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
    """Return the output of all attention heads, from each token's query, key and value."""
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


logger = logging.getLogger(__name__)
_FIRST, _LAST = "[CLS]", "[SEP]"
_PADDING: Final = np.float32(-10_000.0)
_TOKENS_AT_ONCE: Final = 512
_VERSION: Final = 1
"""The version of our way to make a text's vectors; after a change everything is embedded anew."""


class Model(Protocol):
    """A backend that runs the encoder, from several threads at once."""

    def run(self, ids: npt.NDArray[np.int64], mask: Floats) -> Floats:
        """Return the vectors of tokens, by text and place; ``mask`` is added to the attention."""


class MiniLmEmbedder(LocalEmbedder):
    """The embedder; see `LocalEmbedder`. It uses ``longest`` tokens of a text, special ones included."""

    has_tokens = True
    batch = 256
    group = 32
    threads = os.cpu_count() or 1

    def __init__(self, vocabulary: Mapping[str, int], model: Model, longest: int, width: int) -> None:
        self._wordpiece = WordPiece(vocabulary)
        self._first, self._last = vocabulary[_FIRST], vocabulary[_LAST]
        self._most = longest - 2
        self._model = model
        self.dimensions = width
        self.space = f"{rows.MINILM}all-MiniLM-L6-v2:{_VERSION}:{width}"

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts."""
        ids = [self._wordpiece.ids(embedded_part(text))[: self._most] for text in texts]
        made: list[Vectors | None] = [None] * len(texts)
        for group in group_by_length([len(each) + 2 for each in ids], len(ids), _TOKENS_AT_ONCE):
            rows = self._run([ids[number] for number in group])
            for number, hidden in zip(group, rows, strict=True):
                made[number] = quantization.quantize(hidden.mean(axis=0), hidden[1:-1])
        return [each for each in made if each is not None]

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query, and of each token with its word."""
        text = embedded_part(text)
        tokens = self._wordpiece.tokens(text)[: self._most]
        (hidden,) = self._run([[token.id for token in tokens]])
        words, chosen = words_of_tokens(words_of(text), [(token.start, token.end) for token in tokens])
        return QueryVectors(
            space=self.space,
            words=words,
            rows=quantization.normalize(hidden[1:-1][chosen]).tobytes(),
            sentence=quantization.normalize(hidden.mean(axis=0)).tobytes(),
        )

    def _run(self, texts: Sequence[Sequence[int]]) -> list[Floats]:
        """Return the vectors of each text's tokens, with a special token at each end."""
        lengths = [len(each) + 2 for each in texts]
        ids = np.zeros((len(lengths), max(lengths)), np.int64)
        mask = np.full(ids.shape, _PADDING, np.float32)
        for row, (each, length) in enumerate(zip(texts, lengths, strict=True)):
            ids[row, :length] = [self._first, *each, self._last]
            mask[row, :length] = 0
        made = self._model.run(ids, mask)
        return [rows[:length] for rows, length in zip(made, lengths, strict=True)]


def load_minilm(folder: Path, check: Callable[[], object]) -> MiniLmEmbedder:
    """Load the embedder from its folder; between the steps it calls ``check``, which may raise."""
    vocabulary = _vocabulary(folder / TOKENIZER)
    check()
    weights = read_weights(folder / WEIGHTS)
    check()
    return MiniLmEmbedder(vocabulary, _model(weights), len(weights.places), weights.width)


def _model(weights: Weights) -> Model:
    """Return the backend: onnxruntime if it is installed, otherwise numpy."""
    try:
        from greenroom.actors.search.embedding.models.minilm_onnx import OnnxModel  # noqa: PLC0415 - may be absent

        return OnnxModel(weights)
    except ImportError:
        pass
    except EmbedderError as error:
        logger.warning("numpy runs it: %s", error)
    return NumpyModel(weights)


def _vocabulary(path: Path) -> dict[str, int]:
    try:
        vocabulary = json.loads(path.read_bytes())["model"]["vocab"]
        if not {_FIRST, _LAST, UNKNOWN} <= vocabulary.keys():
            raise ValueError("its vocabulary is another one")  # noqa: TRY301 - reported like the other errors
        return {str(token): int(number) for token, number in vocabulary.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise EmbedderError(f"{path} cannot be read: {error}") from error
