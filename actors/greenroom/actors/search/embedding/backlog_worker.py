"""The background worker that embeds the backlog, one actor after the other."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio

from greenroom.actors.search.embedding.embedder import Embedder
from greenroom.actors.search.embedding.errors import EmbedderError, TextRefusedError
from greenroom.actors.search.embedding.vector_messages import StoreVectors, TextsToEmbed, Vectors
from greenroom.runtime import Address, GreenroomError, RuntimeClient, RuntimeClosedError, StoreFailedError

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 300.0


class Backoff:
    """Exponential back-off: doubled after each failure, from a second to five minutes."""

    def __init__(self) -> None:
        self._failures = 0

    def after_failure(self, asked_for: float | None = None) -> float:
        """Return the seconds to wait now, at least as many as the other side requires."""
        seconds = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0**self._failures)
        self._failures = min(self._failures + 1, 16)
        return min(LONGEST_SECONDS, max(seconds, asked_for or 0.0))

    def after_success(self) -> None:
        """Reset the back-off."""
        self._failures = 0


logger = logging.getLogger(__name__)


class EmbeddingWorker:
    """A queue of actors that have texts without vectors, and the loop that embeds them."""

    def __init__(self, runtime: RuntimeClient) -> None:
        self._runtime = runtime
        self._waiting: dict[Address, int] = {}  # in the order of their turns, with an estimate of their texts
        self._postponed: dict[Address, Backoff] = {}
        self._in_hand: tuple[Address, int] | None = None
        self._wake = trio.Event()
        self._settled = trio.Event()
        self._settled.set()
        self._backoff = Backoff()
        self._retry_at = 0.0
        self.embedded = 0
        self.trouble: str | None = None

    @property
    def actors_waiting(self) -> int:
        """How many actors have texts without vectors, as far as the worker knows."""
        in_hand = self._in_hand is not None and self._in_hand[0] not in self._waiting
        return len(self._waiting) + in_hand

    @property
    def texts_waiting(self) -> int:
        """How many texts these actors have, as far as the worker knows."""
        in_hand = 0 if self._in_hand is None else self._in_hand[1]
        return sum(self._waiting.values()) + in_hand

    def waiting(self, address: Address) -> int:
        """Return about how many known texts of one actor have no vectors."""
        in_hand = self._in_hand[1] if self._in_hand is not None and self._in_hand[0] == address else 0
        return max(in_hand, self._waiting.get(address, 0))

    def add(self, address: Address) -> None:
        """Queue an actor that has texts without vectors, now or when its handler returns."""
        if address not in self._waiting:
            self._waiting[address] = 1
            self._settled = trio.Event() if self._settled.is_set() else self._settled
            self._wake.set()

    async def wait_idle(self) -> None:
        """Wait until every known text has vectors; this may never end if the embedder fails."""
        await self._settled.wait()

    async def run(self, embedder: Embedder) -> None:
        """Embed until cancelled."""
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
                    left = await self._embed_some(address, embedder)
                except EmbedderError as error:
                    self._in_hand = None
                    self._waiting = {address: texts} | self._waiting
                    self.record_failure(error)
                    await self.back_off()
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
                    self._waiting[address] = left  # at the end, so that the others have their turns first

    @property
    def is_backing_off(self) -> bool:
        """Whether the embedder failed and its back-off is not over."""
        return self.trouble is not None and trio.current_time() < self._retry_at

    async def back_off(self) -> None:
        """Wait until the back-off is over."""
        await trio.sleep_until(self._retry_at)

    def record_failure(self, error: EmbedderError) -> None:
        """Record a failure of the embedder, and begin to back off."""
        if self.trouble is None:
            logger.warning("searches go by words alone for now: %s", error)
        self.trouble = str(error)
        self._retry_at = trio.current_time() + self._backoff.after_failure(error.retry_after)

    def record_success(self) -> None:
        """Record a success of the embedder, and end the back-off."""
        if self.trouble is not None:
            logger.warning("the embedder works again")
        self.trouble = None
        self._backoff.after_success()

    async def _embed_some(self, address: Address, embedder: Embedder) -> int | None:
        """Embed some texts; return about how many remain, or None if the actor stored nothing."""
        wanted = TextsToEmbed(space=embedder.space, limit=embedder.batch)
        found = await self._runtime.ask(address, wanted)
        if not found.texts:
            return 0
        self._in_hand = address, len(found.texts) + found.remaining
        vectors = await _embed(embedder, address, [each.text for each in found.texts])
        self.record_success()
        pairs = [(each.id, made) for each, made in zip(found.texts, vectors, strict=True)]
        stored = await self._runtime.ask(address, StoreVectors(space=embedder.space, vectors=pairs))
        self.embedded += stored.stored
        return stored.remaining if stored.stored or not stored.remaining else None

    def _postpone(self, nursery: trio.Nursery, address: Address, sentence: str) -> None:
        backoff = self._postponed.get(address)
        if backoff is None:
            logger.warning("%s", sentence)
            backoff = self._postponed[address] = Backoff()
        nursery.start_soon(self._add_later, address, backoff.after_failure())

    async def _add_later(self, address: Address, seconds: float) -> None:
        await trio.sleep(seconds)
        self.add(address)


async def _embed(embedder: Embedder, address: Address, texts: Sequence[str]) -> list[Vectors]:
    """Return the vectors of an actor's texts.

    A text that an endpoint refuses gets zeros, so that it is not sent again.
    """
    try:
        return await embedder.embed(texts)
    except TextRefusedError as error:
        if len(texts) == 1:
            size = len(texts[0])  # the log must not contain the text itself
            logger.warning(
                "found by its words only: a text of %s with %d characters: %s", address, size, error
            )
            return [Vectors(scale=0.0, values=bytes(embedder.dimensions))]
    made: list[Vectors] = []
    for text in texts:
        made += await _embed(embedder, address, [text])
    return made
