"""MiniLM in onnxruntime, two to three times as fast as numpy.

This module writes the graph as the bytes of an ONNX file. Activations are rounded row by row and block by
block, so a text's vectors do not depend on the other texts in the same call.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models.minilm_weights import BLOCK, HEAD_SIZE, Matrix, Norm, Weights
from greenroom.actors.search.embedding.models.onnx_runtime import onnxruntime
from greenroom.actors.search.embedding.quantization import Floats

_EPSILON: Final = 1e-12
_FATAL: Final = 4
_TO_INT8: Final = 4  # with this accuracy level, rows are rounded to int8
_ROWS, _MASK, _RESULT = "rows", "mask", "result"


class OnnxModel:
    """The encoder; see `Model`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the caller distributes texts among threads
        options.enable_mem_pattern = False  # it would keep memory for each length of a text
        options.enable_cpu_mem_arena = False  # this would keep memory, too, and is no faster
        options.log_severity_level = _FATAL  # errors are raised as exceptions, too
        graph = _Graph(weights).model()
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's own classes have no common base
            raise EmbedderError(f"onnxruntime does not take MiniLM: {error}") from error

    def run(self, ids: npt.NDArray[np.int64], mask: Floats) -> Floats:
        """Return the vectors of tokens, by text and place."""
        feeds = {_ROWS: self._weights.embedded(ids), _MASK: mask[:, np.newaxis, np.newaxis]}
        try:
            (found,) = self._session.run([_RESULT], feeds)
        except Exception as error:  # as above
            raise EmbedderError(f"onnxruntime failed: {error}") from error
        made: Floats = found
        return made


class _Graph:
    """The encoder as ONNX nodes, in the order of the calculation."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}

    def model(self) -> bytes:
        """Return the bytes of the file."""
        rows = self._norm("first", self._weights.first_norm, _ROWS)
        for number, layer in enumerate(self._weights.layers):
            name = f"layer{number}"
            found = self._linear(f"{name}joined", layer.joined, self._attention(name, layer.attention, rows))
            rows = self._norm(f"{name}norm", layer.joined_norm, self._node("Add", found, rows))
            wide = self._node("Gelu", self._linear(f"{name}inner", layer.inner, rows), approximate="tanh")
            found = self._linear(f"{name}outer", layer.outer, wide)
            rows = self._norm(f"{name}last", layer.outer_norm, self._node("Add", found, rows))
        self._nodes.append(_node("Identity", [rows], _RESULT, {}))
        width = self._weights.width
        graph = b"".join(
            (
                *(_message(1, node) for node in self._nodes),
                _text(2, "minilm"),
                *(_message(5, tensor) for tensor in self._constants.values()),
                _message(11, _value(_ROWS, ["texts", "places", width])),
                _message(11, _value(_MASK, ["texts", 1, 1, "places"])),
                _message(12, _value(_RESULT, ["texts", "places", width])),
            )
        )
        operators = [_text(1, "") + _integer(2, 20), _text(1, _MICROSOFT) + _integer(2, 1)]
        return _integer(1, 9) + _message(7, graph) + b"".join(_message(8, each) for each in operators)

    def _attention(self, name: str, matrix: Matrix, rows: str) -> str:
        heads, width = self._weights.heads, self._weights.width
        both = self._linear(f"{name}attention", matrix, rows)
        shape = self._constant("parts", np.array([0, 0, 3, heads, HEAD_SIZE], np.int64))
        parts = self._node("Transpose", self._node("Reshape", both, shape), perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self._node("Gather", parts, self._constant(f"part{number}", np.int64(number)), axis=0)
            for number in range(3)
        )
        scores = self._node("MatMul", query, self._node("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = self._node("Mul", scores, self._constant("scale", np.float32(HEAD_SIZE**-0.5)))
        weights = self._node("Softmax", self._node("Add", scaled, _MASK), axis=-1)
        mixed = self._node("Transpose", self._node("MatMul", weights, value), perm=[0, 2, 1, 3])
        return self._node("Reshape", mixed, self._constant("joined", np.array([0, 0, width], np.int64)))

    def _linear(self, name: str, matrix: Matrix, given: str) -> str:
        out, blocks, _ = matrix.numbers.shape
        product = self._node(
            "MatMulNBits",
            given,
            self._constant(f"{name}numbers", matrix.numbers),
            self._constant(f"{name}scales", matrix.scales.reshape(-1)),
            domain=_MICROSOFT,
            K=blocks * BLOCK,
            N=out,
            bits=8,
            block_size=BLOCK,
            accuracy_level=_TO_INT8,
        )
        return self._node("Add", product, self._constant(f"{name}bias", matrix.bias))

    def _norm(self, name: str, norm: Norm, given: str) -> str:
        weight = self._constant(f"{name}weight", norm.weight)
        bias = self._constant(f"{name}bias", norm.bias)
        return self._node("LayerNormalization", given, weight, bias, axis=-1, epsilon=_EPSILON)

    def _node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        result = f"{kind}{len(self._nodes)}"
        self._nodes.append(_node(kind, inputs, result, attributes, domain))
        return result

    def _constant(self, name: str, value: Any) -> str:
        self._constants.setdefault(name, _tensor(name, np.asarray(value)))
        return name


# -- ONNX's messages, as Protocol Buffers: a number for each field, then its content -------------

_MICROSOFT: Final = "com.microsoft"
_TYPES: Final = {"float32": 1, "uint8": 2, "int64": 7}
_FLOAT, _INTEGER, _STRING, _INTEGERS = 1, 2, 3, 7


def _node(kind: str, inputs: Any, result: str, attributes: dict[str, Any], domain: str = "") -> bytes:
    return b"".join(
        (
            *(_text(1, each) for each in inputs),
            _text(2, result),
            _text(3, result),
            _text(4, kind),
            *(_message(5, _attribute(name, value)) for name, value in attributes.items()),
            _text(7, domain),
        )
    )


def _attribute(name: str, value: Any) -> bytes:
    match value:
        case float():
            number = np.float32(value).tobytes()
            return _text(1, name) + _varint(2 << 3 | 5) + number + _integer(20, _FLOAT)
        case int():
            return _text(1, name) + _integer(3, value) + _integer(20, _INTEGER)
        case str():
            return _text(1, name) + _text(4, value) + _integer(20, _STRING)
        case _:
            return _text(1, name) + b"".join(_integer(8, each) for each in value) + _integer(20, _INTEGERS)


def _tensor(name: str, value: npt.NDArray[Any]) -> bytes:
    sizes = b"".join(_integer(1, size) for size in value.shape)
    return sizes + _integer(2, _TYPES[value.dtype.name]) + _text(8, name) + _message(9, value.tobytes())


def _value(name: str, shape: list[str | int]) -> bytes:
    sizes = (_integer(1, size) if isinstance(size, int) else _text(2, size) for size in shape)
    tensor = _integer(1, _TYPES["float32"]) + _message(2, b"".join(_message(1, size) for size in sizes))
    return _text(1, name) + _message(2, _message(1, tensor))


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value & (1 << 64) - 1)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits in each byte
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
