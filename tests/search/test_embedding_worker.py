"""What runs beside the actors: who gets vectors when, what failures cost, what a change of embedder does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from support.endpoints import Endpoint, endpoint, failing
from support.keepers import Break, Keep, Keeper, Kept, Letters, Show

from greenroom.actors import (
    EmbedderChoice,
    EmbedderError,
    EmbeddingStatistics,
    GetEmbedding,
    TextRefusedError,
)
from greenroom.actors.search.embedding import rows
from greenroom.actors.search.embedding.backlog_worker import LONGEST_SECONDS, Backoff
from greenroom.actors.search.embedding.embedder import Embedder
from greenroom.actors.search.embedding.embedder_loader import load
from greenroom.actors.search.embedding.embedding_service import (
    LOAD_SECONDS,
    QUERY_SECONDS,
    EmbeddingService,
    open_embedding,
)
from greenroom.actors.search.embedding.rows import EmbedderActor
from greenroom.runtime import Address, Index, InlineCommitter, Runtime, RuntimeOptions, open_runtime
from greenroom.testing import VirtualClock

ANNA, BERT = Address("keeper", "anna"), Address("keeper", "bert")
STATIC = EmbedderChoice(kind="static")
NONE = EmbedderChoice(kind="none")


class Home:
    """A runtime with keepers, and what runs beside them."""

    def __init__(self, runtime: Runtime, embedding: EmbeddingService) -> None:
        self.runtime = runtime
        self.embedding = embedding

    async def keep(self, address: Address, *texts: str, tells: bool = True) -> None:
        await self.runtime.ask(address, Keep(texts=list(texts), tells=tells))

    async def show(self, address: Address) -> Kept:
        return await self.runtime.ask(address, Show())

    async def statistics(self) -> EmbeddingStatistics:
        return await self.runtime.query(GetEmbedding())


@asynccontextmanager
async def home(
    folder: Path,
    choice: EmbedderChoice = STATIC,
    load: Callable[[EmbedderChoice], Awaitable[Embedder]] = load,
) -> AsyncIterator[Home]:
    opened: list[EmbeddingService] = []

    @asynccontextmanager
    async def sidecar(runtime: Any) -> AsyncIterator[EmbeddingService]:
        async with open_embedding(runtime, choice, load) as embedding:
            opened.append(embedding)
            yield embedding

    async with open_runtime(
        folder,
        actors=[Keeper, EmbedderActor],
        indexes=[Index(rows.INDEX), Index(rows.SPACES)],
        options=RuntimeOptions(durability="process"),
        clock=VirtualClock(),
        committer=InlineCommitter(),
        sidecar=sidecar,
    ) as runtime:
        yield Home(runtime, opened[0])


def unfinished(space: str) -> rows.FindUnfinished:
    return rows.FindUnfinished(space=space, maker=rows.Space("none"))


def loads(*made: Letters) -> Callable[[EmbedderChoice], Awaitable[Embedder]]:
    """Load these, one after the other, then the last again."""
    left = list(made)

    async def load(_choice: EmbedderChoice) -> Embedder:
        return left.pop(0) if left[1:] else left[0]

    return load


def at(served: Endpoint) -> EmbedderChoice:
    return EmbedderChoice(kind="http", place=served.url, model="m")


def choice(name: str) -> EmbedderChoice:
    return EmbedderChoice(kind="http", place="http://a", model=name)


# -- word vectors, in real time ------------------------------------------


@pytest.mark.promise("embedding.lazy")
async def test_nothing_is_loaded_before_it_is_needed_and_the_first_query_waits_for_it(folder: Path) -> None:
    async with home(folder) as here:
        assert (await here.statistics()).state == "idle"
        query = await here.embedding.query("painter")
        assert query is not None
        assert query.space == here.embedding.space == rows.STATIC
        assert here.embedding.absence is None
        after = await here.statistics()
        assert (after.state, after.queries, after.queries_without) == ("ready", 1, 0)


async def test_what_is_stored_before_it_is_loaded_gets_its_vectors_after(folder: Path) -> None:
    async with home(folder) as here:
        texts = [f"text number {number}" for number in range(600)]
        await here.keep(ANNA, *texts)
        await here.keep(BERT, "another")
        await here.embedding.wait_idle()
        for address, count in ((ANNA, 600), (BERT, 1)):
            kept = await here.show(address)
            assert kept.serving == rows.STATIC
            assert len(kept.vectors[rows.STATIC]) == count
        assert (await here.statistics()).embedded == 601


async def test_once_loaded_vectors_are_stored_with_the_text(folder: Path) -> None:
    async with home(folder) as here:
        await here.embedding.query("", wait=True)
        await here.keep(ANNA, "in the same commit")
        assert len((await here.show(ANNA)).vectors[rows.STATIC]) == 1
        assert (await here.statistics()).embedded == 0


@pytest.mark.promise("embedding.resumes")
async def test_what_was_not_embedded_at_the_end_is_at_the_next_start(folder: Path) -> None:
    async with home(folder, NONE) as here:
        await here.keep(ANNA, "one", "two")
        assert await here.embedding.query("one", wait=True) is None
        assert here.embedding.absence == "the embedder is none"
        assert (await here.statistics()).state == "off"
    async with home(folder) as here:
        await here.embedding.query("", wait=True)
        await here.embedding.wait_idle()
        assert len((await here.show(ANNA)).vectors[rows.STATIC]) == 2
    async with home(folder) as here:  # and then there is nothing left to do
        await trio.testing.wait_all_tasks_blocked()
        assert (await here.statistics()).state == "idle"


@pytest.mark.promise("embedding.failure")
async def test_a_missing_embedder_costs_the_meaning_and_nothing_else(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def missing(wanted: EmbedderChoice) -> Embedder:
        raise EmbedderError(f"{wanted} is not installed")

    async with home(folder, STATIC, missing) as here:
        await here.keep(ANNA, "one")
        assert await here.embedding.query("one", wait=True) is None
        assert here.embedding.absence == "static is not installed"
        found = await here.statistics()
        assert (found.state, found.texts_waiting, found.actors_waiting) == ("failing", 1, 1)
    assert "searches go by words alone" in caplog.text


# -- an endpoint, in real time -------------------------------------------


@pytest.mark.promise("embedding.http")
async def test_an_endpoint_embeds_and_is_asked_for_a_query_once(folder: Path) -> None:
    async with endpoint() as served, home(folder, at(served)) as here:
        await here.keep(ANNA, *[f"text {number}" for number in range(40)])
        await here.embedding.wait_idle()
        assert [len(batch) for batch in served.asked] == [1, 16, 16, 8]
        first = await here.embedding.query("painter")
        assert first is not None
        assert await here.embedding.query("painter") is first
        assert served.asked[4:] == [["painter"]]


async def test_the_query_that_was_not_used_for_longest_is_forgotten(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.search.embedding.embedding_service.QUERIES_KEPT", 2)
    async with endpoint() as served, home(folder, at(served)) as here:
        for text in ("a", "b", "a", "c", "a", "b"):
            assert await here.embedding.query(text, wait=True) is not None
        assert served.asked[1:] == [["a"], ["b"], ["c"], ["b"]]


async def test_a_silent_endpoint_is_waited_for_two_seconds_and_then_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert QUERY_SECONDS == 2.0
    async with endpoint() as served, home(folder, at(served)) as here:
        assert await here.embedding.query("", wait=True) is not None
        monkeypatch.setattr("greenroom.actors.search.embedding.embedding_service.QUERY_SECONDS", 0.05)
        served.silent = True
        assert await here.embedding.query("slow") is None
        if ["slow"] in served.asked:  # a busy machine may give up before it has asked
            await served.hung_up.wait()
        assert await here.embedding.query("slow") is None  # not asked again at once
        assert served.asked.count(["slow"]) <= 1
        assert "0.05 seconds" in str(here.embedding.absence)
        assert (await here.statistics()).queries_without == 2


@pytest.mark.promise("embedding.failure")
async def test_who_closes_does_not_wait_for_a_silent_endpoint(folder: Path) -> None:
    async with endpoint() as served:
        async with home(folder, at(served)) as here:
            await here.embedding.query("", wait=True)
            served.silent = True
            await here.keep(ANNA, "one")
            while len(served.asked) < 3:
                await trio.testing.wait_all_tasks_blocked(0.001)
        await served.hung_up.wait()


async def test_an_endpoint_that_fails_at_first_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.actors.search.embedding.backlog_worker.FIRST_SECONDS", 0.01)
    async with endpoint() as served:
        served.behaviour = failing(503)
        async with home(folder, at(served)) as here:
            await here.keep(ANNA, "one")
            assert await here.embedding.query("one", wait=True) is None
            assert "answers 503: no" in str(here.embedding.absence)
            served.behaviour = lambda _served, _body: None
            await here.embedding.wait_idle()
            assert here.embedding.absence is None
            assert len((await here.show(ANNA)).vectors["http:m:8"]) == 1


# -- failures and changes, in virtual time --------------------------------


Enter = Callable[..., AbstractAsyncContextManager[Home]]


@pytest.fixture
def virtual_home(folder: Path) -> Enter:
    """`home` on this test's folder, in virtual time."""
    return partial(home, folder)


