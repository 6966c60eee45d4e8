"""Packing and unpacking beside the event loop: few at a time, and nothing is left where nobody waits."""

from __future__ import annotations

import random
import string
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio
from harness import PATIENCE
from support.agents import house
from support.passports import begun, member, text_of

from greenroom.actors import Agent, EndSession, ExportSession, ListSessions, Principal
from greenroom.actors.core.base.threads import MOST_AT_ONCE, run_in_thread
from greenroom.runtime import ACTORS, InlineCommitter, Store
from greenroom.testing import HOUR, VirtualClock, mcp_client
from greenroom.transports.mcp.tool_calls import LARGE_ARGUMENTS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.quick
@pytest.mark.promise("passport.aside")
async def test_so_many_are_computed_at_once_and_no_more() -> None:
    lock, together = threading.Lock(), threading.Barrier(MOST_AT_ONCE)
    running = peak = 0

    def work() -> None:
        nonlocal running, peak
        with lock:
            running += 1
            peak = max(peak, running)
        together.wait(PATIENCE)  # which takes so many at once
        with lock:
            running -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(4 * MOST_AT_ONCE):
            nursery.start_soon(run_in_thread, work)
    assert peak == MOST_AT_ONCE


@pytest.mark.promise("passport.aside")
async def test_who_is_cancelled_does_not_wait_for_the_thread() -> None:
    begun_work, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun_work.set()
        assert may_end.wait(PATIENCE)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_in_thread, work)
            await trio.to_thread.run_sync(begun_work.wait)
            nursery.cancel_scope.cancel()
        may_end.set()
        await run_in_thread(begun_work.is_set)


def _rows(folder: Path) -> list[bytes]:
    store = Store(folder)
    try:
        return list(store.keys(ACTORS, b"passport\0"))
    finally:
        store.close()


@pytest.mark.promise("passport.aside")
async def test_an_export_that_is_cancelled_at_any_commit_leaves_nothing(
    tmp_path: Path, far_clock: VirtualClock
) -> None:
    folder = tmp_path / "data"
    scope = trio.CancelScope()
    left = 0

    def commit(store: Any, works: Any) -> None:
        nonlocal left
        store.commit(works)
        left -= 1
        if not left:
            scope.cancel()

    whole = 0
    async with house(folder, far_clock, embedder="none", committer=InlineCommitter(commit)) as here:
        claude = member(here.runtime)
        # Large, and of letters in no order, so that it is kept in several pieces.
        await begun(claude, *(_noise(number) for number in range(150)))
        for cut in range(1, 20):
            left, scope = cut, trio.CancelScope()
            with scope:
                exported = await claude.ask(ExportSession())
                await text_of(claude, exported)
                whole += 1
                if left > 0:
                    break
        assert cut > 3, "it takes several commits"
    kept = [key for key in _rows(folder) if key.endswith(b"uh")]
    assert whole <= len(kept) <= whole + 1  # one may be kept whole when its asker goes
    far_clock.jump(2 * HOUR)
    async with house(folder, far_clock, embedder="none") as here:
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert here.runtime.statistics().messages.dead_letters == 0
    places = {key.split(b"\0")[1] for key in _rows(folder)}
    assert places == {key.split(b"\0")[1] for key in kept}


def _noise(number: int) -> str:
    return "".join(random.Random(number).choices(string.ascii_letters + string.digits, k=9_000))  # noqa: S311


@pytest.mark.promise("passport.aside")
async def test_large_arguments_are_read_aside_and_answered_as_ever(
    tmp_path: Path, far_clock: VirtualClock
) -> None:

    async with house(tmp_path / "data", far_clock, embedder="none") as here:
        claude = member(here.runtime)
        await begun(claude, *(_noise(number) for number in range(20)))
        text = await text_of(claude, await claude.ask(ExportSession()))
        await claude.ask(EndSession())  # else the passport would give the session itself
        assert len(text) > LARGE_ARGUMENTS

        def agent_for(_: str) -> Agent:
            return Agent(here.runtime, Principal(agent_id="claude-code", user="user"))

        async with mcp_client(agent_for) as client:
            await client.initialize("claude-code")
            numbers = [
                await client.send_call("restore_session", {"passport": text}),
                await client.send_call("restore_session", {"passport": text, "tool_id": 7}),
                await client.send_call("restore_session", {"passport": text + "x"}),
                await client.send_call("list_sessions", {}),
            ]
            answers = {}
            for _ in numbers:
                answer = await client.receive()
                answers[answer["id"]] = answer["result"]
            assert [answers[number]["isError"] for number in numbers] == [False, True, True, False]
        assert (await claude.ask(ListSessions())).count == 2
