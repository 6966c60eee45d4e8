"""Word vectors that ship with the program, for texts that are compared without a model.

They were distilled from a model of sentences, so that the sum of the vectors of a text's tokens points to
where the model sees the text: `bench.distill` makes them, and `word_vectors/NOTICE.md` says of what. A text's
vector depends on no other text. A query's words stay apart: whoever searches knows how rare each is, and
weights it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from greenroom.actors.core.replies.memory_types import QueryVectors, Vectors
from greenroom.actors.search.embedding import quantization, rows
from greenroom.actors.search.embedding.embedder import embedded_part, words_of
from greenroom.actors.search.embedding.errors import EmbedderError
from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.embedding.models.wordpiece import WordPiece

FOLDER: Final = Path(__file__).parent / "word_vectors"
VOCABULARY: Final = "vocabulary.txt"
WEIGHTS: Final = "vectors.safetensors"


class StaticEmbedder:
    """Word vectors; see `LocalEmbedder`.

    Args:
        tokenizer: Takes texts apart.
        rows: The vector of each token in small integers. That of the unknown token is of zeros.
        scales: What one of these integers is, in each row.
    """

    space = rows.STATIC
    has_tokens = False
    is_quick = True
    batch = 256
    group = 256
    threads = 1

    def __init__(
        self, tokenizer: WordPiece, rows: np.ndarray[Any, Any], scales: np.ndarray[Any, Any]
    ) -> None:
        self._tokenizer = tokenizer
        self._rows = np.asarray(rows)  # where it is mapped, without what a mapped array does at each look
        self._scales = np.array(scales, np.float32)
        self.dimensions: int = rows.shape[1]

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept."""
        # The mean's direction is the sum's, and more is not kept.
        return [quantization.quantized(self._sum(embedded_part(text))) for text in texts]

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for: of each word the sum of its tokens'."""
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
    """Return the embedder; once loaded it serves the whole process.

    Raises:
        EmbedderError: its files are damaged.
    """
    try:
        words = (folder / VOCABULARY).read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise EmbedderError(f"the word vectors are damaged, install Greenroom again: {error}") from error
    found = read_tensors(folder / WEIGHTS)
    rows, scales = found.get("rows"), found.get("scales")
    if rows is None or scales is None or not len(words) == len(rows) == len(scales):
        raise EmbedderError(f"the word vectors in {folder} are damaged, install Greenroom again")
    return StaticEmbedder(WordPiece({word: id_ for id_, word in enumerate(words)}), rows, scales)
