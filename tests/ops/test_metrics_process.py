"""`/metrics` and spans of `greenroom serve` as its operators get them: over sockets, from a process."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.commands import Server, run_on_store, serving

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def address(server: Server, scheme: str = "http") -> tuple[str, int]:
    """Return where a server listens, which it says on standard error before it serves."""
    found = re.search(rf"listening on {scheme}s?://([\d.]+):(\d+)/", server.errors.read_text())
    assert found is not None
    return found[1], int(found[2])


def get(server: Server, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*address(server))
    connection.request(
        "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["content-type"], body


def scrape(server: Server) -> Samples:
    status, media_type, text = get(server)
    assert (status, media_type.partition(";")[0]) == (200, "text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.promise("metrics.scrape", "metrics.requests")
def test_a_server_tells_what_became_of_its_requests(tmp_path: Path) -> None:
    with serving(tmp_path, "--stdio", "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0") as server:
        before = scrape(server)
        for number in range(3):
            server.call("set_memory", key="k", value=number)
        server.send_call("get_memory", key=7)
        assert server.receive()["result"]["isError"]
        server.send_call("no_such_tool")
        assert "error" in server.receive()
        server.send("no/such/method", {})
        assert "error" in server.receive()
        after = scrape(server)
        figures = json.loads(run_on_store(tmp_path, "stats", "--json").stdout)
        text = run_on_store(tmp_path, "stats").stdout

    def grown(name: str, **labels: str) -> float:
        key = name, tuple(sorted(labels.items()))
        return after.get(key, 0) - before.get(key, 0)

    call = {"method": "tools/call"}
    assert grown("greenroom_requests_total", **call, tool="set_memory", outcome="ok") == 3
    assert grown("greenroom_requests_total", **call, tool="get_memory", outcome="tool_error") == 1
    assert grown("greenroom_requests_total", **call, tool="other", outcome="error") == 1
    assert grown("greenroom_requests_total", method="other", tool="", outcome="error") == 1
    assert grown("greenroom_request_seconds_count", **call, tool="set_memory") == 3
    assert grown("greenroom_request_seconds_bucket", **call, tool="set_memory", le="+Inf") == 3
    assert grown("greenroom_fsync_seconds_count") == 3
    assert after["greenroom_requests_total", (("method", "initialize"), ("outcome", "ok"), ("tool", ""))] == 1
    assert after["greenroom_connections", (("transport", "http"),)] == 1
    assert grown("greenroom_connections_accepted_total", transport="http") == 1
    assert after["greenroom_connections", (("transport", "websocket"),)] == 0
    assert after["greenroom_sessions", (("transport", "http"),)] == 0
    # The command `stats` tells the sums of the same.
    assert figures["requests"] == {"ok": 4, "tool_error": 1, "error": 2, "cancelled": 0}
    assert figures["websocket"] == {"connections": 0, "accepted": 0, "refused": 0}
    assert figures["http"]["accepted"] == 2
    assert re.search(r"^http\n(  .*\n)*  accepted +2$", text, re.MULTILINE)


@pytest.mark.quick
@pytest.mark.promise("metrics.admission")
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_figures_are_for_this_machine_only(tmp_path: Path, headers: dict[str, str]) -> None:
    with serving(tmp_path, "--stdio", "--http", "127.0.0.1:0") as server:
        status, _media_type, body = get(server, **headers)
    assert 400 <= status < 500
    assert "greenroom_" not in body


@pytest.mark.quick
@pytest.mark.promise("tracing.export")
def test_spans_of_a_server_do_not_touch_what_it_says_to_its_client(tmp_path: Path) -> None:
    with serving(tmp_path, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="lobby") as server:
        server.call("set_memory", key="k", value=1)
        server.send("prompts/get", {"name": "nonsense"})
        assert server.receive()["error"]["code"] == -32602
        assert server.end() == 0
        text = server.errors.read_text()
    spans = [span for span in decoded(text) if "name" in span]
    assert [span["name"] for span in spans] == [
        "initialize",
        "notifications/initialized",
        "tools/call set_memory",
        "prompts/get nonsense",
    ]
    assert {span["resource"]["attributes"]["service.name"] for span in spans} == {"lobby"}
    assert [span["status"]["status_code"] for span in spans] == ["UNSET"] * 3 + ["ERROR"]


def decoded(text: str) -> list[dict[str, Any]]:
    """Return the objects that stand in a text, one after another."""
    decoder, found, position = json.JSONDecoder(), [], text.find("{")
    while position >= 0:
        value, end = decoder.raw_decode(text, position)
        found.append(value)
        position = text.find("{", end)
    return found
