"""`Database`: the services of page B on trio and on asyncio, and its end however that comes."""

from __future__ import annotations

import asyncio
import resource
import threading
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from greenroom.actors import Database, MemoryService, Principal, ServiceError, SessionService
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    InlineCommitter,
    Message,
    RuntimeClosedError,
    RuntimeOptions,
    Slices,
    StorageFullError,
    Store,
    StoreError,
    StoreFailedError,
    ThreadCommitter,
    WriteBatch,
    handles,
    stopped_store,
)
from greenroom.testing import FaultyDisk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

EVENT = {"event_type": "action", "actor": "system", "content": {}}
PLACE = "team:crew"

type_of_loop = pytest.mark.parametrize("loop", [asyncio.run, trio.run], ids=["asyncio", "trio"])


class HoldingCommitter(ThreadCommitter):
    """Commits in its thread, but holds groups back while a test says so.

    Attributes:
        holds: Whether the next group is held back.
        held: Set when one is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.held = threading.Event()

    def submit(self, works: Sequence[WriteBatch]) -> None:
        if self.holds:
            self._works = works
            self.held.set()
        else:
            super().submit(works)

    def let_go(self) -> None:
        self.holds = False
        super().submit(self._works)


def run(loop: Any, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    """Run a function in an event loop of the kind."""
    if loop is asyncio.run:
        asyncio.run(function(*arguments), debug=True)
    else:
        trio.run(function, *arguments)


def at(folder: Path, **options: Any) -> Database:
    return Database(folder, **{"embedder": "none"} | options)


async def add(database: Database, key: str) -> int:
    return await database.memory.add_memory(PLACE, key, {}, "semantic", "ada", "t")


async def keys(database: Database) -> set[str]:
    return {memory.key for memory in await database.memory.search_memories(PLACE, limit=1_000)}


def was_closed_in_order(folder: Path) -> bool:
    """Say whether the last owner left its mark, and no thread of it is left."""
    names = {thread.name for thread in threading.enumerate()}
    return (folder / "owner.lock").read_text().split()[0] == "0" and not names & {
        "greenroom",
        "greenroom-writer",
    }


@pytest.mark.promise("service.database")
@type_of_loop
def test_it_is_opened_and_closed_by_calls_as_well(loop: Any, folder: Path) -> None:
    async def main() -> None:
        database = at(folder)
        for _ in range(2):
            with pytest.raises(RuntimeClosedError, match="initialize"):
                await database.sessions.get_session("s")
            await database.initialize()
            with pytest.raises(RuntimeError, match="open already"):
                await database.initialize()
            await add(database, f"k{len(await keys(database))}")
            await database.close()
            await database.close()
            assert was_closed_in_order(folder)
        async with database as entered:
            assert await keys(entered) == {"k0", "k1"}

    run(loop, main)


@pytest.mark.promise("service.database")
@type_of_loop
def test_services_for_others_ask_the_same_database(loop: Any, folder: Path) -> None:
    async def main() -> None:
        async with at(folder) as database:
            alice, bob = (Principal(agent_id="a", user=user) for user in ("alice", "bob"))
            await MemoryService(database, alice).add_memory("user:alice", "k", {}, "semantic", "ada", "t")
            assert len(await MemoryService(database, alice).search_memories("user")) == 1
            assert await MemoryService(database, bob).search_memories("user") == []
            await SessionService(database, alice).create_session("s", "app", "alice")
            session = await database.sessions.get_session("s")
            assert session is not None
            assert session.created_by == "a"

    run(loop, main)


@pytest.mark.promise("service.database")
def test_many_tasks_call_at_once(folder: Path) -> None:
    async def main() -> None:
        async with at(folder) as database:
            await database.sessions.create_session("s", "app", "ada")
            appending = (
                database.sessions.append_event("s", {"event_id": str(number), **EVENT}, {str(number): number})
                for number in range(200)
            )
            await asyncio.gather(*appending)
            session = await database.sessions.get_session("s")
            assert session is not None
            assert {each.event_id for each in session.events} == {str(number) for number in range(200)}
            assert session.state == {str(number): number for number in range(200)}

    asyncio.run(main())


@pytest.mark.promise("service.database", "service.long-sessions")
def test_a_long_session_is_read_in_slices_on_asyncio_too(folder: Path) -> None:
    turns = turns_before_conversion = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    class Noticed(Database):
        async def ask(self, *arguments: Any, **options: Any) -> Any:
            nonlocal turns_before_conversion
            reply = await super().ask(*arguments, **options)
            turns_before_conversion = turns
            return reply

    async def main() -> None:
        async with Noticed(folder, embedder="none") as database:
            await database.sessions.create_session("s", "app", "ada")
            large = {**EVENT, "content": {"text": "x" * 500_000}}
            for _ in range(4):
                await database.sessions.append_event("s", large)
            counting = asyncio.create_task(count_turns())
            session = await database.sessions.get_session("s")
            counting.cancel()
            assert session is not None
            assert len(session.events) == 4
            assert turns - turns_before_conversion >= 3

    asyncio.run(main())


@pytest.mark.promise("service.database")
@type_of_loop
def test_other_loops_and_threads_call_the_same_database(loop: Any, folder: Path) -> None:
    async def elsewhere(database: Database, key: str) -> None:
        await add(database, key)
        with pytest.raises(ServiceError, match="there is already a memory"):
            await add(database, key)

    async def main() -> None:
        async with at(folder) as database:
            in_thread = trio.to_thread.run_sync if loop is trio.run else asyncio.to_thread
            await in_thread(lambda: asyncio.run(elsewhere(database, "asyncio")))
            await in_thread(lambda: trio.run(elsewhere, database, "trio"))
            assert await keys(database) == {"asyncio", "trio"}
            await in_thread(lambda: asyncio.run(database.close()))
        assert was_closed_in_order(folder)

    run(loop, main)


@pytest.mark.promise("service.database")
@type_of_loop
def test_two_databases_on_one_folder_share_it_and_the_second_takes_over(loop: Any, folder: Path) -> None:
    async def main() -> None:
        first, second = at(folder), at(folder)
        await first.initialize()
        await second.initialize()
        await add(first, "one")
        await add(second, "two")
        assert await keys(first) == await keys(second) == {"one", "two"}
        await first.close()
        await add(second, "three")
        assert await keys(second) == {"one", "two", "three"}
        await second.close()
        assert was_closed_in_order(folder)

    run(loop, main)


@pytest.mark.promise("service.cancelled")
def test_what_is_cancelled_while_it_is_committed_is_there_and_what_waits_is_not_done(folder: Path) -> None:
    committer = HoldingCommitter()

    async def main() -> None:
        async with at(folder, committer=committer) as database:
            await add(database, "before")
            committer.holds = True
            committed = asyncio.create_task(add(database, "committed"))
            await asyncio.to_thread(committer.held.wait)
            committed.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committed
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await add(database, "timed out")
            committer.let_go()
            assert {"before", "committed"} <= await keys(database)

    asyncio.run(main())


@pytest.mark.promise("service.cancelled")
def test_who_is_cancelled_already_begins_nothing(folder: Path) -> None:
    disk = FaultyDisk()

    async def main() -> None:
        async with at(folder, committer=InlineCommitter(disk)) as database:
            before = disk.commits
            for number in range(50):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0 if number % 2 else -1):
                        await database.sessions.create_session(f"late{number}", "app", "ada")
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await add(database, f"late{number}")
                task.uncancel()
            assert disk.commits == before
            assert await keys(database) == set()
            assert await database.sessions.get_session("late0") is None

    asyncio.run(main())


class Occupy(Message[None], frozen=True):
    """Take the actor's time until it is released."""


