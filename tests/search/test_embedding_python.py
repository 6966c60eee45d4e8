"""Embedders that are classes of somebody's own."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import trio

from greenroom.actors import EmbedderError, MemorySearch, StoreMemory, read_choice
from greenroom.actors.search.embedding.embedder_loader import load
from greenroom.actors.search.embedding.vector_messages import QueryVectors, Vectors

if TYPE_CHECKING:
    from support.passports import Opens


def sentences(made: list[Vectors]) -> Any:
    return np.array([np.frombuffer(each.values, np.int8) * np.float32(each.scale) for each in made])


def asked(query: QueryVectors) -> Any:
    return np.frombuffer(query.sentence or b"", np.float32)


CLASS = """
import threading


class Letters:
    name = "letters:1"

    def embed(self, texts):
        return [[float(text.count(letter)) for letter in "abcdefgh"] for text in texts]


class Asking(Letters):
    def embed_query(self, text):
        return [1.0] * 8


class Ragged(Letters):
    def embed(self, texts):
        return [[1.0] * (len(text) % 3 + 1) for text in texts]


class Short(Letters):
    def embed(self, texts):
        return super().embed(texts[:1])


class Infinite(Letters):
    def embed(self, texts):
        return [[float("inf")] for _ in texts]


class Failing(Letters):
    def embed(self, texts):
        raise OSError("the disk is gone")


class Leaving(Letters):
    def embed(self, texts):
        raise SystemExit("no such device")


class Waiting(Letters):
    go_on = threading.Event()

    def embed_query(self, text):
        self.go_on.wait()
        return [1.0] * 8


class Nameless(Letters):
    name = "\\n"


class Arguments(Letters):
    def __init__(self, folder):
        pass


class NoMethod:
    pass
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with such classes."""
    (tmp_path / "own_letters.py").write_text(CLASS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_letters", raising=False)
    return "own_letters"


@pytest.mark.promise("embedding.python")
async def test_a_class_of_ones_own_embeds(own: str) -> None:
    embedder = await load(read_choice(f"python:{own}:Letters"))
    assert (embedder.space, embedder.dimensions) == ("python:letters:1:8", 8)
    made = sentences(await embedder.embed(["abba", "", "cage"]))
    assert np.allclose(made[0][:2], 0.5**0.5, atol=0.01)
    assert not made[1].any()
    query = asked(await embedder.query("abba"))
    assert float(query @ made[0]) > 0.99
    with_own = await load(read_choice(f"python:{own}:Asking"))
    assert np.allclose(asked(await with_own.query("abba")), 8**-0.5)


@pytest.mark.promise("embedding.python")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_letters:Ragged", "failed|of the shape"),
        ("own_letters:Short", "of the shape"),
        ("own_letters:Infinite", "not finite"),
        ("own_letters:Failing", "the disk is gone"),
        ("own_letters:Leaving", "no such device"),
        ("own_letters:Nameless", "120 printable bytes"),
        ("own_letters:Arguments", "cannot be made"),
        ("own_letters:NoMethod", "has no method embed"),
        ("own_letters:Missing", "is not there"),
        ("own_missing:Letters", "is not there: No module named 'own_missing'"),
    ],
)
@pytest.mark.usefixtures("own")
async def test_what_is_no_embedder_is_told(name: str, said: str) -> None:
    async def attempt() -> None:
        embedder = await load(read_choice(f"python:{name}"))
        await embedder.embed(["a", "bb", "ccc"])

    with pytest.raises(EmbedderError, match=said):
        await attempt()


async def test_a_module_that_cannot_be_imported_is_told(own: str, tmp_path: Path) -> None:
    await trio.Path(tmp_path / "own_broken.py").write_text("1 / 0")
    with pytest.raises(EmbedderError, match="cannot be imported: ZeroDivisionError"):
        await load(read_choice(f"python:{own.replace('letters', 'broken')}:X"))


async def test_a_search_goes_on_by_words_when_a_class_does_not_answer(own: str, open_at: Opens) -> None:
    async with open_at(embedder=f"python:{own}:Waiting") as at:
        ann = at.agent("alice", user="ann")
        await ann.ask(StoreMemory(key="pump", content="The pump is new."))
        try:
            for _ in range(2):  # the second finds the first one's thread still at it
                found = await ann.ask(MemorySearch(query="pump"))
                assert [each.key for each in found.memories] == ["pump"]
                assert found.partial
        finally:  # a busy machine may not have loaded it yet
            import_module(own).Waiting.go_on.set()
