"""The relay between two processes on one folder, with both ends in this one and on virtual time."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
from support.actors import Add, AddSlowly, Append, Entries, FailAfter, Place, Read, RefuseAdd, Rows, Whoami
from support.asking import post
from support.postings import Posting, posting
from support.relays import (
    LOG,
    NEWS,
    VISITS,
    Ask,
    Bare,
    Cutter,
    Glance,
    PeerError,
    Publish,
    add,
    attached,
    bare_guest,
    hello,
    kept,
)

from greenroom.runtime import (
    ActorFailedError,
    Address,
    DeadlineExceededError,
    Idempotency,
    IdempotencyConflictError,
    InvalidAddressError,
    OverloadedError,
    Refusal,
    RuntimeOptions,
    StoreError,
    UnknownKindError,
)
from greenroom.runtime.sharing import frames
from greenroom.testing import DAY, HOUR, CrashError, GatedCommitter, VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

    from support.relays import Join

    from greenroom.runtime import SharedRuntime


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


@pytest.mark.promise("sharing.exactly-once", "sharing.repeats")
async def test_a_repeat_waits_for_the_first_and_later_finds_its_answer(join: Join, folder: Path) -> None:
    gate = GatedCommitter()
    async with join(committer=gate) as owner:
        with bare_guest(folder) as before:
            before.say(hello(), add(1), add(2))
            with pytest.raises(PeerError):  # more than a greeting at first
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
                await trio.sleep(0.1)  # both wait for the first
                gate.let_all_through()
                assert answer_of(await second.hear(frames.Response)) == (1, 1, True)
                assert answer_of(await second.hear(frames.Response)) == (2, 2, True)
                with pytest.raises(PeerError):  # an earlier connection of the same process has ended
                    await first.hear(frames.Response)
                assert kept(owner) == [1, 2]
                second.say(add(2, again=True))
                assert answer_of(await second.hear(frames.Response)) == (2, 2, True)
                second.say(frames.Confirm([1]))
                second.say(add(3))
                assert answer_of(await second.hear(frames.Response)) == (3, 3, True)
                assert kept(owner) == [2, 3]
            with bare_guest(folder) as third:
                third.say(hello(unanswered=[3]))
                await third.hear(frames.Welcome)
                third.say(add(3, again=True), add(4))
                assert answer_of(await third.hear(frames.Response)) == (3, 3, True)
                assert answer_of(await third.hear(frames.Response)) == (4, 4, True)
                assert kept(owner) == [3, 4]


def answer_of(word: frames.Response) -> tuple[int, Any, bool]:
    return word.number, msgspec.json.decode(word.body), word.kept


@pytest.mark.promise("sharing.exactly-once", "sharing.repeats")
async def test_what_is_asked_twice_on_one_connection_is_done_once_and_its_answer_confirmed(
    join: Join, folder: Path
) -> None:
    gate = GatedCommitter()
    async with join(committer=gate) as owner:
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            guest.say(add(1), add(1), add(2))
            await gate.arrived()
            gate.let_all_through()
            assert answer_of(await guest.hear(frames.Response)) == (1, 1, True)
            assert answer_of(await guest.hear(frames.Response)) == (2, 2, True)
            assert kept(owner) == [1, 2]


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
async def test_nothing_is_kept_of_what_has_no_effects_or_none_that_must_not_be_missing(
    join: Join, folder: Path
) -> None:
    async with join() as owner:
        with bare_guest(folder) as guest:
            guest.say(hello())
            await guest.hear(frames.Welcome)
            for number, row in enumerate(["", "seen"]):
                body = msgspec.json.encode(Glance(row=row))
                guest.say(frames.Request(number, "herald", "news", "Glance", body, b"null"))
                assert answer_of(await guest.hear(frames.Response)) == (number, 0, False)
            assert kept(owner) == []
            assert [key for key, _, _ in await owner.query(Rows())] == [b"seen"]
            publish = msgspec.json.encode(Publish(label="x"))
            guest.say(frames.Request(2, "herald", "news", "Publish", publish, b"null"))
            assert answer_of(await guest.hear(frames.Response)) == (2, 1, True)
            assert kept(owner) == [2]


@pytest.mark.slow
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
@pytest.mark.slow
async def test_answers_for_processes_that_never_came_back_expire(
    join: Join, folder: Path, clock: VirtualClock
) -> None:
    async with join() as owner:
        for relay in range(700):
            with bare_guest(folder) as guest:
                guest.say(hello(relay=relay.to_bytes(16)))
                await guest.hear(frames.Welcome)
                guest.say(add(1), add(2), frames.Request(3, "counter", "visits", "Read", b"{}", b"null"))
                await guest.hear(frames.Response)
        await trio.sleep(70)
        assert len(kept(owner)) == 1_400
        clock.jump(23 * HOUR)
        await owner.ask(VISITS, Add())
        with bare_guest(folder) as late:
            late.say(hello())
            await late.hear(frames.Welcome)
            late.say(add(7))
            await late.hear(frames.Response)
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
        for each in (guest, owner):
            with each.hold_dispatch():
                held = posting(each.post, VISITS, Add(by=0))
            each.run_ready()
            assert await held.reply() == 5
        with pytest.raises(UnknownKindError):
            await guest.ask(Address("nobody", "x"), Add())
        with pytest.raises(InvalidAddressError):
            await guest.ask(Address("counter", "x" * 300), Add())
        with pytest.raises(StoreError, match="only the owner"):
            guest.readmit(VISITS)
        relay = guest.statistics().relay
        assert relay is not None
        assert (relay.role, relay.owner_pid, relay.takeovers) == ("attached", os.getpid(), 0)
        assert (relay.unanswered, relay.oldest_seconds, relay.silent_seconds) == (0, 0.0, 0)
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
        abandoned.posted.cancel()
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


# -- frames ----------------------------------------------------------------


async def test_what_is_said_at_once_is_one_frame_until_that_is_long_enough(nursery: trio.Nursery) -> None:
    here, there = socket.socketpair()
    frames_heard: list[list[Any]] = []

    def decode(payload: Any) -> list[Any]:
        frames_heard.append(frames.decode_from_attached(payload))
        return frames_heard[-1]

    said, heard = Bare(here, decode).wire, Bare(there, decode).wire
    nursery.start_soon(said.run_writer)
    for size in [1] * 1_000 + [100_000] * 5:
        word = frames.QueryRequest(1, "Rows", bytes(size), b"")
        said.send(word, size)
    said.flush()
    words: list[Any] = []
    while len(words) < 1_005:
        words += await heard.receive()
    assert [len(each) for each in frames_heard] == [1_003, 2], "a word of three makes the frame full"
    nursery.cancel_scope.cancel()
    said.close()
    heard.close()


# -- backpressure ----------------------------------------------------------


@pytest.mark.promise("sharing.relay")
@pytest.mark.parametrize(("most", "size"), [(4_096, 1), (64, 1 << 20)])
@pytest.mark.slow
async def test_too_much_unanswered_is_refused(
    join: Join, nursery: trio.Nursery, most: int, size: int
) -> None:
    gate = GatedCommitter()
    async with join(committer=gate):
        guest = await nursery.start(attached, join)
        some = [Address("log", str(number)) for number in range(2)]
        entry = "x" * size
        asked = [posting(guest.post, some[number % 2], Append(entry=entry)) for number in range(most)]
        with pytest.raises(OverloadedError, match="messages wait"):
            guest.post(VISITS, Add(), lambda _: None)
        gate.let_all_through()
        for one in asked:
            await one.reply()
        assert await guest.ask(VISITS, Add()) == 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("way", ["to the owner", "from the owner"])
@pytest.mark.promise("sharing.exactly-once")
@pytest.mark.slow
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