class Put(Message[int], frozen=True):
    """Count, and return the count."""


class Busy(Actor):
    kind = "busy"
    occupied = threading.Event()
    released = threading.Event()

    @handles(Occupy)
    def occupy(self, _message: Occupy, _context: Context) -> Slices[None]:
        self.occupied.set()
        while not self.released.is_set():
            yield

    @handles(Put)
    def put(self, _message: Put, context: Context) -> int:
        count = (context.get(b"count", int) or 0) + 1
        context.put(b"count", count)
        return count


ONE, OTHER = Address("busy", "one"), Address("busy", "other")


async def occupy(database: Database) -> asyncio.Task[None]:
    """Return a call that has begun and ends when it is released."""
    Busy.occupied.clear()
    Busy.released.clear()
    call = asyncio.create_task(database.ask(ONE, Occupy()))
    await asyncio.to_thread(Busy.occupied.wait)
    return call


@pytest.mark.promise("service.cancelled")
def test_a_call_that_is_cancelled_before_its_turn_is_not_done(folder: Path) -> None:
    async def main() -> None:
        async with at(folder, actors=[Busy]) as database:
            occupied = await occupy(database)
            waiting = asyncio.create_task(database.ask(ONE, Put()))
            await asyncio.sleep(0)
            assert await database.ask(OTHER, Put()) == 1  # now the one before it is in the mailbox
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await database.ask(ONE, Put())
            Busy.released.set()
            await occupied
            assert await database.ask(ONE, Put()) == 1

    asyncio.run(main())


