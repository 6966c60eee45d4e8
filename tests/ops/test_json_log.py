"""`--log-format json`: a line for each request of every transport, and nothing of what requests say."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import trio
from support.commands import INITIALIZE, run, sentence, serving
from support.endpoints import endpoint
from trio_websocket import open_websocket_url

if TYPE_CHECKING:
    from pathlib import Path

    from support.endpoints import Answer, Endpoint

pytestmark = pytest.mark.promise("log.json")

SECRET = "quagga-sesame"  # noqa: S105  what must not be logged
KEY = "gr_" + "k" * 43
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def lines_of(errors: Path) -> list[dict[str, Any]]:
    """Return what a server logged; every line is an object with a time and a level."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in errors.read_text().splitlines()]
    for line in lines:
        assert datetime.fromisoformat(line["time"]).tzinfo == UTC
        assert line["time"].endswith("Z")
        assert line["level"] in {"debug", "info", "warning", "error", "critical"}
    return lines


def requests_in(errors: Path) -> list[tuple[str, str | None, str]]:
    found = [line for line in lines_of(errors) if line["event"] == "request"]
    for line in found:
        assert {*line} >= {"time", "trace_id", "method", "tool", "agent", "ms", "outcome"}
        assert re.fullmatch("[0-9a-f]{32}", line["trace_id"])
        assert line["ms"] >= 0
    return [(line["method"], line["tool"], line["outcome"]) for line in found]


def post(url: str, body: bytes, **headers: str) -> int:
    """Return the status of the answer to a POST."""
    place = urlsplit(url)
    assert place.hostname is not None
    with contextlib.closing(http.client.HTTPConnection(place.hostname, place.port)) as connection:
        connection.request("POST", place.path, body, {**JSON, **headers})
        with connection.getresponse() as response:
            response.read()
            return response.status


