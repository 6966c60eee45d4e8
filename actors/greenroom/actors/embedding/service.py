"""What runs beside the actors and knows what texts mean: the embedder, loaded when it is first needed.

A search waits for it a moment; when it is not there by then, and while it fails, searches go by
words alone and say so. Nobody else waits. An actor that keeps texts does three things: it asks
`embed_nowait` and keeps what it gets in the same commit; where it gets nothing it calls `noticed` and
keeps a row (see `rows`); and it answers `TextsToEmbed` and `StoreVectors`, by which it gets the
vectors later.
"""

from __future__ import annotations

import logging
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from greenroom.actors.embedding import spaces as embedding_spaces
from greenroom.actors.embedding.cache import Cache
from greenroom.actors.embedding.choice import EmbedderChoice, read_choice
from greenroom.actors.embedding.errors import EmbedderError, TextRefusedError
from greenroom.actors.embedding.loader import load
from greenroom.actors.embedding.model_registry import NoteEmbedder, register_of
from greenroom.actors.embedding.progress import EmbeddingState, EmbeddingStatistics
from greenroom.actors.embedding.rows import FindUnfinished, Space, Unfinished
from greenroom.actors.embedding.worker import Worker
from greenroom.runtime import GreenroomError, RuntimeClosedError, StoreFailedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from greenroom.actors.embedding.embedder import Embedder
    from greenroom.actors.schemas.vectors import QueryVectors, Vectors
    from greenroom.runtime import Address, Doors

    Load = Callable[[EmbedderChoice], Awaitable[Embedder]]

logger = logging.getLogger(__name__)

QUERY_SECONDS: Final = 2.0
"""A search waits this long for an endpoint, and then goes on by words alone.

One that has not answered the first question by then is said not to answer."""
LOAD_SECONDS: Final = 5.0
"""Searches wait until so long after its loading began for a model, and for vectors of what was stored before.

Word vectors take 0.2 to 0.7 s, a model of sentences a few times that."""
SHARE: Final = 0.5
"""So much of its own time a search waits at most."""
QUERIES_KEPT: Final = 256
LOOK_SECONDS: Final = 60.0


