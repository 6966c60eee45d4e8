"""The embedding service, which runs beside the actors and loads the embedder on first use.

A search waits a moment for the service. If the service is not ready by then, or fails, the search compares
words alone and reports that. Nothing else waits. An actor that stores texts does three things:

1. It calls `embed_nowait` and stores the vectors in the same commit.
2. If it gets none, it calls `add_pending` and stores a row (see `rows`).
3. It handles `TextsToEmbed` and `StoreVectors`, which bring the vectors later.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, Literal

import msgspec
import trio

from greenroom.actors.search.embedding import rows
from greenroom.actors.search.embedding.backlog_worker import EmbeddingWorker
from greenroom.actors.search.embedding.embedder import Embedder, EmbedderChoice, read_choice
from greenroom.actors.search.embedding.embedder_loader import load
from greenroom.actors.search.embedding.errors import EmbedderError, TextRefusedError
from greenroom.actors.search.embedding.models.installed_models import resolve_auto
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors
from greenroom.runtime import (
    Address,
    GreenroomError,
    Procedure,
    ProcedureContext,
    RuntimeClient,
    RuntimeClosedError,
    StoreFailedError,
)

Load = Callable[[EmbedderChoice], Awaitable[Embedder]]

EmbeddingState = Literal["off", "idle", "loading", "ready", "failing"]


class EmbeddingStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the embedding service.

    Counts start when the runtime is opened; attributes with "now" describe the present.

    Attributes:
        embedder: The embedder in use, named as in `--embedder`; never ``auto``, which `wanted` may be.
        state: ``off``: no embedder is wanted; ``idle``: none was needed so far; then ``loading``, ``ready``,
            or ``failing`` if it cannot be loaded or does not embed now.
        space: The name of the embedder's vector space, once the embedder was ready.
        texts_waiting: About how many texts lack vectors of this space, now.
        actors_waiting: How many actors have such texts, now.
        older_spaces: The spaces of earlier embedders in which some actors still search, now.
        queries: The number of searches that needed vectors.
        queries_without: The number of these searches that got no vectors.
    """

    embedder: str
    wanted: str = ""
    reason: str = ""
    state: EmbeddingState
    space: str | None = None
    trouble: str | None = None
    embedded: int = 0
    texts_waiting: int = 0
    actors_waiting: int = 0
    older_spaces: list[str] = []
    queries: int = 0
    queries_without: int = 0


OFF = EmbeddingStatistics(embedder="none", state="off")


logger = logging.getLogger(__name__)

QUERY_SECONDS: Final = 2.0
"""A search waits this long for an endpoint before it compares words alone.

Until its first reply, an endpoint that takes longer is reported as silent.
"""
LOAD_SECONDS: Final = 5.0
"""Searches wait this long, from the start of loading, for a model and for vectors of older texts.

Word vectors take 0.2 to 0.7 s, a sentence model a few times as long.
"""
SHARE: Final = 0.5
"""A search waits at most this part of its own time."""
QUERIES_KEPT: Final = 256
LOOK_SECONDS: Final = 60.0
_BY_WORDS: Final = "until all is embedded anew, some searches go by words alone"


