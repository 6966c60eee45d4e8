"""An embedder class that the user wrote: ``python:MODULE:CLASS``.

The class is called without arguments. Its object has `embed`, which returns a row of numbers for each text.
It may have `embed_query`, which returns one row for a query, if that differs. It may have `name`,
which must change when its vectors change, so that everything is embedded anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from greenroom.actors.core.replies.memory_types import MAX_DIMENSIONS
from greenroom.actors.search.embedding import quantization
from greenroom.actors.search.embedding.embedder import (
    MODEL_BYTES,
    EmbedderChoice,
    LocalEmbedder,
    embedded_part,
)
from greenroom.actors.search.embedding.errors import EmbedderError, ModelMissingError
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

_PROBE: Final = "probe"
_FAULTS: Final = (Exception, SystemExit)
"""Exceptions of the user's class; none of them may stop the server."""


class PythonEmbedder(LocalEmbedder):
    """An object of the user's class; see `LocalEmbedder`."""

    batch = 32
    group = 32

    def __init__(self, place: str, made: Any) -> None:
        self._place = place
        self._embed: Callable[[list[str]], Any] = made.embed
        self._embed_query: Callable[[str], Any] = getattr(made, "embed_query", self._embed_one)
        name = getattr(made, "name", place)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= MODEL_BYTES:
            raise EmbedderError(
                f"{place} is called {name!r}, and a name may be {MODEL_BYTES} printable bytes long"
            )
        self.dimensions = 0
        self.dimensions = self._rows(self._embed, [_PROBE], 1).shape[1]
        self.space = f"python:{name}:{self.dimensions}"

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts."""
        rows = self._rows(self._embed, [embedded_part(text) for text in texts], len(texts))
        return [quantization.quantize(row) for row in rows]

    def query(self, text: str) -> QueryVectors:
        """Return the vector of a query."""
        (row,) = self._rows(lambda one: [self._embed_query(one)], embedded_part(text), 1)
        sentence = quantization.normalize(row).tobytes()
        return QueryVectors(space=self.space, words=[], rows=b"", sentence=sentence)

    def _embed_one(self, text: str) -> Any:
        (row,) = self._embed([text])
        return row

    def _rows(self, embed: Callable[[Any], Any], given: Any, count: int) -> quantization.Floats:
        """Call the object, and check the result."""
        try:
            rows = np.asarray(embed(given), np.float32)
        except _FAULTS as error:
            raise EmbedderError(f"{self._place} failed: {error!r}") from error
        wanted = (count, self.dimensions or (rows.shape[-1] if rows.ndim else 0))
        if rows.shape != wanted or not 0 < wanted[1] <= MAX_DIMENSIONS:
            raise EmbedderError(
                f"{self._place} makes numbers of the shape {rows.shape} of {count} texts, and a row for each "
                f"is wanted, of {self.dimensions or 'some'} dimensions and at most {MAX_DIMENSIONS:,}"
            )
        if not np.isfinite(rows).all():
            raise EmbedderError(f"{self._place} makes numbers that are not finite")
        return rows


def load_python(choice: EmbedderChoice) -> PythonEmbedder:
    """Import the class and make the embedder."""
    module, _, name = choice.place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ModelMissingError(f"the embedder {choice} is not there: {error}") from error
    except _FAULTS as error:
        raise EmbedderError(f"the embedder {choice} cannot be imported: {error!r}") from error
    try:
        made = found()
    except _FAULTS as error:
        raise EmbedderError(f"the embedder {choice} cannot be made: {error!r}") from error
    if not callable(getattr(made, "embed", None)):
        raise EmbedderError(f"the embedder {choice} has no method embed")
    return PythonEmbedder(choice.place, made)