class Embedding:
    """The embedder in force, and what is to be embedded by it. `open_embedding` makes it.

    Args:
        runtime: Where the actors are.
        choice: Which embedder is wanted.
        load: Gets it.
    """

    def __init__(self, runtime: Doors, choice: EmbedderChoice, load: Load = load) -> None:
        self._runtime = runtime
        self._choice = choice
        self._maker = Space(str(choice), choice.model)
        self._load = load
        self._embedder: Embedder | None = None
        self._older: dict[str, Embedder] = {}
        self._worker = Worker(runtime)
        self._queries: Cache[tuple[str, str], QueryVectors] = Cache(QUERIES_KEPT)
        self._needed = trio.Event()
        self._tried = trio.Event()
        self._caught_up = trio.Event()
        self._looked = trio.Event()
        self._asked = self._unanswered = 0
        self._loading_since = math.inf

    @property
    def space(self) -> str | None:
        """The name of the embedder's vectors; None until it is ready."""
        return None if self._embedder is None else self._embedder.space

    @property
    def is_off(self) -> bool:
        """Whether searches are meant to go by words alone."""
        return self._choice.kind == "none"

    @property
    def absence(self) -> str | None:
        """Why a query gets no vectors now, as a sentence; None when it gets some."""
        if self.is_off:
            return "the embedder is none"
        if self._worker.trouble is not None:
            return self._worker.trouble
        if self._embedder is not None:
            return None
        if self._choice.kind == "http" and trio.current_time() >= self._loading_since + QUERY_SECONDS:
            return f"the embedder {self._choice} was asked and does not answer"
        return f"the embedder {self._choice} is being loaded"

    def embed_nowait(self, text: str) -> Vectors | None:
        """Return the vectors of a text that is kept, when that takes no time to speak of.

        None means: not now, or not this embedder; `noticed` is for those.
        """
        if self._embedder is None or self._embedder.quick is None:
            self._needed.set()
            return None
        (vectors,) = self._embedder.quick.embed([text])
        return vectors

    def noticed(self, address: Address) -> None:
        """Take note of an actor that has texts without vectors, or will have when its handler returns."""
        if not self.is_off:
            self._worker.add(address)
            self._needed.set()

    async def query(self, text: str, *, wait: bool = False) -> QueryVectors | None:
        """Return the vectors of a text that is searched for, or None: then `absence` says why.

        It waits a moment for an embedder that is being loaded, and until what was stored before has vectors.
        While vectors of other embedders are still searched, those of the query in their spaces
        come along, as `QueryVectors.older`.

        Args:
            text: What is searched for.
            wait: Whether to wait for the embedder without end, until it has been loaded or could not be.
        """
        self._needed.set()
        if wait and not self.is_off:
            await self._tried.wait()
        elif not (self._caught_up.is_set() or self.is_off):
            with trio.move_on_at(self._patience_ends()):
                await self._caught_up.wait()
        self._asked += 1
        present = [] if self._embedder is None else [self._embedder]
        found = [await self._query(each, text) for each in present]
        for space in [*self._older]:
            older = self._older.get(space)  # it may have been let go meanwhile
            found.append(None if older is None else await self._query(older, text))
        made = [vectors for vectors in found if vectors is not None]
        if not made:
            self._unanswered += 1
            return None
        return msgspec.structs.replace(made[0], older=tuple(made[1:])) if made[1:] else made[0]

    async def settled(self) -> None:
        """Wait until every text that is known of has vectors, which may be never when the embedder fails."""
        if not self.is_off:
            await self._looked.wait()
            await self._worker.settled()

    def statistics(self) -> EmbeddingStatistics:
        """Return what becomes of meaning."""
        return EmbeddingStatistics(
            embedder=str(self._choice),
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

    def give_up(self) -> None:
        """Go on without an embedder, for good."""
        self._embedder = None
        self._worker.trouble = "the embedder failed, as the log says, and is back at the next start"
        self._tried.set()
        self._caught_up.set()

    async def run(self) -> None:
        """Load the embedder when it is needed and embed, until it is cancelled."""
        if self.is_off:
            await trio.sleep_forever()
        unfinished = await self._unfinished(
            embedding_spaces.STATIC if self._choice.kind == "static" else None
        )
        for address in unfinished.addresses:
            self.noticed(address)
        self._looked.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._have_older, unfinished.older)
                await self._needed.wait()
                embedder = await self._loaded()
                await self._begin(embedder, nursery)
                nursery.start_soon(self._catch_up)
                await self._worker.run(embedder)
        finally:
            with trio.CancelScope(shield=True):
                for each in (self._embedder, *self._older.values()):
                    if each is not None:
                        await each.aclose()

    async def _begin(self, embedder: Embedder, nursery: trio.Nursery) -> None:
        """Find what is left to do in an embedder's space, and remember what made it."""
        unfinished = await self._unfinished(embedder.space)
        for address in unfinished.addresses:
            self._worker.add(address)
        if not unfinished.is_known:
            note = NoteEmbedder(embedder=self._maker.embedder, model=self._maker.model)
            try:
                await self._runtime.ask(register_of(embedder.space), note)
            except GreenroomError as error:  # a full store: nothing is embedded now anyhow
                logger.warning("what made the space %s cannot be noted: %s", embedder.space, error)
        nursery.start_soon(self._forget_older, embedder.space)

    async def _loaded(self) -> Embedder:
        while True:
            self._loading_since = trio.current_time()
            try:
                self._embedder = embedder = await self._load(self._choice)
            except EmbedderError as error:
                self._worker.failed(error)
                self._tried.set()
                self._caught_up.set()
                await self._worker.rest()
            else:
                self._worker.works()
                self._tried.set()
                return embedder

    async def _catch_up(self) -> None:
        await self._worker.settled()
        self._caught_up.set()

    def _patience_ends(self) -> float:
        """Return until when, in trio's time, a search waits for the embedder."""
        now = trio.current_time()
        seconds = QUERY_SECONDS if self._choice.kind == "http" else LOAD_SECONDS
        own = SHARE * (trio.current_effective_deadline() - now)
        return min(min(self._loading_since, now) + seconds, now + own)

    async def _have_older(self, spaces: Mapping[str, Space | None]) -> None:
        """Load the embedders that made the spaces in which actors still search."""
        for space, made in spaces.items():
            choice = _choice_of(space, made, self._choice)
            if choice is None or choice == self._choice:
                continue
            try:
                embedder = await self._load(choice)
            except EmbedderError as error:
                logger.warning("until all is embedded anew, some searches go by words alone: %s", error)
                continue
            if embedder.space == space:
                self._older[space] = embedder
            else:
                await embedder.aclose()

    async def _forget_older(self, space: str) -> None:
        """Let go of older embedders when nobody searches in their spaces any more."""
        while True:
            await self._worker.settled()
            unfinished = await self._unfinished(space)
            for each in [older for older in self._older if older not in unfinished.older]:
                await self._older.pop(each).aclose()
            if not unfinished.older:
                return
            await trio.sleep(LOOK_SECONDS)  # some actors could not keep theirs yet

    async def _unfinished(self, space: str | None) -> Unfinished:
        try:
            return await self._runtime.query(FindUnfinished(space=space, maker=self._maker))
        except (RuntimeClosedError, StoreFailedError):  # whoever opened the runtime is about to cancel this
            await trio.sleep_forever()

    async def _query(self, embedder: Embedder, text: str) -> QueryVectors | None:
        if embedder.quick is not None:
            return embedder.quick.query(text)
        key = (embedder.space, text)
        known = self._queries.get(key)
        if known is not None:
            return known
        if embedder is not self._embedder:
            made = await _in_time(embedder, text)
            return None if isinstance(made, EmbedderError) else made
        if self._worker.is_resting:
            return None
        made = await _in_time(embedder, text)
        if not isinstance(made, EmbedderError):
            self._worker.works()
            self._queries.put(key, made)
            return made
        if not isinstance(made, TextRefusedError):
            self._worker.failed(made)
        return None

    def _state(self) -> EmbeddingState:
        if self.is_off:
            return "off"
        if self._worker.trouble is not None:
            return "failing"
        if self._embedder is not None:
            return "ready"
        return "loading" if self._needed.is_set() else "idle"


