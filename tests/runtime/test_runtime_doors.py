"""The doors of a runtime as programs use them: the writer thread, principals, queries, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
import trio
from support.actors import ACTORS, INDEXES, Add, Append, Counter, Entries, Place, Read, Rows, Whoami

from greenroom.runtime import (
    Actor,
    Address,
    ConfigurationError,
    Context,
    Index,
    IndexReader,
    Message,
    Procedure,
    RuntimeOptions,
    handles,
    open_runtime,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.asking import Open

VISITS = Address("counter", "visits")


@pytest.mark.promise(
    "runtime.group-commit", "runtime.reply-means-durable", "runtime.in-order", "store.durability"
)
async def test_many_writers_share_fsyncs_of_the_writer_thread_and_lose_nothing(tmp_path: Path) -> None:
    replies: dict[str, list[int]] = {}
    async with open_runtime(tmp_path / "data", actors=ACTORS, indexes=INDEXES) as runtime:

        async def write(writer: str) -> None:
            replies[writer] = [await runtime.ask(VISITS, Add()) for _ in range(25)]
            for number in range(5):
                await runtime.ask(Address("log", "log"), Append(entry=f"{writer} {number}"))

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(write, f"writer {number}")
        store = runtime.statistics().store
    assert store.works == 1_200
    assert store.commits < store.works
    assert sorted(reply for mine in replies.values() for reply in mine) == list(range(1, 1_001))
    assert all(mine == sorted(mine) for mine in replies.values())
    async with open_runtime(tmp_path / "data", actors=ACTORS, indexes=INDEXES) as runtime:
        assert await runtime.ask(VISITS, Read()) == 1_000
        log = await runtime.ask(Address("log", "log"), Entries())
    for writer in replies:
        mine = [f"{writer} {number}" for number in range(5)]
        assert [entry for entry in log if entry.startswith(f"{writer} ")] == mine


@pytest.mark.promise("runtime.drain", "runtime.reply-means-durable")
async def test_closing_waits_for_the_writer_thread(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "data", actors=ACTORS) as runtime:
        for _ in range(500):
            runtime.tell(VISITS, Add())
    async with open_runtime(tmp_path / "data", actors=ACTORS) as runtime:
        assert await runtime.ask(VISITS, Read()) == 500


@pytest.mark.promise("store.durability", "store.kill")
async def test_process_durability_keeps_what_was_answered_over_an_orderly_end(tmp_path: Path) -> None:
    options = RuntimeOptions(durability="process")
    for number in range(3):
        async with open_runtime(tmp_path / "data", actors=ACTORS, options=options) as runtime:
            assert await runtime.ask(VISITS, Add()) == number + 1


@pytest.mark.promise("store.backup")
async def test_a_backup_and_a_check_of_a_runtime_that_goes_on(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "data", actors=ACTORS, indexes=INDEXES) as runtime:
        await runtime.ask(VISITS, Add())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.backup, tmp_path / "backup")
            nursery.start_soon(runtime.verify)
            for _ in range(20):
                await runtime.ask(VISITS, Add())
    assert (tmp_path / "backup").exists()


async def ask_as(reopen: Open, principal: object) -> str:
    async with reopen() as runtime:
        return await runtime.ask(VISITS, Whoami(), principal=principal)


@pytest.mark.promise("identity.principal")
async def test_a_handler_learns_who_asks_from_the_door_alone(reopen: Open) -> None:
    assert await ask_as(reopen, "me") == "me"
    assert await ask_as(reopen, None) == "None"


class Remember(Message[None], frozen=True):
    left: int


class Memory(Actor):
    """Notes who sent what, directly, by tell and by timer."""

    kind = "memory"

    @handles(Remember)
    def remember(self, message: Remember, context: Context) -> None:
        context.put(bytes([message.left]), str(context.principal))
        if message.left == 2:
            context.tell(context.address, Remember(left=1))
        if message.left == 1:
            context.set_timer("x", context.now + 1, Remember(left=0))

    @handles(Entries)
    def entries(self, _message: Entries, context: Context) -> list[str]:
        return [who for _, who in context.scan(str, reverse=True)]


@pytest.mark.promise("identity.principal", "runtime.tells", "runtime.timers")
async def test_tells_and_timers_carry_no_principal(reopen: Open) -> None:
    address = Address("memory", "m")
    async with reopen(actors=[Memory]) as runtime:
        await runtime.ask(address, Remember(left=2), principal="me")
        await trio.sleep(1)
        assert await runtime.ask(address, Entries()) == ["me", "None", "None"]


class Those(Procedure[list[str]], frozen=True):
    runs = "snapshot"

    kind: str

    def run(self, reader: IndexReader) -> list[str]:
        return [address.key for address in reader.addresses(self.kind)]


@pytest.mark.promise("runtime.shared-indexes")
async def test_a_query_finds_the_actors_that_have_records(reopen: Open) -> None:
    keys = ["a", "a\x01", "a\x01b", "aa", "a b", "ä", "z" * 200]
    async with reopen() as runtime:
        assert await runtime.query(Those(kind="counter")) == []
        for key in keys:
            for _ in range(3):
                await runtime.ask(Address("counter", key), Add())
            await runtime.ask(Address("shelf", key + "!"[: 200 - len(key)]), Place(key=b"k", value="v"))
        await runtime.ask(Address("counter", "only asked"), Read())
        assert await runtime.query(Those(kind="counter")) == sorted(keys)
        assert await runtime.query(Those(kind="count")) == []
        assert await runtime.query(Those(kind="counters")) == []


class Broken(Procedure[int], frozen=True):
    runs = "snapshot"

    index: str = "shelves"

    def run(self, reader: IndexReader) -> int:
        for row in reader.rows(self.index, str):
            raise LookupError(row.value)
        return 0


class Here(Procedure[int], frozen=True):
    """Is run by the process that was asked."""

    runs = "here"


@pytest.mark.promise("runtime.shared-indexes", "runtime.failure-contained")
async def test_a_query_that_fails_fails_its_asker_only(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(Address("shelf", "s"), Place(key=b"k", value="v"))
        with pytest.raises(LookupError, match="v"):
            await runtime.query(Broken())
        with pytest.raises(ConfigurationError, match="no index 'nothing'"):
            await runtime.query(Broken(index="nothing"))
        with pytest.raises(NotImplementedError):
            await runtime.query(Procedure[int]())
        with pytest.raises(TypeError, match="Here runs in the calling process"):
            await runtime.query(Here())
        assert await runtime.query(Rows()) == [(b"k", "s", "v")]
        assert runtime.statistics().store.scans == 0, "no reader stays behind"


@pytest.mark.promise("runtime.shared-indexes")
@pytest.mark.parametrize("name", ["", "!timer", "a\0b", "x" * 33])
async def test_an_index_with_a_bad_or_reserved_name_is_refused(reopen: Open, name: str) -> None:
    with pytest.raises(ConfigurationError, match="no name for an index"):
        async with reopen(indexes=[Index(name)]):
            pytest.fail("not opened")
    with pytest.raises(ConfigurationError, match="used twice"):
        async with reopen(indexes=[Index("twice"), Index("twice", ttl=1)]):
            pytest.fail("not opened")


@pytest.mark.promise("runtime.one-owner")
async def test_two_classes_of_one_kind_are_refused(reopen: Open) -> None:
    class Impostor(Actor):
        kind = "counter"

    with pytest.raises(ConfigurationError, match="both claim the kind 'counter'"):
        async with reopen(actors=[*ACTORS, Impostor]):
            pytest.fail("not opened")


@pytest.mark.promise("runtime.tells", "runtime.timers")
async def test_two_messages_of_one_name_in_one_actor_are_refused(reopen: Open) -> None:
    class Add(Message[None], frozen=True):
        pass

    class Impostor(Counter):
        kind = "impostor"

        @handles(Add)
        def add_nothing(self, message: Add, context: Context) -> None:
            pass

    with pytest.raises(ConfigurationError, match="rename one of them"):
        async with reopen(actors=[*ACTORS, Impostor]):
            pytest.fail("not opened")


def subtract(actor: Counter, message: Add, context: Context) -> int:
    actor.add(Add(by=-message.by), context)
    return actor.sum


class Decreasing(Counter):
    """Lists one handler, inherits the others, and overrides one without marking it again."""

    kind = "decreasing"
    handlers: ClassVar = {Add: subtract}

    def whoami(self, message: Whoami, context: Context) -> str:
        return f"not {super().whoami(message, context)}"


async def test_handlers_are_functions_that_a_class_lists_and_methods_that_are_marked(reopen: Open) -> None:
    async with reopen(actors=[*ACTORS, Decreasing]) as runtime:
        address = Address("decreasing", "d")
        assert await runtime.ask(address, Add(by=3)) == -3
        assert await runtime.ask(address, Read()) == -3
        assert await runtime.ask(address, Whoami(), principal="ann") == "not ann"


@pytest.mark.promise("runtime.statistics")
async def test_statistics_are_frozen_and_start_at_nothing(reopen: Open) -> None:
    async with reopen() as runtime:
        statistics = runtime.statistics()
        with pytest.raises(AttributeError):
            statistics.messages.waiting = 1  # type: ignore[misc]  # that is the point
        assert (statistics.messages.handled, statistics.actors.resident, statistics.rows_expired) == (0, 0, 0)
        assert (statistics.commits.collected, statistics.commits.in_flight, statistics.store.rows) == (
            0,
            0,
            0,
        )
        await runtime.ask(VISITS, Add())
        statistics = runtime.statistics()
        assert (statistics.messages.handled, statistics.actors.resident, statistics.store.works) == (1, 1, 1)
