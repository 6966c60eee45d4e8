"""Word vectors that ship with the program: those of the installed package WordLlama, read directly.

Importing that package takes a second, sets up logging and may download; its files are all
that is needed. A text's vector is the plain mean of its tokens' vectors, so it never depends on
the other texts. A query's words stay apart: whoever searches knows how rare each is, and weights it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import tokenizers

from greenroom.actors.embedding import quantization, rows
from greenroom.actors.embedding.embedder import EmbedderError, embedded_part, words_of
from greenroom.actors.schemas.memory_types import QueryVectors, Vectors

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


_PACKAGE: Final = "wordllama"
_TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
_WORD: Final = "\u2581+[^\u2581]*"
_TENSOR: Final = "embedding.weight"
_AT_ONCE: Final = 32  # texts between two moments in which the event loop can have the interpreter


class StaticEmbedder:
    """Word vectors; see `LocalEmbedder`."""

    space = rows.STATIC
    has_tokens = False
    is_quick = True
    batch = 256

    def __init__(self, tokenizer: tokenizers.Tokenizer, table: np.ndarray[Any, Any]) -> None:
        self._tokenizer = tokenizer
        self._table = np.asarray(table)  # where it is mapped, without what a mapped array does at each look
        self.dimensions: int = table.shape[1]

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept."""
        found: list[Vectors] = []
        for start in range(0, len(texts), _AT_ONCE):
            some = [embedded_part(text) for text in texts[start : start + _AT_ONCE]]
            encodings = self._tokenizer.encode_batch_fast(some, add_special_tokens=False)
            # The mean's direction is the sum's, and more is not kept.
            found.extend(quantization.quantized(*self._sums([encoding.ids])) for encoding in encodings)
        return found

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for: of each word the sum of its tokens'."""
        words = [word.spelling for word in words_of(embedded_part(text))]
        once = list(dict.fromkeys(words))  # of thousands of words most are the same
        encodings = self._tokenizer.encode_batch_fast(once, add_special_tokens=False)
        sums = self._sums([encoding.ids for encoding in encodings])
        rows = {word: each.tobytes() for word, each in zip(once, sums, strict=True)}
        return QueryVectors(space=self.space, words=words, rows=b"".join(map(rows.__getitem__, words)))

    def _sums(self, texts: Sequence[list[int]]) -> list[quantization.Floats]:
        """Return the sum of the vectors of each text's tokens; those of all texts are in memory at once."""
        ids = [*chain.from_iterable(texts)]
        rows = quantization.to_float32(self._table.take(ids, axis=0, mode="clip") if ids else self._table[:0])
        ends = accumulate(map(len, texts))
        return [np.add.reduce(rows[end - len(text) : end]) for text, end in zip(texts, ends, strict=True)]


@functools.cache
def _loaded(folder: Path) -> StaticEmbedder:
    for each in (_TOKENIZER, _WEIGHTS):
        if not (folder / each).is_file():
            raise EmbedderError(
                f"the installed package {_PACKAGE} has no {each}; `pip install -U {_PACKAGE}` brings "
                "one that has, and `--embedder none` does without"
            )
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # the library raises plain Exception
        raise EmbedderError(f"{folder / _TOKENIZER} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # No token goes beyond a word, so that taking them one by one makes no others. But what it keeps of its
    # work are words then, which come again; as it comes, whole texts are kept, 10,000 of 5 KB each.
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(_WORD), "isolated")
    table = tensors(folder / _WEIGHTS).get(_TENSOR)
    if table is None or table.ndim != 2 or not len(table):  # noqa: PLR2004 - a table
        raise EmbedderError(f"{folder / _WEIGHTS} has no table {_TENSOR!r}")
    return StaticEmbedder(tokenizer, table)


def load_static() -> StaticEmbedder:
    """Return the embedder; once loaded it serves the whole process.

    Raises:
        EmbedderError: the package or what is needed of it is not there.
    """
    found = find_spec(_PACKAGE)  # of a top-level package, so nothing of it is imported
    if found is None or found.origin is None:
        raise EmbedderError(
            f"the package {_PACKAGE}, whose word vectors are used, is not installed; "
            f"`pip install {_PACKAGE}` brings it, and `--embedder none` does without"
        )
    return _loaded(Path(found.origin).parent)
