"""`Database.remember` and `search`: the same methods in a plain block and awaited, with what they take."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors import (
    Agent,
    Database,
    MemoryMatch,
    MemorySearch,
    Principal,
    ServiceError,
    StoreMemory,
)
from greenroom.runtime import RuntimeClosedError

pytestmark = pytest.mark.promise("service.shortest")

ROOT = Path(__file__).parent.parent.parent
TEA = "Ada takes no sugar in her tea."


def at(folder: Path) -> Database:
    return Database(folder, embedder="none")


def contents(found: list[MemoryMatch]) -> list[str]:
    return sorted(memory.content or "" for memory in found)


def test_a_plain_block_returns_results(tmp_path: Path) -> None:
    with at(tmp_path) as db:
        stored = db.remember(TEA, user="ada", tags=["tea"])
        assert (stored.namespace, stored.version, stored.created) == ("user:ada", 1, True)
        (found,) = db.search("Who wants sugar?", user="ada")
        assert (found.content, found.id, found.key, found.tags) == (TEA, stored.id, stored.key, ["tea"])
        assert db.search("Which shoes does he wear?", user="ada") == []


@pytest.mark.parametrize("loop", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_in_a_block_of_an_event_loop_they_are_awaited(loop: Any, tmp_path: Path) -> None:
    async def main() -> None:
        async with at(tmp_path) as db:
            stored = await db.remember(TEA, user="ada")
            (found,) = await db.search("sugar", user="ada")
            assert (found.content, found.id) == (TEA, stored.id)

    if loop is asyncio.run:
        asyncio.run(main(), debug=True)
    else:
        trio.run(main)


@pytest.mark.parametrize("name", ["remember", "search"])
def test_where_it_is_not_open_the_call_raises_and_leaves_nothing_to_await(name: str, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeClosedError, match="not open: use it in a `with` or `async with` block"):
            ask(TEA)
        async with db:
            await ask(TEA)
        with pytest.raises(RuntimeClosedError, match="not open"):
            ask(TEA)

    db = at(tmp_path)
    ask: Any = getattr(db, name)
    for _ in range(2):
        with pytest.raises(RuntimeClosedError, match="not open: use it in a `with` or `async with` block"):
            ask(TEA, user="ada")
        with db:
            ask(TEA, user="ada")
    asyncio.run(main())


def test_who_does_not_use_the_name_of_the_block_has_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with db:
            (found,) = await db.search("sugar", user="ada")
            assert found.content == TEA

    db = at(tmp_path)
    with db:
        waited: Any = db.remember(TEA, user="ada")
        assert waited.namespace == "user:ada"
    asyncio.run(main())
    with db:
        found: Any = db.search("sugar", user="ada")
        assert contents(found) == [TEA]


def test_it_works_beside_an_event_loop_of_asyncio_as_in_a_notebook(tmp_path: Path) -> None:
    async def cell() -> None:
        with at(tmp_path) as db:
            db.remember(TEA, user="ada")
            assert contents(db.search("sugar", user="ada")) == [TEA]
            assert contents(await asyncio.to_thread(db.search, "sugar", user="ada")) == [TEA]

    asyncio.run(cell())


def test_where_trio_runs_it_is_said_what_to_do_instead(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="use `async with`, and await"), at(tmp_path):
            pass

    trio.run(main)
    with at(tmp_path) as db:

        async def calls() -> None:
            with pytest.raises(RuntimeError, match="use `async with`, and await"):
                db.search("sugar", user="ada")

        trio.run(calls)


def test_each_finds_their_own(tmp_path: Path) -> None:
    places: list[dict[str, Any]] = [
        {"user": "ada"},
        {"user": "bob"},
        {"project": "atlas"},
        {"user": "ada", "project": "atlas"},
        {"user": "Ada Lovelace <ada@example.org>"},
        {"user": "ada:atlas"},
        {},
    ]
    with at(tmp_path) as db:
        stored = [db.remember(f"tea, {place}", **place) for place in places]
        assert len({each.namespace for each in stored}) == len(places)
        for place in places:
            others = [{"user": "ada", "project": "atlas"}] if place == {"user": "ada"} else []
            expected = sorted(f"tea, {each}" for each in [place, *others])
            assert contents(db.search("tea", **place)) == expected
        assert db.search("tea", user="eve") == []
        assert db.search("tea", project="zeus") == []


def test_agents_of_the_user_find_it_and_it_finds_theirs(tmp_path: Path) -> None:
    with at(tmp_path) as db:
        agent = Agent(db, Principal(agent_id="planner", user="Ada Lovelace"))
        other = Agent(db, Principal(agent_id="planner", user="bob"))
        stored = db.remember(TEA, user="Ada Lovelace")
        saved = db.call(agent.ask, StoreMemory(content="Ada takes milk with sugar."))
        found = db.call(agent.ask, MemorySearch(query="sugar"))
        assert {memory.memory_id for memory in found.memories} == {stored.id, saved.memory_id}
        assert len(db.search("sugar", user="Ada Lovelace")) == 2
        assert db.call(other.ask, MemorySearch(query="sugar")).memories == []


def test_what_is_remembered_under_a_key_again_is_a_new_version(tmp_path: Path) -> None:
    with at(tmp_path) as db:
        first, second = (db.remember(f"{count} sugar", user="ada", key="tea") for count in (1, 2))
        assert (first.id, first.version, second.version) == (second.id, 1, 2)
        assert (first.created, second.created) == (True, False)
        assert contents(db.search("sugar", user="ada")) == ["2 sugar"]


def test_tags_and_a_limit_narrow_a_search(tmp_path: Path) -> None:
    with at(tmp_path) as db:
        for number in range(15):
            db.remember(f"tea number {number}", user="ada", tags=("odd",) if number % 2 else ())
        assert len(db.search("tea", user="ada")) == 10
        assert len(db.search("tea", user="ada", limit=3)) == 3
        assert {tuple(each.tags) for each in db.search("tea", user="ada", tags=["odd"], limit=100)} == {
            ("odd",)
        }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"user": ""}, "user: it takes a text that is not empty and got ''"),
        ({"user": 7}, "user: it takes a text that is not empty and got 7"),
        ({"project": " "}, "project: it takes a text that is not empty and got ' '"),
        ({"user": "\ud800"}, "user: it holds a lone surrogate at character 0"),
        ({"tags": [7]}, "tags"),
        ({"tags": 7}, "tags"),
    ],
)
def test_what_is_refused_is_named_and_nothing_is_stored(
    arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with at(tmp_path) as db:
        for call in (db.remember, db.search):
            with pytest.raises(ServiceError, match=says):
                call("sugar", **arguments)
        for text in ("", 7, None, "x" * 2_000_000):
            with pytest.raises(ServiceError, match="content"):
                db.remember(text, user="ada")  # type: ignore[arg-type]
        with pytest.raises(ServiceError, match="key"):
            db.remember("sugar", user="ada", key="a/b")
        with pytest.raises(ServiceError, match="query"):
            db.search("", user="ada")
        with pytest.raises(ServiceError, match="limit"):
            db.search("sugar", user="ada", limit=0)
        with pytest.raises(TypeError, match="users"):
            db.remember("sugar", users="ada")  # type: ignore[call-arg]
        assert db.search("sugar", user="ada") == []
        assert db.search("sugar") == []


def test_many_threads_remember_at_once(tmp_path: Path) -> None:
    with at(tmp_path) as db:
        threads = [
            threading.Thread(target=db.remember, args=(f"tea {number}",), kwargs={"user": "ada"})
            for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert contents(db.search("tea", user="ada", limit=100)) == sorted(f"tea {n}" for n in range(20))


def test_it_is_closed_in_order_whatever_ends_the_block(tmp_path: Path) -> None:
    def work(error: type[BaseException]) -> None:
        with db:
            stored: Any = db.remember(f"tea until {error.__name__}", user="ada")
            assert stored.created
            raise error

    db = at(tmp_path)
    for error in (ValueError, KeyboardInterrupt, SystemExit):
        with pytest.raises(error):
            work(error)
        assert (tmp_path / "owner.lock").read_text().split()[0] == "0"
        with pytest.raises(RuntimeClosedError, match="use it in a `with` or `async with` block"):
            asyncio.run(as_coroutine(db.search("tea", user="ada")))
    with db as opened:
        assert len(opened.search("tea", user="ada")) == 3


@pytest.mark.quick
def test_ctrl_c_cancels_what_is_waited_for(tmp_path: Path) -> None:
    begun, cancelled = threading.Event(), threading.Event()
    waiting_thread = threading.get_ident()

    async def wait() -> None:
        begun.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled.set()
            raise

    def press() -> None:
        begun.wait()
        signal.pthread_kill(waiting_thread, signal.SIGINT)

    with at(tmp_path) as db:
        pressing = threading.Thread(target=press)
        pressing.start()
        with pytest.raises(KeyboardInterrupt):
            db.call(wait)
        pressing.join()
        cancelled.wait()
        assert db.remember("tea").created


async def as_coroutine(awaited: Any) -> None:
    await awaited


def test_a_method_shows_what_it_takes_in_either_block(tmp_path: Path) -> None:
    shown = list(inspect.signature(Database.remember).parameters)
    assert shown == ["self", "content", "user", "project", "key", "tags"]
    db = at(tmp_path)
    assert list(inspect.signature(db.remember).parameters) == shown[1:]
    with db as opened:
        assert list(inspect.signature(opened.remember).parameters) == shown[1:]
        assert opened.remember.__doc__ == Database.remember.__doc__


PROGRAM = """\
from typing import assert_type

from greenroom.actors import Database, MemoryMatch, StoredMemory
from greenroom.adapters.langgraph import GreenroomStore
from greenroom.actors import Principal

with Database("store") as db:
    assert_type(db.remember("tea", user="ada"), StoredMemory)
    assert_type(db.search("tea", user="ada"), list[MemoryMatch])
    GreenroomStore(db, Principal(agent_id="a"))
    db.remember("tea", usr="ada")  # wrong
    db.search("tea", limit="many")  # wrong
    db.remember(7)  # wrong


async def main() -> None:
    async with Database("store") as db:
        assert_type(await db.remember("tea", user="ada"), StoredMemory)
        assert_type(await db.search("tea", user="ada"), list[MemoryMatch])
        GreenroomStore(db, Principal(agent_id="a"))
        await db.remember("tea", usr="ada")  # wrong
        db.search("tea")[0]  # wrong
        db.search("tea")  # wrong


async def endpoint(db: Database) -> str | None:
    return (await db.search("tea"))[0].content
"""


@pytest.mark.slow
def test_mypy_knows_both(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wrong = [number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line]
    errors = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line]
    assert errors == wrong, done.stdout + done.stderr
