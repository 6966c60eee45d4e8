"""Several processes on one folder, of which some die: nothing is lost, doubled or out of order."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from support.tools import tool

if TYPE_CHECKING:
    from pathlib import Path


def appends(first: int, count: int, who: str = "") -> list[dict[str, Any]]:
    return [{"do": "append", "entry": f"{who}{number}"} for number in range(first, first + count)]


@pytest.mark.promise("sharing.exactly-once", "sharing.takeover")
async def test_what_the_killed_owner_left_unanswered_is_done_once_and_in_order(folder: Path) -> None:
    async with tool(folder) as owner, tool(folder) as guest:
        assert (owner.role, guest.role) == ("owner", "attached")
        assert await owner.ask("append", entry="owner") == 0
        before = await guest.send_all(appends(0, 500))
        assert await guest.answer(before[0]) == 1
        owner.signal(signal.SIGSTOP)
        after = await guest.send_all(appends(500, 500))
        await owner.kill()
        await guest.is_owner()
        for place, number in enumerate([*before[1:], *after], start=2):
            assert await guest.answer(number) == place
        assert await guest.ask("entries") == ["owner", *map(str, range(1_000))]
        assert await guest.end_input() == 0


@pytest.mark.promise("sharing.takeover")
async def test_an_owner_at_its_end_of_input_answers_and_hands_over(folder: Path) -> None:
    async with tool(folder) as owner, tool(folder) as guest:
        numbers = await guest.send_all(appends(0, 200))
        assert await guest.answer(numbers[0]) == 0
        assert await owner.end_input() == 0
        more = await guest.send_all(appends(200, 200))
        for place, number in enumerate([*numbers[1:], *more], start=1):
            assert await guest.answer(number) == place
        await guest.is_owner()
        assert await guest.ask("entries") == [str(number) for number in range(400)]


@pytest.mark.promise("sharing.takeover", "sharing.exactly-once")
async def test_one_of_three_takes_over_and_the_others_follow(folder: Path) -> None:
    async with tool(folder) as owner, tool(folder) as first, tool(folder) as second, tool(folder) as third:
        guests = [first, second, third]
        numbers: list[list[int]] = []
        for which, guest in enumerate(guests):
            numbers.append(await guest.send_all(appends(0, 100, f"{which} ")))
        await owner.kill()
        for guest, mine in zip(guests, numbers, strict=True):
            places = [await guest.answer(number) for number in mine]
            assert places == sorted(places)
        entries = await second.ask("entries")
        for which in range(3):
            mine_in_order = [entry for entry in entries if entry.startswith(f"{which} ")]
            assert mine_in_order == [f"{which} {number}" for number in range(100)]
        assert len(entries) == 300
        assert sorted([guest.role for guest in guests]) == ["attached", "attached", "owner"]


@pytest.mark.promise("sharing.subscriptions")
async def test_subscriptions_go_on_and_hear_once_of_the_takeover(folder: Path) -> None:
    async with tool(folder) as owner, tool(folder) as guest, tool(folder) as third:
        assert await guest.ask("hear", topics=["news", "quiet"]) is None
        await guest.ask("entries")  # which comes to the owner after the word of what is to be heard
        assert await owner.ask("publish", key="news") == 1
        await guest.has_heard("news")
        assert await third.ask("publish", key="news") == 2
        await guest.has_heard("news")
        await owner.kill()
        assert await third.ask("publish", key="other") == 1
        heard: list[str] = []
        while len(heard) < 2:
            while not guest.heard:
                await guest._more()
            heard.append(guest.heard.popleft())
        assert sorted(heard) == ["news", "quiet"]
        assert await third.ask("publish", key="quiet") == 1
        await guest.has_heard("quiet")
        assert not guest.heard
