"""Owners of a shared folder that come, go, fall silent, or are of another version, on virtual time."""

from __future__ import annotations

import errno
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.actors import Add, FailAfter, Read, Rows
from support.formats import NEW, OLD, format_in, names_in
from support.postings import posting
from support.relays import (
    RELAY,
    SHARED,
    VISITS,
    PeerError,
    add,
    attached,
    bare_guest,
    bare_host,
    hello,
    kept,
    welcome,
)
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    INDEXES,
    ActorFailedError,
    Address,
    FolderLock,
    Group,
    InlineCommitter,
    OverloadedError,
    RuntimeClosedError,
    RuntimeOptions,
    Store,
    StoreError,
    StoreFailedError,
    StoreOwnedError,
    StoreTooNewError,
    WriteBatch,
    downgrade,
    open_shared_runtime,
)
from greenroom.runtime.lmdb.keys import RELAYED, RelayedAnswer, encode
from greenroom.runtime.sharing import frames
from greenroom.testing import START, FaultyDisk, GatedCommitter

if TYPE_CHECKING:
    from pathlib import Path

    from support.relays import Join

    from greenroom.runtime import SharedRuntime


@pytest.mark.promise("sharing.takeover")
async def test_what_is_asked_while_the_owner_leaves_is_done_by_the_next(
    join: Join, nursery: trio.Nursery
) -> None:
    gate = GatedCommitter()
    async with join(committer=gate):
        guest = await nursery.start(attached, join)
        early = posting(guest.post, VISITS, Add())
        await gate.arrived()
        nursery.start_soon(let_go, gate)
        late = posting(guest.post, VISITS, Add())
    last = posting(guest.post, VISITS, Add())
    assert [await early.reply(), await late.reply(), await last.reply()] == [1, 2, 3]
    assert guest.role == "owner"
    assert await guest.ask(VISITS, Read()) == 3
    nursery.cancel_scope.cancel()


async def let_go(gate: GatedCommitter) -> None:
    await trio.sleep(1)
    gate.let_all_through()


@pytest.mark.promise("sharing.takeover", "sharing.subscriptions")
async def test_subscriptions_of_who_takes_over_hear_of_it_once(join: Join, nursery: trio.Nursery) -> None:
    async with join():
        guest = await nursery.start(attached, join)
    with guest.subscriber(0) as subscriber:
        subscriber.add("news", lambda label: label == "own")
        with trio.fail_after(5):
            assert await subscriber.next() == "news"
        with trio.move_on_after(5) as waited:
            await subscriber.next()
        assert waited.cancelled_caught
        assert guest.role == "owner"
    nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.takeover")
async def test_who_takes_over_while_it_leaves_answers_and_is_gone(join: Join, nursery: trio.Nursery) -> None:
    gate = GatedCommitter()
    owner = trio.CancelScope()
    nursery.start_soon(own_until, join, gate, owner)
    await wait_all_tasks_blocked()
    async with join() as guest:
        asked = posting(guest.post, VISITS, Add())
        await gate.arrived()
        owner.cancel()
        began = trio.current_time()
    assert await asked.reply() == 1
    assert trio.current_time() - began < 1


@pytest.mark.promise("sharing.takeover", "sharing.exactly-once")
async def test_what_an_owner_cannot_write_is_done_by_the_next(join: Join, nursery: trio.Nursery) -> None:
    found: list[Any] = []
    disk = FaultyDisk("dead", at=2)
    with pytest.raises(StoreFailedError):  # noqa: PT012  the block is to be left by it
        async with join(committer=InlineCommitter(disk)):
            guest = await nursery.start(attached, join)
            assert await guest.ask(VISITS, Add()) == 1
            asked = [posting(guest.post, VISITS, Add()) for _ in range(200)]
            nursery.start_soon(look, guest, found)
            await trio.sleep_forever()
    assert [await each.reply() for each in asked] == list(range(2, 202))
    assert found == [[]]
    nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.takeover")
