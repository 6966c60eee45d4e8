"""Reading a file of tensors without copying it.

The format: eight bytes with the length of a JSON header, the header, the numbers. The header
gives each tensor's type, shape and place among the numbers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from greenroom.actors.embedding.errors import EmbedderError

if TYPE_CHECKING:
    from pathlib import Path

_TYPES: Final = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}
_LENGTH_BYTES: Final = 8
_HEADER_LIMIT: Final = 100_000_000  # bytes, the format's own limit


def tensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the file's tensors by name; their numbers stay in the file until they are looked at.

    Raises:
        EmbedderError: the file cannot be read or is not of this format.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            header: dict[str, Any] = json.loads(file.read(length) if length <= _HEADER_LIMIT else b"")
        start = _LENGTH_BYTES + length
        return {name: _tensor(path, start, about) for name, about in header.items() if name != "__metadata__"}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise EmbedderError(f"{path} cannot be read as safetensors: {error}") from error


def _tensor(path: Path, start: int, about: dict[str, Any]) -> np.ndarray[Any, Any]:
    begin, end = about["data_offsets"]
    shape = tuple(about["shape"])
    if end == begin:
        return np.zeros(shape, _TYPES[about["dtype"]])
    return np.memmap(path, _TYPES[about["dtype"]], "r", start + begin, shape)