def message(method: str, number: int = 1, /, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def test_each_request_of_standard_input_has_its_line_and_none_of_its_contents(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-format", "json", "--embedder", "none") as server:
        meta = {"traceparent": PARENT, "note": SECRET}
        call = {"name": "store_memory", "arguments": {"content": SECRET, "tags": [KEY]}, "_meta": meta}
        for method, params in (
            ("tools/call", call),
            ("tools/call", {"name": "get_memory", "arguments": {"key": SECRET}}),
            ("tools/call", {"name": "add_message", "arguments": {SECRET: SECRET, "content": 5}}),
            ("tools/call", {"name": SECRET, "arguments": {"content": SECRET}}),
            ("tools/call", {"name": "compress_text", "arguments": {"text": SECRET}}),
            ("resources/read", {"uri": f"session://{SECRET}"}),
            ("prompts/get", {"name": SECRET, "arguments": {SECRET: SECRET}}),
            ("prompts/list", {}),
            (SECRET, {SECRET: SECRET}),
        ):
            server.send(method, params)
            server.receive()
        server.input.write(f'{{"{SECRET}": \n'.encode())
        server.input.flush()
        server.receive()
        assert server.end() == 0
    text = server.errors.read_text()
    assert SECRET not in text
    assert "gr_" not in text
    assert requests_in(server.errors) == [
        ("initialize", None, "ok"),
        ("tools/call", "store_memory", "ok"),
        ("tools/call", "get_memory", "tool_error"),
        ("tools/call", "add_message", "tool_error"),
        ("tools/call", "other", "error"),
        ("tools/call", "compress_text", "ok"),
        ("resources/read", None, "error"),
        ("prompts/get", None, "error"),
        ("prompts/list", None, "ok"),
        ("other", None, "error"),
        ("unread", None, "error"),
    ]
    found = [line for line in lines_of(server.errors) if line["event"] == "request"]
    assert {line["agent"] for line in found} == {"tester"}
    traces = [line["trace_id"] for line in found]
    assert traces[1] == TRACE
    assert len({*traces}) == len(traces)


@pytest.mark.quick
def test_a_request_that_is_withdrawn_has_its_line(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-format", "json", "--embedder", "none") as server:
        call = message("tools/call", 77, name="store_memory", arguments={"content": SECRET})
        cancelled = {"requestId": 77, "reason": SECRET}
        asked = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
        server.input.write(call + b"\n" + json.dumps(asked).encode() + b"\n")
        server.call("compress_text", text="after it")
        assert server.end() == 0
    assert SECRET not in server.errors.read_text()
    assert ("tools/call", "store_memory", "cancelled") in requests_in(server.errors)


async def over_websocket(url: str) -> None:
    async with open_websocket_url(url, subprotocols=["mcp"]) as socket:
        for method, params in (
            ("initialize", INITIALIZE),
            ("tools/call", {"name": "set_memory", "arguments": {"key": SECRET, "value": SECRET}}),
        ):
            await socket.send_message(message(method, **params).decode())
            await socket.get_message()
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    refused = f"GET /{SECRET} HTTP/1.1\r\nHost: {place.netloc}\r\nX-Secret: {SECRET}\r\n\r\n"
    async with await trio.open_tcp_stream(place.hostname, place.port) as stream:
        await stream.send_all(refused.encode())
        while await stream.receive_some():
            pass


def test_every_transport_has_its_lines_and_refusals_too(tmp_path: Path) -> None:
    options = ("--log-format", "json", "--embedder", "none", "--http", "127.0.0.1:0", "--ws", "127.0.0.1:0")
    with serving(tmp_path, *options, "--stdio") as server:
        listening = [line for line in lines_of(server.errors) if line["event"] == "listening"]
        urls = {line["url"][:2]: line["url"] for line in listening}
        mcp = urls["ht"]
        handshake = {"MCP-Protocol-Version": "2025-06-18"}
        call = {"name": "store_memory", "arguments": {"content": SECRET}}
        assert post(mcp, message("initialize", **INITIALIZE), traceparent=PARENT, **handshake) == 200
        assert post(mcp, message("tools/call", **call), **handshake, **{"Mcp-Session-Id": SECRET}) == 404
        assert post(mcp, SECRET.encode(), **handshake) == 400
        assert post(f"{mcp}/{SECRET}", b"{}") == 404
        assert post(mcp.replace("/mcp", "/api/v1/memories"), b"{}", Authorization=f"Bearer {KEY}") == 401
        assert post(mcp, b"{}", Host=f"{SECRET}.example.org") == 421
        trio.run(over_websocket, urls["ws"])
    assert SECRET not in server.errors.read_text()
    assert KEY not in server.errors.read_text()
    found = requests_in(server.errors)
    assert [each for each in found if each[0] != "http"][1:] == [
        ("initialize", None, "ok"),
        ("initialize", None, "ok"),
        ("tools/call", "set_memory", "ok"),
        ("websocket", None, "refused"),
    ]
    refused = [line for line in lines_of(server.errors) if line["event"] == "request" and "status" in line]
    assert [line["status"] for line in refused if line["method"] == "http"] == [404, 400, 404, 401, 421]
    assert next(line for line in lines_of(server.errors) if line.get("trace_id") == TRACE)


def test_what_keeps_a_server_from_starting_is_json_too(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-format", "json", "--http", "127.0.0.1:0", "--stdio") as server:
        url = next(line["url"] for line in lines_of(server.errors) if line["event"] == "listening")
        port = re.search(r":(\d+)/", url)
        assert port is not None
        done = run(tmp_path, "serve", "--log-format", "json", "--http", f"127.0.0.1:{port[1]}")
    assert done.returncode != 0
    [line] = [json.loads(line) for line in done.stderr.splitlines()]
    assert line["level"] == "error"
    assert port[1] in line["message"]


def quoting(_endpoint: Endpoint, body: dict[str, Any]) -> Answer | None:
    """Refuse a secret text, and quote it."""
    said = str(body["input"])
    return (400, {}, f"too long: {said}".encode()) if SECRET in said else None


@pytest.mark.parametrize("form", ["json", "text"])
async def test_at_the_debug_level_too_nothing_is_logged_of_contents_and_made_up_names(
    tmp_path: Path, form: str
) -> None:
    def speak(place: str) -> Path:
        options = (
            "--log-format",
            form,
            "--log-level",
            "debug",
            "--http",
            "127.0.0.1:0",
            "--ws",
            "127.0.0.1:0",
        )
        embedder = ("--embedder", place, "--embedder-model", "mini")
        with serving(tmp_path, *options, *embedder, "--stdio") as server:
            urls = re.findall(r"(?:http|ws)://127[^\s\"]+", server.errors.read_text())
            [mcp] = [url for url in urls if url.startswith("http") and url.endswith("/mcp")]
            [socket] = [url for url in urls if url.startswith("ws")]
            server.call("store_memory", content=SECRET)
            notified = {"jsonrpc": "2.0", "method": f"notifications/{SECRET}", "params": {SECRET: SECRET}}
            server.input.write(json.dumps(notified).encode() + b"\n")
            server.call("memory_search", query=SECRET)
            for url in (f"{mcp}/{SECRET}", f"{mcp}?as={SECRET}&as={SECRET}", mcp):
                post(url, SECRET.encode(), Origin=f"https://{SECRET}.example.org")
                post(url, SECRET.encode(), **{"Mcp-Session-Id": SECRET})
            trio.run(over_websocket, socket)
            while "found by its words only" not in server.errors.read_text():
                server.call("compress_text", text="meanwhile")
            return server.errors

    async with endpoint() as served:
        served.behaviour = quoting
        errors = await trio.to_thread.run_sync(speak, served.url)
    assert any(SECRET in text for texts in served.asked for text in texts)
    assert [line for line in errors.read_text().splitlines() if SECRET in line] == []


def test_without_it_the_log_is_as_it_was(tmp_path: Path) -> None:
    with serving(tmp_path, "--embedder", "none") as server:
        server.call("store_memory", content=SECRET)
    assert server.errors.read_text() == ""
    assert "text or json is allowed" in sentence(run(tmp_path, "serve", "--log-format", "xml"))
