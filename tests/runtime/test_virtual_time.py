"""Virtual time of the tests: it passes at once, but not while a thread works."""

from __future__ import annotations

from math import inf
from threading import Event
from typing import TYPE_CHECKING

import trio
from trio.testing import MockClock

if TYPE_CHECKING:
    from support.agents import Enter


def _count() -> int:
    return sum(range(2_000_000))


async def test_a_thread_that_works_meets_no_deadline(autojump_clock: MockClock) -> None:
    with trio.fail_after(0.001):
        assert await trio.to_thread.run_sync(_count, abandon_on_cancel=True) == 1_999_999_000_000
    assert autojump_clock.current_time() == 0
    await trio.sleep(3_600)
    assert autojump_clock.current_time() == 3_600


async def test_nor_where_a_fixture_brings_the_clock(enter: Enter) -> None:
    async with enter():
        began = trio.current_time()
        with trio.fail_after(0.001):
            await trio.to_thread.run_sync(_count, abandon_on_cancel=True)
        assert trio.current_time() == began


async def test_a_thread_that_was_abandoned_holds_nothing(autojump_clock: MockClock) -> None:
    ended = Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: trio.to_thread.run_sync(ended.wait, abandon_on_cancel=True))
        await trio.testing.wait_all_tasks_blocked()
        assert autojump_clock.autojump_threshold == inf
        nursery.cancel_scope.cancel()
    await trio.sleep(3_600)
    assert autojump_clock.current_time() == 3_600
    ended.set()