@pytest.mark.promise("service.database-ends")
def test_closing_that_is_cancelled_does_not_wait_for_who_is_at_work(folder: Path) -> None:
    async def main() -> None:
        database = at(folder, actors=[Busy], options=RuntimeOptions(drain_seconds=1_000_000))
        await database.initialize()
        occupied = await occupy(database)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await database.close()
        with pytest.raises(RuntimeClosedError):
            await occupied
        assert was_closed_in_order(folder)

    asyncio.run(main())


@pytest.mark.promise("service.database-ends")
def test_a_call_that_begins_while_the_database_ends_says_so(folder: Path) -> None:
    async def main() -> None:
        database = at(folder)
        await database.initialize()
        calling = asyncio.create_task(add(database, "k"))
        await asyncio.sleep(0)  # it has seen that the database is open
        closing = threading.Thread(target=lambda: asyncio.run(database.close()))
        closing.start()
        closing.join()
        with pytest.raises(RuntimeClosedError, match="before the reply"):
            await calling

    asyncio.run(main())


@pytest.mark.promise("service.database-ends")
@type_of_loop
def test_calls_in_flight_are_answered_when_it_is_closed_and_later_ones_refused(
    loop: Any, folder: Path
) -> None:
    done: set[str] = set()
    refused: set[str] = set()

    async def call(database: Database, key: str, *, close: bool = False) -> None:
        try:
            await add(database, key)
        except RuntimeClosedError:
            refused.add(key)
        else:
            done.add(key)
        if close:
            await database.close()

    async def on_asyncio(database: Database, names: list[str]) -> None:
        await asyncio.gather(*(call(database, key, close=key == names[0]) for key in names))

    async def on_trio(database: Database, names: list[str]) -> None:
        async with trio.open_nursery() as nursery:
            for key in names:
                nursery.start_soon(partial(call, database, key, close=key == names[0]))

    async def main() -> None:
        database = at(folder)
        await database.initialize()
        names = [str(number) for number in range(100)]
        await (on_trio if loop is trio.run else on_asyncio)(database, names)
        await call(database, "after")
        assert done | refused == {*names, "after"}
        assert "after" in refused
        async with at(folder) as database:
            assert await keys(database) == done

    run(loop, main)


@pytest.mark.promise("service.database-ends")
@type_of_loop
def test_a_loop_that_ends_closes_what_nobody_closed(loop: Any, folder: Path) -> None:
    left: list[Database] = []

    async def main() -> None:
        left.append(at(folder))
        await left[0].initialize()
        await add(left[0], "k")

    async def again() -> None:
        with pytest.raises(RuntimeClosedError):
            await keys(left[0])
        async with left[0] as database:
            assert await keys(database) == {"k"}

    run(loop, main)
    assert was_closed_in_order(folder)
    run(loop, again)


@pytest.mark.promise("service.database-ends")
def test_a_loop_that_is_closed_at_once_leaves_it_to_the_next_one(folder: Path) -> None:
    database = at(folder)

    async def abandon() -> None:
        await database.initialize()
        pending.append(asyncio.ensure_future(add(database, "k")))
        await asyncio.sleep(0)

    async def main() -> None:
        assert await keys(database) <= {"k"}
        await database.close()
        assert was_closed_in_order(folder)

    pending: list[asyncio.Future[int]] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(abandon())
    pending[0].cancel()
    loop.run_until_complete(asyncio.wait(pending))
    loop.close()
    asyncio.run(main())


