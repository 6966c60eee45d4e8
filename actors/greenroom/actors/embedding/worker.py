"""Embedding what the actors have without vectors: in batches, one actor after the other, for ever."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from greenroom.actors.embedding.backoff import Patience
from greenroom.actors.embedding.errors import EmbedderError, TextRefusedError
from greenroom.actors.schemas.memories import StoreVectors, TextsToEmbed
from greenroom.actors.schemas.vectors import Vectors
from greenroom.runtime import GreenroomError, RuntimeClosedError, StoreFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from greenroom.actors.embedding.embedder import Embedder
    from greenroom.runtime import Address, Doors

logger = logging.getLogger(__name__)
_CLIPPED: Final = 60  # characters of a text in a log


class Worker:
    """Knows which actors have texts without vectors, and sees to it that they get them.

    Args:
        runtime: Where the actors are.

    Attributes:
        embedded: How many texts got vectors.
        trouble: Why the embedder cannot be had, or does not embed; None when nothing is wrong.
    """

    def __init__(self, runtime: Doors) -> None:
        self._runtime = runtime
        self._waiting: dict[Address, int] = {}  # in the order of their turns, with how many texts about
        self._postponed: dict[Address, Patience] = {}
        self._in_hand: tuple[Address, int] | None = None
        self._wake = trio.Event()
        self._settled = trio.Event()
        self._settled.set()
        self._patience = Patience()
        self._resting_until = 0.0
        self.embedded = 0
        self.trouble: str | None = None

    @property
    def actors_waiting(self) -> int:
        """How many actors have texts without vectors, as far as known."""
        in_hand = self._in_hand is not None and self._in_hand[0] not in self._waiting
        return len(self._waiting) + in_hand

    @property
    def texts_waiting(self) -> int:
        """How many texts these have, as far as known."""
        in_hand = 0 if self._in_hand is None else self._in_hand[1]
        return sum(self._waiting.values()) + in_hand

    def add(self, address: Address) -> None:
        """Take note of an actor that has texts without vectors, or will have when its handler returns."""
        if address not in self._waiting:
            self._waiting[address] = 1
            self._settled = trio.Event() if self._settled.is_set() else self._settled
            self._wake.set()

    async def settled(self) -> None:
        """Wait until every known text has vectors, which may be never when the embedder fails."""
        await self._settled.wait()

    async def run(self, embedder: Embedder) -> None:
        """Embed, until it is cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                if not self._waiting:
                    self._settled.set()
                    self._wake = trio.Event()
                    await self._wake.wait()
                address = next(iter(self._waiting))
                texts = self._waiting.pop(address)
                self._in_hand = address, texts
                try:
                    left = await self._turn(address, embedder)
                except EmbedderError as error:
                    self._in_hand = None
                    self._waiting = {address: texts} | self._waiting
                    self.failed(error)
                    await self.rest()
                    continue
                except (RuntimeClosedError, StoreFailedError):
                    await trio.sleep_forever()
                except GreenroomError as error:
                    self._postpone(nursery, address, f"{address} keeps no vectors now: {error}")
                    continue
                finally:
                    self._in_hand = None
                if left is None:
                    self._postpone(nursery, address, f"{address} took none of the vectors that it wanted")
                    continue
                self._postponed.pop(address, None)
                if left:
                    self._waiting[address] = left  # at the end: the others have their turns, too

    @property
    def is_resting(self) -> bool:
        """Whether the embedder failed a moment ago and is left alone."""
        return self.trouble is not None and trio.current_time() < self._resting_until

    async def rest(self) -> None:
        """Leave an embedder that failed alone for a while."""
        await trio.sleep_until(self._resting_until)

    def failed(self, error: EmbedderError) -> None:
        """Take note that the embedder does not do what it should."""
        if self.trouble is None:
            logger.warning("searches go by words alone for now: %s", error)
        self.trouble = str(error)
        self._resting_until = trio.current_time() + self._patience.after_failure(error.retry_after)

    def works(self) -> None:
        """Take note that the embedder does what it should."""
        if self.trouble is not None:
            logger.warning("the embedder works again")
        self.trouble = None
        self._patience.after_success()

    async def _turn(self, address: Address, embedder: Embedder) -> int | None:
        """Embed some texts of one actor; return how many are left, about, and None when it took nothing."""
        wanted = TextsToEmbed(space=embedder.space, limit=embedder.batch)
        found = await self._runtime.ask(address, wanted)
        if not found.texts:
            return 0
        self._in_hand = address, len(found.texts) + found.remaining
        vectors = await _embedded(embedder, [each.text for each in found.texts])
        self.works()
        pairs = [(each.id, made) for each, made in zip(found.texts, vectors, strict=True)]
        stored = await self._runtime.ask(address, StoreVectors(space=embedder.space, vectors=pairs))
        self.embedded += stored.stored
        return stored.remaining if stored.stored or not stored.remaining else None

    def _postpone(self, nursery: trio.Nursery, address: Address, sentence: str) -> None:
        patience = self._postponed.get(address)
        if patience is None:
            logger.warning("%s", sentence)
            patience = self._postponed[address] = Patience()
        nursery.start_soon(self._add_later, address, patience.after_failure())

    async def _add_later(self, address: Address, seconds: float) -> None:
        await trio.sleep(seconds)
        self.add(address)


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[Vectors]:
    """Return the vectors of texts; of one that an endpoint refuses, zeros, so that it is asked once only."""
    try:
        return await embedder.embed(texts)
    except TextRefusedError as error:
        if len(texts) == 1:
            logger.warning("found by its words only is %r: %s", texts[0][:_CLIPPED], error)
            return [Vectors(scale=0.0, values=bytes(embedder.dimensions))]
    made: list[Vectors] = []
    for text in texts:
        made += await _embedded(embedder, [text])
    return made
