"""The weights of MiniLM in int8: prepared once, and read by the backends.

A matrix is stored in blocks of 32 numbers of a row, each block with its own scale, in the layout of
onnxruntime's `MatMulNBits`: a number from -127 to 127 is stored in 8 bits, after adding 128.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models import safetensors
from greenroom.actors.search.embedding.models.safetensors import Tensor
from greenroom.actors.search.embedding.quantization import Floats

Bytes = npt.NDArray[np.uint8]

BLOCK: Final = 32
LONGEST: Final = 256
"""Only this many tokens of a text are used, as in the published model."""
HEAD_SIZE: Final = 32
_MIDDLE: Final = 128
_MOST: Final = 127
_WORDS, _PLACES, _FIRST_NORM = "words", "places", "first_norm"


@dataclass(frozen=True)
class Matrix:
    """A matrix in int8, by row, block and number, and its bias vector."""

    numbers: Bytes
    scales: Floats
    bias: Floats

    def __call__(self, given: Floats) -> Floats:
        """Return the product of some rows and the matrix, with the bias."""
        found: Floats = given @ self._floats
        found += self.bias
        return found

    @cached_property
    def _floats(self) -> Floats:
        """The matrix, with a row for each input."""
        rows = self.numbers.astype(np.float32)
        rows -= _MIDDLE
        rows *= self.scales[..., np.newaxis]
        return np.ascontiguousarray(rows.reshape(len(rows), -1).T)


@dataclass(frozen=True)
class Norm:
    """The factor and the summand of a layer's normalization."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Layer:
    """One layer of the encoder: attention with query, key and value, then the wider part."""

    attention: Matrix
    joined: Matrix
    joined_norm: Norm
    inner: Matrix
    outer: Matrix
    outer_norm: Norm


@dataclass(frozen=True)
class Weights:
    """The whole model."""

    words: npt.NDArray[np.int8]
    word_scales: Floats
    places: Floats
    first_norm: Norm
    layers: list[Layer]

    @property
    def width(self) -> int:
        """The number of numbers in a token's vector."""
        return int(self.words.shape[1])

    @property
    def heads(self) -> int:
        """The number of heads of a layer's attention."""
        return self.width // HEAD_SIZE

    def embedded(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Return the sums that the first layer normalizes, for token numbers by text and place."""
        found: Floats = self.words[ids].astype(np.float32)
        found *= self.word_scales[ids][..., np.newaxis]
        found += self.places[: ids.shape[1]]
        return found


_PARTS: Final = {
    "joined": "attention.output.dense",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}
_NORMS: Final = {"joined_norm": "attention.output.LayerNorm", "outer_norm": "output.LayerNorm"}


def prepare_weights(source: Path, target: Path) -> None:
    """Convert published float32 weights of a BERT, with heads of width 32, to int8."""
    given = safetensors.read_tensors(source)
    try:
        made = _prepare(
            {name: _float32(name, value) for name, value in given.items() if value.dtype != np.int64}
        )
    except (KeyError, ValueError, IndexError) as error:
        raise EmbedderError(f"{source} does not hold the weights of MiniLM: {error}") from error
    layers = sum(name.endswith("inner.numbers") for name in made)
    safetensors.write_tensors(target, made, {"layers": str(layers)})


def read_weights(path: Path) -> Weights:
    """Return the weights that `prepare_weights` wrote; most are read from the file when used."""
    given = safetensors.read_tensors(path)
    try:
        count = int(safetensors.read_metadata(path)["layers"])
        parts = [_layer(given, f"{number}.") for number in range(count)]
        return Weights(
            np.asarray(given[f"{_WORDS}.numbers"]),
            np.array(given[f"{_WORDS}.scales"]),
            np.array(given[_PLACES]),
            _norm(given, _FIRST_NORM),
            parts,
        )
    except (KeyError, ValueError) as error:
        raise EmbedderError(f"{path} does not hold the weights of MiniLM: {error!r}") from error


def _float32(name: str, value: Tensor) -> Floats:
    if value.dtype != np.float32 or not np.isfinite(value).all():
        raise ValueError(f"{name} is {value.dtype}, and is to be finite numbers of 32 bits")
    return np.asarray(value)


def _prepare(given: Mapping[str, Floats]) -> dict[str, Tensor]:
    words = given["embeddings.word_embeddings.weight"]
    scales = np.abs(words).max(axis=1) / _MOST
    made: dict[str, Tensor] = {
        f"{_WORDS}.numbers": np.rint(
            words / np.maximum(scales, np.finfo(np.float32).tiny)[:, np.newaxis]
        ).astype(np.int8),
        f"{_WORDS}.scales": scales,
        _PLACES: given["embeddings.position_embeddings.weight"][:LONGEST]
        + given["embeddings.token_type_embeddings.weight"][0],
        **_prepare_norm(given, "embeddings.LayerNorm", _FIRST_NORM),
    }
    number = 0
    while f"encoder.layer.{number}.output.dense.weight" in given:
        source, target = f"encoder.layer.{number}.", f"{number}."
        heads = [f"{source}attention.self.{part}" for part in ("query", "key", "value")]
        made |= _prepare_matrix(
            np.concatenate([given[f"{head}.weight"] for head in heads]),
            np.concatenate([given[f"{head}.bias"] for head in heads]),
            f"{target}attention",
        )
        for part, name in _PARTS.items():
            weight, bias = given[f"{source}{name}.weight"], given[f"{source}{name}.bias"]
            made |= _prepare_matrix(weight, bias, target + part)
        for part, name in _NORMS.items():
            made |= _prepare_norm(given, source + name, target + part)
        number += 1
    return made


def _prepare_matrix(weight: Floats, bias: Floats, target: str) -> dict[str, Tensor]:
    blocks = weight.reshape(len(weight), -1, BLOCK)
    scales = np.abs(blocks).max(axis=2) / _MOST
    small = np.rint(blocks / np.maximum(scales, np.finfo(np.float32).tiny)[..., np.newaxis])
    numbers = (small + _MIDDLE).astype(np.uint8)
    return {f"{target}.numbers": numbers, f"{target}.scales": scales, f"{target}.bias": bias}


def _prepare_norm(given: Mapping[str, Floats], source: str, target: str) -> dict[str, Tensor]:
    return {f"{target}.{part}": given[f"{source}.{part}"] for part in ("weight", "bias")}


def _layer(given: Mapping[str, Tensor], name: str) -> Layer:
    return Layer(
        _matrix(given, f"{name}attention"),
        _matrix(given, f"{name}joined"),
        _norm(given, f"{name}joined_norm"),
        _matrix(given, f"{name}inner"),
        _matrix(given, f"{name}outer"),
        _norm(given, f"{name}outer_norm"),
    )


def _matrix(given: Mapping[str, Tensor], name: str) -> Matrix:
    return Matrix(
        given[f"{name}.numbers"], np.array(given[f"{name}.scales"]), np.array(given[f"{name}.bias"])
    )


def _norm(given: Mapping[str, Tensor], name: str) -> Norm:
    return Norm(np.array(given[f"{name}.weight"]), np.array(given[f"{name}.bias"]))
