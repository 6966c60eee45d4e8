"""How an embedder of this process gets its texts: by length, in groups, in as many threads as it takes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from greenroom.actors import EmbedderError
from greenroom.actors.search.embedding.embedder_loader import InThread
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

TEXTS = ["x" * (number * 7 % 23) for number in range(23)]


class Counting:
    """An embedder that tells what it was given, and how many threads are in it."""

    space, dimensions, has_tokens, is_quick, batch, group, threads = "counting:1", 1, False, False, 64, 4, 2

    def __init__(self, trouble: EmbedderError | None = None) -> None:
        self.groups: list[list[str]] = []
        self.inside = 0
        self.gate: threading.Event | None = None
        self._trouble = trouble
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        with self._lock:
            self.groups.append([*texts])
            self.inside += 1
        if self._trouble is not None:
            raise self._trouble
        if self.gate is not None:
            self.gate.wait()
        with self._lock:
            self.inside -= 1
        return [Vectors(scale=1.0, values=bytes([len(text) % 256])) for text in texts]

    def query(self, text: str) -> QueryVectors:
        return QueryVectors(space=self.space, words=[text], rows=b"")


def lengths(made: list[Vectors]) -> list[int]:
    return [each.values[0] for each in made]


async def test_texts_of_like_length_go_together_and_come_back_in_order() -> None:
    embedder = Counting()
    assert lengths(await InThread(embedder).embed(TEXTS)) == [len(text) for text in TEXTS]
    assert max(map(len, embedder.groups)) == 4
    assert len(embedder.groups) == 6
    assert all(len(group[-1]) - len(group[0]) < 4 for group in embedder.groups)
    assert await InThread(embedder).embed([]) == []


async def test_a_group_of_long_texts_is_a_small_one() -> None:
    embedder = Counting()
    await InThread(embedder).embed(["x" * 5_000, "y" * 5_000, "z"])
    assert sorted(len(group) for group in embedder.groups) == [1, 1, 1]


async def at_once(threaded: InThread, embedder: Counting) -> int:
    """Return how many threads are in the embedder when none of them comes to an end."""
    embedder.gate = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threaded.embed, TEXTS)
        while not embedder.inside:
            await trio.testing.wait_all_tasks_blocked()
        await trio.to_thread.run_sync(lambda: None)  # so that another one that was started is in it
        await trio.testing.wait_all_tasks_blocked()
        found = embedder.inside
        embedder.gate.set()
    return found


async def test_while_somebody_searches_one_works(mock_clock: trio.testing.MockClock) -> None:
    embedder = Counting()
    threaded = InThread(embedder)
    await threaded.query("a")
    assert await at_once(threaded, embedder) == 1
    mock_clock.jump(2)
    assert await at_once(threaded, embedder) == 2


async def test_what_goes_wrong_in_a_thread_comes_out_as_it_is() -> None:
    embedder = Counting(EmbedderError("no"))
    with pytest.raises(EmbedderError, match="no"):
        await InThread(embedder).embed(TEXTS)
    assert len(embedder.groups) <= 2  # and the rest is not tried
