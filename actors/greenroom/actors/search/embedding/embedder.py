"""The interface of embedders, texts in, vectors out; which one is chosen; the words of a query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from greenroom.actors.content.text.analyze import spans
from greenroom.actors.core.replies.memory_types import QueryVectors, Vectors

EMBEDDED_CHARACTERS = 8_192
"""Of a longer text this many characters are embedded: the rest is found by its words."""
ALLOWED = "auto, minilm, static, none, onnx:DIR, http:URL or python:MODULE:CLASS is allowed"
MODEL_BYTES = 120
"""Longest name of an endpoint's model: it is part of keys in the store."""
_CLASS: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def embedded_part(text: str) -> str:
    """Return the part of a text that is embedded: its beginning, with ``?`` for what has no UTF-8."""
    beginning = text[:EMBEDDED_CHARACTERS]
    return beginning if beginning.isascii() else beginning.encode(errors="replace").decode()


class LocalEmbedder(Protocol):
    """An embedder that calculates in this process. It may be used by several threads at once.

    Attributes:
        space: The name of its vectors: no two embedders whose vectors cannot be compared have the same.
        dimensions: How many numbers a vector has.
        has_tokens: Whether it also has vectors of a text's tokens.
        is_quick: Whether a text takes so little time that the event loop can do it by the way.
        batch: How many texts are done from one commit to the next, within some seconds.
        group: How many of about the same length are given at once, so that it returns soon.
        threads: How many threads may have it work at once.
    """

    space: str
    dimensions: int
    has_tokens: bool
    is_quick: bool
    batch: int
    group: int
    threads: int

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept. One without any word has vectors of zeros."""

    def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for."""


class Embedder(Protocol):
    """An embedder that is waited for, be it a thread of this process or an endpoint.

    Attributes:
        space: As in `LocalEmbedder`.
        dimensions: As in `LocalEmbedder`.
        has_tokens: As in `LocalEmbedder`.
        batch: As in `LocalEmbedder`.
        quick: The embedder itself when its `LocalEmbedder.is_quick` is true, else None.
    """

    space: str
    dimensions: int
    has_tokens: bool
    batch: int
    quick: LocalEmbedder | None

    async def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept.

        Raises:
            TextRefusedError: one of the texts cannot be embedded.
            EmbedderError: nothing can be embedded now.
        """

    async def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for.

        Raises:
            EmbedderError: nothing can be embedded now.
        """

    async def aclose(self) -> None:
        """Give back what it holds."""


class Word(NamedTuple):
    """A word and where in the text it stands."""

    start: int
    end: int
    spelling: str


def words_of(text: str) -> list[Word]:
    """Return a text's words in order; runs of symbols are none."""
    return [Word(*found) for found in spans(text) if any(map(str.isalnum, found[2]))]


def words_of_tokens(
    words: list[Word], offsets: list[tuple[int, int]], prompt: int = 0
) -> tuple[list[str], list[int]]:
    """Return the word of each token that is part of one, and the numbers of these tokens.

    Args:
        words: The text's words, in order.
        offsets: Where the tokens stand, in order.
        prompt: How many characters stand before the text.
    """
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
    """The embedder that is configured.

    Attributes:
        kind: ``auto`` for the best one that is at hand, ``minilm`` for the installed model of sentences,
            ``static`` for word vectors that ship with the program, ``onnx`` for a model in a folder,
            ``http`` for an endpoint, ``python`` for a class, ``none`` for none.
        place: The folder (or the ``.onnx`` file in it), the URL, or module and class.
        model: The name of the endpoint's model.
        key: What the endpoint knows us by.
        models: The folder of installed models; None for the user's.
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

    Args:
        text: ``auto``, ``minilm``, ``static``, ``none``, ``onnx:DIR``, ``http:URL`` or
            ``python:MODULE:CLASS``; a URL may stand alone.
        model: The name of the endpoint's model; without meaning for the others.
        key: What the endpoint knows us by, likewise.
        models: The folder of installed models; None for the user's.

    Raises:
        ValueError: it is none of these, or an endpoint has no model.
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
