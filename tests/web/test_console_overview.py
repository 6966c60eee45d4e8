"""The first page of the console: what there is, who is connected, what should be done, and what was saved."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import begin
from support.console import looker
from support.keyed import administrator, create_key, premises
from support.presences import client_of, process_of, process_with

from greenroom.actors import (
    Agent,
    CompressText,
    CreateSession,
    EraseUser,
    GetOverview,
    Ledger,
    Principal,
    Reach,
    ReadFile,
    StoreMemory,
    open_savings,
)
from greenroom.actors.app.savings.actor import EVERYBODY
from greenroom.actors.core.presence.actor import PRESENCE
from greenroom.actors.core.presence.requests import (
    EndBrowserSession,
    LeavePresence,
    MinuteTraffic,
    OperationTraffic,
    ReadPresence,
    TellPresence,
    Traffic,
)
from greenroom.actors.core.presence.traffic import quantile, rates_of
from greenroom.transports.base.observability.meter import API, RequestMeter
from greenroom.transports.base.observability.presence import RequestHistory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter, House

    from greenroom.actors.app.administration.replies import Overview

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e{{7*7}}'


# -- what there is -----------------------------------------------------------------------------------


async def test_the_first_page_counts_what_its_visitor_may_see(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        for user, number in (("ann", 1), ("ann", 2), ("owner", 3)):
            await at.agent("bot", user=user).ask(StoreMemory(content="x", key=f"of {user} {number}"))
            at.tick()
        key = await create_key(at, "*:read", agent="bob", user="ann")
        await here.settled()
        for who, memories, newest in ((await looker(here), 1, "owner"), (await looker(here, key), 2, "ann")):
            page = await who.look("/")
            page.check_inert()
            assert f"Sessions 1 s 3 y ago Memories {memories} of {newest} " in page.text
            assert f"of {'ann' if newest == 'owner' else 'owner'} " not in page.text


async def overview_of(at: House, **identity: Any) -> Overview:
    return await at.agent("bot", **identity).ask(GetOverview())


def counts(said: Overview) -> list[tuple[int, str | None]]:
    """Return how many sessions and memories there are, and the newest of each."""
    found = said.sessions, said.memories
    return [(each.count, each.newest) for each in found if not isinstance(each, msgspec.UnsetType)]


async def test_counts_follow_scopes_and_what_is_seen(enter: Enter) -> None:
    async with enter() as at:
        await at.agent("bot", user="ann").ask(StoreMemory(content="x", key="hers"))
        await at.agent("bot", user="ann").ask(CreateSession(purpose="p", session_id="s", project_id="secret"))
        hers = await overview_of(at, user="ann")
        assert counts(hers) == [(1, "s"), (1, "hers")]
        bobs = await overview_of(at, user="bob", projects=frozenset({"other"}))
        assert counts(bobs) == [(0, None), (0, None)]
        bare = await overview_of(at, user="ann", scopes=frozenset({"server:read"}))
        for closed in ("sessions", "memories", "corpora", "store", "embedder", "backup", "rates"):
            assert getattr(bare, closed) is msgspec.UNSET, closed
        assert bare.advice == []


async def test_reading_the_overview_is_no_deed_of_the_audit_log(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        browser = await looker(here)
        await here.settled()
        before = (await browser.post("get_audit_log")).json()["records"]
        for _ in range(3):
            assert (await browser.look("/")).status == 200
        await here.settled()
        after = (await browser.post("get_audit_log")).json()["records"]
        new = [each["action"] for each in after if each["number"] > before[0]["number"]]
        assert set(new) <= {"get_audit_log", "authenticate"}


# -- who is connected --------------------------------------------------------------------------------


async def test_an_administrator_sees_everybody_and_others_themselves(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        anns = await create_key(at, "*:read", "sessions:write", agent="hers", user="ann")
        bobs = await create_key(at, "*:read", agent="his", user="bob")
        await here.settled()
        socket, session = await here.websocket(anns), await here.session(bobs)
        await socket.request("tools/call", {"name": "list_sessions", "arguments": {}})
        await socket.receive()
        await session.request("tools/call", {"name": "list_sessions", "arguments": {}})
        await session.answer()
        other = process_of("other", client_of(name=HOSTILE, tool=HOSTILE, user=HOSTILE, address=HOSTILE))
        await at.runtime.ask(PRESENCE, TellPresence(process=other))
        me = await looker(here)
        processes = (await me.post("get_overview")).json()["processes"]
        asked = {each["agent"]: each["last_request"] for process in processes for each in process["clients"]}
        assert asked["hers"] is not None
        assert asked["his"] is not None
        assert asked["console"] is None, "it is a browser"
        page = await me.look("/")
        page.check_inert()
        for shown in ("hers", "his", "websocket", "http", "leader: owns the folder", "Process 4242 follower"):
            assert shown in page.text, shown
        assert "<script>alert(1)</script>" in page.text
        mine = (await (await looker(here, anns)).look("/")).text
        assert "hers" in mine
        assert "websocket" in mine
        for hidden in ("his", "4242", "<script>", "Process"):
            assert hidden not in mine.split("Clients")[1].split("Parts of")[0].replace("this", "")


async def test_what_processes_tell_is_forgotten_when_they_leave_or_tell_no_more(enter: Enter) -> None:
    async with enter() as at:
        told = [process_of("one"), process_of("two", role="owner"), process_of("three")]
        for each in told:
            await at.runtime.ask(PRESENCE, TellPresence(process=each))
        assert (await at.runtime.ask(PRESENCE, ReadPresence()))[0].id == "two"
        await at.runtime.ask(PRESENCE, LeavePresence(process="two"))
        at.tick(10)
        await at.runtime.ask(PRESENCE, TellPresence(process=told[2]))
        at.tick(10)
        assert [each.id for each in await at.runtime.ask(PRESENCE, ReadPresence())] == ["three"]


async def test_a_browser_of_another_process_is_ended_when_that_tells_next(enter: Enter) -> None:
    async with enter() as at:
        elsewhere = process_with("ab" * 8)
        assert await at.runtime.ask(PRESENCE, TellPresence(process=elsewhere)) == []
        assert not await at.runtime.ask(PRESENCE, EndBrowserSession(browser="cd" * 8))
        assert await at.runtime.ask(PRESENCE, EndBrowserSession(browser="ab" * 8))
        assert await at.runtime.ask(PRESENCE, TellPresence(process=process_of("another"))) == []
        assert await at.runtime.ask(PRESENCE, TellPresence(process=elsewhere)) == ["ab" * 8]
        assert await at.runtime.ask(PRESENCE, TellPresence(process=elsewhere)) == []


# -- rates and times ---------------------------------------------------------------------------------


def test_the_last_hour_is_kept_by_minutes_and_no_longer() -> None:
    meter, now = RequestMeter(["ping_tool"]), [6_000.0]
    meter.record("tools/call", "ping_tool", "ok", 0.002)
    history = RequestHistory(meter, lambda: now[0])
    for minute in range(100):
        now[0] = 6_000.0 + 60 * minute
        meter.record("tools/call", "ping_tool", "ok", 0.002)
        meter.record(API, "invented\u202e", "tool_error", 0.002)
        history.look()
    kept = history.traffic()
    assert [each.minute for each in kept.minutes] == list(range(140, 200))
    assert {sum(each.buckets) for each in kept.minutes} == {2}
    assert {each.failed for each in kept.minutes} == {1}
    assert {each.operation: (sum(each.buckets), each.failed) for each in kept.operations} == {
        "ping_tool": (60, 0),
        "pages of the console": (60, 60),
    }
    now[0] += 3_600.0
    assert history.traffic().minutes == []


def test_rates_are_those_of_all_processes_together() -> None:
    bounds = (0.001, 0.01, 0.1)
    one = Traffic(
        bounds=bounds,
        minutes=[MinuteTraffic(100, (98, 0, 0, 0), 1)],
        operations=[OperationTraffic("search", (98, 0, 0, 0), 1)],
    )
    two = Traffic(
        bounds=bounds,
        minutes=[MinuteTraffic(100, (0, 0, 22, 0), 2), MinuteTraffic(41, (0, 0, 0, 7), 0)],
        operations=[OperationTraffic("search", (0, 0, 22, 7), 2), OperationTraffic("add", (1, 0, 0, 0), 0)],
    )
    strange = Traffic(bounds=(1.0,), minutes=[MinuteTraffic(100, (5, 5), 5)], operations=[])
    rates = rates_of([one, two, strange], 100 * 60_000_000)
    assert (len(rates.minutes), rates.calls) == (60, 128)
    last = rates.minutes[-1]
    assert (last.per_second, last.failed) == (2.0, 3)
    assert last.median_ms is not None
    assert last.median_ms < 1
    assert 10 < (last.p99_ms or 0) < 100
    first = rates.minutes[0]
    assert (first.per_second, first.median_ms) == (7 / 60, None)  # beyond every bound
    assert [(each.operation, each.calls, each.failed) for each in rates.operations] == [
        ("search", 127, 3),
        ("add", 1, 0),
    ]


@pytest.mark.parametrize(
    ("buckets", "share", "found"),
    [((0, 0, 0), 0.5, None), ((10, 0, 0), 0.5, 500.0), ((1, 1, 0), 0.75, 1_500.0), ((0, 0, 3), 0.01, None)],
)
def test_a_quantile_lies_within_its_class(
    buckets: tuple[int, ...], share: float, found: float | None
) -> None:
    assert quantile((1.0, 2.0), buckets, share) == found


# -- what was saved ----------------------------------------------------------------------------------


@asynccontextmanager
async def saving(at: House, folder: Path) -> AsyncIterator[tuple[Ledger, Agent]]:
    """Return a ledger, and an agent of ann whose reading it counts."""
    (folder / "a.py").write_text("x = 1\n" * 1_000)
    async with open_savings(at.runtime, lambda: at.clock.now() * 1_000) as ledger:
        said = Principal(agent_id="bot", user="ann")
        yield ledger, Agent(at.runtime, said, savings=ledger, reach=Reach(workspaces=(str(folder),)))


@pytest.mark.slow
async def test_savings_are_told_by_hours_and_days_and_add_up(enter: Enter, tmp_path: Path) -> None:
    async with enter() as at, saving(at, tmp_path) as (ledger, ann):
        for hour in range(30):
            await ann.ask(ReadFile(path="a.py", lines="1-10"))
            await ann.ask(ReadFile(path="a.py", lines="1-10"))
            await ann.ask(CompressText(text="word " * 400, target_ratio=0.5))
            if hour % 3 == 0:
                await ledger.write()
            at.tick(3_600)
        said = (await ann.ask(GetOverview())).savings
        assert said.whose == "all"
        assert len(said.hours) == 30
        assert len(said.days) in {2, 3}
        for periods in (said.hours, said.days):
            assert sum(each.saved_tokens for each in periods) == said.report.saved_tokens
            assert periods[-1].total_tokens == said.report.saved_tokens
            assert all(sum(each.by_operation.values()) == each.saved_tokens for each in periods)
            assert [each.begins for each in periods] == sorted(each.begins for each in periods)
        assert {each.hit_rates["client"] for each in said.hours[1:]} == {1.0}
        assert said.hours[0].hit_rates["client"] == 0.5
        bob = Agent(
            at.runtime, Principal(agent_id="b", user="bob", scopes=frozenset({"*:read"})), savings=ledger
        )
        theirs = (await bob.ask(GetOverview())).savings
        assert (theirs.whose, theirs.hours, theirs.days) == ("mine", [], [])


async def test_two_days_of_hours_are_kept_and_are_erased_with_their_user(
    enter: Enter, tmp_path: Path
) -> None:
    async with enter() as at, saving(at, tmp_path) as (ledger, ann):
        for _ in range(60):
            await ann.ask(CompressText(text="word " * 400, target_ratio=0.5))
            await ledger.write()
            at.tick(3_600)
        at.tick(-3_600)
        now = ledger.hour()
        kept = await ledger.read_hours("user:ann", 0)
        assert [row.day for row in kept] == list(range(now - 47, now + 1))
        await administrator(at).ask(EraseUser(user="ann", confirm=True))
        assert await ledger.read_hours("user:ann", 0) == await ledger.read("user:ann", 0) == []


async def test_what_people_look_at_counts_as_nothing_saved(enter: Enter, tmp_path: Path) -> None:
    async with enter() as at, saving(at, tmp_path) as (ledger, ann), premises(at, savings=ledger) as here:
        text = "word " * 400
        answer = await (await looker(here)).post("compress_text", text=text, target_ratio=0.5)
        assert answer.status == 200
        await ledger.write()
        assert await ledger.read(EVERYBODY, 0) == []
        await ann.ask(CompressText(text=text, target_ratio=0.5))
        await ledger.write()
        assert [row.operation for row in await ledger.read(EVERYBODY, 0)] == ["compress_text"]


async def test_the_four_charts_are_tables_first(enter: Enter, tmp_path: Path) -> None:
    async with enter() as at, saving(at, tmp_path) as (ledger, ann):
        for _ in range(3):
            await ann.ask(ReadFile(path="a.py", lines="1-10"))
            at.tick(86_400)
        await ledger.write()
        async with premises(at, savings=ledger) as here:
            page = await (await looker(here)).look("/")
            charts = [each["id"] for each in page.named("table") if each.get("class") == "chart"]
            assert charts == [
                "chart-rate", "chart-time", "chart-saved", "chart-operations", "chart-hits", "chart-total",
            ]  # fmt: skip
            assert "Nothing was counted yet" not in page.text
