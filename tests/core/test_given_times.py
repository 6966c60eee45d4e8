"""Times in arguments: what one means that names no offset, and a span that ends before it begins."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
import pytest
from support.exchanges import line, text

from greenroom.actors import REQUESTS, Agent, Principal, open_greenroom
from greenroom.testing import McpClient, mcp_client
from greenroom.transports.mcp.tools.aliases import ALIASES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.promise("times.given")

BOUNDS = ("after", "before")
SPANS: dict[str, tuple[tuple[str, str], str | None, dict[str, Any], Callable[[Any], Any]]] = {
    "memory_search": (BOUNDS, None, {}, lambda found: sorted(each["key"] for each in found["memories"])),
    "recall_by_timeframe": (
        ("start_date", "end_date"),
        None,
        {},
        lambda found: sorted(each["key"] for each in found["memories"]),
    ),
    "list_memories": (BOUNDS, "filters", {}, lambda found: sorted(each["key"] for each in found["memories"])),
    "forget_memory": (BOUNDS, "filters", {}, lambda found: found["matched"]),
    "export_memories": (BOUNDS, "filters", {}, lambda found: found["count"]),
    "search_by_timerange": (
        ("start_time", "end_time"),
        None,
        {"session_id": "s"},
        lambda found: (found["timerange"]["start"], found["timerange"]["end"]),
    ),
    "get_audit_log": (BOUNDS, None, {"action": "create_session"}, lambda found: found["count"]),
}
"""Of each tool that takes a span: its fields, in which argument, what else it needs, and what it finds."""


@asynccontextmanager
async def in_tokyo(folder: Path) -> AsyncIterator[McpClient]:
    """Serve a session and memories of around a midnight in UTC, by a server in another zone."""
    who = Principal(agent_id="planner", user="user", projects=None)
    async with open_greenroom(folder, embedder="none") as runtime:
        agent = Agent(runtime, who, timezone="Asia/Tokyo")
        async with mcp_client(lambda _: agent) as client:
            await client.initialize()
            await client.call("create_session", purpose="p", session_id="s")
            source = text(
                line("before midnight", created_at="2024-04-30T23:59:59Z"),
                line("midnight", created_at="2024-05-01T00:00:00Z"),
                line("noon", created_at="2024-05-01T12:00:00Z"),
            )
            assert (await client.call("import_memories", source=source))["counts"] == {"created": 3}
            yield client


async def ask(client: McpClient, tool: str, start: str, end: str) -> Any:
    names, within, others, _ = SPANS[tool]
    span = dict(zip(names, (start, end), strict=True))
    return await client.call(tool, **others, **(span if within is None else {within: span}))


async def find(client: McpClient, tool: str, start: str, end: str) -> Any:
    answer = await ask(client, tool, start, end)
    assert answer["success"], answer
    return SPANS[tool][3](answer)


@pytest.mark.parametrize("tool", SPANS)
async def test_times_without_offset_and_dates_are_utc(tmp_path: Path, tool: str) -> None:
    async with in_tokyo(tmp_path) as client:
        wanted = await find(client, tool, "2024-05-01T00:00:00Z", "2024-05-01T12:00:01Z")
        for start in ("2024-05-01", "20240501", "2024-05-01T00:00", "2024-05-01 00:00:00", "2024-W18-3"):
            assert await find(client, tool, start, "2024-05-01T12:00:01") == wanted, start
        assert await find(client, tool, "2024-05-01T09:00:00+09:00", "2024-05-01T07:00:01-05:00") == wanted
        for no_time in ("yesterday", "2024-05-32", 1_714_521_600):
            answer = await ask(client, tool, no_time, "2024-05-02")  # type: ignore[arg-type]  # on purpose
            assert answer["code"] == "VALIDATION_ERROR", answer
    if tool in {"memory_search", "list_memories", "recall_by_timeframe"}:
        assert wanted == ["midnight", "noon"]


@pytest.mark.parametrize("tool", SPANS)
async def test_a_span_that_ends_before_it_begins_is_refused(tmp_path: Path, tool: str) -> None:
    (first, _), within, *_ = SPANS[tool]
    async with in_tokyo(tmp_path) as client:
        for start, end in (
            ("2024-05-02T00:00:00.000001Z", "2024-05-02"),
            ("2024-05-03", "2024-05-01T00:00:00"),
            ("2024-05-02T00:00:00-01:00", "2024-05-02T00:59:59Z"),
        ):
            end_of_day = tool in {"search_by_timerange", "recall_by_timeframe"}  # whose ends are included
            if end == "2024-05-02" and end_of_day:
                continue
            answer = await ask(client, tool, start, end)
            assert (answer["success"], answer["code"]) == (False, "VALIDATION_ERROR"), answer
            details = answer["details"]
            assert details["field"] == (first if within is None else f"{within}.{first}")
            assert answer["error"].startswith(f"{details['field']}: {details['start']} is later than")
            assert details["end"] in answer["error"]
            assert details["start"] > "2024-05-02"
        assert (await client.call("memory_stats"))["memories"] == 3


@pytest.mark.parametrize("tool", SPANS)
async def test_a_span_of_a_day_and_one_of_no_time_are_answered(tmp_path: Path, tool: str) -> None:
    async with in_tokyo(tmp_path) as client:
        day = await find(client, tool, "2024-05-01", "2024-05-01")
    assert (
        day
        == {
            "memory_search": [],  # the end is not included
            "list_memories": [],
            "forget_memory": 0,
            "export_memories": 0,
            "get_audit_log": 0,
            "recall_by_timeframe": ["midnight", "noon"],
            "search_by_timerange": ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"),
        }[tool]
    )


def test_no_tool_takes_a_span_that_is_not_tested_here() -> None:
    def has_span(request: type[msgspec.Struct]) -> bool:
        hints = [str(hint) for hint in get_type_hints(request, include_extras=True).values()]
        names = {name for spans in SPANS.values() for name in spans[0]}
        return bool(names & set(request.__struct_fields__)) or any("MemoryFilters" in hint for hint in hints)

    tools = {name for name, request in REQUESTS.items() if has_span(request)}
    older = {alias.name for alias in ALIASES if alias.takes is not None and has_span(alias.request)}
    assert tools | older == set(SPANS)


async def test_a_zone_that_a_search_names_is_that_of_its_dates_and_the_servers_that_of_its_words(
    tmp_path: Path,
) -> None:
    async with in_tokyo(tmp_path) as client:

        async def search(**times: str) -> tuple[list[str], Any]:
            found = await client.call("memory_search", include_debug=True, **times)
            return sorted(each["key"] for each in found["memories"]), found["debug"]["time_window"]

        midnight_on, window = await search(after="2024-05-01")
        assert (midnight_on, window["timezone"]) == (["midnight", "noon"], "UTC")
        in_berlin, window = await search(after="2024-05-01T02:00", timezone="Europe/Berlin")
        assert (in_berlin, window["timezone"]) == (["midnight", "noon"], "Europe/Berlin")
        assert (await search(after="2024-05-01T02:00"))[0] == ["noon"]
        words, window = await search(time_expr="on 1 May 2024")
        assert (words, window["after"]) == (["before midnight", "midnight", "noon"], "2024-04-30T15:00:00Z")
        both, window = await search(time_expr="on 1 May 2024", after="2024-05-01", before="2024-05-01T12:00")
        assert (both, window["timezone"]) == (["midnight"], "Asia/Tokyo")
        mixed = {"after": "2024-05-01T09:00", "before": "2024-05-01T00:30:00Z", "timezone": "Asia/Tokyo"}
        assert (await search(**mixed))[0] == ["midnight"], "which is first is seen where they are meant"


@pytest.mark.parametrize(
    ("words", "after", "before"),
    [
        ("2024-05-01", "2024-05-01", "2024-05-02"),
        ("20240501", "2024-05-01", "2024-05-02"),
        ("2024-W18-3", "2024-05-01", "2024-05-02"),
        ("on 2024-05-01", "2024-05-01", "2024-05-02"),
        ("since 2024-05-01", "2024-05-01", None),
        ("before 2024-05-01", None, "2024-05-01"),
        ("2024-04-30 to 2024-05-01", "2024-04-30", "2024-05-02"),
        ("between 2024-04-30 and 2024-05-01", "2024-04-30", "2024-05-02"),
        ("since 2024-05-01T00:00", "2024-05-01T00:00", None),
    ],
)
@pytest.mark.parametrize("zone", [{}, {"timezone": "Europe/Berlin"}, {"timezone": "America/New_York"}])
async def test_a_date_in_words_of_a_search_is_the_day_that_it_is_as_a_bound(
    tmp_path: Path, words: str, after: str | None, before: str | None, zone: dict[str, str]
) -> None:
    bounds = {name: day for name, day in (("after", after), ("before", before)) if day is not None}
    async with in_tokyo(tmp_path) as client:
        for tool in ("memory_search", "recall_memory"):
            zoned = zone if tool == "memory_search" else {}
            found = await client.call(tool, time_expr=words, **zoned)
            same = await client.call("memory_search", include_debug=True, **bounds, **zoned)
            keys = [sorted(each["key"] for each in answer["memories"]) for answer in (found, same)]
            assert keys[0] == keys[1]
        window = (await client.call("memory_search", include_debug=True, time_expr=words, **zone))["debug"]
        same = await client.call("memory_search", include_debug=True, **bounds, **zone)
        assert window["time_window"] == same["debug"]["time_window"] | {"time_expr": words}


async def test_a_word_beside_a_date_keeps_the_expression_in_the_servers_zone(tmp_path: Path) -> None:
    async with in_tokyo(tmp_path) as client:
        for words in ("2024-05-01 until yesterday", "morning of 2024-05-01", "in May 2024"):
            found = await client.call("memory_search", include_debug=True, time_expr=words)
            assert found["debug"]["time_window"]["timezone"] == "Asia/Tokyo", words


async def test_what_is_stored_and_imported_has_its_times_in_utc_too(tmp_path: Path) -> None:
    async with in_tokyo(tmp_path) as client:
        given = line("dated", created_at="2024-05-01", updated_at="2024-05-02T10:00", expires_at="2999-05-01")
        again = given | {"expires_at": "2999-05-02T00:00:00Z", "created_at": "2024-05-01T00:00:00Z"}
        assert (await client.call("import_memories", source=text(given)))["counts"] == {"created": 1}
        assert (await client.call("import_memories", source=text(again), on_conflict="version"))[
            "counts"
        ] == {"unchanged": 1}
        for key, expiry in (("a", "2999-05-01"), ("b", "2999-05-02T00:00:00"), ("c", "2999-05-02T00:00Z")):
            await client.call("store_memory", content="x", key=key, metadata={"expiry": expiry})
        memories = (await client.call("list_memories"))["memories"]
    times = {each["key"]: each for each in memories}
    assert (times["dated"]["created_at"], times["dated"]["updated_at"]) == (
        "2024-05-01T00:00:00Z",
        "2024-05-02T10:00:00Z",
    )
    assert {times[key]["expires_at"] for key in ("dated", "a", "b", "c")} == {"2999-05-02T00:00:00Z"}
