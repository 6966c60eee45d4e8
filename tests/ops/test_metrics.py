"""The request meter, the figures in Prometheus' formats, and the app that answers a scrape."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
import trio
import trio.testing
from harness import principal
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain

from greenroom.actors import Agent, SetMemory, open_greenroom
from greenroom.runtime import Distribution, RuntimeStatistics
from greenroom.transports.base.observability.access import AccessStatistics
from greenroom.transports.base.observability.meter import (
    BUCKET_BOUNDS,
    METHODS,
    OTHER,
    OUTCOMES,
    RequestMeter,
)
from greenroom.transports.base.observability.metrics import METRICS
from greenroom.transports.base.observability.prometheus import render
from greenroom.transports.base.observability.scrape import metrics_app
from greenroom.transports.base.observability.snapshot import ObservedServer, Snapshot

OPENMETRICS = "application/openmetrics-text; version=1.0.0, text/plain; version=0.0.4; q=0.5"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Transport(msgspec.Struct, frozen=True):
    """What a transport says of its clients."""

    connections: int
    accepted: int
    refused: int


def samples(text: str, *, openmetrics: bool = False) -> Samples:
    """Return every sample of an exposition, which must be well-formed and have none twice."""
    found: Samples = {}
    for family in (parse_openmetrics if openmetrics else parse_plain)(text):
        assert family.documentation, f"{family.name} has no help text"
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


async def scrape(app: Any, method: str = "GET", accept: str = "") -> tuple[int, dict[str, str], bytes]:
    """Ask an ASGI app as a server does; return the status, the headers and the body."""
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await trio.sleep_forever()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        messages.append(message)

    await app(
        {"type": "http", "method": method, "path": "/metrics", "headers": [(b"accept", accept.encode())]},
        receive,
        send,
    )
    start, body = messages
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, body["body"]


# -- the meter -----------------------------------------------------------------

NAMES = st.sampled_from(["get_memory", "add_message", "tools/call", "ping", "other", ""]) | st.text(
    max_size=5
)


@pytest.mark.promise("metrics.requests")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(METHODS)) | NAMES,
            st.none() | NAMES,
            st.sampled_from(OUTCOMES),
            st.sampled_from(BUCKET_BOUNDS) | st.floats(0, 1e6),
        )
    )
)
def test_every_request_is_counted_once_in_its_kind_and_its_class(
    noted: list[tuple[str, str | None, Any, float]],
) -> None:
    tools = {"get_memory", "add_message"}
    meter = RequestMeter(tools)
    expected: Counter[tuple[str, str, str, int]] = Counter()
    for method, tool, outcome, seconds in noted:
        meter.record(method, tool, outcome, seconds)
        expected[
            method if method in METHODS else OTHER,
            "" if tool is None else tool if tool in tools else OTHER,
            outcome,
            sum(bound < seconds for bound in BUCKET_BOUNDS),  # a bound itself belongs to its class
        ] += 1
    told: Counter[tuple[str, str, str, int]] = Counter()
    for row in meter.snapshot():
        for number, count in enumerate(row.buckets):
            told[row.method, row.tool, row.outcome, number] += count
    assert +told == expected
    assert sum(row.seconds for row in meter.snapshot()) == pytest.approx(sum(each[3] for each in noted))


@pytest.mark.quick
@pytest.mark.promise("metrics.bounded")
def test_a_client_that_invents_names_makes_no_new_figures() -> None:
    meter = RequestMeter(["get_memory"])
    for number in range(10_000):
        meter.record(f"method/{number}", f"tool_{number}", "error", 0.001)
        meter.record("tools/call", f"tool_{number}", "tool_error", 0.001)
    counts = {(row.method, row.tool): sum(row.buckets) for row in meter.snapshot() if sum(row.buckets)}
    assert counts == {(OTHER, OTHER): 10_000, ("tools/call", OTHER): 10_000}
    assert len(meter._rows) == len(OUTCOMES)


@pytest.mark.promise("metrics.requests")
def test_every_tool_has_its_figures_before_its_first_call() -> None:
    meter = RequestMeter(["set_memory", "get_memory"])
    assert [(row.method, row.tool, row.outcome) for row in meter.snapshot()] == [
        ("tools/call", tool, outcome) for tool in ("set_memory", "get_memory") for outcome in OUTCOMES
    ]
    text, _ = render(look(meter), "")
    found = samples(text.decode())
    call = ("method", "tools/call"), ("tool", "get_memory")
    assert found["greenroom_requests_total", tuple(sorted((*call, ("outcome", "cancelled"))))] == 0
    assert found["greenroom_request_seconds_count", call] == 0


def test_the_meter_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import greenroom.transports.base.observability.meter\n"
        "names = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(names - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['greenroom']\n"


# -- the formats ---------------------------------------------------------------


def part_of(field: Any) -> type[Any]:
    """Return the struct that a field holds, be it optional or not."""
    found: type[Any] = next((each for each in get_args(field) if each is not NoneType), field)
    return found


def numbered(kind: type[Any], numbers: Iterator[int]) -> Any:
    """Return statistics in which every number is another one."""
    values: dict[str, Any] = {}
    for name, field in get_type_hints(kind).items():
        if field is Distribution:
            counts = next(numbers), 0, next(numbers)
            values[name] = Distribution(
                bounds=(0.5, 2.0), counts=counts, sum=next(numbers), count=sum(counts)
            )
        elif isinstance(field, type) and issubclass(field, (int, float)):
            values[name] = next(numbers)
        elif field in (list[str], list[int]):
            values[name] = [f"kind/{number}" for number in range(next(numbers))]
        elif get_origin(field) is Literal:
            values[name] = get_args(field)[0]
        else:
            values[name] = numbered(part_of(field), numbers)
    return kind(**values)


def look(meter: RequestMeter | None = None, **connections: Transport) -> Snapshot:
    """Return a snapshot in which every number of the statistics is another one."""
    numbers = itertools.count(100)
    return Snapshot(
        RequestMeter([]).snapshot() if meter is None else meter.snapshot(),
        numbered(RuntimeStatistics, numbers),
        connections,
        numbered(AccessStatistics, numbers),
    )


@pytest.mark.promise("metrics.runtime")
def test_every_figure_has_a_name_and_a_source_of_its_own() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    read = [metric.read(look()) for metric in METRICS]
    assert len(set(map(str, read))) == len(read)


def test_the_names_are_those_that_dashboards_know() -> None:
    known = (Path(__file__).parent.parent / "data" / "metrics.txt").read_text().splitlines()
    assert sorted(f"{metric.kind} {metric.name}" for metric in METRICS) == known


@pytest.mark.promise("metrics.runtime")
def test_nothing_that_a_runtime_says_is_kept_back() -> None:
    untold = {
        "works",  # the sum of greenroom_commit_works
        "last_commit_seconds",  # greenroom_commit_seconds says it of all of them
        "max_commit_seconds",
        "damaged",  # which records: greenroom_store_damaged_records counts them
        "former_format",  # of a store that was converted: `doctor` and the first health check say it
        "owner_pid",  # changes at a takeover, which a scraper would take for another series
    }
    asked: set[str] = set()

    class Asked:
        """Notes which fields of a struct are read."""

        def __init__(self, value: Any) -> None:
            self._value = value

        def __getattr__(self, name: str) -> Any:
            value = getattr(self._value, name)
            if isinstance(value, (int, float, list, str, Distribution)):
                asked.add(name)
                return value
            return Asked(value)

    for metric in METRICS:
        metric.read(Asked(look()))  # type: ignore[arg-type]
    parts = [part_of(kind) for kind in get_type_hints(RuntimeStatistics).values() if kind is not int]
    said = {name for part in (*parts, AccessStatistics) for name in get_type_hints(part)} | {"rows_expired"}
    assert said - asked == untold


@pytest.mark.quick
@pytest.mark.promise("metrics.runtime", "metrics.requests")
@pytest.mark.parametrize("accept", ["", "text/plain; version=0.0.4", OPENMETRICS, "nonsense;;,\x00"])
def test_both_formats_say_the_same(accept: str) -> None:
    meter = RequestMeter(['say_"hello"\n'])
    meter.record("tools/call", 'say_"hello"\n', "ok", 0.0004)
    meter.record("tools/call", 'say_"hello"\n', "tool_error", 99.0)
    meter.record("ping", None, "ok", 0.00001)
    seen = look(meter, websocket=Transport(7, 8, 9))
    text, media_type = render(seen, accept)
    openmetrics = accept == OPENMETRICS
    assert media_type.startswith("application/openmetrics-text" if openmetrics else "text/plain")
    found = samples(text.decode(), openmetrics=openmetrics)

    call = ("method", "tools/call"), ("tool", 'say_"hello"\n')
    ok, failed = ("outcome", "ok"), ("outcome", "tool_error")
    assert found["greenroom_requests_total", tuple(sorted((*call, ok)))] == 1
    assert found["greenroom_requests_total", tuple(sorted((*call, failed)))] == 1
    assert found["greenroom_request_seconds_count", call] == 2
    assert found["greenroom_request_seconds_sum", call] == pytest.approx(99.0004)
    assert [found["greenroom_request_seconds_bucket", (("le", bound), *call)] for bound in
            ("0.00025", "0.0005", "30.0", "+Inf")] == [0, 1, 1, 2]  # fmt: skip
    web = (("transport", "websocket"),)
    assert found["greenroom_connections", web] == 7
    assert found["greenroom_connections_accepted_total", web] == 8
    assert found["greenroom_connections_refused_total", web] == 9
    for metric in METRICS:
        said = metric.read(seen)
        if metric.kind == "histogram":
            assert found[f"{metric.name}_bucket", (("le", "0.5"),)] == said.counts[0]
            assert found[f"{metric.name}_count", ()] == said.count
            assert found[f"{metric.name}_sum", ()] == said.sum
        else:
            assert found[metric.name + ("_total" if metric.kind == "counter" else ""), ()] == said
    if sys.platform == "linux":
        assert found["process_resident_memory_bytes", ()] > 1_000_000


def test_units_and_suffixes_follow_the_conventions() -> None:
    for each in METRICS:
        assert not each.name.endswith(("_total", "_count", "_sum", "_bucket"))
        assert re.fullmatch(r"greenroom_[a-z_]+", each.name)
        assert not re.search(r"_(ms|kb|mb|milliseconds)(_|$)", each.name)
        assert each.help.endswith(".")
        assert "\n" not in each.help


def test_a_server_that_nobody_scrapes_or_traces_imports_neither_library() -> None:
    code = (
        "import sys\n"
        "import greenroom.transports.ops.cli.commands.serve, greenroom.transports.sockets.http.server\n"
        "print({'prometheus_client', 'opentelemetry', 'mcp_types', 'pydantic_core'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# -- the scrape ----------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.promise("metrics.scrape")
async def test_a_scrape_tells_what_the_server_has_done(folder: Path) -> None:
    async with open_greenroom(folder) as runtime:
        meter = RequestMeter(["set_memory"])
        watched = ObservedServer(meter, runtime)
        watched.add_transport("stdio", lambda: Transport(1, 1, 0))
        app = metrics_app(watched)
        _, _, before = await scrape(app)
        agent = Agent(runtime, principal("ada"))
        await agent.ask(SetMemory(key="colour", value=msgspec.Raw(b'"green"')))
        meter.record("tools/call", "set_memory", "ok", 0.002)
        status, headers, after = await scrape(app, accept=OPENMETRICS)
    assert status == 200
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert headers["content-length"] == str(len(after))
    assert headers["cache-control"] == "no-store"
    earlier, later = samples(before.decode()), samples(after.decode(), openmetrics=True)
    grown = {key: value - earlier.get(key, 0) for key, value in later.items()}
    for name in ("messages_handled_total", "commits_total", "commit_seconds_count", "fsync_seconds_count"):
        assert grown[f"greenroom_{name}", ()] == 1, name
    assert grown["greenroom_actor_activations_total", ()] == 1
    assert later["greenroom_actors_resident", ()] == 1
    assert later["greenroom_mailbox_messages", ()] == 0
    call = ("method", "tools/call"), ("outcome", "ok"), ("tool", "set_memory")
    assert grown["greenroom_requests_total", call] == 1
    assert later["greenroom_connections", (("transport", "stdio"),)] == 1


async def test_head_has_the_headers_of_get_and_no_body(folder: Path) -> None:
    async with open_greenroom(folder) as runtime:
        app = metrics_app(ObservedServer(RequestMeter([]), runtime))
        status, headers, body = await scrape(app, "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 1000


@pytest.mark.parametrize("method", ["POST", "DELETE", "get", "OPTIONS"])
async def test_nothing_but_reading_is_allowed(folder: Path, method: str) -> None:
    async with open_greenroom(folder) as runtime:
        status, headers, _ = await scrape(metrics_app(ObservedServer(RequestMeter([]), runtime)), method)
    assert status == 405
    assert headers["allow"] == "GET, HEAD"


async def test_a_store_that_is_closed_is_said_to_be_away(folder: Path) -> None:
    async with open_greenroom(folder) as runtime:
        app = metrics_app(ObservedServer(RequestMeter([]), runtime))
    status, headers, body = await scrape(app)
    assert status == 503
    assert headers["content-type"].startswith("text/plain")
    assert b"closed" in body


@pytest.mark.promise("metrics.scrape")
async def test_impatient_scrapers_take_one_thread_and_get_their_answers(folder: Path) -> None:
    async with open_greenroom(folder) as runtime:
        app = metrics_app(ObservedServer(RequestMeter([]), runtime))
        statuses: list[int] = []

        async def impatient() -> None:
            statuses.append((await scrape(app))[0])

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(impatient)
            await trio.testing.wait_all_tasks_blocked()
            limiter = trio.to_thread.current_default_thread_limiter()
            assert limiter.borrowed_tokens == 0
    assert statuses == [200] * 50
