"""Our spans beside the SDK's: the same messages to both, and what either tells a collector."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from harness import principal
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import use_span
from support import agents
from support.differential import SDK_SERVER, Holding
from support.differential_reference import reference
from support.differential_tools import TOOLS_AND_HOLD
from trio.testing import (
    MockClock,
    active_thread_count,
    wait_all_tasks_blocked,
    wait_all_threads_completed,
)

from greenroom.actors import Agent
from greenroom.testing import VirtualClock, mcp_client
from greenroom.transports import Tracer

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1,b=2"}

NOTHING = {"name": "a", "value": ""}

Line = dict[str, Any]
Told = list[tuple[Any, ...]]


class Wait(float):
    """Seconds that pass."""


def request(method: str, params: Any = None, *, id: Any = 1, **meta: Any) -> Line:
    line = {"jsonrpc": "2.0", "id": id, "method": method}
    if meta:
        params = {**(params or {}), "_meta": meta}
    return line if params is None else {**line, "params": params}


def call(name: Any, arguments: Any = None, *, id: Any = 1, **meta: Any) -> Line:
    return request("tools/call", {"name": name, "arguments": arguments or {}}, id=id, **meta)


def notify(method: str, params: Any = None) -> Line:
    line = {"jsonrpc": "2.0", "method": f"notifications/{method}"}
    return line if params is None else {**line, "params": params}


def initialize(version: str = "2025-11-25", **meta: Any) -> Line:
    info = {"name": "tester", "version": "1"}
    said = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
    return request("initialize", said, id="hello", **meta)


ASKED: list[Line | Wait] = [
    request("ping"),
    request("ping", **PARENT),
    request("tools/list", id="a"),
    request("tools/list", id="2"),
    request("tools/list", {"cursor": "x"}, id=-(10**18)),
    request("resources/list"),
    request("resources/templates/list"),
    request("server/discover"),
    request("completion/complete", {"ref": {"type": "ref/resource", "uri": "x"}, "argument": NOTHING}),
    call("set_memory", {"key": "k", "value": 1}, id=7, **PARENT),
    call("get_memory", {"key": "k"}),
    call("get_memory", {"key": "gone"}),
    call("get_memory", {"key": 7}),
    call("get_memory", {"key": "k", "colour": "green"}),
    call("list_sessions"),
    call("get_memori", {"key": "k"}),
    call("x" * 3000),
    call(""),
    call("naïve \n\0 😀", **PARENT),
    call(7),
    call(None, **PARENT),
    call({"a": 1}),
    request("tools/call"),
    request("tools/call", {}),
    request("tools/call", {"name": "get_memory", "arguments": {"key": "k"}, "odd": 1}, **PARENT),
    call("get_memory", {"key": "k"}, progressToken=1, **PARENT),
    request("resources/read", {"uri": "agent://tester/memory"}, **PARENT),
    request("resources/read", {"uri": "session://gone"}),
    request("resources/read", {"uri": 7}),
    request("resources/read", {"uri": "agent://tester/memory", "name": "who"}),
    request("resources/subscribe", {"uri": "agent://tester/memory"}),
    request("resources/unsubscribe", {"uri": "agent://tester/memory"}),
    request("resources/unsubscribe"),
    request("prompts/get", {"name": "greet"}),
    request("prompts/get", {"name": 7}),
    request("prompts/list"),
    request("logging/setLevel", {"level": "info"}),
    request("no/such", {"name": "thing"}, **PARENT),
    request("tasks/list", {"name": ""}),
    request("initialize", {"name": "who"}),
    notify("progress", {"progressToken": 1, "progress": 1}),
    notify("unheard-of", {"name": "who", "_meta": PARENT}),
    notify("roots/list_changed"),
    notify("cancelled", {"requestId": 99}),
    notify("cancelled"),
    call("hold", id="held", **PARENT),
    notify("cancelled", {"requestId": "held", "_meta": PARENT}),
    call("hold", id="late", **{"greenroom/deadline_ms": 50}),
    Wait(0.06),
    request("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["session://s"]}}, id=3),
    notify("cancelled", {"requestId": 3}),
]  # fmt: skip
"""What a client asks, one after another."""

NO_TIME = call("get_memory", {"key": "k"}, **{"greenroom/deadline_ms": -1})


class Collector:
    """Takes the spans of one side."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def take(self) -> list[ReadableSpan]:
        spans = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return spans


