"""What was saved: counted against a baseline, kept across restarts, shown to whom it belongs."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families
from support.agents import refused

from greenroom.actors import (
    AddMessage,
    Agent,
    CompressText,
    CreateSession,
    EraseUser,
    GetSessionContext,
    GetStats,
    Ledger,
    ListResources,
    MemorySearch,
    Principal,
    Reach,
    ReadFile,
    ReadResource,
    SavingsReport,
    SavingsResource,
    StoreMemory,
    open_savings,
)
from greenroom.actors.core.validation.times import to_datetime
from greenroom.testing import mcp_client
from greenroom.testing.clock import DAY
from greenroom.transports.base.observability.meter import RequestMeter
from greenroom.transports.base.observability.prometheus import render
from greenroom.transports.base.observability.snapshot import ObservedServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter, House
    from support.passports import Opens

SOURCE = "x = 1\n" * 1_000
"""A file of 1,500 tokens."""


@asynccontextmanager
async def counting(at: House, **options: Any) -> AsyncIterator[Ledger]:
    async with open_savings(at.runtime, lambda: at.clock.now() * 1_000, **options) as ledger:
        yield ledger


def agent(at: House, ledger: Ledger, folder: Path, user: str = "ann", **identity: Any) -> Agent:
    said = Principal(agent_id=f"agent-of-{user}", user=user, **identity)
    return Agent(at.runtime, said, savings=ledger, reach=Reach(workspaces=(str(folder),)))


def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text(SOURCE)
    return folder


async def saved(who: Agent, **arguments: Any) -> SavingsReport:
    return (await who.ask(GetStats(**arguments))).savings


def of(report: SavingsReport, operation: str) -> Any:
    (found,) = [each for each in report.operations if each.operation == operation]
    return found


@pytest.mark.promise("savings.baseline")
async def test_a_file_is_read_whole_once_a_day_and_every_answer_costs(enter: Enter, tmp_path: Path) -> None:
    folder = code(tmp_path)
    async with enter() as at, counting(at) as ledger:
        ann = agent(at, ledger, folder)
        for lines in ("1-10", "1-10", "11-20", "21-30"):
            await ann.ask(ReadFile(path="a.py", lines=lines))
        read = of(await saved(ann), "read_file")
        # The file once, and what was answered in one line again: 10 lines of 6 bytes.
        assert read.baseline_tokens == 1_500 + 15
        assert (read.calls, read.baseline) == (4, "whole_file")
        assert read.saved_tokens == read.baseline_tokens - read.answer_tokens
        assert read.saved_cost == pytest.approx(read.saved_tokens * 3 / 1e6)
        (cache,) = (await saved(ann)).caches
        assert (cache.level, cache.operation, cache.hits, cache.misses) == ("client", "read_file", 1, 3)
        await ann.ask(ReadFile(path="a.py"))
        after = of(await saved(ann), "read_file")
        assert after.baseline_tokens == read.baseline_tokens
        assert after.saved_tokens < read.saved_tokens - 1_500


@pytest.mark.promise("savings.baseline")
async def test_what_answers_cost_more_is_counted_below_zero(enter: Enter, tmp_path: Path) -> None:
    async with enter() as at, counting(at) as ledger:
        ann = agent(at, ledger, code(tmp_path))
        await ann.ask(CompressText(text="Short."))
        report = await saved(ann)
        assert of(report, "compress_text").saved_tokens < 0
        assert report.saved_tokens < 0
        assert report.saved_cost < 0


@pytest.mark.promise("savings.baseline")
async def test_a_refused_call_is_not_counted_and_a_baseline_can_be_chosen(
    enter: Enter, tmp_path: Path
) -> None:
    async with enter() as at, counting(at, baselines={"read_file": "none"}, token_price=10.0) as ledger:
        ann = agent(at, ledger, code(tmp_path))
        with refused("VALIDATION_ERROR"):
            await ann.ask(ReadFile(path="gone.py"))
        with refused("PERMISSION_DENIED"):
            await ann.ask(ReadFile(path="../gone.py"))
        assert (await saved(ann)).operations == []
        await ann.ask(ReadFile(path="a.py", lines="1"))
        report = await saved(ann)
        read = of(report, "read_file")
        assert (read.baseline, read.saved_tokens, report.token_price) == ("none", 0, 10.0)


@pytest.mark.promise("savings.baseline")
async def test_memories_and_sessions_are_measured_when_counts_are_written(
    enter: Enter, tmp_path: Path
) -> None:
    async with enter() as at, counting(at) as ledger:
        ann, bob = agent(at, ledger, tmp_path), agent(at, ledger, tmp_path, "bob")
        for number in range(10):
            await ann.ask(StoreMemory(content=f"the bridge is raised at {number} o'clock " * 20))
        await bob.ask(StoreMemory(content="of somebody else " * 500))
        made = await ann.ask(CreateSession(purpose="p"))
        for _ in range(3):
            await ann.ask(AddMessage(session_id=made.session_id, content="x" * 400))
        await bob.ask(AddMessage(session_id=made.session_id, content="y" * 4_000, visibility="private"))
        for _ in range(2):
            await ann.ask(MemorySearch(query="bridge", limit=1))
            async with mcp_client(lambda _: ann) as client:
                await client.initialize()
                await client.call("get_session_context", session_id=made.session_id)
        assert of(await saved(ann), "memory_search").baseline_tokens == 0
        await ledger.write()
        report = await saved(ann)
        size = len("the bridge is raised at 0 o'clock " * 20)
        assert of(report, "memory_search").baseline_tokens == pytest.approx(10 * size / 4, rel=0.01)
        assert of(report, "get_session_context").baseline_tokens == 300
        assert of(report, "get_session_context").calls == 2


@pytest.mark.promise("savings.kept")
async def test_counts_survive_a_restart_and_are_written_every_minute(enter: Enter, tmp_path: Path) -> None:
    async def look(at: House, ledger: Ledger) -> None:
        await agent(at, ledger, tmp_path).ask(GetSessionContext(session_id="s"))

    async def calls(at: House, ledger: Ledger) -> int:
        return int(of(await saved(agent(at, ledger, tmp_path)), "get_session_context").calls)

    async with enter() as at, counting(at) as ledger:
        await agent(at, ledger, tmp_path).ask(CreateSession(purpose="p", session_id="s"))
        await look(at, ledger)
        await trio.sleep(61)
        await look(at, ledger)
        elsewhere = Ledger(at.runtime, lambda: at.clock.now() * 1_000)
        # Another process does not know what was not written yet.
        assert (await calls(at, ledger), await calls(at, elsewhere)) == (2, 1)
    async with enter() as at, counting(at) as ledger:
        assert await calls(at, ledger) == 2


@pytest.mark.promise("savings.kept")
async def test_what_was_written_is_not_counted_twice_when_its_answer_was_lost(
    enter: Enter, tmp_path: Path
) -> None:
    async with enter() as at, counting(at) as ledger:
        ann = agent(at, ledger, tmp_path)
        await ann.ask(CreateSession(purpose="p", session_id="s"))
        for _ in range(3):
            await ann.ask(GetSessionContext(session_id="s"))
            with trio.CancelScope() as gone:
                gone.cancel()
                await ledger.write()
        await ledger.write()
        assert [row.count.calls for row in await ledger.read("user:ann", 0)] == [3]
        await ledger.write()
        assert [row.count.calls for row in await ledger.read("user:ann", 0)] == [3]


@pytest.mark.promise("savings.bounded")
async def test_a_day_ends_at_midnight_and_ninety_days_are_kept(open_at: Opens, tmp_path: Path) -> None:
    async with open_at() as at, counting(at) as ledger:
        ann = agent(at, ledger, code(tmp_path))
        at.clock.jump(DAY - at.clock.now() % DAY - 1_000_000)
        await ann.ask(ReadFile(path="a.py", lines="1"))
        at.clock.jump(2_000_000)
        await ann.ask(ReadFile(path="a.py", lines="1"))
        await ann.ask(ReadFile(path="a.py", lines="2"))
        first, second = (await saved(ann)).days
        assert (second.day - first.day).days == 1
        assert (first.calls, second.calls) == (1, 2)
        assert first.baseline_tokens == 1_500  # whole
        assert second.baseline_tokens == 1_500 + 2  # whole again, and what was answered in one line
        for _ in range(100):
            await ledger.write()
            at.clock.jump(DAY)
            await ann.ask(CompressText(text="One. Two."))
        await ledger.write()
        report = await saved(ann, days=90)
        assert len(report.days) == 90
        assert report.days[-1].day == report.until == to_datetime(at.clock.now()).date()
        assert [each.operation for each in report.operations] == ["compress_text"]
        assert len(await ledger.read("user:ann", 0)) == 90


@pytest.mark.promise("savings.bounded")
async def test_a_clock_that_was_wrong_for_once_costs_one_day(open_at: Opens, tmp_path: Path) -> None:
    async with open_at() as at, counting(at) as ledger:
        ann = agent(at, ledger, tmp_path)
        for jump in (0, 10_000 * DAY, -10_000 * DAY):
            at.clock.jump(jump)
            await ann.ask(CompressText(text="One. Two."))
            await ledger.write()
        assert (await saved(ann)).calls == 3
        assert [row.count.calls for row in await ledger.read("user:ann", 0)] == [2, 1]


@pytest.mark.promise("savings.own")
async def test_each_caller_sees_their_own_and_an_administrator_everybodys(
    enter: Enter, tmp_path: Path
) -> None:
    async with enter() as at, counting(at) as ledger:
        ann = agent(at, ledger, tmp_path, scopes=frozenset({"server:read"}))
        bob = agent(at, ledger, tmp_path, "bob", scopes=frozenset({"server:read"}))
        root = agent(at, ledger, tmp_path, "root")
        await ann.ask(CompressText(text="Of Ann alone. " * 50))
        assert (await saved(ann)).calls == 1
        before = await bob.ask(GetStats())
        assert (before.savings.calls, before.savings.operations, before.savings.days) == (0, [], [])
        await bob.ask(CompressText(text="Of Bob."))
        with refused("PERMISSION_DENIED", scope="admin"):
            await bob.ask(GetStats(whose="all"))
        everybody = await root.ask(GetStats(whose="all"))
        assert (everybody.savings.calls, everybody.savings.whose) == (2, "all")
        assert isinstance(everybody.server, dict)
        assert "store" in everybody.server
        assert not (await bob.ask(GetStats())).server
        await ledger.write()
        assert (await saved(root)).calls == 0
        assert (await saved(root, whose="all")).calls == 2
        await root.ask(EraseUser(user="ann", confirm=True))
        assert (await saved(ann)).calls == 0
        assert (await saved(bob)).calls == 1


@pytest.mark.promise("savings.everywhere")
@pytest.mark.parametrize("scheme", ["greenroom", "omnimemory"])
async def test_the_resource_and_the_metrics_tell_the_same(enter: Enter, tmp_path: Path, scheme: str) -> None:
    async with enter() as at, counting(at) as ledger:
        ann = agent(at, ledger, code(tmp_path))
        for _ in range(2):
            await ann.ask(ReadFile(path="a.py", lines="1-10"))
        report = await saved(ann, days=90)
        read = await ann.ask(ReadResource(uri=f"{scheme}://savings"))
        assert isinstance(read, SavingsResource)
        assert read.savings == report
        assert "greenroom://savings" in [each.uri for each in (await ann.ask(ListResources())).resources]
        observed = ObservedServer(RequestMeter(()), at.runtime, savings=ledger)
        text, _ = render(observed.snapshot(), "")
        samples = {
            (sample.name, sample.labels.get("outcome")): sample.value
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
            if sample.labels.get("operation") == "read_file"
        }
        said = of(report, "read_file")
        assert samples == {
            ("greenroom_savings_calls_total", None): said.calls,
            ("greenroom_savings_baseline_tokens_total", None): said.baseline_tokens,
            ("greenroom_savings_answer_tokens_total", None): said.answer_tokens,
            ("greenroom_savings_cache_lookups_total", "hit"): 1,
            ("greenroom_savings_cache_lookups_total", "miss"): 1,
        }


@pytest.mark.promise("savings.own")
async def test_a_resource_needs_its_scope(enter: Enter, tmp_path: Path) -> None:
    async with enter() as at, counting(at) as ledger:
        reader = agent(at, ledger, tmp_path, scopes=frozenset({"memory:read"}))
        with refused("PERMISSION_DENIED", scope="server:read"):
            await reader.ask(ReadResource(uri="greenroom://savings"))


async def test_nothing_is_counted_for_what_is_no_reading(enter: Enter, tmp_path: Path) -> None:
    async with enter() as at, counting(at) as ledger:
        ann = agent(at, ledger, tmp_path)
        made = await ann.ask(CreateSession(purpose="p"))
        await ann.ask(AddMessage(session_id=made.session_id, content="x"))
        await ann.ask(StoreMemory(content="y"))
        assert ledger.statistics() == []
        await ann.ask(GetSessionContext(session_id=made.session_id))
        assert [row.operation for row in ledger.statistics()] == ["get_session_context"]
