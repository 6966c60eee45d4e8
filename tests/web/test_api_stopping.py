"""Answers below `/api/v1` when there is no time, no room, or no server much longer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from support.api import Browser, browser
from support.keyed import Premises, premises

from greenroom.runtime import RuntimeOptions, SharedRuntime
from greenroom.testing import GatedCommitter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.agents import Enter
    from support.https import Answer

pytestmark = pytest.mark.promise("api.problems")

DEADLINE = 30.0
"""Seconds that a request may take."""


@asynccontextmanager
async def stuck(enter: Enter, **options: Any) -> AsyncIterator[tuple[Premises, GatedCommitter]]:
    """Run a server whose disk takes nothing until it is let."""
    gate = GatedCommitter()
    gate.open = True
    async with (
        enter(committer=gate, embedder="none", options=RuntimeOptions(**options)) as at,
        premises(at) as here,
    ):
        gate.open = False
        try:
            yield here, gate
        finally:
            gate.let_all_through()


def failed(answer: Answer, status: int, code: str | None) -> dict[str, Any]:
    """Return the problem that an answer is."""
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    problem: dict[str, Any] = answer.json()
    assert (problem["status"], problem.get("code")) == (status, code), problem
    return problem


async def test_a_request_that_takes_too_long_is_answered_504_and_is_carried_out_whole(enter: Enter) -> None:
    async with stuck(enter) as (here, gate):
        ann = await browser(here)
        began = trio.current_time()
        answer = await ann.post("set_memory", key="k", value=1, idempotency_key="once")
        assert trio.current_time() - began == DEADLINE
        problem = failed(answer, 504, "DEADLINE_EXCEEDED")
        assert problem["details"] == {"deadline_ms": DEADLINE * 1_000, "outcome": "unknown"}
        assert "repeat it with the same idempotency_key" in problem["detail"]
        gate.let_all_through()
        again = await ann.post("set_memory", key="k", value=1, idempotency_key="once")
        assert (again.status, again.json()["version"]) == (200, 1)


async def test_a_request_for_which_there_is_no_room_is_answered_503_and_when_to_come_again(
    enter: Enter,
) -> None:
    async with stuck(enter, mailbox_limit=2) as (here, gate):
        ann, runtime = await browser(here), here.at.runtime
        assert isinstance(runtime, SharedRuntime)
        answers: list[Answer] = []

        async def keep(number: int) -> None:
            who = Browser(await here.guest())
            who.headers, who.token = ann.headers, ann.token
            answers.append(await who.post("set_memory", key=f"k{number}", value=number))

        async with trio.open_nursery() as nursery:
            with runtime.hold_dispatch():
                for number in range(5):
                    nursery.start_soon(keep, number)
                await here.settled()
                refused = list(answers)
            runtime.run_ready()
            gate.let_all_through()
        assert len(refused) == 3
        for answer in refused:
            problem = failed(answer, 503, "OVERLOADED")
            assert problem["details"]["retry_after_ms"] > 0
            assert int(answer.headers["retry-after"]) >= 1
        assert {each.status for each in answers[len(refused) :]} == {200}


async def test_what_is_open_when_the_server_stops_is_answered_503(enter: Enter) -> None:
    async with stuck(enter) as (here, _gate):
        ann, bob = await browser(here), await browser(here)
        answers: list[Answer] = []

        async def keep() -> None:
            answers.append(await ann.post("set_memory", key="k", value=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep)
            await here.settled()
            here.stop.set()
        problem = failed(answers[0], 503, None)
        assert problem["detail"] == "the server is stopping"
        assert await bob.guest.hung_up() == b""