@pytest.mark.promise("embedding.failure")
async def test_an_endpoint_that_hangs_is_not_said_to_be_loaded_for_long(virtual_home: Enter) -> None:
    async def hangs(_choice: EmbedderChoice) -> Embedder:
        await trio.sleep_forever()
        raise AssertionError("for ever")

    async with virtual_home(choice("a"), hangs) as here:
        begun = trio.current_time()
        with trio.fail_after(QUERY_SECONDS):  # half of which is for the rest of a search
            assert await here.embedding.query("x") is None
        assert trio.current_time() == begun + QUERY_SECONDS / 2
        assert here.embedding.absence == "the embedder http:http://a is being loaded"
        assert await here.embedding.query("x") is None
        assert trio.current_time() == begun + QUERY_SECONDS
        assert here.embedding.absence == "the embedder http:http://a does not answer"
        assert await here.embedding.query("x") is None
        assert trio.current_time() == begun + QUERY_SECONDS, "nobody waits for it again"


@pytest.mark.promise("embedding.first-search")
async def test_queries_that_come_while_a_model_is_loaded_wait_for_it_but_not_for_ever(
    virtual_home: Enter,
) -> None:
    slow = EmbedderChoice(kind="onnx", place="/nowhere")
    for seconds, found in ((LOAD_SECONDS - 1, [True, True, True]), (LOAD_SECONDS + 1, [False, False, True])):

        async def takes(_choice: EmbedderChoice, seconds: float = seconds) -> Embedder:
            await trio.sleep(seconds)
            return Letters()

        async with virtual_home(slow, takes) as here:
            got: list[bool] = []

            async def ask(here: Home = here, got: list[bool] = got) -> None:
                got.append(await here.embedding.query("x") is not None)

            begun = trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                await trio.sleep(1)
                nursery.start_soon(ask)
            assert trio.current_time() == begun + min(seconds, LOAD_SECONDS)
            await trio.sleep(2)
            await ask()
            assert got == found


