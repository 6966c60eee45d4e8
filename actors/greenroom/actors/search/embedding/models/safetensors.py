"""Files in the safetensors format: a header of names, types and shapes, then the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.runtime.base.full_sync import sync_descriptor

Tensor = npt.NDArray[Any]

_TYPES: Final = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "I8": np.int8,
    "I32": np.int32,
    "I64": np.int64,
    "U8": np.uint8,
}
_NAMES: Final = {np.dtype(kind): name for name, kind in _TYPES.items()}
_METADATA: Final = "__metadata__"
_LENGTH_BYTES: Final = 8
_HEADER_LIMIT: Final = 100_000_000  # bytes, the format's own limit
_ALIGNMENT: Final = 64


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return a file's tensors by name, mapped from the file."""
    try:
        header, start = _header(path)
        return {name: _tensor(path, start, about) for name, about in header.items() if name != _METADATA}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise EmbedderError(f"{path} cannot be read as safetensors: {error}") from error


def read_metadata(path: Path) -> dict[str, str]:
    """Return a file's metadata."""
    try:
        return {str(name): str(value) for name, value in _header(path)[0].get(_METADATA, {}).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise EmbedderError(f"{path} cannot be read as safetensors: {error}") from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file of tensors, and wait until it is on disk."""
    header: dict[str, object] = {_METADATA: dict(metadata)}
    end = 0
    for name, tensor in tensors.items():
        offsets = [end, end + tensor.nbytes]
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": [*tensor.shape], "data_offsets": offsets}
        end = offsets[1]
    head = json.dumps(header).encode()
    head += b" " * (-(len(head) + _LENGTH_BYTES) % _ALIGNMENT)  # align the numbers
    with path.open("wb") as file:
        file.write(len(head).to_bytes(_LENGTH_BYTES, "little") + head)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).data)
        file.flush()
        sync_descriptor(file.fileno())


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header, and the offset of the numbers."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header: dict[str, Any] = json.loads(file.read(length) if length <= _HEADER_LIMIT else b"")
    return header, _LENGTH_BYTES + length


def _tensor(path: Path, start: int, about: dict[str, Any]) -> Tensor:
    begin, end = about["data_offsets"]
    shape = tuple(about["shape"])
    if end == begin:
        return np.zeros(shape, _TYPES[about["dtype"]])
    return np.memmap(path, _TYPES[about["dtype"]], "r", start + begin, shape)
