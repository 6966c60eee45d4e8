"""Load the configured embedder, and call a local one from threads."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import outcome
import trio

from greenroom.actors.core.base.optional_packages import install_command
from greenroom.actors.search.embedding.embedder import (
    Embedder,
    EmbedderChoice,
    LocalEmbedder,
    group_by_length,
)
from greenroom.actors.search.embedding.errors import EmbedderError, ModelMissingError
from greenroom.actors.search.embedding.models import installed_models
from greenroom.actors.search.embedding.models.onnx_export import read_export
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

if TYPE_CHECKING:
    from greenroom.actors.search.embedding.models.http import HttpEmbedder

_GROUP_CHARACTERS: Final = 8_192
_SEARCHING_SECONDS: Final = 1.0
LEAVE_SECONDS: Final = 2.0
"""When the program closes, it waits this long for the user's embedder class."""
A = TypeVar("A")
R = TypeVar("R")


class InThread:
    """A local embedder behind the asynchronous interface; see `Embedder`.

    One thread is for queries, so that they do not wait for stored texts. Stored texts get as many threads
    as the embedder allows, but only one during searches. If the embedder ``leaves``, threads whose code may
    never end are abandoned: the thread of a query at once, a thread of texts after a moment.
    """

    def __init__(self, local: LocalEmbedder, *, leaves: bool = False) -> None:
        self._local = local
        self._leaves = leaves
        self.space = local.space
        self.dimensions = local.dimensions
        self.has_tokens = local.has_tokens
        self.batch = local.batch
        self.quick = local if local.is_quick else None
        self._texts = trio.CapacityLimiter(local.threads)
        self._queries = trio.CapacityLimiter(1)
        self._searched_at = -math.inf

    async def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Return the vectors of stored texts."""
        groups = iter(group_by_length([*map(len, texts)], self._local.group, _GROUP_CHARACTERS))
        made: dict[int, Vectors] = {}
        error: EmbedderError | None = None

        async def work(*, helps: bool) -> None:
            nonlocal error
            while error is None and not (helps and self._is_searching()) and (group := next(groups, None)):
                some = [texts[number] for number in group]
                try:
                    vectors = await self._embed(some)
                except EmbedderError as raised:
                    error = raised
                else:
                    made.update(zip(group, vectors, strict=True))

        async with trio.open_nursery() as nursery:
            for number in range(self._local.threads):
                nursery.start_soon(partial(work, helps=number > 0))
        if error is not None:
            raise error
        return [made[number] for number in range(len(texts))]

    async def _embed(self, texts: list[str]) -> list[Vectors]:
        if self._leaves:
            return await _run_abandonable(self._local.embed, texts, limiter=self._texts)
        # The thread is not abandoned after cancellation, so closing the program waits for at most one group.
        return await trio.to_thread.run_sync(self._local.embed, texts, limiter=self._texts)

    async def query(self, text: str) -> QueryVectors:
        """Return the vectors of a query."""
        if self.quick is not None:
            return self.quick.query(text)
        self._searched_at = trio.current_time()
        return await trio.to_thread.run_sync(
            self._local.query, text, limiter=self._queries, abandon_on_cancel=self._leaves
        )

    async def aclose(self) -> None:
        """Do nothing; the model is released when no user is left."""

    def _is_searching(self) -> bool:
        """Return whether a search came a moment ago, so that another is likely."""
        return trio.current_time() < self._searched_at + _SEARCHING_SECONDS


async def _run_abandonable(
    function: Callable[[A], R], argument: A, *, limiter: trio.CapacityLimiter | None = None
) -> R:
    """Run a function that may never end in a thread, and abandon it after cancellation.

    It waits `LEAVE_SECONDS` first: a thread within a library may crash at the interpreter's end.
    """

    async def hurry() -> None:
        try:
            await trio.sleep_forever()
        finally:
            scope.deadline = trio.current_time() + LEAVE_SECONDS

    async with trio.open_nursery() as nursery:
        with trio.CancelScope(shield=True) as scope:
            nursery.start_soon(hurry)
            made = await trio.to_thread.run_sync(
                outcome.capture, function, argument, limiter=limiter, abandon_on_cancel=True
            )
        nursery.cancel_scope.cancel()
    return made.unwrap()


def check_choice(choice: EmbedderChoice) -> None:
    """Raise an `EmbedderError` for missing files and libraries, without loading anything."""
    if choice.kind == "minilm":
        _check_minilm(choice)
    if choice.kind != "onnx":
        return
    if find_spec("onnxruntime") is None:
        raise EmbedderError(
            f"the embedder {choice} needs onnxruntime, which is not installed: {install_command('onnx')}"
        )
    read_export(Path(choice.place))


def _check_minilm(choice: EmbedderChoice, *, looks_inside: bool = False) -> None:
    lack = installed_models.find_fault(installed_models.models_folder(choice), looks_inside=looks_inside)
    if lack is not None:
        raise ModelMissingError(installed_models.add_remedy(lack))


async def load(choice: EmbedderChoice) -> Embedder:
    """Load the configured embedder, ready for use."""
    if choice.kind == "http":
        return await _connect(choice)
    if choice.kind == "python":
        made = await _run_abandonable(partial(_load_local, choice), trio.from_thread.check_cancelled)
        return InThread(made, leaves=True)
    # Not abandoned after cancellation: a thread within a library would crash at the interpreter's end.
    local = await trio.to_thread.run_sync(partial(_load_local, choice, trio.from_thread.check_cancelled))
    return InThread(local)


async def _connect(choice: EmbedderChoice) -> Embedder:
    def import_http() -> type[HttpEmbedder]:
        _import("numpy")
        from greenroom.actors.search.embedding.models import http  # noqa: PLC0415 - imported when first needed, in a thread

        return http.HttpEmbedder

    make = await trio.to_thread.run_sync(import_http)
    endpoint = make(choice)
    try:
        await endpoint.connect()
    except BaseException:
        with trio.CancelScope(shield=True):
            await endpoint.aclose()
        raise
    return endpoint


def _load_local(choice: EmbedderChoice, check: Callable[[], object]) -> LocalEmbedder:
    """Load a model; between the steps, call ``check``, which may raise to end it."""
    # One core is enough for background work, and threads of the libraries would use memory.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    check()
    _import("numpy")
    check()
    if choice.kind == "python":
        from greenroom.actors.search.embedding.models.python import load_python  # noqa: PLC0415 - as above

        return load_python(choice)
    if choice.kind == "minilm":
        _check_minilm(choice, looks_inside=True)
        check()
        from greenroom.actors.search.embedding.models.minilm import load_minilm  # noqa: PLC0415 - as above

        return load_minilm(installed_models.models_folder(choice) / installed_models.MINILM, check)
    if choice.kind == "static":
        from greenroom.actors.search.embedding.models.static import load_static  # noqa: PLC0415 - as above

        return load_static()
    check_choice(choice)
    _import("tokenizers")
    check()
    _import("onnxruntime")
    check()
    from greenroom.actors.search.embedding.models.onnx import OnnxEmbedder  # noqa: PLC0415 - as above

    return OnnxEmbedder(read_export(Path(choice.place)), check)


def _import(name: str) -> None:
    try:
        import_module(name)
    except ImportError as error:
        raise EmbedderError(f"{name} cannot be imported ({error}): pip install {name}") from error