@pytest.mark.promise("service.cancelled", "service.database-ends")
def test_closing_that_is_cancelled_waits_for_the_commit_in_flight_alone(folder: Path) -> None:
    committer = HoldingCommitter()

    async def main() -> None:
        database = at(folder, committer=committer)
        await database.initialize()
        await add(database, "before")
        committer.holds = True
        calls = [asyncio.create_task(add(database, "held")), asyncio.create_task(add(database, "waiting"))]
        await asyncio.to_thread(committer.held.wait)
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        closing.cancel()
        committer.let_go()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await asyncio.gather(*calls, return_exceptions=True)
        assert was_closed_in_order(folder)
        async with at(folder) as database:
            assert {"before", "held"} <= await keys(database)

    asyncio.run(main())


@pytest.mark.promise("service.database-ends")
@type_of_loop
def test_opening_that_fails_or_is_cancelled_leaves_nothing_open(loop: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    async def main() -> None:
        database = at(tmp_path / "file")
        for _ in range(2):
            with pytest.raises(StoreError):
                await database.initialize()
        with pytest.raises(ValueError, match="content_limit"):
            await at(tmp_path / "data", content_limit=0).initialize()
        database = at(tmp_path / "data")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                await database.initialize()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        async with database:
            await add(database, "k")
        with stopped_store(tmp_path / "data"):  # whoever opens it now waits for the owner to answer
            if loop is trio.run:
                with trio.move_on_after(0.01) as scope:
                    await database.initialize()
                assert scope.cancelled_caught
            else:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await database.initialize()
        async with database:
            assert await keys(database) == {"k"}
        assert was_closed_in_order(tmp_path / "data")

    run(loop, main)


@type_of_loop
def test_errors_come_with_their_own_tracebacks(loop: Any, folder: Path) -> None:
    is_full = False

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        if is_full:
            works[0].error = StorageFullError("no room, says the test")
        store.commit(works)

    async def main() -> None:
        nonlocal is_full
        async with at(folder, committer=InlineCommitter(commit)) as database:
            await add(database, "k")
            is_full = True
            with pytest.raises(StorageFullError) as caught:
                await add(database, "no room")
            is_full = False
            frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
            assert {"main", "add_memory", "ask"} <= set(frames)
            assert await keys(database) == {"k"}

    run(loop, main)


@pytest.mark.promise("service.database-ends")
@type_of_loop
def test_a_disk_that_is_gone_fails_every_call_and_the_closing(loop: Any, folder: Path) -> None:
    is_gone = False

    def commit(store: Store, works: Sequence[WriteBatch]) -> None:
        if is_gone:
            raise StoreFailedError("the disk is gone, says the test")
        store.commit(works)

    async def main() -> None:
        nonlocal is_gone
        database = at(folder, committer=InlineCommitter(commit))
        await database.initialize()
        is_gone = True
        with pytest.raises(StoreFailedError, match="says the test"):
            await add(database, "k")
        with pytest.raises((StoreFailedError, RuntimeClosedError)):
            await add(database, "k")
        with pytest.raises(StoreFailedError, match="says the test"):
            await database.close()
        is_gone = False
        async with database:
            assert await keys(database) == set()

    run(loop, main)


# -- without an event loop -----------------------------------------------


def test_a_program_without_an_event_loop_opens_asks_and_opens_again(tmp_path: Path) -> None:
    database = at(tmp_path)
    for expected in (None, "created"):
        with database:
            before = database.call(database.sessions.get_session, "s")
            assert (before and before.status) == expected
            if before is None:
                database.call(database.sessions.create_session, "s", "app", "ann")
            with pytest.raises(ServiceError, match="taken"):
                database.call(database.sessions.create_session, "s", "app", "ann")
        with pytest.raises(RuntimeClosedError, match="not open"):
            database.call(database.sessions.get_session, "s")


def test_many_threads_call_at_once(tmp_path: Path) -> None:
    async def note(number: int) -> None:
        await database.memory.add_memory(PLACE, f"n{number}", {"n": number}, "semantic", "a", "t")

    with at(tmp_path) as database:
        threads = [threading.Thread(target=database.call, args=(note, number)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(database.call(database.memory.search_memories, PLACE)) == 20


def test_a_blocking_database_is_opened_once_at_a_time(tmp_path: Path) -> None:
    with at(tmp_path) as database:
        with pytest.raises(RuntimeError, match="open already"), database:
            pass
        assert database.call(database.sessions.get_session, "s") is None


def test_a_folder_that_cannot_be_opened_is_said_without_a_loop_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StoreError, match="cannot hold a store"), at(tmp_path / "file"):
        pass
