"""Getting the embedder that is wanted, without holding the event loop up."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from greenroom.actors.embedding.embedder import Embedder, EmbedderChoice, EmbedderError, LocalEmbedder
from greenroom.actors.embedding.model_files import read_model_files
from greenroom.actors.schemas.memory_types import QueryVectors, Vectors

if TYPE_CHECKING:
    from greenroom.actors.embedding.http import HttpEmbedder

T = TypeVar("T")


class InThread:
    """A local embedder, waited for; see `Embedder`."""

    def __init__(self, local: LocalEmbedder) -> None:
        self._local = local
        self.space = local.space
        self.dimensions = local.dimensions
        self.has_tokens = local.has_tokens
        self.batch = local.batch
        self.quick = local if local.is_quick else None
        # A query does not wait for texts that are being embedded; more at once would only share the cores.
        self._texts = trio.CapacityLimiter(1)
        self._queries = trio.CapacityLimiter(1)

    async def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of texts that are kept."""
        return await trio.to_thread.run_sync(self._embed, texts, limiter=self._texts)

    def _embed(self, texts: Sequence[str]) -> list[Vectors]:
        if self.quick is not None:
            return self.quick.embed(texts)
        made: list[Vectors] = []
        for text in texts:  # who closes the program waits for one text at most
            trio.from_thread.check_cancelled()
            made += self._local.embed([text])
        return made

    async def query(self, text: str) -> QueryVectors:
        """Return the vectors of a text that is searched for."""
        if self.quick is not None:
            return self.quick.query(text)
        return await trio.to_thread.run_sync(self._local.query, text, limiter=self._queries)

    async def aclose(self) -> None:
        """Do nothing: what was loaded goes with the last who uses it."""


def check_choice(choice: EmbedderChoice) -> None:
    """Say at once what is missing and can be told without loading anything.

    Raises:
        EmbedderError: the model's files or the library that runs it are not there.
    """
    if choice.kind != "onnx":
        return
    if find_spec("onnxruntime") is None:
        raise EmbedderError(
            f"the embedder {choice} needs onnxruntime, which is not installed: pip install 'greenroom[onnx]'"
        )
    read_model_files(Path(choice.place))


async def load(choice: EmbedderChoice) -> Embedder:
    """Return the embedder that is wanted, ready for use.

    Raises:
        EmbedderError: it cannot be had, or not now.
    """
    if choice.kind == "http":
        return await _connected(choice)
    # Not abandoned when cancelled: a thread within a library would not survive the interpreter's end.
    return InThread(
        await trio.to_thread.run_sync(partial(_load_local, choice, trio.from_thread.check_cancelled))
    )


async def _connected(choice: EmbedderChoice) -> Embedder:
    def imported() -> type[HttpEmbedder]:
        _import("numpy")
        from greenroom.actors.embedding import http  # noqa: PLC0415 - imported when first needed, in a thread

        return http.HttpEmbedder

    make = await trio.to_thread.run_sync(imported)
    endpoint = make(choice)
    try:
        await endpoint.connect()
    except BaseException:
        with trio.CancelScope(shield=True):
            await endpoint.aclose()
        raise
    return endpoint


def _load_local(choice: EmbedderChoice, check: Callable[[], object]) -> LocalEmbedder:
    """Load a model; ``check`` is called between the steps, and what it raises ends the loading."""
    # One core is enough for texts that nobody waits for; and threads of its own would keep memory.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    check()
    _import("numpy")
    check()
    _import("tokenizers")
    check()
    if choice.kind == "static":
        from greenroom.actors.embedding.static import load_static  # noqa: PLC0415 - as above

        return load_static()
    check_choice(choice)
    _import("onnxruntime")
    check()
    from greenroom.actors.embedding.onnx import OnnxEmbedder  # noqa: PLC0415 - as above

    return OnnxEmbedder(read_model_files(Path(choice.place)), check)


def _import(name: str) -> None:
    try:
        import_module(name)
    except ImportError as error:
        raise EmbedderError(f"{name} cannot be imported ({error}): pip install {name}") from error