async def _in_time(embedder: Embedder, text: str) -> QueryVectors | EmbedderError:
    """Return a query's vectors, or what went wrong: also that it took too long."""
    try:
        with trio.fail_after(QUERY_SECONDS):
            return await embedder.query(text)
    except trio.TooSlowError:
        return EmbedderError(f"the embedder needs more than {QUERY_SECONDS:g} seconds for a query")
    except EmbedderError as error:
        return error


def _choice_of(space: str, made: Space | None, present: EmbedderChoice) -> EmbedderChoice | None:
    """Return what made a space, if that is known."""
    if space == embedding_spaces.STATIC:
        return EmbedderChoice(kind="static")
    if made is None:
        return None
    try:
        return read_choice(made.embedder, model=made.model, key=present.key)
    except ValueError:
        return None


@asynccontextmanager
async def open_embedding(
    runtime: Doors, choice: EmbedderChoice, load: Load = load
) -> AsyncIterator[Embedding]:
    """Run what knows the meaning of texts beside the actors, while the block runs; for `open_runtime`.

    Args:
        runtime: Where the actors are.
        choice: Which embedder is wanted.
        load: Gets it; another one in tests.
    """
    embedding = Embedding(runtime, choice, load)
    error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_contained, embedding)
        try:
            yield embedding
        except BaseException as raised:  # noqa: BLE001 - raised again below, outside the nursery's group
            error = raised
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error


async def _contained(embedding: Embedding) -> None:
    """Run it; a fault of ours costs the meaning of texts, and not the whole server."""
    try:
        await embedding.run()
    except Exception:
        logger.exception("the embedder is given up until the next start")
        embedding.give_up()