class EmbeddingService:
    """Load the embedder, embed queries, and have texts embedded; `open_embedding` makes it."""

    def __init__(self, runtime: RuntimeClient, choice: EmbedderChoice, load: Load = load) -> None:
        self._runtime = runtime
        self._wanted = choice
        self._take(*resolve_auto(choice))
        self._load = load
        self._embedder: Embedder | None = None
        self._older: dict[str, Embedder] = {}
        self._worker = EmbeddingWorker(runtime)
        self._queries: dict[tuple[str, str], QueryVectors] = {}
        self._needed = trio.Event()
        self._tried = trio.Event()
        self._older_tried = trio.Event()
        self._backlog_done = trio.Event()
        self._looked = trio.Event()
        self._asked = self._unanswered = 0
        self._loading_since = math.inf

    def _take(self, choice: EmbedderChoice, reason: str) -> None:
        self._choice, self._reason = choice, reason
        self._source = rows.Space(str(choice), choice.model)

    @property
    def space(self) -> str | None:
        """The name of the embedder's vector space; None until the embedder is ready."""
        return None if self._embedder is None else self._embedder.space

    @property
    def quick_space(self) -> str | None:
        """The space of the vectors that `embed_nowait` returns; None if it returns none."""
        return None if self._embedder is None or self._embedder.quick is None else self._embedder.space

    @property
    def is_off(self) -> bool:
        """Whether searches are configured to compare words alone."""
        return self._choice.kind == "none"

    @property
    def absence(self) -> str | None:
        """Why a query gets no vectors now, as a sentence; None if it gets some."""
        if self.is_off:
            return "the embedder is none" if self._wanted is self._choice else self._reason
        if self._worker.trouble is not None:
            return self._worker.trouble
        if self._embedder is not None:
            return None
        if self._choice.kind == "http" and trio.current_time() >= self._loading_since + QUERY_SECONDS:
            return f"the embedder {self._choice} does not answer"
        return f"the embedder {self._choice} is being loaded"

    def embed_nowait(self, text: str) -> Vectors | None:
        """Return a text's vectors if the embedder is ready and quick; if None, call `add_pending`."""
        if self._embedder is None or self._embedder.quick is None:
            self._needed.set()
            return None
        (vectors,) = self._embedder.quick.embed([text])
        return vectors

    def add_pending(self, address: Address) -> None:
        """Queue an actor that has texts without vectors, now or when its handler returns."""
        if not self.is_off:
            self._worker.add(address)
            self._needed.set()

    def waiting(self, address: Address) -> int:
        """Return about how many texts of an actor still lack vectors of this space."""
        return self._worker.waiting(address)

    def keeps(self, space: str) -> bool:
        """Return whether vectors of another space stay when all texts have vectors of this space.

        MiniLM's vectors stay if the word vectors only replace MiniLM under ``auto``. Another program that
        shares the folder, or this one after a repair, can use them again without embedding everything anew.
        """
        is_stopgap = self._wanted.kind == "auto" and self._choice.kind == "static"
        return is_stopgap and space.startswith(rows.MINILM)

    async def query(self, text: str, *, wait: bool = False) -> QueryVectors | None:
        """Return the vectors of a query; if None, `absence` says why.

        It waits a moment until the embedder is loaded and older texts have vectors; with ``wait`` it waits
        without a limit. While actors still search in the spaces of earlier embedders, `QueryVectors.older`
        has the query in these spaces.
        """
        await self._wait_for_embedder(without_end=wait)
        self._asked += 1
        present = [] if self._embedder is None else [self._embedder]
        found = [await self._query(each, text) for each in present]
        for space in [*self._older]:
            older = self._older.get(space)  # another task may have closed it meanwhile
            found.append(None if older is None else await self._query(older, text))
        made = [vectors for vectors in found if vectors is not None]
        if not made:
            self._unanswered += 1
            return None
        return msgspec.structs.replace(made[0], older=tuple(made[1:])) if made[1:] else made[0]

    async def embedder(self) -> Embedder | None:
        """Return the embedder, after waiting as `query` does; if None, `absence` says why."""
        await self._wait_for_embedder()
        return self._embedder

    async def wait_idle(self) -> None:
        """Wait until every known text has vectors; this may never end if the embedder fails."""
        if not self.is_off:
            await self._looked.wait()
            await self._worker.wait_idle()

    def statistics(self) -> EmbeddingStatistics:
        """Return the statistics of the service."""
        return EmbeddingStatistics(
            embedder=str(self._choice),
            wanted=str(self._wanted),
            reason=self._reason,
            state=self._state(),
            space=self.space,
            trouble=self._worker.trouble,
            embedded=self._worker.embedded,
            texts_waiting=self._worker.texts_waiting,
            actors_waiting=self._worker.actors_waiting,
            older_spaces=sorted(self._older),
            queries=self._asked,
            queries_without=self._unanswered,
        )

    def disable(self) -> None:
        """Stop using the embedder until the next start."""
        self._embedder = None
        self._worker.trouble = "the embedder failed, as the log says, and is back at the next start"
        self._tried.set()
        self._older_tried.set()
        self._backlog_done.set()

    async def run(self) -> None:
        """Load the embedder when it is needed, and embed until cancelled."""
        if self.is_off:
            await trio.sleep_forever()
        unfinished = await self._unfinished(rows.STATIC if self._choice.kind == "static" else None)
        for address in unfinished.addresses:
            self.add_pending(address)
        self._looked.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._load_older, unfinished.older)
                await self._needed.wait()
                embedder = await self._load_with_retries()
                await self._begin(embedder, nursery)
                nursery.start_soon(self._catch_up)
                await self._worker.run(embedder)
        finally:
            with trio.CancelScope(shield=True):
                for each in (self._embedder, *self._older.values()):
                    if each is not None:
                        await each.aclose()

    async def _begin(self, embedder: Embedder, nursery: trio.Nursery) -> None:
        """Queue the actors with work left in an embedder's space, and record the space's embedder."""
        unfinished = await self._unfinished(embedder.space)
        for address in unfinished.addresses:
            self._worker.add(address)
        if not unfinished.is_known:
            note = rows.NoteEmbedder(embedder=self._source.embedder, model=self._source.model)
            try:
                await self._runtime.ask(rows.registry_address(embedder.space), note)
            except GreenroomError as error:  # the store is full, so nothing is embedded now anyway
                logger.warning("the embedder of the space %s cannot be recorded: %s", embedder.space, error)
        nursery.start_soon(self._release_older, embedder.space)

    async def _load_with_retries(self) -> Embedder:
        while True:
            self._loading_since = trio.current_time()
            try:
                self._embedder = embedder = await self._load(self._choice)
            except EmbedderError as error:
                if self._wanted.kind == "auto" and self._choice.kind == "minilm":
                    logger.warning("the embedder is static, for minilm cannot be loaded: %s", error)
                    self._take(replace(self._wanted, kind="static"), str(error))
                    continue
                self._worker.record_failure(error)
                self._tried.set()
                self._backlog_done.set()
                await self._worker.back_off()
            else:
                self._worker.record_success()
                self._tried.set()
                return embedder

    async def _catch_up(self) -> None:
        await self._worker.wait_idle()
        self._backlog_done.set()

    async def _wait_for_embedder(self, *, without_end: bool = False) -> None:
        self._needed.set()
        if without_end and not self.is_off:
            await self._tried.wait()
        elif not (self._backlog_done.is_set() or self.is_off):
            with trio.move_on_at(self._query_deadline()):
                await self._tried.wait()
                await self._older_tried.wait()
                if not self._older:  # otherwise the older embedders serve until everything is embedded anew
                    await self._backlog_done.wait()

    def _query_deadline(self) -> float:
        """Return the end, in trio's time, of a search's wait for the embedder."""
        now = trio.current_time()
        seconds = QUERY_SECONDS if self._choice.kind == "http" else LOAD_SECONDS
        own = SHARE * (trio.current_effective_deadline() - now)
        return min(min(self._loading_since, now) + seconds, now + own)

    async def _load_older(self, spaces: Mapping[str, rows.Space | None]) -> None:
        """Load the earlier embedders in whose spaces actors still search."""
        for space, made in spaces.items():
            if made == self._source or self.keeps(space):
                continue
            choice = _choice_of(space, made, self._choice)
            if choice is None:
                logger.warning("%s: the store has vectors of %r", _BY_WORDS, made.embedder if made else space)
                continue
            try:
                embedder = await self._load(choice)
            except EmbedderError as error:
                logger.warning("%s: %s", _BY_WORDS, error)
                continue
            if embedder.space == space:
                self._older[space] = embedder
            else:
                await embedder.aclose()
        self._older_tried.set()

    async def _release_older(self, space: str) -> None:
        """Close earlier embedders when no actor searches in their spaces any more."""
        await self._older_tried.wait()
        while self._older:
            await self._worker.wait_idle()
            unfinished = await self._unfinished(space)
            for each in [older for older in self._older if older not in unfinished.older]:
                with trio.CancelScope(shield=True):  # no other code would close it
                    await self._older.pop(each).aclose()
            if self._older:
                await trio.sleep(LOOK_SECONDS)  # some actors could not store their vectors yet

    async def _unfinished(self, space: str | None) -> rows.Unfinished:
        try:
            return await self._runtime.query(rows.FindUnfinished(space=space, maker=self._source))
        except (RuntimeClosedError, StoreFailedError):  # the runtime is about to cancel this task
            await trio.sleep_forever()

    async def _query(self, embedder: Embedder, text: str) -> QueryVectors | None:
        if embedder.quick is not None:
            return embedder.quick.query(text)
        key = (embedder.space, text)
        known = self._queries.pop(key, None)
        if known is not None:
            self._queries[key] = known  # the most recent query comes last
            return known
        if embedder is not self._embedder:
            made = await _in_time(embedder, text)
            return None if isinstance(made, EmbedderError) else made
        if self._worker.is_backing_off:
            return None
        made = await _in_time(embedder, text)
        if not isinstance(made, EmbedderError):
            self._worker.record_success()
            self._queries[key] = made
            if len(self._queries) > QUERIES_KEPT:
                del self._queries[next(iter(self._queries))]
            return made
        if not isinstance(made, TextRefusedError):
            self._worker.record_failure(made)
        return None

    def _state(self) -> EmbeddingState:
        if self.is_off:
            return "off"
        if self._worker.trouble is not None:
            return "failing"
        if self._embedder is not None:
            return "ready"
        return "loading" if self._needed.is_set() else "idle"


