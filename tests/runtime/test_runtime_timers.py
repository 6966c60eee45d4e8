"""Durable timers, on a wall clock that jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
import trio
from support.actors import ACTORS, Alarm, CancelAlarm, Place, Rings, Rows, SetAlarm
from support.asking import Open, post
from support.committers import crash_at, crashing
from trio.testing import wait_all_tasks_blocked

from greenroom.runtime import (
    Actor,
    ActorFailedError,
    Address,
    Context,
    Group,
    Index,
    Message,
    PlainCodec,
    Refusal,
    RuntimeOptions,
    StoreDamagedError,
    handles,
)
from greenroom.testing import HOUR, SECOND, START, GatedCommitter

if TYPE_CHECKING:
    from greenroom.testing import VirtualClock

ALARM = Address("alarm", "a")
pytestmark = pytest.mark.promise("runtime.timers", "runtime.time-injected")


@pytest.mark.slow
async def test_a_timer_fires_at_its_time_and_once(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 10 * SECOND))
        await trio.sleep(9.9)
        assert await runtime.ask(ALARM, Rings()) == []
        await trio.sleep(0.2)
        assert await runtime.ask(ALARM, Rings()) == [("x", START + 10 * SECOND)]
        await trio.sleep(10_000)
        assert len(await runtime.ask(ALARM, Rings())) == 1
        assert runtime.statistics().messages.timers_fired == 1
        assert runtime.statistics().store.rows == 1, "nothing of the timer stays"


async def test_timers_fire_in_the_order_of_their_times(reopen: Open) -> None:
    async with reopen() as runtime:
        for name, after in (("c", 30), ("a", 10), ("b", 20), ("now", 0), ("past", -50)):
            await runtime.ask(ALARM, SetAlarm(name=name, due=START + after * SECOND))
        await trio.sleep(31)
        rings = await runtime.ask(ALARM, Rings())
        assert [name for name, _ in rings] in (["now", "past", "a", "b", "c"], ["past", "now", "a", "b", "c"])
        assert [when for name, when in rings if name in "abc"] == [
            START + after * SECOND for after in (10, 20, 30)
        ]


async def test_a_timer_of_the_same_name_replaces_the_first(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 10 * SECOND, note="first"))
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 20 * SECOND, note="later"))
        await runtime.ask(ALARM, SetAlarm(name="y", due=START + 20 * SECOND, note="first"))
        await runtime.ask(ALARM, SetAlarm(name="y", due=START + 5 * SECOND, note="sooner"))
        await runtime.ask(Address("alarm", "b"), SetAlarm(name="x", due=START + SECOND))
        await trio.sleep(100)
        assert await runtime.ask(ALARM, Rings()) == [
            ("sooner", START + 5 * SECOND),
            ("later", START + 20 * SECOND),
        ]


async def test_a_cancelled_timer_does_not_fire_and_cancelling_after_is_no_error(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 10 * SECOND))
        await runtime.ask(ALARM, SetAlarm(name="y", due=START + 10 * SECOND))
        await runtime.ask(ALARM, CancelAlarm(name="x"))
        await trio.sleep(20)
        assert await runtime.ask(ALARM, Rings()) == [("y", START + 10 * SECOND)]
        for name in ("x", "y", "never"):
            await runtime.ask(ALARM, CancelAlarm(name=name))
        assert len(await runtime.ask(ALARM, Rings())) == 1


async def test_a_timer_that_fired_but_waits_in_the_mailbox_can_still_be_cancelled_or_replaced(
    reopen: Open,
) -> None:
    group = Group(kinds=("alarm",), backoff=10)
    due = START + 2 * SECOND
    names = ("cancelled", "moved", "same time", "gone and back")
    async with reopen(groups=[group]) as runtime, trio.open_nursery() as nursery:
        for name in names:
            await runtime.ask(ALARM, SetAlarm(name=name, due=due, note=f"{name}: old"))
        for _ in range(2):  # the second failure pauses the actor for 5 to 15 seconds
            with pytest.raises(ActorFailedError):
                await runtime.ask(ALARM, SetAlarm(name="bad", due=-1))
        await post(nursery, runtime, ALARM, CancelAlarm(name="cancelled"))
        await post(nursery, runtime, ALARM, SetAlarm(name="moved", due=due + SECOND, note="moved: new"))
        await post(nursery, runtime, ALARM, SetAlarm(name="same time", due=due, note="same time: new"))
        await post(nursery, runtime, ALARM, CancelAlarm(name="gone and back"))
        await post(
            nursery, runtime, ALARM, SetAlarm(name="gone and back", due=due, note="gone and back: new")
        )
        await trio.sleep(4)
        assert runtime.statistics().messages.timers_fired == 4
        assert runtime.statistics().messages.waiting == 9
        await trio.sleep(16)
        notes = sorted(note for note, _ in await runtime.ask(ALARM, Rings()))
        assert notes == ["gone and back: new", "moved: new", "same time: new"]
        await trio.sleep(100)
        assert len(await runtime.ask(ALARM, Rings())) == 3


async def test_a_timer_may_set_itself_again(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 10 * SECOND, again=5))
        await trio.sleep(60)
        rings = await runtime.ask(ALARM, Rings())
        assert [when for _, when in rings] == [START + (10 + after) * SECOND for after in range(6)]


async def test_a_restart_fires_what_became_due_meanwhile(reopen: Open, clock: VirtualClock) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="due", due=START + HOUR))
        await runtime.ask(ALARM, SetAlarm(name="not yet", due=START + 3 * HOUR))
    clock.jump(2 * HOUR)
    async with reopen() as runtime:
        await wait_all_tasks_blocked()
        assert [name for name, _ in await runtime.ask(ALARM, Rings())] == ["due"]
        await trio.sleep(3_601)
        assert [name for name, _ in await runtime.ask(ALARM, Rings())] == ["due", "not yet"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_while_a_timer_is_handled_makes_it_fire_once(reopen: Open, after: bool) -> None:  # noqa: FBT001  pytest's parameter
    with crashing():
        async with reopen(committer=crash_at(2, after=after)) as runtime:
            await runtime.ask(ALARM, SetAlarm(name="x", due=START + SECOND, again=1))
            await trio.sleep_forever()
    async with reopen() as runtime:
        await trio.sleep(100)
        assert [name for name, _ in await runtime.ask(ALARM, Rings())] == ["x", "x"]


async def test_the_clock_jumps_forward_and_timers_follow_within_half_a_minute(
    reopen: Open, clock: VirtualClock
) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 10 * HOUR))
        await trio.sleep(100)
        clock.jump(11 * HOUR)
        await trio.sleep(31)
        assert [name for name, _ in await runtime.ask(ALARM, Rings())] == ["x"]


async def test_the_clock_jumps_back_and_timers_wait_for_their_time(reopen: Open, clock: VirtualClock) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 60 * SECOND))
        await trio.sleep(59)
        clock.jump(-HOUR)
        await trio.sleep(3_000)
        assert await runtime.ask(ALARM, Rings()) == []
        await trio.sleep(700)
        assert await runtime.ask(ALARM, Rings()) == [("x", START + 60 * SECOND)]


async def test_a_timer_that_keeps_failing_becomes_a_dead_letter_and_its_name_is_free(reopen: Open) -> None:
    Alarm.trouble["x"] = 3
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + SECOND))
        await trio.sleep(100)
        assert await runtime.ask(ALARM, Rings()) == []
        assert runtime.statistics().messages.dead_letters == 1
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 200 * SECOND, note="second"))
        await trio.sleep(200)
        assert [note for note, _ in await runtime.ask(ALARM, Rings())] == ["second"]


async def test_timers_of_a_kind_that_is_gone_become_dead_letters(reopen: Open, clock: VirtualClock) -> None:
    async with reopen() as runtime:
        for number in range(300):
            await runtime.ask(ALARM, SetAlarm(name=str(number), due=START + SECOND))
        await runtime.ask(Address("shelf", "s"), Place(key=b"k", value="v"))
    clock.jump(HOUR)
    rest = [actor for actor in ACTORS if actor is not Alarm]
    async with reopen(actors=rest) as runtime:
        await trio.sleep(100)
        assert runtime.statistics().messages.dead_letters == 300
        assert runtime.statistics().store.rows == 302, "dead letters and a shelf; no names of timers"


class Chime(Message[None], frozen=True):
    """What timers of an older program brought."""


class OlderAlarm(Actor):
    """The alarm of an older program."""

    kind = "alarm"

    @handles(SetAlarm)
    def set(self, message: SetAlarm, context: Context) -> None:
        context.set_timer(message.name, message.due, Chime())

    @handles(Chime)
    def chime(self, message: Chime, context: Context) -> None:
        raise NotImplementedError


async def test_a_timer_set_anew_outlives_the_burial_of_the_one_before(reopen: Open) -> None:
    async with reopen(actors=[OlderAlarm]) as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + 10 * SECOND))
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime, trio.open_nursery() as nursery:
        await post(nursery, runtime, ALARM, SetAlarm(name="x", due=START + 20 * SECOND))
        await gate.arrived()
        await trio.sleep(11)
        assert runtime.statistics().messages.dead_letters == 1, "nobody knows what the older one brings"
        gate.let_all_through()
        await trio.sleep(20)
        assert [name for name, _ in await runtime.ask(ALARM, Rings())] == ["x"]


@pytest.mark.promise("runtime.fair", "runtime.supervision")
async def test_timers_of_actors_set_aside_hold_nobody_up(reopen: Open, clock: VirtualClock) -> None:
    Alarm.trouble["bad"] = 1
    clock.jump(-HOUR)
    async with reopen(groups=[Group(kinds=("alarm",), intensity=1)]) as runtime:
        for number in range(600):
            await runtime.ask(ALARM, SetAlarm(name=str(number), due=START))
        await runtime.ask(ALARM, SetAlarm(name="bad", due=START - HOUR))
        await wait_all_tasks_blocked()
        await runtime.ask(Address("alarm", "other"), SetAlarm(name="x", due=START + SECOND))
        clock.jump(HOUR)
        await trio.sleep(60)
        assert runtime.statistics().actors.set_aside == ["alarm/a"]
        assert len(await runtime.ask(Address("alarm", "other"), Rings())) == 1
        assert runtime.statistics().messages.timers_fired == 2


@pytest.mark.promise("runtime.bounded")
async def test_timers_that_a_full_mailbox_cannot_take_come_soon_after(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(durability="process", mailbox_limit=10)) as runtime:
        for number in range(100):
            await runtime.ask(ALARM, SetAlarm(name=str(number), due=START + 100 * SECOND))
        await trio.sleep(105)
        assert len(await runtime.ask(ALARM, Rings())) == 100


class Nothing(Message[None], frozen=True):
    """A message that the alarm does not handle."""


async def test_names_are_limited_and_a_bad_one_harms_nobody(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="ü" * 100, due=START))
        for bad in (
            SetAlarm(name="x" * 201, due=START),
            SetAlarm(name="x", due=-1),
            SetAlarm(name="x", due=1 << 64),
        ):
            with pytest.raises(Exception, match="failed while handling"):
                await runtime.ask(ALARM, bad)
            runtime.readmit(ALARM)
        await trio.sleep(60)
        assert [name for name, _ in await runtime.ask(ALARM, Rings())] == ["ü" * 100]


async def test_rows_of_an_index_with_a_ttl_leave_when_they_are_too_old(
    reopen: Open, clock: VirtualClock
) -> None:
    shelf = Address("shelf", "s")
    indexes = [Index("shelves", ttl=HOUR), Index("other")]
    async with reopen(indexes=indexes) as runtime:
        for minute in range(0, 120, 10):
            await runtime.ask(shelf, Place(key=(START + minute * 60 * SECOND).to_bytes(8), value=str(minute)))
        clock.jump(HOUR)
        await trio.sleep(61)
        assert [value for _, _, value in await runtime.query(Rows())] == [
            str(minute) for minute in range(10, 120, 10)
        ]
        clock.jump(HOUR)
        await trio.sleep(60)
        assert [value for _, _, value in await runtime.query(Rows())] == [
            str(minute) for minute in range(70, 120, 10)
        ]
        assert runtime.statistics().rows_expired == 7


class DamagedRows(PlainCodec):
    """Finds every row of the index ``shelves`` damaged."""

    def open(self, key: bytes, record: bytes) -> bytes:
        if key.startswith(b"shelves"):
            raise StoreDamagedError("a flipped bit")
        return super().open(key, record)


async def test_a_damaged_row_that_is_too_old_leaves_like_any_other(reopen: Open, clock: VirtualClock) -> None:
    indexes = [Index("shelves", ttl=HOUR)]
    async with reopen(indexes=indexes) as runtime:
        await runtime.ask(Address("shelf", "s"), Place(key=START.to_bytes(8), value="old"))
    clock.jump(2 * HOUR)
    async with reopen(indexes=indexes, codec=DamagedRows()) as runtime:
        await trio.sleep(61)
        assert runtime.statistics().rows_expired == 1


class Shut(Message[None], frozen=True):
    pass


class Door(Alarm):
    """An alarm that cannot be activated while it is shut."""

    kind = "door"
    shut: ClassVar[bool] = False

    def activate(self, context: Context) -> None:
        if Door.shut:
            raise Refusal("SHUT", f"{context.address} is shut")

    @handles(Shut)
    def shut_it(self, _message: Shut, context: Context) -> None:
        Door.shut = True
        context.put(b"shut", ("shut", 0))
        raise Refusal("SHUT", "and what is in memory goes")


async def test_a_timer_that_cannot_be_handled_leaves_a_setting_under_way_alone(
    reopen: Open, clock: VirtualClock
) -> None:
    door, gate = Address("door", "d"), GatedCommitter()
    gate.open = True
    async with reopen(committer=gate, actors=(Door,)) as runtime, trio.open_nursery() as nursery:
        await runtime.ask(door, SetAlarm(name="x", due=START + 10 * SECOND, note="first"))
        gate.open = False
        await post(nursery, runtime, Address("door", "other"), SetAlarm(name="y", due=START + HOUR))
        await gate.arrived()
        anew = await post(nursery, runtime, door, SetAlarm(name="x", due=START + HOUR, note="anew"))
        await post(nursery, runtime, door, Shut())
        clock.jump(10 * SECOND)
        await trio.sleep(60)
        assert runtime.statistics().messages.dead_letters == 1
        Door.shut = False
        gate.let_all_through()
        await anew.reply()
        clock.jump(HOUR)
        await trio.sleep(60)
        assert [note for note, _ in await runtime.ask(door, Rings())] == ["anew"]


async def test_a_timer_that_is_due_within_a_second_is_not_late(reopen: Open) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="x", due=START + SECOND // 4))
        await trio.sleep(2)
        assert await runtime.ask(ALARM, Rings()) == [("x", START + SECOND // 4)]


async def test_a_timer_set_while_those_due_are_handed_over_is_not_late(
    reopen: Open, clock: VirtualClock
) -> None:
    async with reopen() as runtime:
        await runtime.ask(ALARM, SetAlarm(name="again", due=START + SECOND, again=1))
        for number in range(200):
            await runtime.ask(ALARM, SetAlarm(name=str(number), due=START + HOUR))
        await runtime.ask(ALARM, SetAlarm(name="last", due=START + 3 * HOUR))
        clock.jump(HOUR)
        await trio.sleep(40)
        rings = await runtime.ask(ALARM, Rings())
        first, second = (when for name, when in rings if name == "again")
        assert second - first < 2 * SECOND
        assert len(rings) == 202


@pytest.mark.slow
@pytest.mark.promise("runtime.bounded")
async def test_timers_due_beyond_those_under_way_at_once_follow_without_a_pause(reopen: Open) -> None:
    alarms = [Address("alarm", str(number)) for number in range(14)]
    gate = GatedCommitter()
    gate.open = True
    async with reopen(committer=gate) as runtime:
        for alarm in alarms:
            for number in range(110):
                await runtime.ask(alarm, SetAlarm(name=str(number), due=START + 10 * SECOND))
        gate.open = False
        await trio.sleep(10.5)
        messages = runtime.statistics().messages
        assert (messages.timers_fired, messages.waiting) == (1_000, 1_000), "the others wait in the store"
        gate.let_all_through()
        await wait_all_tasks_blocked()
        assert runtime.statistics().messages.timers_fired == 1_540
        for alarm in alarms:
            assert len(await runtime.ask(alarm, Rings())) == 110
        assert trio.current_time() < 11
