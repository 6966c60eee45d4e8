"""Messages are found by what they mean: the vectors of a session, from its first search to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import PATIENCE, principal
from support.embedding import WAITS, Loaded, Settled
from support.endpoints import Answer, Endpoint, endpoint, ok
from support.meanings import CONTROL, row

from greenroom.actors import (
    AddMessage,
    Agent,
    CreateSession,
    EmbedderChoice,
    EmbeddingStatistics,
    EraseUser,
    GetEmbedding,
    Principal,
    SearchContext,
    SearchResults,
    open_greenroom,
)
from greenroom.runtime import (
    ACTORS,
    Encryption,
    InlineCommitter,
    RuntimeOptions,
    SharedRuntime,
    StorageFullError,
    Store,
    WriteBatch,
)

FAST = RuntimeOptions(durability="process")
REFUNDS, ASKED = "You are refunded within two weeks.", "How do I get my money?"
OTHERS = ["The office is closed on Mondays.", "Anna painted a sunrise.", "Three replicas are deployed."]
MODEL = "python:support.meanings:Meanings"


@pytest.fixture(autouse=True)
def _control() -> Iterator[None]:
    CONTROL.texts.clear()
    yield
    CONTROL.trouble = None
    CONTROL.release()


class Talk:
    """A session, and one who works in it."""

    def __init__(self, runtime: SharedRuntime, agent: str | Principal = "anna") -> None:
        self.runtime = runtime
        self.agent = Agent(runtime, principal(agent) if isinstance(agent, str) else agent)

    async def say(self, *texts: str, **more: Any) -> None:
        for text in texts:
            await self.agent.ask(AddMessage(**{"session_id": "s", "content": text, **more}))

    async def search(self, query: str = ASKED, **more: Any) -> SearchResults:
        return await self.agent.ask(
            SearchContext(**{"session_id": "s", "query": query, "fuzzy_threshold": 0, **more})
        )

    async def load(self) -> None:
        with trio.fail_after(PATIENCE):
            await self.runtime.query(Loaded())

    async def settle(self) -> None:
        with trio.fail_after(PATIENCE):
            await self.runtime.query(Settled())

    async def statistics(self) -> EmbeddingStatistics:
        return await self.runtime.query(GetEmbedding())


@asynccontextmanager
async def talk(folder: Path, embedder: str | EmbedderChoice = MODEL, **options: Any) -> AsyncIterator[Talk]:
    settings: dict[str, Any] = {"embedder": embedder, "queries": WAITS, "options": FAST} | options
    async with open_greenroom(folder, **settings) as runtime:
        yield Talk(runtime)


async def begin(here: Talk, *texts: str) -> None:
    await here.agent.ask(CreateSession(session_id="s", purpose="a shop"))
    await here.say(*(texts or (REFUNDS, *OTHERS)))


def by_meaning(_endpoint: Endpoint, body: dict[str, Any]) -> Answer:
    return ok({"data": [{"embedding": row(text)} for text in body["input"]]})


def contents(found: SearchResults) -> list[str]:
    return [hit.message.content for hit in found.results]


@pytest.mark.promise("sessions.meaning")
async def test_a_message_is_found_by_its_meaning_with_vectors_of_words(folder: Path) -> None:
    async with talk(folder, "static") as here:
        await begin(here, "Refunds are paid within 14 days.", *OTHERS)
        await here.settle()
        found = await here.search("How do I get my money back?")
        assert contents(found)[0] == "Refunds are paid within 14 days."
        assert not found.partial
        await here.say("Money is returned by bank transfer.")
        found = await here.search("How do I get my money back?")
        assert contents(found)[0] == "Money is returned by bank transfer."


@pytest.mark.promise("sessions.meaning")
async def test_a_models_vectors_are_made_behind_the_first_search_and_then_of_what_comes(folder: Path) -> None:
    async with talk(folder) as here:
        await begin(here)
        await here.settle()
        assert CONTROL.texts == [], "a session that nobody searches is not embedded"
        found = await here.search()
        assert found.partial
        assert "they are being embedded" in str(found.partial_reason)
        await here.settle()
        assert sorted(CONTROL.texts) == sorted([REFUNDS, *OTHERS])
        found = await here.search()
        assert contents(found)[0] == REFUNDS
        assert not found.partial
        await here.say("We repay in full.")
        await here.settle()
        assert CONTROL.texts[4:] == ["We repay in full."], "nobody had to search for that"
        assert set(contents(await here.search())[:2]) == {REFUNDS, "We repay in full."}
        assert (await here.statistics()).embedded == 5


@pytest.mark.promise("sessions.meaning")
async def test_a_models_vectors_outlive_the_process(folder: Path) -> None:
    async with talk(folder) as here:
        await begin(here)
        await here.search()
        await here.settle()
    CONTROL.texts.clear()
    async with talk(folder) as here:
        await here.load()
        found = await here.search()
        assert contents(found)[0] == REFUNDS
        assert not found.partial
        await here.settle()
        assert CONTROL.texts == []


@pytest.mark.promise("sessions.meaning")
async def test_what_was_not_embedded_when_the_process_ended_is_at_the_next_search(folder: Path) -> None:
    async with talk(folder) as here:
        await begin(here)
        await here.settle()
        CONTROL.hold()
        await here.search()
        await trio.to_thread.run_sync(CONTROL.wait_until_held)
        await here.say("We repay in full.")
        CONTROL.trouble = "it is going down"
        CONTROL.release()
    CONTROL.trouble = None
    async with talk(folder) as here:
        assert (await here.search()).partial
        await here.settle()
        assert sorted(CONTROL.texts) == sorted([REFUNDS, *OTHERS, "We repay in full."])
        assert set(contents(await here.search())[:2]) == {REFUNDS, "We repay in full."}


@pytest.mark.promise("sessions.meaning")
async def test_older_vectors_serve_until_a_newer_model_has_made_all(folder: Path) -> None:
    async with endpoint() as served:
        served.behaviour = by_meaning
        older, newer = (EmbedderChoice(kind="http", place=served.url, model=name) for name in ("m", "n"))
        async with talk(folder, older) as here:
            await begin(here)
            await here.search()
            await here.settle()
        served.held = {REFUNDS}
        async with talk(folder, newer) as here:
            await here.load()
            while not (await here.statistics()).older_spaces:
                await trio.testing.wait_all_tasks_blocked(0.001)
            found = await here.search()
            assert contents(found)[0] == REFUNDS
            assert not found.partial
            assert (await here.statistics()).older_spaces == ["http:m:4"]
            served.go_on.set()
            await here.settle()
            found = await here.search()
            assert contents(found)[0] == REFUNDS
            assert not found.partial
        served.asked.clear()
        async with talk(folder, newer) as here:
            await here.load()
            assert contents(await here.search())[0] == REFUNDS
            await here.settle()
            statistics = await here.statistics()
            assert (statistics.older_spaces, statistics.texts_waiting) == ([], 0)
            assert served.asked == [["probe"], [" "], [ASKED]]


@pytest.mark.promise("sessions.meaning")
async def test_an_embedder_that_fails_leaves_the_words_and_says_so(folder: Path) -> None:
    async with talk(folder) as here:
        await begin(here)
        await here.settle()
        CONTROL.trouble = "out of order"
        found = await here.search("When is the office closed?", fuzzy_threshold=60)
        assert contents(found) == ["The office is closed on Mondays."]
        assert found.partial
        assert "out of order" in str(found.partial_reason)
    async with talk(folder, "none") as here:
        found = await here.search("office closed")
        assert contents(found)[0] == "The office is closed on Mondays."
        assert not found.partial, "nobody wants one"


@pytest.mark.promise("sessions.meaning")
async def test_vectors_of_words_take_the_place_of_a_models_and_are_not_kept(folder: Path) -> None:
    async with talk(folder) as here:
        await begin(here)
        await here.search()
        await here.settle()
    assert kept(folder) == 4
    async with talk(folder, "static") as here:
        await here.settle()
        assert not (await here.search("sunrise")).partial
        assert (await here.statistics()).older_spaces == []
    assert kept(folder) == 0


@pytest.mark.promise("sessions.meaning")
async def test_whoever_is_attached_searches_by_the_owners_vectors(folder: Path) -> None:
    async with talk(folder) as here, talk(folder, "none") as other:
        assert other.runtime.role == "attached"
        await begin(other)
        assert (await other.search()).partial
        await here.settle()
        found = await other.search()
        assert contents(found)[0] == REFUNDS
        assert not found.partial


@pytest.mark.promise("sessions.meaning")
async def test_vectors_of_an_encrypted_store_are_kept_encrypted(folder: Path) -> None:
    options: dict[str, Any] = {
        "encryption": Encryption(lambda: b"\x07" * 32, required=True),
        "secrets": folder / "secrets",
    }
    for times in (1, 2):
        async with talk(folder / "data", **options) as here:
            await here.load()
            if times == 1:
                await begin(here)
                assert (await here.search()).partial
                await here.settle()
            assert contents(await here.search())[0] == REFUNDS
    assert len(CONTROL.texts) == 4


@pytest.mark.promise("sessions.meaning")
async def test_with_a_persons_messages_go_their_vectors(folder: Path) -> None:
    async with talk(folder) as here:
        await begin(here)
        hers = Talk(here.runtime, Principal(agent_id="eve-coder", user="eve"))
        await hers.say("We repay in full.", "The building is shut.")
        await here.search()
        await here.settle()
        await Agent(here.runtime, Principal(agent_id="root")).ask(EraseUser(user="eve", confirm=True))
        assert contents(await here.search())[0] == REFUNDS
    assert kept(folder) == 4


@pytest.mark.promise("sessions.meaning")
async def test_a_session_that_is_erased_amid_the_embedding_of_it_leaves_nothing(folder: Path) -> None:
    eve = Principal(agent_id="eve-coder", user="eve")
    async with talk(folder) as here:
        hers = Talk(here.runtime, eve)
        await begin(hers)
        await here.settle()
        CONTROL.hold()
        await hers.search()
        await trio.to_thread.run_sync(CONTROL.wait_until_held)
        await Agent(here.runtime, Principal(agent_id="root")).ask(EraseUser(user="eve", confirm=True))
        CONTROL.release()
        await here.settle()
        statistics = await here.statistics()
        assert (statistics.trouble, statistics.texts_waiting, statistics.embedded) == (None, 0, 0)
    assert kept(folder) == 0


@pytest.mark.promise("sessions.meaning")
async def test_a_search_that_is_cancelled_costs_the_next_one_nothing(folder: Path) -> None:
    async with endpoint() as served:
        served.behaviour = by_meaning
        async with talk(folder, EmbedderChoice(kind="http", place=served.url, model="m")) as here:
            await begin(here)
            await here.search("office")
            await here.settle()
            served.silent_about = {ASKED}
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.search)
                while [ASKED] not in served.asked:
                    await trio.testing.wait_all_tasks_blocked(0.001)
                nursery.cancel_scope.cancel()
            await served.hung_up.wait()
            served.silent_about = set()
            found = await here.search()
            assert contents(found)[0] == REFUNDS
            assert not found.partial
            statistics = await here.statistics()
            assert (statistics.state, statistics.trouble) == ("ready", None)


@pytest.mark.promise("sessions.meaning")
async def test_a_full_disk_costs_the_vectors_until_there_is_room(folder: Path) -> None:
    disk = FullDisk()
    async with talk(folder, committer=InlineCommitter(disk)) as here:
        await begin(here)
        await here.settle()
        CONTROL.hold()
        await here.search()
        await trio.to_thread.run_sync(CONTROL.wait_until_held)
        disk.is_full = True
        CONTROL.release()
        await here.settle()
        assert disk.refused
        assert (await here.statistics()).embedded == 0
        disk.is_full = False
        assert contents(await here.search("office closed"))[0] == "The office is closed on Mondays."
        await here.settle()
        found = await here.search()
        assert contents(found)[0] == REFUNDS
        assert not found.partial
    assert kept(folder) == 4


class FullDisk:
    """A disk that has no room while it is told so."""

    def __init__(self) -> None:
        self.is_full = self.refused = False

    def __call__(self, store: Store, works: Sequence[WriteBatch]) -> None:
        if self.is_full:
            self.refused = True
            for work in works:
                work.error = StorageFullError("no room, says the test")
        store.commit(works)


def kept(folder: Path) -> int:
    """Return how many vectors of messages a closed store has."""
    with closing(Store(folder)) as store:
        return sum(len(key) > len(b"session\0s\0uv") for key in store.keys(ACTORS, b"session\0s\0uv"))
