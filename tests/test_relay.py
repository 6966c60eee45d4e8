"""The relay between two processes on one folder, with both ends in this one and on virtual time."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.actors import Add, AddSlowly, Append, Entries, FailAfter, Place, Read, RefuseAdd, Rows, Whoami
from support.asking import post
from support.clocks import DAY, HOUR, VirtualClock
from support.committers import CrashError, GatedCommitter
from support.postings import Posting, posting
from support.relays import RELAY, SHARED, Ask, Cutter, Publish, add, bare_guest, bare_host, hello, kept

from greenroom.runtime import (
    ActorFailedError,
    Address,
    DeadlineExceededError,
    Idempotency,
    IdempotencyConflictError,
    OverloadedError,
    Refusal,
    RuntimeClosedError,
    RuntimeOptions,
    StoreError,
    StoreOwnedError,
    StoreTooNewError,
    UnknownKindError,
    open_shared_runtime,
)
from greenroom.runtime._owner import Owner
from greenroom.runtime.relay import _frames as frames
from greenroom.runtime.relay._guest import UNANSWERED_LIMIT
from greenroom.runtime.relay._wire import WireError

if TYPE_CHECKING:
    from pathlib import Path

    from support.relays import Join

    from greenroom.runtime import SharedRuntime

VISITS = Address("counter", "visits")
LOG = Address("log", "log")
NEWS = Address("herald", "news")


# -- exactly once ----------------------------------------------------------


@pytest.mark.promise("sharing.exactly-once", "sharing.repeats")
async def test_what_reached_the_disk_unheard_is_answered_from_there(
    join: Join, nursery: trio.Nursery
) -> None:
    gate = GatedCommitter()
    asked: list[Posting] = []

    async def die() -> None:
        async with join(committer=gate, options=RuntimeOptions(drain_seconds=0)) as owner:
            guest = await nursery.start(attached, join)
            asked.append(posting(guest.post, VISITS, Add()))
            await gate.arrived()
            gate.reach_the_disk()
            asked.append(posting(guest.post, VISITS, Add(by=10)))
            asked.append(posting(guest.post, VISITS, Read()))
            assert (owner.role, guest.role) == ("owner", "attached")
            guests.append(guest)
            raise CrashError

    guests: list[SharedRuntime] = []
    with pytest.raises(CrashError):
        await die()
    first, second, read = asked
    (guest,) = guests
    assert await first.reply() == 1
    assert await second.reply() == 11
    assert await read.reply() == 11
    assert guest.role == "owner"
    await trio.sleep(3)
    assert kept(guest) == []
    nursery.cancel_scope.cancel()


async def attached(join: Join, *, task_status: trio.TaskStatus[Any]) -> None:
    """Run a runtime that is attached, until it is cancelled."""
    async with join() as guest:
        assert guest.role == "attached"
        task_status.started(guest)
        await trio.sleep_forever()


@pytest.mark.promise("sharing.exactly-once", "sharing.repeats")
async def test_a_repeat_waits_for_the_first_and_later_finds_its_answer(join: Join, folder: Path) -> None:
    gate = GatedCommitter()
    async with join(committer=gate) as owner:
        with bare_guest(folder) as before:
            before.say(hello(), add(1), add(2))
            with pytest.raises(WireError):  # more than a greeting at first
                await before.hear(frames.Welcome)
        with bare_guest(folder) as first:
            first.say(hello())
            await first.hear(frames.Welcome)
            first.say(add(1), add(2))
            await gate.arrived()
            with bare_guest(folder) as second:
                second.say(hello(unanswered=[1, 2]))
                await second.hear(frames.Welcome)
                second.say(add(1, again=True), add(2, again=True))
                gate.let_all_through()
                assert answer_of(await second.hear(frames.Answer)) == (1, 1, True)
                assert answer_of(await second.hear(frames.Answer)) == (2, 2, True)
                assert kept(owner) == [1, 2]
                second.say(add(2, again=True))
                assert answer_of(await second.hear(frames.Answer)) == (2, 2, True)
                second.say(frames.Confirm([1]))
                second.say(add(3))
                assert answer_of(await second.hear(frames.Answer)) == (3, 3, True)
                assert kept(owner) == [2, 3]
            with bare_guest(folder) as third:
                third.say(hello(unanswered=[3]))
                await third.hear(frames.Welcome)
                third.say(add(3, again=True), add(4))
                assert answer_of(await third.hear(frames.Answer)) == (3, 3, True)
                assert answer_of(await third.hear(frames.Answer)) == (4, 4, True)
                assert kept(owner) == [3, 4]


def answer_of(word: frames.Answer) -> tuple[int, Any, bool]:
    return word.number, msgspec.json.decode(word.body), word.kept


@pytest.mark.promise("sharing.repeats")
async def test_nothing_is_kept_of_reads_refusals_failures_and_keyed_requests(
    join: Join, nursery: trio.Nursery
) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        assert await guest.ask(VISITS, Read()) == 0
        with pytest.raises(Refusal) as refusal:
            await guest.ask(VISITS, RefuseAdd())
        assert (refusal.value.code, refusal.value.details) == ("NO_MORE", {"limit": 7})
        with pytest.raises(ActorFailedError, match="failed while handling FailAfter"):
            await guest.ask(VISITS, FailAfter())
        key = Idempotency("it", "key", b"1")
        assert await guest.ask(VISITS, Add(), idempotency=key) == 1
        assert await guest.ask(VISITS, Add(), idempotency=key) == 1
        assert await owner.ask(VISITS, Add(), idempotency=key) == 1
        with pytest.raises(IdempotencyConflictError):
            await guest.ask(VISITS, Add(), idempotency=key._replace(fingerprint=b"2"))
        assert kept(owner) == []
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.repeats")
async def test_the_table_of_kept_answers_stays_small(join: Join, nursery: trio.Nursery) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        most = 0
        for _ in range(80):
            batch = [posting(guest.post, VISITS, Add()) for _ in range(100)]
            guest.run_ready()
            for one in batch:
                await one.reply()
            most = max(most, len(kept(owner)))
        assert await guest.ask(VISITS, Read()) == 8_000
        assert most <= 1_000
        await trio.sleep(2.5)
        assert kept(owner) == []
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.repeats")
async def test_answers_for_processes_that_never_came_back_expire(
    join: Join, folder: Path, clock: VirtualClock
) -> None:
    async with join() as owner:
        for relay in range(700):
            with bare_guest(folder) as guest:
                guest.say(hello(relay=relay.to_bytes(16)))
                await guest.hear(frames.Welcome)
                guest.say(add(1), add(2), frames.Ask(3, "counter", "visits", "Read", b"{}", b"null"))
                await guest.hear(frames.Answer)
        await trio.sleep(70)
        assert len(kept(owner)) == 1_400
        clock.jump(23 * HOUR)
        await owner.ask(VISITS, Add())
        with bare_guest(folder) as late:
            late.say(hello())
            await late.hear(frames.Welcome)
            late.say(add(7))
            await late.hear(frames.Answer)
        clock.jump(HOUR)
        await trio.sleep(70)
        assert kept(owner) == [7]
        clock.jump(DAY)
        await trio.sleep(70)
        assert kept(owner) == []


# -- doors -----------------------------------------------------------------


async def test_an_attached_process_has_the_doors_of_an_owner(join: Join, nursery: trio.Nursery) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        assert await guest.ask(VISITS, Whoami(), principal="anna") == "anna"
        assert await guest.ask(VISITS, Whoami()) == "None"
        await guest.ask(Address("shelf", "s"), Place(key=b"k", value="v"))
        assert await guest.query(Rows()) == [(b"k", "s", "v")]
        guest.tell(VISITS, Add(by=5))
        assert await guest.ask(VISITS, Read()) == 5
        assert await guest.ask(NEWS, Ask(key="visits")) == "it says 5"
        asked = posting(guest.post, NEWS, Ask(key="visits"))
        assert not asked.accepted
        assert await asked.reply() == "it says 5"
        assert asked.accepted
        with pytest.raises(UnknownKindError):
            await guest.ask(Address("nobody", "x"), Add())
        with pytest.raises(UnknownKindError):
            await guest.ask(Address("counter", "x" * 300), Add())
        with pytest.raises(StoreError, match="only the owner"):
            guest.readmit(VISITS)
        relay = guest.statistics().relay
        assert relay is not None
        assert (relay.role, relay.owner_pid, relay.takeovers) == ("attached", os.getpid(), 0)
        relay = owner.statistics().relay
        assert relay is not None
        assert (relay.role, relay.attached_pids) == ("owner", [os.getpid()])
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.relay")
async def test_what_one_process_asks_is_done_in_its_order(join: Join, nursery: trio.Nursery) -> None:
    async with join():
        guest = await nursery.start(attached, join)
        replies = [posting(guest.post, LOG, Append(entry=str(number))) for number in range(1_000)]
        assert [await one.reply() for one in replies] == list(range(1_000))
        assert await guest.ask(LOG, Entries()) == [str(number) for number in range(1_000)]
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.relay")
async def test_who_gives_up_or_is_late_is_told_so_and_leaves_nothing(
    join: Join, nursery: trio.Nursery
) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        for _ in range(2):  # so that the actor gets no turn for a while
            with pytest.raises(ActorFailedError):
                await guest.ask(VISITS, FailAfter())
        given_up = await post(nursery, guest, VISITS, Add())
        abandoned = posting(guest.post, VISITS, Add(by=10))
        late = posting(guest.post, VISITS, Add(by=100), deadline=trio.current_time())
        asked = posting(guest.post, VISITS, Add(by=1_000))
        given_up.scope.cancel()
        abandoned.posted.abandon()
        with pytest.raises(DeadlineExceededError):
            await late.reply()
        assert await asked.reply() == 1_000
        assert not abandoned.is_over
        assert owner.statistics().messages.abandoned == 2
        await trio.sleep(2.5)
        assert kept(owner) == []
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.relay")
async def test_long_work_that_nobody_wants_any_more_is_stopped(join: Join, nursery: trio.Nursery) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        slow = await post(nursery, guest, VISITS, AddSlowly(steps=1_000_000_000))
        while not owner.statistics().messages.waiting:
            await trio.lowlevel.checkpoint()
        slow.scope.cancel()
        assert await guest.ask(VISITS, Read()) == 0
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.relay", "sharing.repeats")
async def test_what_is_given_up_while_it_is_on_its_way_to_disk_leaves_no_answer(
    join: Join, nursery: trio.Nursery
) -> None:
    gate = GatedCommitter()
    async with join(committer=gate) as owner:
        guest = await nursery.start(attached, join)
        begun = await post(nursery, guest, VISITS, Add())
        await gate.arrived()
        begun.scope.cancel()
        await trio.sleep(0.1)
        gate.let_all_through()
        assert await guest.ask(VISITS, Read()) == 1
        await trio.sleep(2.5)
        assert kept(owner) == []
        nursery.cancel_scope.cancel()


# -- subscriptions ---------------------------------------------------------


@pytest.mark.promise("sharing.subscriptions", "sharing.identity")
async def test_changes_are_heard_by_whom_they_are_for(join: Join, nursery: trio.Nursery) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        with guest.subscriber(0) as all_news, guest.subscriber(0) as own:
            all_news.add("news")
            own.add("news", lambda label: label == "own")
            await guest.ask(NEWS, Publish(label="hidden"))
            assert await all_news.next() == "news"
            await owner.ask(NEWS, Publish(label="own"))
            assert [await own.next(), await all_news.next()] == ["news", "news"]
            with trio.move_on_after(5) as waited:
                await own.next()
            assert waited.cancelled_caught
            all_news.remove("news")
            own.remove("news")
            await guest.ask(VISITS, Read())
            assert owner.statistics().bus.topics == 0
        nursery.cancel_scope.cancel()


# -- owners that come and go -----------------------------------------------


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


@pytest.mark.promise("sharing.hung-owner")
async def test_a_silent_owner_is_told_of_and_not_taken_over(join: Join, folder: Path) -> None:
    with Owner(folder) as lock, bare_host(lock.folder) as place:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(greet_once, place, silent=True))
            async with join() as guest:
                asked = posting(guest.post, VISITS, Add())
                await trio.sleep(6)
                with pytest.raises(OverloadedError, match="does not answer") as refused:
                    await guest.ask(VISITS, Add())
                assert refused.value.retry_after_ms == 1_000
                assert not asked.is_over
                assert guest.role == "attached"
                asked.posted.abandon()
            nursery.cancel_scope.cancel()


async def greet_once(place: Any, *, silent: bool) -> None:
    bare = await place.accept()
    await bare.hear(frames.Hello)
    bare.say(welcome())
    if silent:
        await trio.sleep_forever()


def welcome(**other: Any) -> frames.Welcome:
    plain = frames.Welcome(1, "0.0", frames.FORMAT_VERSION, os.getpid())
    return msgspec.structs.replace(plain, **other)


@pytest.mark.promise("sharing.start")
async def test_a_folder_in_other_hands_is_refused_after_a_while(join: Join, folder: Path) -> None:
    with Owner(folder):
        began = trio.current_time()
        with pytest.raises(StoreOwnedError):
            async with join():
                pass
        assert trio.current_time() - began == pytest.approx(5, abs=0.1)


@pytest.mark.promise("sharing.versions")
async def test_an_owner_of_another_version_says_why_it_takes_nobody(join: Join, folder: Path) -> None:
    async with join():
        with bare_guest(folder) as guest:
            guest.say(hello(protocol=9, oldest=7))
            sorry = await guest.hear(frames.Sorry)
            assert "versions 1 to 1" in sorry.sentence
            with pytest.raises(WireError):
                await guest.hear(frames.Welcome)
    with Owner(folder) as lock, bare_host(lock.folder) as place:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(refuse_all, place, sorry))
            with pytest.raises(StoreOwnedError, match="versions 1 to 1"):
                async with join():
                    pass
            nursery.cancel_scope.cancel()


async def refuse_all(place: Any, sorry: frames.Sorry) -> None:
    while True:
        bare = await place.accept()
        await bare.hear(frames.Hello)
        bare.say(sorry)


@pytest.mark.promise("sharing.versions")
async def test_an_older_program_relays_to_a_newer_one_and_does_not_take_its_store(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    with ExitStack() as newer:
        lock = newer.enter_context(Owner(folder))
        place = newer.enter_context(bare_host(lock.folder))
        nursery.start_soon(answer_once, place, welcome(store_format=frames.FORMAT_VERSION + 1))
        with pytest.raises(StoreTooNewError, match="newer greenroom"):
            await relay_until_it_ends(join, newer)


async def answer_once(place: Any, greeting: frames.Welcome) -> None:
    bare = await place.accept()
    await bare.hear(frames.Hello)
    bare.say(greeting)
    bare.say(frames.Answer((await bare.hear(frames.Ask)).number, b"1"))


async def relay_until_it_ends(join: Join, newer: ExitStack) -> None:
    async with join() as guest:
        assert await guest.ask(VISITS, Add()) == 1
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
        for each in owner._member.host.attached.values():
            each.wire.close()
        await trio.sleep(1)


def replace(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.mkdir()
    (folder / "owner.lock").touch()


@pytest.mark.promise("sharing.hostile-relay")
async def test_the_socket_is_for_this_user_alone_and_leaves_with_the_owner(
    join: Join, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with join() as owner:
        place = folder / "relay.sock"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        monkeypatch.setattr("greenroom.runtime.relay._host.peer_is_ours", lambda _: False)
        with bare_guest(folder) as stranger:
            stranger.say(hello())
            with pytest.raises(WireError):
                await stranger.hear(frames.Welcome)
        assert await owner.ask(VISITS, Add()) == 1
    assert not place.exists()


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


# -- backpressure ----------------------------------------------------------


@pytest.mark.promise("sharing.relay")
async def test_too_much_unanswered_is_refused(join: Join, nursery: trio.Nursery) -> None:
    gate = GatedCommitter()
    async with join(committer=gate):
        guest = await nursery.start(attached, join)
        some = [Address("counter", str(number)) for number in range(2)]
        asked = [posting(guest.post, some[number % 2], Add()) for number in range(UNANSWERED_LIMIT)]
        with pytest.raises(OverloadedError, match="messages wait"):
            guest.post(VISITS, Add(), lambda _: None)
        gate.let_all_through()
        for one in asked:
            await one.reply()
        assert await guest.ask(VISITS, Add()) == 1
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.hostile-relay")
async def test_who_reads_nothing_costs_no_memory_and_holds_up_nobody(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    async with join() as owner:
        guest = await nursery.start(attached, join)
        with bare_guest(folder) as deaf:
            deaf.say(hello())
            await deaf.hear(frames.Welcome)
            large = frames.Ask(
                1, "log", "log", "Append", msgspec.json.encode({"entry": "x" * 1_000_000}), b"null"
            )
            await deaf.say_all(large)
            await deaf.hear(frames.Answer)
            deaf.say(
                frames.Watch(["news"]),
                *[frames.Ask(n, "log", "log", "Entries", b"{}", b"null") for n in range(2, 400)],
            )
            for number in range(50):
                await guest.ask(NEWS, Publish(label=str(number)))
            await trio.sleep(5)
            (unread,) = [each for each in owner._member.host.attached.values() if each.relay == RELAY]
            assert unread.wire.unsent < 100_000_000
            for number in range(2, 400):
                assert (await deaf.hear(frames.Answer)).number == number
            labels = msgspec.msgpack.decode((await deaf.hear(frames.Changed)).labels)
            assert "49" in labels
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("way", ["to the owner", "from the owner"])
@pytest.mark.promise("sharing.exactly-once")
async def test_a_connection_that_is_cut_anywhere_loses_and_doubles_nothing(
    join: Join, folder: Path, way: str, nursery: trio.Nursery
) -> None:
    async with join() as owner:
        cutter = Cutter(folder, nursery)
        nursery.start_soon(cutter.run)
        expected: list[str] = []
        for place in range(0, 3_000 if way == "from the owner" else 1_200, 29):
            cutter.after = (place, None) if way == "to the owner" else (None, place)
            with trio.fail_after(100):
                async with join() as guest:
                    entries = [f"{place} {number}" for number in range(6)]
                    asked = [posting(guest.post, LOG, Append(entry=entry)) for entry in entries[:3]]
                    guest.run_ready()
                    for number, one in enumerate(asked):
                        assert await one.reply() == len(expected) + number
                    query = Rows(prefix=b"none")
                    assert await guest.query(query) == []
                    for entry in entries[3:]:
                        await guest.ask(LOG, Append(entry=entry))
                    expected += entries
            assert await owner.ask(LOG, Entries()) == expected
        assert cutter.cuts >= 15
        # What a process could not confirm, because its connection was cut at its very end, expires.
        assert len(kept(owner)) <= 3
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.subscriptions")
async def test_subscriptions_hear_once_of_a_connection_that_was_cut(
    join: Join, folder: Path, nursery: trio.Nursery
) -> None:
    async with join() as owner:
        cutter = Cutter(folder, nursery)
        nursery.start_soon(cutter.run)
        cutter.after = (None, 6_000)
        guest = await nursery.start(attached, join)
        with guest.subscriber(0) as subscriber:
            subscriber.add("news", lambda label: label == "own")
            assert await subscriber.next() == "news"
            with trio.move_on_after(5) as waited:
                await subscriber.next()
            assert waited.cancelled_caught
            await owner.ask(NEWS, Publish(label="own"))
            assert await subscriber.next() == "news"
        nursery.cancel_scope.cancel()


@pytest.mark.promise("sharing.takeover")
async def test_want_of_descriptors_delays_a_takeover_and_no_more(
    join: Join, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with join():
        guest = await nursery.start(attached, join)
        monkeypatch.setattr("greenroom.runtime._owner._lock", no_descriptor)
        monkeypatch.setattr("greenroom.runtime.relay._keeper._connected", no_descriptor)
    asked = posting(guest.post, VISITS, Add())
    await trio.sleep(1)
    assert guest.role == "attached"
    monkeypatch.undo()
    assert await asked.reply() == 1
    assert guest.role == "owner"
    nursery.cancel_scope.cancel()


def no_descriptor(_: Path) -> Any:
    raise OSError(errno.EMFILE, "too many open files")


# -- hostile ends ----------------------------------------------------------

GARBAGE = [
    b"",
    b"\0",
    b"\xff" * 4,
    b"\0\0\0\1\xc1",
    b"\0\0\0\5hello",
    b"GET / HTTP/1.1\r\n\r\n",
    frames.encode_frame([frames.Beat()]),
    frames.encode_frame([]),
    frames.encode_frame([hello(), add(1)]),
    (1 << 21).to_bytes(4) + bytes(1 << 20),
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.promise("sharing.hostile-relay")
async def test_garbage_instead_of_a_greeting_ends_its_own_connection(
    join: Join, folder: Path, garbage: bytes
) -> None:
    async with join() as owner:
        with bare_guest(folder) as guest:
            guest.send(garbage)
            with pytest.raises(WireError):
                await guest.hear(frames.Welcome)
        assert await owner.ask(VISITS, Add()) == 1


@pytest.mark.parametrize(
    "garbage", [*GARBAGE[3:5], b"\xff" * 4, frames.encode_frame([hello()])[:-1] + b"\xc1"]
)
@pytest.mark.promise("sharing.hostile-relay")
async def test_garbage_after_the_greeting_ends_its_own_connection(
    join: Join, folder: Path, garbage: bytes
) -> None:
    async with join() as owner:
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            guest.say(add(1))
            await guest.hear(frames.Answer)
            guest.send(garbage)
            with pytest.raises(WireError):
                await guest.hear(frames.Answer)
        assert await owner.ask(VISITS, Add()) == 2


ODD = [
    add(1, kind="nobody"),
    add(1, key=""),
    add(1, key="x\0y"),
    add(1, name="Nothing"),
    add(1, body=b"{"),
    add(1, body=b'{"by": "x"}'),
    add(1, body=b'{"unknown": 1}'),
    add(1, principal=b"7"),
    add(1, principal=b"\xff"),
    frames.AskQuery(1, "Nothing", b"{}", b"null"),
    frames.AskQuery(1, "Rows", b'{"index": 1}', b"null"),
    frames.AskQuery(1, "Rows", b'{"index": "none"}', b"null"),
    frames.AskQuery(1, "Rows", b"{}", b"]"),
]


@pytest.mark.parametrize("word", ODD)
@pytest.mark.promise("sharing.hostile-relay")
async def test_what_cannot_be_asked_fails_alone(join: Join, folder: Path, word: Any) -> None:
    async with join():
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            guest.say(
                frames.Abandon(77), frames.Confirm([5, 6]), frames.Watch(["a"], wanted=False), word, add(2)
            )
            assert (await guest.hear(frames.Failure)).number == 1
            assert (await guest.hear(frames.Answer)).number == 2


@pytest.mark.promise("sharing.versions")
async def test_what_a_newer_program_adds_is_passed_over(join: Join, folder: Path) -> None:
    async with join():
        with bare_guest(folder) as guest:
            words = msgspec.msgpack.decode(msgspec.msgpack.encode([hello(protocol=3)]))
            words[0] += [{"colour": "green"}]
            payload = msgspec.msgpack.encode(words)
            guest.send(len(payload).to_bytes(4) + payload)
            assert (await guest.hear(frames.Welcome)).protocol == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        [frames.Beat()],
        [frames.Answer(1, b"1")],
        [welcome(), frames.Answer(1, b"[")],
        [welcome(), frames.Answer(1, b'"x"')],
        [welcome(), frames.Answer(1, b"1", "Nothing")],
        [welcome(), frames.Failure(1, "Nothing", "s")],
        [welcome(), frames.Failure(1, "Refusal", "s", b"[")],
        [
            welcome(),
            frames.Answer(99, b"1", kept=True),
            frames.Changed("x", b"\xc1"),
            frames.Changed("x", b"\x91\x07"),
        ],
    ],
)
@pytest.mark.promise("sharing.hostile-relay")
async def test_an_owner_that_talks_nonsense_harms_nobody_for_good(
    join: Join, folder: Path, words: list[Any]
) -> None:
    async with trio.open_nursery() as nursery:
        with Owner(folder) as lock, bare_host(lock.folder) as place:
            guest_over = await nursery.start(ask_once, join)
            bare = await place.accept()
            await bare.hear(frames.Hello)
            bare.say(*words)
            await trio.sleep(1)
        with trio.fail_after(100):
            await guest_over.wait()


async def ask_once(join: Join, *, task_status: trio.TaskStatus[trio.Event]) -> None:
    over = trio.Event()
    task_status.started(over)
    async with join() as guest:
        for _ in range(2):
            try:
                assert await guest.ask(VISITS, Add()) in (1, 2)
            except (ActorFailedError, Refusal):
                continue
        assert await guest.ask(VISITS, Read()) in (1, 2)
    over.set()