@pytest.mark.promise("embedding.first-search")
async def test_the_first_query_waits_for_the_vectors_of_what_was_stored_before(virtual_home: Enter) -> None:
    async with virtual_home(NONE) as here:
        await here.keep(ANNA, "a", "b")
    async with virtual_home(choice("a"), loads(Letters())) as here:
        await here.keep(BERT, "c")
        query = await here.embedding.query("x")
        assert query is not None
        assert [len((await here.show(who)).vectors[query.space]) for who in (ANNA, BERT)] == [2, 1]


async def test_actors_take_turns(virtual_home: Enter) -> None:
    embedder = Letters()
    async with virtual_home(choice("a"), loads(embedder)) as here:
        await here.keep(ANNA, *["a"] * 10)
        await here.keep(BERT, *["b"] * 10)
        await here.embedding.wait_idle()
        assert ["".join(batch) for batch in embedder.batches] == ["aaaa", "bbbb", "aaaa", "bbbb", "aa", "bb"]


async def test_progress_is_seen(virtual_home: Enter) -> None:
    embedder = Letters()
    async with virtual_home(choice("a"), loads(embedder)) as here:
        embedder.go_on = trio.Event()
        await here.keep(ANNA, *["a"] * 10)
        await trio.testing.wait_all_tasks_blocked()
        found = await here.statistics()
        assert (found.embedded, found.texts_waiting, found.actors_waiting) == (0, 10, 1)
        await here.keep(ANNA, "b")
        await here.keep(BERT, "b")
        found = await here.statistics()
        assert found.actors_waiting == 2
        embedder.go_on.set()
        await here.embedding.wait_idle()
        found = await here.statistics()
        assert (found.embedded, found.texts_waiting, found.actors_waiting) == (12, 0, 0)


