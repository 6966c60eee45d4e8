"""The interface of embedders, the choice of an embedder, and the words of a query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from greenroom.actors.content.text.analyze import spans
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

EMBEDDED_CHARACTERS = 8_192
"""Only this many characters of a text are embedded, the first ones; searches find the rest by its words."""
ALLOWED = "auto, minilm, static, none, onnx:DIR, http:URL or python:MODULE:CLASS is allowed"
MODEL_BYTES = 120
"""The longest name of an endpoint's model, in bytes; keys in the store contain it."""
_CLASS: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def embedded_part(text: str) -> str:
    """Return the beginning of a text, which is embedded, with ``?`` for lone surrogates."""
    beginning = text[:EMBEDDED_CHARACTERS]
    return beginning if beginning.isascii() else beginning.encode(errors="replace").decode()


class LocalEmbedder(Protocol):
    """An embedder that calculates in this process, from several threads at once.

    Attributes:
        space: The name of its vector space. Embedders with incomparable vectors have different spaces.
        is_quick: Whether it embeds a text so fast that the event loop can do it.
        batch: The number of texts between two commits; they take some seconds.
        group: The number of texts of similar length in one call, so that the call returns soon.
        threads: The number of threads that may call it at once.
    """

    space: str
    dimensions: int
    has_tokens: bool = False
    is_quick: bool = False
    batch: int
    group: int
    threads: int = 1

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts; a text without a word has vectors of zeros."""

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query."""


class Embedder(Protocol):
    """An asynchronous `LocalEmbedder`: in a thread of this process, or an endpoint."""

    space: str
    dimensions: int
    has_tokens: bool
    batch: int
    quick: LocalEmbedder | None

    async def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts, or raise an `EmbedderError`."""

    async def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query, or raise an `EmbedderError`."""

    async def aclose(self) -> None:
        """Release its resources."""


def group_by_length(lengths: Sequence[int], most: int, total: int) -> list[list[int]]:
    """Group texts by length, up to ``most`` texts or padded length ``total``; return their numbers."""
    groups: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        fits = groups and len(groups[-1]) < most
        if fits and (len(groups[-1]) + 1) * lengths[number] <= total:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


class Word(NamedTuple):
    """A word and its position in the text."""

    start: int
    end: int
    spelling: str


def words_of(text: str) -> list[Word]:
    """Return a text's words in order, without runs of symbols."""
    return [Word(*found) for found in spans(text) if any(map(str.isalnum, found[2]))]


def words_of_tokens(
    words: list[Word], offsets: list[tuple[int, int]], prompt: int = 0
) -> tuple[list[str], list[int]]:
    """Return the words, and the numbers of the tokens in words, after ``prompt`` characters."""
    spellings: list[str] = []
    chosen: list[int] = []
    place = 0
    for number, (start, end) in enumerate(offsets):
        while place < len(words) and words[place].end + prompt <= start:
            place += 1
        if place < len(words) and start < end and words[place].start + prompt < end:
            spellings.append(words[place].spelling)
            chosen.append(number)
    return spellings, chosen


@dataclass(frozen=True, kw_only=True)
class EmbedderChoice:
    """The configured embedder.

    Attributes:
        kind: ``auto`` for the best available embedder, ``minilm`` for the installed sentence model,
            ``static`` for the bundled word vectors, ``onnx`` for a model in a folder, ``http`` for an
            endpoint, ``python`` for a class, ``none`` for no embedder.
        place: The folder (or the ``.onnx`` file in it), the URL, or module and class.
        models: The folder of installed models; None for the user's folder.
    """

    kind: Literal["auto", "minilm", "static", "none", "onnx", "http", "python"]
    place: str = ""
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    models: Path | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}" if self.place else self.kind


def read_choice(
    text: str, *, model: str | None = None, key: str | None = None, models: Path | None = None
) -> EmbedderChoice:
    """Parse a choice such as ``onnx:/models/minilm`` or ``http://127.0.0.1:11434/v1``.

    A URL may stand alone. ``model`` and ``key`` belong to an endpoint. ``models`` is the folder of installed
    models; None stands for the user's folder.

    Raises:
        ValueError: The text is no such choice, or an endpoint has no model.
    """
    match text:
        case "auto" | "minilm" | "static" | "none":
            return EmbedderChoice(kind=text, models=models)
    scheme, _, rest = text.partition(":")
    if scheme == "python" and _CLASS.fullmatch(rest):
        return EmbedderChoice(kind="python", place=rest)
    if scheme == "onnx" and rest:
        return EmbedderChoice(kind="onnx", place=rest)
    url = text if rest.startswith("//") else rest
    if scheme in {"http", "https"} and _is_url(url):
        if not model:
            raise ValueError(f"the embedder {text} needs the name of its model (embedder_model)")
        if not model.isprintable() or len(model.encode()) > MODEL_BYTES:
            raise ValueError(f"embedder_model is {model!r}, and may be {MODEL_BYTES} printable bytes long")
        return EmbedderChoice(kind="http", place=url.rstrip("/"), model=model, key=key)
    raise ValueError(f"the embedder is {text!r}, but {ALLOWED}")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