def told(span: ReadableSpan) -> tuple[Any, ...]:
    """Return everything that a span says but its times, its own ids and who made it."""
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time <= span.end_time
    parent = span.parent and (span.parent.trace_id, span.parent.span_id, span.parent.is_remote)
    state = span.context and dict(span.context.trace_state)
    return (
        span.name,
        span.kind,
        dict(span.attributes or {}),
        span.status.status_code,
        span.status.description,
        parent,
        state,
        [event.name for event in span.events],
        list(span.links),
    )


async def rest() -> None:
    while True:
        await wait_all_tasks_blocked()
        if active_thread_count() == 0:
            return
        await wait_all_threads_completed()


async def tell(send: Callable[[bytes], Awaitable[None]], lines: list[Line | Wait], collector: Collector,
               clock: MockClock) -> list[Told]:  # fmt: skip
    """Send line by line; return the spans that ended after each."""
    spans: list[Told] = []
    for line in lines:
        clock.jump(line if isinstance(line, Wait) else 0.001)
        if not isinstance(line, Wait):
            await send(json.dumps(line).encode() + b"\n")
        await rest()
        spans.append(sorted(map(told, collector.take()), key=repr))
    return spans


@contextmanager
def spans_of_the_sdk(collector: Collector) -> Iterator[None]:
    """Have the SDK's own module hand its spans to this collector."""
    with pytest.MonkeyPatch.context() as patched:
        tracer = collector.provider.get_tracer("mcp-python-sdk")
        patched.setattr("mcp.shared._otel._tracer", tracer)
        yield


async def both(folder: Path, clock: MockClock, lines: list[Line | Wait]) -> tuple[list[Told], list[Told]]:
    """Return what our server's spans tell after each line, and the SDK's."""
    return await ours(folder / "ours", clock, lines), await theirs(folder / "theirs", clock, lines)


async def ours(folder: Path, clock: MockClock, lines: list[Line | Wait]) -> list[Told]:
    collector, stray = Collector(), Collector()
    async with AsyncExitStack() as stack:
        stack.enter_context(spans_of_the_sdk(stray))
        tracer = Tracer(collector.provider.get_tracer("greenroom"))
        agent_for = await _agent_for(stack, folder)
        client = await stack.enter_async_context(mcp_client(agent_for, TOOLS_AND_HOLD, tracer=tracer))
        spans = await tell(client.send_bytes, lines, collector, clock)
    assert stray.take() == [], "the SDK's middleware made spans besides"
    return spans


async def theirs(folder: Path, clock: MockClock, lines: list[Line | Wait]) -> list[Told]:
    collector = Collector()
    async with AsyncExitStack() as stack:
        stack.enter_context(spans_of_the_sdk(collector))
        client = await stack.enter_async_context(reference(SDK_SERVER, await _agent_for(stack, folder)))
        return await tell(client.send, lines, collector, clock)


async def _agent_for(stack: AsyncExitStack, folder: Path) -> Callable[[str], Any]:
    house = await stack.enter_async_context(agents.house(folder, VirtualClock()))
    return lambda name: Holding(Agent(house.runtime, principal(name)))


def as_the_sdk_says(told: Any) -> str:
    """Return what was told; what must come before a handshake we name, and the SDK does not."""
    return re.sub(
        r"send initialize first: [a-z/]+ is not answered before it", "Invalid request parameters", str(told)
    )


def compare(lines: list[Line | Wait], folder: Path, *, the_sdk_fails: bool = False) -> None:
    """Compare what both tell after each line; where the SDK fails, we must make one span all the same."""
    clock = MockClock()
    our, their = trio.run(both, folder, clock, lines, clock=clock)
    different = [
        f"{json.dumps(line)[:300]}\n  ours  {one}\n  sdk's {other}"
        for line, one, other in zip(lines, our, their, strict=True)
        if as_the_sdk_says(one) != str(other) and not (the_sdk_fails and other == [] and len(one) == 1)
    ]
    assert not different, "\n".join(different)


@pytest.mark.slow
@pytest.mark.promise("tracing.spans")
@pytest.mark.parametrize("version", ["2025-11-25", "2024-11-05", "1999-01-01"])
def test_spans_of_the_handshake_era_are_the_sdks(tmp_path: Path, version: str) -> None:
    compare([initialize(version, **PARENT), notify("initialized"), *ASKED, NO_TIME], tmp_path)