@pytest.mark.promise("embedding.failure")
async def test_a_failing_embedder_is_asked_less_and_less_often(
    virtual_home: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Letters()
    async with virtual_home(choice("a"), loads(embedder)) as here:
        await here.embedding.query("", wait=True)
        embedder.trouble = EmbedderError("the moon is full")
        await here.keep(ANNA, "one")
        await trio.sleep(1_000)
        assert len(embedder.batches) == 11  # at 0, 1, 3, 7, 15, 31, 63, 127, 255, 511, and 811
        assert here.embedding.absence == "the moon is full"
        assert await here.embedding.query("one") is None
        assert (await here.statistics()).state == "failing"
        embedder.trouble = EmbedderError("come back later", retry_after=3_600)
        await trio.sleep(400)
        embedder.trouble = None
        await trio.sleep(LONGEST_SECONDS)
        await here.embedding.wait_idle()
        assert (await here.statistics()).state == "ready"
        assert (await here.embedding.query("one")) is not None
    said = [record.getMessage() for record in caplog.records]
    assert said == ["searches go by words alone for now: the moon is full", "the embedder works again"]


def test_patience_has_an_end() -> None:
    patience = Backoff()
    assert [patience.after_failure() for _ in range(11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    patience.after_success()
    assert patience.after_failure(20) == 20
    assert patience.after_failure(1e9) == LONGEST_SECONDS


async def test_one_text_that_is_refused_does_not_keep_others_from_being_embedded(
    virtual_home: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Letters()
    embedder.refused = "!"
    async with virtual_home(choice("a"), loads(embedder)) as here:
        await here.keep(ANNA, "one", "two!", "three")
        await here.embedding.wait_idle()
        made = (await here.show(ANNA)).vectors["letters:1"]
        assert [made[number].scale for number in (1, 2, 3)] == [1.0, 0.0, 1.0]
        assert len(made[2].values) == embedder.dimensions
        assert embedder.batches == [["one", "two!", "three"], ["one"], ["two!"], ["three"]]
        assert here.embedding.absence is None
        assert f"found by its words only: a text of {ANNA} with 4 characters" in caplog.text
        assert "two" not in caplog.text
        embedder.trouble = TextRefusedError("not this query")
        assert await here.embedding.query("?") is None
        assert here.embedding.absence is None


@pytest.mark.parametrize("how", ["fails", "refuses"])
async def test_an_actor_that_keeps_nothing_is_asked_again_later(virtual_home: Enter, how: str) -> None:
    embedder = Letters()
    async with virtual_home(choice("a"), loads(embedder)) as here:
        await here.runtime.ask(ANNA, Break(times=2, refuses=how == "refuses"))
        await here.keep(ANNA, "one")
        await here.keep(BERT, "two")
        await trio.sleep(100)
        assert len((await here.show(BERT)).vectors) == 1
        if how == "refuses":  # the other one was built anew, and has forgotten that it is broken
            assert len(embedder.batches) == 4
        assert len((await here.show(ANNA)).vectors["letters:1"]) == 1


@pytest.mark.promise("embedding.change")
async def test_another_embedder_embeds_anew_and_old_vectors_serve_meanwhile(virtual_home: Enter) -> None:
    old, new = Letters("old:1"), Letters("new:1", 8)

    async def both(wanted: EmbedderChoice) -> Embedder:
        return old if wanted.model == "old" else new

    async with virtual_home(choice("old"), both) as here:
        await here.keep(ANNA, *["a"] * 6)
        await here.keep(BERT, "b")
        await here.embedding.wait_idle()
    assert old.closed
    old.closed = False
    new.trouble = EmbedderError("not yet")
    async with virtual_home(choice("new"), both) as here:
        await trio.sleep(0.5)
        query = await here.embedding.query("x")  # only the old one can
        assert query is not None
        assert query.space == "old:1"
        found = await here.statistics()
        assert (found.space, found.older_spaces, found.actors_waiting) == ("new:1", ["old:1"], 2)
        await here.keep(ANNA, "seventh")
        assert (await here.show(ANNA)).serving == "old:1"
        new.trouble = None
        await trio.sleep(1.0)
        both_ways = await here.embedding.query("y")
        await here.embedding.wait_idle()
        for address, count in ((ANNA, 7), (BERT, 1)):
            kept = await here.show(address)
            assert kept.serving == "new:1"
            assert len(kept.vectors["new:1"]) == count
        await trio.testing.wait_all_tasks_blocked()
        found = await here.statistics()
        assert (found.older_spaces, found.texts_waiting, found.embedded) == ([], 0, 8)
        assert old.closed
        assert both_ways is not None
        assert (await here.embedding.query("z")).older == ()  # type: ignore[union-attr]  # it is there


@pytest.mark.promise("embedding.change")
async def test_an_older_embedder_that_is_let_go_during_a_query_is_not_asked(virtual_home: Enter) -> None:
    old, new = Letters("old:1"), Letters("new:1")

    async def both(wanted: EmbedderChoice) -> Embedder:
        return old if wanted.model == "old" else new

    async with virtual_home(choice("old"), both) as here:
        await here.keep(ANNA, "a")
        await here.embedding.wait_idle()
    old.closed = False
    new.go_on, new.answers = trio.Event(), trio.Event()
    found: list[Any] = []
    async with virtual_home(choice("new"), both) as here, trio.open_nursery() as nursery:
        await trio.sleep(0.5)
        assert (await here.statistics()).older_spaces == ["old:1"]

        async def ask() -> None:
            found.append(await here.embedding.query("x"))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        new.go_on.set()
        await here.embedding.wait_idle()
        await trio.testing.wait_all_tasks_blocked()
        assert old.closed
        new.answers.set()
    assert [(each.space, each.older) for each in found] == [("new:1", ())]


@pytest.mark.promise("embedding.change")
async def test_nobody_waits_for_new_vectors_while_older_ones_serve(virtual_home: Enter) -> None:
    old, new = Letters("old:1"), Letters("new:1")

    async def both(wanted: EmbedderChoice) -> Embedder:
        return old if wanted.model == "old" else new

    async with virtual_home(choice("old"), both) as here:
        await here.keep(ANNA, *["a"] * 6)
        await here.embedding.wait_idle()
    old.closed = False
    new.go_on = trio.Event()
    async with virtual_home(choice("new"), both) as here:
        begun = trio.current_time()
        query = await here.embedding.query("x")
        assert trio.current_time() == begun
        assert query is not None
        assert query.in_space((await here.show(ANNA)).serving) is not None
        await trio.testing.wait_all_tasks_blocked()
        assert here.embedding.waiting(ANNA) == 6
        assert here.embedding.waiting(BERT) == 0
        new.go_on.set()
        await here.embedding.wait_idle()
        assert here.embedding.waiting(ANNA) == 0


@pytest.mark.promise("embedding.change")
async def test_from_word_vectors_to_an_endpoint_and_back(folder: Path) -> None:
    async with home(folder) as here:
        await here.keep(ANNA, "one", "two")
        await here.embedding.wait_idle()
    async with endpoint() as served:
        chosen = at(served)
        served.silent = True
        async with home(folder, chosen) as here:
            while not (await here.statistics()).older_spaces:
                await trio.testing.wait_all_tasks_blocked(0.001)
            query = await here.embedding.query("one")
            assert query is not None
            assert query.in_space((await here.show(ANNA)).serving) is query
        served.silent = False
        async with home(folder, chosen) as here:
            await here.embedding.query("", wait=True)
            await here.embedding.wait_idle()
            assert (await here.show(ANNA)).serving == "http:m:8"
            assert [*(await here.show(ANNA)).vectors] == ["http:m:8"]
        async with home(folder) as here:
            await here.embedding.query("", wait=True)
            await here.embedding.wait_idle()
            assert (await here.show(ANNA)).serving == rows.STATIC


@pytest.mark.promise("embedding.change")
async def test_word_vectors_of_an_older_version_are_made_anew(folder: Path) -> None:
    older = "static:wordllama-l2-supercat:1:256"
    async with home(folder, load=loads(Letters(older, 256))) as here:
        await here.keep(ANNA, "one", "two")
        await here.embedding.wait_idle()
        assert (await here.show(ANNA)).serving == older
    async with home(folder) as here:
        await here.embedding.query("", wait=True)
        await here.embedding.wait_idle()
        kept = await here.show(ANNA)
        assert (kept.serving, [*kept.vectors]) == (rows.STATIC, [rows.STATIC])


async def test_an_older_embedder_that_is_gone_costs_the_meaning_only(
    virtual_home: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_home(choice("old"), loads(Letters("old:1"))) as here:
        await here.keep(ANNA, "one")
        await here.embedding.wait_idle()

    async def only_new(wanted: EmbedderChoice) -> Embedder:
        if wanted.model == "old":
            raise EmbedderError("it moved out")
        return Letters("new:1")

    async with virtual_home(choice("new"), only_new) as here:
        await here.embedding.wait_idle()
        await trio.testing.wait_all_tasks_blocked()
        assert (await here.show(ANNA)).serving == "new:1"
    assert "until all is embedded anew, some searches go by words alone: it moved out" in caplog.text


async def test_actors_in_the_present_space_are_passed_over(virtual_home: Enter) -> None:
    """One before it and one after it in the order of keys are found; those within are not even read."""
    for space, address in (("a", ANNA), ("m", Address("keeper", "middle")), ("z", BERT)):
        async with virtual_home(choice(space), loads(Letters(space))) as here:
            await here.runtime.ask(address, Keep(texts=["one"]))
            await here.embedding.wait_idle()
            if space == "z":
                break
    async with virtual_home(NONE) as here:
        found = await here.runtime.query(unfinished("z"))
        assert found.addresses == []
        await here.keep(ANNA, "two", tells=False)
        found = await here.runtime.query(unfinished("m"))
        assert set(found.addresses) == {ANNA, Address("keeper", "middle"), BERT}
        assert [*found.older] == ["z"]
        assert found.is_known
        assert not (await here.runtime.query(unfinished("q"))).is_known


async def test_a_model_is_not_loaded_at_the_start_when_all_has_its_vectors(virtual_home: Enter) -> None:
    """Not even to learn the name of its space, which was noted when it was loaded first."""
    async with virtual_home(choice("a"), loads(Letters("first"))) as here:
        await here.keep(ANNA, "one")
        await here.embedding.wait_idle()
    changed = Letters("second")
    async with virtual_home(choice("a"), loads(changed)) as here:
        await here.embedding.wait_idle()
        await trio.testing.wait_all_tasks_blocked()
        assert (await here.statistics()).state == "idle"
        await here.embedding.query("one", wait=True)  # the same name now stands for another model
        await trio.testing.wait_all_tasks_blocked()
        await here.embedding.wait_idle()
        assert (await here.show(ANNA)).serving == "second"
        assert changed.batches == [["one"]]


async def test_a_fault_of_the_embedder_costs_the_meaning_and_not_the_server(
    virtual_home: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    async def faulty(_wanted: EmbedderChoice) -> Embedder:
        raise ZeroDivisionError

    async with virtual_home(choice("a"), faulty) as here:
        await here.keep(ANNA, "one")
        assert await here.embedding.query("one", wait=True) is None
        await here.keep(ANNA, "two")
        assert len((await here.show(ANNA)).texts) == 2
        assert (await here.statistics()).state == "failing"
    assert "ZeroDivisionError" in caplog.text


async def test_the_blocks_own_error_leaves_as_it_is(virtual_home: Enter) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with virtual_home(choice("a"), loads(Letters())):
            raise KeyError("mine")
