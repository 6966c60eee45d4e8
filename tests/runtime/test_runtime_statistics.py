"""What a runtime says of its mailboxes, its memory and its way to disk."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from support.actors import Add, AddSlowly, FailAfter, Read
from support.asking import Open
from support.postings import posting

from greenroom.runtime import ActorFailedError, Address, RuntimeOptions
from greenroom.runtime.base.statistics import SECONDS, WORKS, Histogram
from greenroom.testing import GatedCommitter

VISITS = Address("counter", "visits")
OTHER = Address("counter", "other")
pytestmark = pytest.mark.promise("runtime.statistics")


@given(st.lists(st.floats(min_value=0, max_value=10_000)))
def test_each_value_is_counted_in_the_class_that_it_belongs_to(values: list[float]) -> None:
    histogram = Histogram(WORKS)
    for value in values:
        histogram.observe(value)
    found = histogram.distribution()
    assert (found.bounds, found.count) == (WORKS, len(values))
    assert found.sum == pytest.approx(sum(values))
    for number, bound in enumerate(WORKS):
        assert sum(found.counts[: number + 1]) == sum(value <= bound for value in values)


def test_the_bounds_rise() -> None:
    for bounds in (WORKS, SECONDS):
        assert list(bounds) == sorted(set(bounds))


async def test_groups_are_counted_by_their_size_and_their_time_at_the_disk(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime:
        assert runtime.statistics().commits.group_works.count == 0
        first = posting(runtime.post, VISITS, Add())
        await gate.arrived()
        rest = [posting(runtime.post, VISITS, Add()) for _ in range(5)]
        gate.let_through()
        await first.reply()
        await gate.arrived()
        gate.let_through()
        assert [await one.reply() for one in rest] == [2, 3, 4, 5, 6]
        commits = runtime.statistics().commits
        works = dict(zip(commits.group_works.bounds, commits.group_works.counts, strict=False))
        assert (works[1], works[8], commits.group_works.sum, commits.group_works.count) == (1, 1, 6, 2)
        assert commits.group_seconds.count == commits.sync_seconds.count == 2
        assert commits.group_seconds.sum >= commits.sync_seconds.sum > 0


async def test_a_full_mailbox_shows(reopen: Open) -> None:
    gate = GatedCommitter()
    async with reopen(committer=gate) as runtime:
        for _ in range(2):
            with pytest.raises(ActorFailedError):
                await runtime.ask(VISITS, FailAfter())
        paused = [posting(runtime.post, VISITS, Add()) for _ in range(3)]
        committing = posting(runtime.post, OTHER, Add())
        await gate.arrived()
        slow = posting(runtime.post, OTHER, AddSlowly(steps=1_000_000_000))
        behind = [posting(runtime.post, OTHER, Read()) for _ in range(4)]
        messages = runtime.statistics().messages
        assert (messages.waiting, messages.queued, messages.deepest) == (9, 8, 5)
        for one in (*paused, slow):
            one.posted.cancel()
        gate.let_all_through()
        assert await committing.reply() == 1
        assert [await one.reply() for one in behind] == [1] * 4
        messages = runtime.statistics().messages
        assert (messages.waiting, messages.queued, messages.deepest) == (0, 0, 0)


async def test_who_left_for_want_of_memory_is_told_from_who_was_idle(reopen: Open) -> None:
    async with reopen(options=RuntimeOptions(resident_limit=3, idle_seconds=300)) as runtime:
        for number in range(5):
            await runtime.ask(Address("counter", str(number)), Read())
        actors = runtime.statistics().actors
        assert (actors.resident, actors.passivations, actors.evictions) == (3, 2, 2)
        await trio.sleep(1_000)
        actors = runtime.statistics().actors
        assert (actors.resident, actors.passivations, actors.evictions) == (0, 5, 2)


async def test_the_longest_time_of_a_commit_is_kept(reopen: Open) -> None:
    took: list[float] = []
    async with reopen() as runtime:
        while took[-1:] in ([], [max(took, default=0)]):  # until a shorter one follows
            await runtime.ask(VISITS, Add())
            took.append(runtime.statistics().store.last_commit_seconds)
        assert runtime.statistics().store.max_commit_seconds >= max(took) > took[-1]
