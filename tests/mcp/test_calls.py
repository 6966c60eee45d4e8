"""The queue of calls and the clock over them: right in any order of events, and nothing is kept."""

from __future__ import annotations

import weakref
from typing import Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from greenroom.transports import Limits
from greenroom.transports.mcp.clients.ordering import OrderedQueue
from greenroom.transports.mcp.frames.calls import STALE_ALARMS, Call, CallState, Deadlines
from greenroom.transports.mcp.frames.frames import Frame

USUAL = 30.0
LARGE = 1


class Load:
    """What a call holds; a test sees whether anything still keeps it."""


def call_of(seconds: float = USUAL, arrived: float = 0.0) -> Call:
    frame = Frame("tools/call", None, b"1", 1, None, b"{}", 0)
    return Call(cast("Any", None), frame, cast("Any", None), arrived, seconds)


class Queue:
    """Turns whose calls begin while there is room, and stay on their way until they are let go."""

    def __init__(self, *, settle_at_once: bool = False) -> None:
        self.room = True
        self.began: list[Call] = []
        self.turns = OrderedQueue(Limits(large_answers=LARGE), lambda: self.room)
        self._settle_at_once = settle_at_once

    def join(self, call: Call, weight: int = 0) -> None:
        self.turns.join(call, self._begin, weight)

    def _begin(self, call: Call) -> None:
        assert call.state is CallState.BEGUN, "whoever is over never begins"
        self.began.append(call)
        if self._settle_at_once:
            self.turns.settle(call)

    @property
    def kept(self) -> int:
        return len(self.turns._queue)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(0, 1)),
        st.tuples(st.just("leave"), st.integers(0, 2)),
        st.tuples(st.just("settle"), st.integers(0, 30)),
        st.tuples(st.just("room"), st.booleans()),
    ),
    max_size=60,
)


@pytest.mark.promise("mcp.pipelining")
@given(STEPS)
def test_whatever_happens_calls_begin_one_at_a_time_in_the_order_in_which_they_joined(
    steps: list[tuple[str, Any]],
) -> None:
    queue = Queue()
    joined: list[Call] = []
    for step, value in steps:
        if step == "join":
            joined.append(call_of())
            queue.join(joined[-1], value)
        elif step == "leave" and queue.began:
            queue.turns.leave(queue.began[-1 - value % len(queue.began)])
        elif step == "settle" and joined and not (call := joined[value % len(joined)]).settled:
            queue.turns.settle(call)
        elif step == "room":
            queue.room = value
            queue.turns.advance()
        waiting = [call for call in joined if call.state in {CallState.WAITING, CallState.BEGUN}]
        on_their_way = [call for call in waiting if call.state is CallState.BEGUN]
        large = sum(call.weight for call in queue.began if not call.settled)
        assert large <= LARGE
        assert on_their_way in ([], waiting[:1])
        assert on_their_way or not waiting or (waiting[0].weight and not (queue.room and large < LARGE))
        assert queue.kept == len(waiting)
    order = [joined.index(call) for call in queue.began]
    assert order == sorted(order)
    queue.room = True
    queue.turns.advance()
    for call in joined:
        if not call.settled:
            queue.turns.settle(call)
    assert queue.kept == 0


def test_ten_thousand_calls_that_end_as_they_begin_need_no_depth() -> None:
    queue = Queue(settle_at_once=True)
    queue.room = False
    calls = [call_of() for _ in range(10_000)]
    for call in calls:
        queue.join(call, 1)
    queue.room = True
    queue.turns.advance()
    assert queue.began == calls
    assert queue.kept == 0


@pytest.mark.promise("mcp.slow-reader")
def test_a_call_that_ends_behind_one_that_waits_is_not_kept() -> None:
    queue = Queue()
    queue.join(call_of())  # it is on its way, and stays there
    call, load = call_of(), Load()
    call.payload, kept = load, weakref.ref(load)
    queue.join(call)
    queue.turns.settle(call)
    del call, load
    assert kept() is None


class Clock:
    """Deadlines, and which calls they ended when."""

    def __init__(self) -> None:
        self.ended: list[tuple[float, Call]] = []
        self.deadlines = Deadlines(USUAL, self._end)

    def _end(self, call: Call) -> None:
        self.ended.append((trio.current_time(), call))
        self.deadlines.forget(call)  # as whoever settles a call does

    def watched(self, seconds: float) -> Call:
        call = call_of(seconds, trio.current_time())
        self.deadlines.watch(call)
        return call


@pytest.mark.promise("mcp.deadline")
async def test_every_call_ends_at_its_own_time_whichever_came_first(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    del autojump_clock
    clock = Clock()
    nursery.start_soon(clock.deadlines.run)
    calls = {}
    for second, seconds in enumerate([USUAL, 5.0, 29.0, USUAL, 1.0, 1.0, 7.5, 27.0]):
        calls[clock.watched(seconds)] = second + seconds
        await trio.sleep(1)
    await trio.sleep(60)
    assert {call: time for time, call in clock.ended} == pytest.approx(calls)
    assert [time for time, _ in clock.ended] == sorted(calls.values())
    nursery.cancel_scope.cancel()


@pytest.mark.promise("mcp.deadline")
async def test_a_call_that_is_over_is_neither_ended_nor_kept(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    del autojump_clock
    clock = Clock()
    nursery.start_soon(clock.deadlines.run)
    last = clock.watched(2.0)
    kept = []
    for number in range(10 * STALE_ALARMS):
        call = clock.watched(USUAL if number % 2 else 1.0 + number / 1000)
        call.payload = load = Load()
        kept.append(weakref.ref(load))
        clock.deadlines.forget(call)
    del call, load
    assert [each for each in kept if each() is not None] == []
    assert len(clock.deadlines._alarms) <= STALE_ALARMS + 2
    await trio.sleep(60)
    assert clock.ended == [(2.0, last)]
    nursery.cancel_scope.cancel()
