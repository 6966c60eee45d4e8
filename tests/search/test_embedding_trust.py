"""What a store says made its vectors is not believed: it may be somebody else's, or was changed."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from harness import principal
from support.embedding import WAITS, Settled
from support.endpoints import Endpoint, endpoint
from support.models import write_model

from greenroom.actors import (
    Agent,
    EmbedderChoice,
    GetEmbedding,
    MemoriesFound,
    MemorySearch,
    StoreMemory,
    open_greenroom,
)
from greenroom.runtime import RuntimeOptions, SharedRuntime

NOTES = ["Refunds are paid within 14 days.", "The office is closed on Mondays.", "Anna painted a sunrise."]
OWN = """
from pathlib import Path

with Path(__file__).with_name("imported").open("a") as file:
    file.write("again\\n")


class Lengths:
    def embed(self, texts):
        return [[1.0, float(len(text))] for text in texts]
"""


@asynccontextmanager
async def opened(folder: Path, embedder: str | EmbedderChoice) -> AsyncIterator[SharedRuntime]:
    fast = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder=embedder, queries=WAITS, options=fast) as runtime:
        yield runtime


async def filled(folder: Path, embedder: str | EmbedderChoice) -> None:
    """Make a store whose notes have an embedder's vectors."""
    async with opened(folder, embedder) as runtime:
        for note in NOTES:
            await Agent(runtime, principal("anna")).ask(StoreMemory(content=note, namespace="project:shop"))
        await runtime.query(Settled())


async def found_in(runtime: SharedRuntime) -> MemoriesFound:
    asked = MemorySearch(query="How do I get my money back?", namespace="project:shop")
    return await Agent(runtime, principal("anna")).ask(asked)


def at(served: Endpoint, model: str = "m", key: str | None = None) -> EmbedderChoice:
    return EmbedderChoice(kind="http", place=served.url, model=model, key=key)


@pytest.mark.slow
@pytest.mark.promise("embedding.trust")
async def test_a_class_is_not_imported_because_a_store_names_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own_lengths.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    await filled(folder, "python:own_lengths:Lengths")
    assert (tmp_path / "imported").read_text() == "again\n"
    monkeypatch.delitem(sys.modules, "own_lengths")
    async with opened(folder, "static") as runtime:
        await runtime.query(Settled())
        found = await found_in(runtime)
        assert found.memories[0].content == NOTES[0]
        assert not found.partial
    assert (tmp_path / "imported").read_text() == "again\n"
    assert "words alone: the store has vectors of 'python:own_lengths:Lengths'" in caplog.text


@pytest.mark.promise("embedding.trust")
async def test_a_folder_of_models_is_not_read_because_a_store_names_it(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = write_model(tmp_path / "model")
    await filled(folder, f"onnx:{model}")
    model.rename(tmp_path / "gone")
    async with opened(folder, "static") as runtime:
        await runtime.query(Settled())
        assert (await found_in(runtime)).memories[0].content == NOTES[0]
    assert f"words alone: the store has vectors of 'onnx:{model}'" in caplog.text
    assert "does not exist" not in caplog.text, "nobody looked"


@pytest.mark.promise("embedding.trust")
async def test_an_endpoint_is_neither_asked_nor_given_a_key_because_a_store_names_it(folder: Path) -> None:
    async with endpoint() as named, endpoint() as chosen:
        await filled(folder, at(named))
        before = len(named.asked)
        chosen.held = set(NOTES)
        async with opened(folder, at(chosen, key="sesame")) as runtime:
            await chosen.was_asked.wait()
            assert (await runtime.query(GetEmbedding())).older_spaces == []
            chosen.go_on.set()
            await runtime.query(Settled())
            assert not (await found_in(runtime)).partial
        assert chosen.headers["authorization"] == "Bearer sesame"
        assert len(named.asked) == before
        assert "authorization" not in named.headers
        async with opened(folder, "static") as runtime:
            asked = len(chosen.asked)
            await runtime.query(Settled())
            assert (await found_in(runtime)).memories[0].content == NOTES[0]
        assert (len(named.asked), len(chosen.asked)) == (before, asked)


@pytest.mark.promise("embedding.trust", "embedding.change")
async def test_another_model_of_the_chosen_endpoint_serves_until_all_is_embedded_anew(folder: Path) -> None:
    async with endpoint() as served:
        await filled(folder, at(served, "older"))
        served.held = set(NOTES)
        async with opened(folder, at(served, "newer", key="sesame")) as runtime:
            while not (await runtime.query(GetEmbedding())).older_spaces:
                await trio.testing.wait_all_tasks_blocked(0.001)
            found = await found_in(runtime)
            assert len(found.memories) == len(NOTES)
            assert not found.partial
            assert (await runtime.query(GetEmbedding())).older_spaces == ["http:older:8"]
            served.go_on.set()
            await runtime.query(Settled())
            assert (await runtime.query(GetEmbedding())).space == "http:newer:8"