class GetEmbedding(Procedure[EmbeddingStatistics], frozen=True, kw_only=True):
    """Read the statistics of the embedding service in the owner of the store."""

    async def run(self, context: ProcedureContext) -> EmbeddingStatistics:
        """Return the statistics; `OFF` if no service runs."""
        sidecar: EmbeddingService | None = context.sidecar
        return OFF if sidecar is None else sidecar.statistics()


async def _in_time(embedder: Embedder, text: str) -> QueryVectors | EmbedderError:
    """Return a query's vectors, or the error, for example a timeout."""
    try:
        with trio.fail_after(QUERY_SECONDS):
            return await embedder.query(text)
    except trio.TooSlowError:
        return EmbedderError(f"the embedder needs more than {QUERY_SECONDS:g} seconds for a query")
    except EmbedderError as error:
        return error


def _choice_of(space: str, made: rows.Space | None, present: EmbedderChoice) -> EmbedderChoice | None:
    """Return the embedder that made a space, if it may be loaded.

    A store may come from someone else, or from a modified backup, so its records are not trusted. Only
    bundled and installed models are loaded, and only the configured endpoint is called, perhaps for another
    of its models.
    """
    if space == rows.STATIC:
        return EmbedderChoice(kind="static")
    if made is None:
        return None
    if made.embedder == "minilm":
        return EmbedderChoice(kind="minilm", models=present.models)
    if present.kind != "http" or made.embedder != str(present):
        return None
    try:
        return read_choice(made.embedder, model=made.model, key=present.key)
    except ValueError:
        return None


@asynccontextmanager
async def open_embedding(
    runtime: RuntimeClient, choice: EmbedderChoice, load: Load = load
) -> AsyncIterator[EmbeddingService]:
    """Run the embedding service beside the actors for the duration of the block."""
    embedding = EmbeddingService(runtime, choice, load)
    error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_run_contained, embedding)
        try:
            yield embedding
        except BaseException as raised:  # noqa: BLE001 - raised again below, outside the nursery's group
            error = raised
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error


async def _run_contained(embedding: EmbeddingService) -> None:
    """Run the service; an unexpected error disables vectors but does not stop the server."""
    try:
        await embedding.run()
    except Exception:
        logger.exception("the embedder is given up until the next start")
        embedding.disable()
