"""The choice of an embedder: the value of `--embedder`, parsed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

ALLOWED = "static, none, onnx:DIR or http:URL is allowed"
MODEL_BYTES = 120
"""Longest name of an endpoint's model: it is part of keys in the store."""


@dataclass(frozen=True, kw_only=True)
class EmbedderChoice:
    """The embedder that is configured.

    Attributes:
        kind: ``static`` for word vectors that ship with the program, ``onnx`` for a model in a folder,
            ``http`` for an endpoint, ``none`` for none.
        place: The folder (or the ``.onnx`` file in it), or the URL.
        model: The name of the endpoint's model.
        key: What the endpoint knows us by.
    """

    kind: Literal["static", "none", "onnx", "http"]
    place: str = ""
    model: str | None = None
    key: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}" if self.place else self.kind


def read_choice(text: str, *, model: str | None = None, key: str | None = None) -> EmbedderChoice:
    """Parse a choice such as ``onnx:/models/minilm`` or ``http://127.0.0.1:11434/v1``.

    Args:
        text: ``static``, ``none``, ``onnx:DIR`` or ``http:URL``; a URL may stand alone.
        model: The name of the endpoint's model; without meaning for the others.
        key: What the endpoint knows us by, likewise.

    Raises:
        ValueError: it is none of these, or an endpoint has no model.
    """
    if text == "static":
        return EmbedderChoice(kind="static")
    if text == "none":
        return EmbedderChoice(kind="none")
    scheme, _, rest = text.partition(":")
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
