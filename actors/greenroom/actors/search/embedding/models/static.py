"""The bundled word vectors, which compare texts without a model.

`bench.distill` distills them from a sentence model, which `word_vectors/NOTICE.md` names. The sum of the
vectors of a text's tokens approximates the model's vector of the text. A text's vector does not depend on
other texts. The words of a query stay separate, since the search knows their rarity and weights them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from greenroom.actors.search.embedding import quantization, rows
from greenroom.actors.search.embedding.embedder import LocalEmbedder, embedded_part, words_of
from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.embedding.models.wordpiece import WordPiece
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

FOLDER: Final = Path(__file__).parent / "word_vectors"
VOCABULARY: Final = "vocabulary.txt"
WEIGHTS: Final = "vectors.safetensors"


class StaticEmbedder(LocalEmbedder):
    """Word vectors in int8, each row with its own scale; see `LocalEmbedder`."""

    space = rows.STATIC
    is_quick = True
    batch = 256
    group = 256

    def __init__(
        self, tokenizer: WordPiece, rows: np.ndarray[Any, Any], scales: np.ndarray[Any, Any]
    ) -> None:
        self._tokenizer = tokenizer
        self._rows = np.asarray(rows)  # a plain view of a mapped array is faster to index
        self._scales = np.array(scales, np.float32)
        self.dimensions: int = rows.shape[1]

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts."""
        # The sum has the direction of the mean, and only the direction is stored.
        return [quantization.quantize(self._sum(embedded_part(text))) for text in texts]

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query: for each word, the sum of its token vectors."""
        words = [word.spelling for word in words_of(embedded_part(text))]
        found = {word: self._sum(word).tobytes() for word in dict.fromkeys(words)}
        return QueryVectors(space=self.space, words=words, rows=b"".join(map(found.__getitem__, words)))

    def _sum(self, text: str) -> quantization.Floats:
        """Return the sum of the vectors of a text's tokens."""
        ids = np.array(self._tokenizer.ids(text), np.intp)
        rows = self._rows.take(ids, axis=0).astype(np.float32)
        rows *= self._scales.take(ids)[:, np.newaxis]
        total: quantization.Floats = np.add.reduce(rows)
        return total


@functools.cache
def load_static(folder: Path = FOLDER) -> StaticEmbedder:
    """Load the embedder, once for the whole process."""
    try:
        words = (folder / VOCABULARY).read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise EmbedderError(f"the word vectors are damaged, install Greenroom again: {error}") from error
    found = read_tensors(folder / WEIGHTS)
    rows, scales = found.get("rows"), found.get("scales")
    if rows is None or scales is None or not len(words) == len(rows) == len(scales):
        raise EmbedderError(f"the word vectors in {folder} are damaged, install Greenroom again")
    return StaticEmbedder(WordPiece({word: id_ for id_, word in enumerate(words)}), rows, scales)