@pytest.mark.promise("tracing.spans")
def test_spans_of_the_later_era_are_the_sdks(tmp_path: Path) -> None:
    def modern(line: Line | Wait) -> Line | Wait:
        if isinstance(line, Wait) or "id" not in line:
            return line
        params = line.get("params") or {}
        return {**line, "params": {**params, "_meta": {**MODERN, **params.get("_meta", {})}}}

    opening = modern(request("server/discover"))
    compare([opening, *map(modern, [*ASKED, NO_TIME]), request("ping"), *ASKED], tmp_path)


@pytest.mark.promise("tracing.spans")
def test_spans_before_and_without_a_handshake_are_the_sdks(tmp_path: Path) -> None:
    modern = request("tools/list", **MODERN)
    lines = [request("ping"), *ASKED, modern, initialize("odd", **PARENT), notify("initialized"), modern]
    compare([*lines, initialize()], tmp_path)


TRACE = st.text("0123456789abcdef", min_size=32, max_size=32)
SPAN = st.text("0123456789abcdef", min_size=16, max_size=16)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
VERSIONS, FLAGS = st.sampled_from(["00", "ff", "01", "0"]), st.sampled_from(["00", "01", "ff", "x"])
PARENTS = st.builds("{}-{}-{}-{}".format, VERSIONS, TRACE, SPAN, FLAGS)
STATES = st.sampled_from(
    ["a=1,b=2", "a=1,a=2", "=", "a" * 600 + "=1", ",".join(f"k{n}=1" for n in range(40))]
)
BAGGAGE = st.sampled_from(["key=a%20b;p=1", "key", "=", "k=" + "x" * 9000]) | st.text()
METAS = st.fixed_dictionaries(
    {},
    optional={
        "traceparent": PARENTS | ODD,
        "tracestate": STATES | ODD,
        "baggage": BAGGAGE | ODD,
        "Traceparent": PARENTS,
    },
)


@pytest.mark.slow
@pytest.mark.promise("tracing.spans")
@given(st.lists(METAS, max_size=8))
def test_whatever_a_client_says_of_its_trace_is_taken_as_the_sdk_takes_it(
    metas: list[dict[str, Any]],
) -> None:
    lines = [request("ping", {"_meta": meta}) for meta in metas]
    with tempfile.TemporaryDirectory() as folder:
        # Its propagators stumble over lists of what is no text, and its server over that.
        compare([initialize(), notify("initialized"), *lines], Path(folder), the_sdk_fails=True)


# -- what the SDK cannot show --------------------------------------------------


def spans(begin: Callable[[Tracer], object]) -> list[ReadableSpan]:
    collector = Collector()
    begin(Tracer(collector.provider.get_tracer("greenroom", "1")))
    return collector.take()


def test_a_span_without_a_client_s_is_a_child_of_the_current_one() -> None:
    collector = Collector()
    current = collector.provider.get_tracer("http").start_span("POST /mcp")
    tracer = Tracer(collector.provider.get_tracer("greenroom"))
    metas: list[Any] = [None, {}, {"traceparent": "none"}, 7, PARENT]
    with use_span(current):
        inside = [tracer.begin("ping", "2025-11-25", {"_meta": meta}) for meta in metas]
    for span in inside:
        span.end("ok")
    parents = [span.parent and span.parent.span_id for span in collector.take()]
    assert parents == [current.get_span_context().span_id] * 4 + [0xB7AD6B7169203331]


def test_a_propagator_that_fails_in_its_own_way_costs_the_parent_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Failing(TextMapPropagator):
        """Fails at what it is given, as one does that takes its word for well-formed."""

        def extract(self, carrier: Any, *_more: Any, **_options: Any) -> Any:
            return carrier["uber-trace-id"][99]

        def inject(self, *_more: Any, **_options: Any) -> None:
            raise AssertionError

        @property
        def fields(self) -> set[str]:
            return set()

    monkeypatch.setattr("opentelemetry.propagate.propagator", Failing())
    params = {"_meta": {"uber-trace-id": "short"}}
    (span,) = spans(lambda tracer: tracer.begin("ping", "2025-11-25", params).end("ok"))
    assert span.parent is None


def test_a_span_covers_the_time_from_the_arrival_and_says_who_made_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_000)
    collector = Collector()
    span = Tracer(collector.provider.get_tracer("greenroom", "1")).begin("ping", "2025-11-25", None)
    span.end("ok")
    (ended,) = collector.take()
    assert ended.start_time == 1_000
    assert ended.instrumentation_scope is not None
    assert ended.instrumentation_scope.name == "greenroom"


def test_a_span_that_is_not_ended_leaves_no_trace() -> None:
    assert spans(lambda tracer: tracer.begin("ping", "2025-11-25", None).fail(-32600, "no")) == []