async def test_an_owner_whose_disk_died_says_nothing_of_what_the_next_will_do(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    await nursery.start(own_until_the_disk_dies, join)
    with bare_guest(folder) as guest:
        guest.say(hello())
        await guest.hear(frames.Welcome)
        query = frames.QueryRequest(101, "Rows", b"{}", b"null")
        guest.say(*map(add, range(1, 101)), query)  # more than is done before the disk is asked
        with pytest.raises(PeerError):
            await guest.hear(frames.Failure)
        assert guest.heard == []


async def own_until_the_disk_dies(join: Join, *, task_status: trio.TaskStatus[None]) -> None:
    with pytest.raises(StoreFailedError):  # noqa: PT012  the block is to be left by it
        async with join(committer=InlineCommitter(FaultyDisk("dead", at=1))):
            task_status.started()
            await trio.sleep_forever()


async def look(guest: SharedRuntime, found: list[Any]) -> None:
    found.append(await guest.query(Rows()))


@pytest.mark.promise("sharing.exactly-once", "sharing.repeats")
async def test_an_answer_on_disk_stays_until_who_took_over_has_come_to_its_message(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    with ExitStack() as silent:
        lock = silent.enter_context(FolderLock(folder))
        place = silent.enter_context(bare_host(lock.folder))
        heard: list[frames.Hello] = []
        nursery.start_soon(partial(greet_once, place, silent=True, heard=heard))
        async with join(groups=[Group(kinds=("counter",), backoff=10)]) as guest:
            for _ in range(2):  # so that the next owner gives the actor no turn for a while
                posting(guest.post, VISITS, FailAfter())
            asked = posting(guest.post, VISITS, Add())
            other = posting(guest.post, Address("counter", "other"), Add())
            keep_answer(folder, heard[0].relay + (3).to_bytes(8), b"7")
            keep_answer(folder, heard[0].relay + (9).to_bytes(8), b"8")
            lock.mark_clean()
            silent.close()
            assert await other.reply() == 1
            await trio.sleep(3)
            assert not asked.is_over
            assert kept(guest) == [3], "and the one that nobody waits for is gone"
            assert await asked.reply() == 7
            await trio.sleep(3)
            assert kept(guest) == []
    nursery.cancel_scope.cancel()


def keep_answer(folder: Path, number: bytes, body: bytes) -> None:
    """Put into the store what an owner keeps of a relayed message."""
    with closing(Store(folder)) as store:
        answer = encode(RelayedAnswer(START, body))
        store.commit([WriteBatch(None, [(INDEXES, RELAYED + number, answer)])])


@pytest.mark.promise("sharing.exactly-once")
async def test_what_is_not_begun_when_its_connection_ends_is_not_begun_any_more(
    join: Join, folder: Path
) -> None:
    async with join() as owner:
        for _ in range(2):  # so that the actor gets no turn for a while
            with pytest.raises(ActorFailedError):
                await owner.ask(VISITS, FailAfter())
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            guest.say(frames.Watch(["news", "other"]), add(1), add(2))
            await wait_all_tasks_blocked()
            assert (owner.statistics().messages.waiting, owner.statistics().bus.topics) == (2, 2)
        await wait_all_tasks_blocked()
        assert (owner.statistics().messages.waiting, owner.statistics().bus.topics) == (0, 0)
        assert owner.statistics().messages.abandoned == 2
        assert await owner.ask(VISITS, Read()) == 0


@pytest.mark.promise("sharing.repeats")
async def test_a_repeat_that_is_given_up_before_it_is_begun_leaves_no_answer(
    join: Join, folder: Path
) -> None:
    for number in (1, 2):
        keep_answer(folder, RELAY + number.to_bytes(8), b"7")
    async with join() as owner:
        for _ in range(2):  # so that the actor gets no turn for a while
            with pytest.raises(ActorFailedError):
                await owner.ask(VISITS, FailAfter())
        with bare_guest(folder) as guest:
            guest.say(hello(unanswered=[1, 2]))
            await guest.hear(frames.Welcome)
            guest.say(add(1, again=True), add(2, again=True), frames.Cancel(1))
            assert (await guest.hear(frames.Response)).number == 2
            await owner.ask(VISITS, Add())
            assert kept(owner) == [2]


@pytest.mark.promise("sharing.exactly-once")
async def test_a_callback_that_ends_the_owner_lets_it_end_in_the_midst_of_answers(
    join: Join, folder: Path
) -> None:
    def end(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(BaseExceptionGroup) as ended:  # noqa: PT012  a whole life
        async with join() as owner:
            for _ in range(2):  # so that what waits is answered in one pass
                with pytest.raises(ActorFailedError):
                    await owner.ask(VISITS, FailAfter())
            with bare_guest(folder) as guest:
                guest.say(hello())
                await guest.hear(frames.Welcome)
                guest.say(frames.Request(1, "counter", "visits", "Read", b"{}", b"null"))
                owner.post(VISITS, Read(), end)
                await trio.sleep_forever()
    assert ended.group_contains(KeyboardInterrupt)
    assert not ended.group_contains(Exception), "nothing failed besides"


async def own_until(join: Join, gate: GatedCommitter, end: trio.CancelScope) -> None:
    with end:
        async with join(committer=gate, options=RuntimeOptions(drain_seconds=0)):
            await trio.sleep_forever()


@pytest.mark.promise("sharing.takeover")
async def test_leaving_while_attached_waits_for_the_answers(join: Join, nursery: trio.Nursery) -> None:
    gate = GatedCommitter()
    async with join(committer=gate) as owner:
        async with join() as guest:
            asked = posting(guest.post, VISITS, Add())
            nursery.start_soon(let_go, gate)
        assert await asked.reply() == 1
        with pytest.raises(RuntimeClosedError):
            await guest.ask(VISITS, Read())
        with pytest.raises(RuntimeClosedError):
            await guest.query(Rows())
        with pytest.raises(RuntimeClosedError):
            guest.subscriber()
        await trio.sleep(2)
        relay = owner.statistics().relay
        assert relay is not None
        assert relay.attached_pids == []


async def test_an_error_of_the_block_leaves_an_attached_process_as_it_is(join: Join) -> None:
    async with join():
        with pytest.raises(ZeroDivisionError):
            async with join():
                raise ZeroDivisionError


@pytest.mark.promise("sharing.takeover")
async def test_what_finds_no_room_at_the_next_owner_is_told_so(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    with ExitStack() as silent:
        lock = silent.enter_context(FolderLock(folder))
        place = silent.enter_context(bare_host(lock.folder))
        nursery.start_soon(partial(greet_once, place, silent=True))
        async with join(options=RuntimeOptions(mailbox_limit=2)) as guest:
            asked = [posting(guest.post, VISITS, Add()) for _ in range(3)]
            silent.close()
            with trio.fail_after(5):
                assert [await each.reply() for each in asked[:2]] == [1, 2]
                with pytest.raises(OverloadedError):
                    await asked[2].reply()
    nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.takeover")
async def test_queries_and_what_follows_them_are_answered_by_the_next_owner(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    found: list[Any] = []
    with ExitStack() as silent:
        lock = silent.enter_context(FolderLock(folder))
        place = silent.enter_context(bare_host(lock.folder))
        nursery.start_soon(partial(greet_once, place, silent=True))
        async with join() as guest:
            nursery.start_soon(look, guest, found)
            await wait_all_tasks_blocked()
            asked = posting(guest.post, VISITS, Add())
            silent.close()
            with trio.fail_after(5):
                assert await asked.reply() == 1
            await wait_all_tasks_blocked()
            assert found == [[]]
    nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.exactly-once")
async def test_an_answer_that_comes_with_the_greeting_is_heard(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    with FolderLock(folder) as lock, bare_host(lock.folder) as place:
        nursery.start_soon(greet_and_answer_at_once, place)
        async with join() as guest:
            with trio.fail_after(5):
                assert await guest.ask(VISITS, Add()) == 7
        nursery.cancel_scope.cancel()


async def greet_and_answer_at_once(place: Any) -> None:
    bare = await place.accept()
    await bare.hear(frames.Hello)
    bare.say(welcome())
    await bare.hear(frames.Request)
    bare.wire.close()
    bare = await place.accept()
    again = await bare.hear(frames.Hello)
    bare.say(welcome(), *(frames.Response(number, b"7") for number in again.unanswered))
    await trio.sleep_forever()


@pytest.mark.promise("sharing.hung-owner")
async def test_the_end_of_an_earlier_connection_leaves_the_later_one_attached(
    join: Join, folder: Path
) -> None:
    async with join() as owner:
        with bare_guest(folder) as first, bare_guest(folder) as second:
            for each in (first, second):  # of the same process
                each.say(hello())
                await each.hear(frames.Welcome)
            await wait_all_tasks_blocked()
            relay = owner.statistics().relay
            assert relay is not None
            assert relay.attached_pids == [hello().pid]


@pytest.mark.promise("sharing.hung-owner")
async def test_a_silent_owner_is_told_of_and_not_taken_over(join: Join, folder: Path) -> None:
    with FolderLock(folder) as lock, bare_host(lock.folder) as place:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(greet_once, place, silent=True))
            async with join() as guest:
                began = trio.current_time()
                asked = posting(guest.post, VISITS, Add())
                queried: list[str] = []
                nursery.start_soon(look_in_vain, guest, queried)
                with pytest.raises(OverloadedError, match="same idempotency key") as given_up:
                    await asked.reply()
                assert trio.current_time() - began < 6
                await wait_all_tasks_blocked()
                assert (given_up.value.outcome, queried) == ("unknown", ["not_done"])
                with (
                    pytest.raises(OverloadedError, match="does not answer") as refused,
                    trio.fail_after(0.4),
                ):
                    await guest.ask(VISITS, Add())
                assert (refused.value.retry_after_ms, refused.value.outcome) == (1_000, "not_done")
                assert guest.role == "attached"
            nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.hung-owner")
async def test_without_an_owner_what_waits_is_told_of_as_soon(join: Join, folder: Path) -> None:
    """Of what no owner was sent it is known that it was not done."""
    with FolderLock(folder) as lock, bare_host(lock.folder) as place:
        async with trio.open_nursery() as nursery:
            ends = trio.Event()
            nursery.start_soon(partial(greet_once, place, ends=ends))
            async with join() as guest:
                began = trio.current_time()
                sent = posting(guest.post, VISITS, Add())
                await wait_all_tasks_blocked()
                ends.set()
                await wait_all_tasks_blocked()
                kept = posting(guest.post, VISITS, Add())
                for asked, known in (sent, "unknown"), (kept, "not_done"):
                    with pytest.raises(OverloadedError) as given_up:
                        await asked.reply()
                    assert given_up.value.outcome == known
                assert trio.current_time() - began < 6
            nursery.cancel_scope.cancel()


async def look_in_vain(guest: SharedRuntime, known: list[str]) -> None:
    with pytest.raises(OverloadedError, match="repeat later") as caught:
        await guest.query(Rows())
    known.append(caught.value.outcome)


async def greet_once(
    place: Any,
    *,
    silent: bool = False,
    heard: list[frames.Hello] | None = None,
    ends: trio.Event | None = None,
) -> None:
    bare = await place.accept()
    hello = await bare.hear(frames.Hello)
    if heard is not None:
        heard.append(hello)
    bare.say(welcome())
    if silent:
        await trio.sleep_forever()
    if ends is not None:
        await ends.wait()
        bare.wire.close()


@pytest.mark.promise("sharing.start")
async def test_a_folder_in_other_hands_is_refused_after_a_while(join: Join, folder: Path) -> None:
    with FolderLock(folder):
        began = trio.current_time()
        with pytest.raises(StoreOwnedError):
            async with join():
                pass
        assert trio.current_time() - began == pytest.approx(5, abs=0.1)


@pytest.mark.promise("sharing.versions")
async def test_an_owner_of_another_version_says_why_it_takes_nobody(join: Join, folder: Path) -> None:
    async with join():
        with bare_guest(folder) as newer:
            newer.say(hello(protocol=9, oldest=0))
            assert (await newer.hear(frames.Welcome)).protocol == 1
        with bare_guest(folder) as guest:
            guest.say(hello(protocol=9, oldest=7))
            sorry = await guest.hear(frames.Reject)
            assert "versions 1 to 1" in sorry.sentence
            with pytest.raises(PeerError):
                await guest.hear(frames.Welcome)
    with FolderLock(folder) as lock, bare_host(lock.folder) as place:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(refuse_all, place, sorry))
            with pytest.raises(StoreOwnedError, match="versions 1 to 1"):
                async with join():
                    pass
            nursery.cancel_scope.cancel()


async def refuse_all(place: Any, sorry: frames.Reject) -> None:
    while True:
        bare = await place.accept()
        await bare.hear(frames.Hello)
        bare.say(sorry)


@pytest.mark.promise("sharing.versions")
async def test_an_older_program_relays_to_a_newer_one_and_does_not_take_its_store(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    began = trio.current_time()
    with ExitStack() as newer:
        lock = newer.enter_context(FolderLock(folder))
        place = newer.enter_context(bare_host(lock.folder))
        nursery.start_soon(answer_once, place, welcome(store_format=frames.FORMAT_VERSION + 1))
        with pytest.raises(StoreTooNewError, match="newer greenroom"):
            await relay_until_it_ends(join, newer)
    assert trio.current_time() - began == pytest.approx(105, abs=0.1)


@pytest.mark.promise("sharing.versions", "store.versions")
async def test_the_store_of_an_older_owner_is_left_alone(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    Store(folder).close()
    downgrade(folder)
    before = names_in(folder)
    with ExitStack() as older:
        lock = older.enter_context(FolderLock(folder))
        place = older.enter_context(bare_host(lock.folder))
        nursery.start_soon(answer_once, place, welcome(store_format=OLD))
        async with join() as guest:
            assert await guest.ask(VISITS, Add()) == 1
            assert guest.role == "attached"
            assert names_in(folder) == before
            older.close()
            await guest.wait_until_owner()
            assert format_in(folder) == NEW


async def answer_once(place: Any, greeting: frames.Welcome) -> None:
    bare = await place.accept()
    await bare.hear(frames.Hello)
    bare.say(greeting)
    bare.say(frames.Response((await bare.hear(frames.Request)).number, b"1"))


async def relay_until_it_ends(join: Join, newer: ExitStack) -> None:
    async with join() as guest:
        assert await guest.ask(VISITS, Add()) == 1
        await trio.sleep(100)  # what counts is since when there is no owner
        newer.close()
        await trio.sleep(4)
        assert guest.role == "attached"
        await trio.sleep(100)


@pytest.mark.promise("sharing.folder")
async def test_a_folder_that_was_replaced_is_not_taken_over(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    owner = await nursery.start(owning, join)
    with pytest.raises(StoreError, match="is not the folder that this process was attached to"):
        await stay_while_the_folder_is_replaced(join, folder, owner)
    nursery.cancel_scope.cancel()


async def owning(join: Join, *, task_status: trio.TaskStatus[SharedRuntime]) -> None:
    async with join() as owner:
        task_status.started(owner)
        await trio.sleep_forever()


async def stay_while_the_folder_is_replaced(join: Join, folder: Path, owner: SharedRuntime) -> None:
    async with join() as guest:
        assert await guest.ask(VISITS, Add()) == 1
        replace(folder)
        for each in owner._process.owner_side.attached.values():
            each.connection.close()
        await trio.sleep(1)


def replace(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    (folder / "owner.lock").touch()


async def test_a_folder_with_a_long_path_is_shared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "short"))
    (tmp_path / "short").mkdir(mode=0o700)
    deep = tmp_path / ("deep" * 30) / "data"
    async with open_shared_runtime(deep, **SHARED) as owner, open_shared_runtime(deep, **SHARED) as guest:
        assert (deep / "relay.sock").is_symlink()
        assert (owner.role, guest.role) == ("owner", "attached")
        assert await guest.ask(VISITS, Add()) == 1
    assert not list((tmp_path / "short").glob("*/*"))


@pytest.mark.promise("sharing.takeover")
async def test_want_of_descriptors_delays_a_takeover_and_no_more(
    join: Join, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with join():
        guest = await nursery.start(attached, join)
        await trio.sleep(100)
        monkeypatch.setattr("greenroom.runtime.lmdb.lock_file._lock", no_descriptor)
        monkeypatch.setattr("greenroom.runtime.sharing.lock_or_attach._connect_socket", no_descriptor)
    asked = posting(guest.post, VISITS, Add())
    await trio.sleep(1)
    assert guest.role == "attached"
    statistics = guest.statistics()
    assert statistics is not None
    assert statistics.relay is not None
    assert statistics.relay.owner_pid == 0
    assert (statistics.relay.unanswered, statistics.relay.oldest_seconds) == (1, pytest.approx(1))
    monkeypatch.undo()
    with trio.fail_after(0.1):
        assert await asked.reply() == 1
    assert guest.role == "owner"
    nursery.cancel_scope.cancel()


async def test_an_owner_without_descriptors_lets_others_in_later(
    join: Join, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with join():
        monkeypatch.setattr("socket.socket.accept", no_descriptor)
        joined = trio.Event()

        async def attach() -> None:
            await nursery.start(attached, join)
            joined.set()

        nursery.start_soon(attach)
        await trio.sleep(1)
        assert not joined.is_set()
        monkeypatch.undo()
        with trio.fail_after(1):
            await joined.wait()
        nursery.cancel_scope.cancel()


def no_descriptor(_: object) -> Any:
    raise OSError(errno.EMFILE, "too many open files")
