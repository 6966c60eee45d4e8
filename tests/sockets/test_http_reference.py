"""The application beside the SDK's, both as plain ASGI: the same requests get the same statuses and codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import trio
from harness import PATIENCE
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from support.desk import NOTES, Desk

from greenroom.testing import MODERN_META
from greenroom.transports import HttpApp, HttpOptions, Limits, McpServer

HOST, ORIGIN = "localhost:8080", "http://localhost:3000"
LIMIT = 5_000
Application = Callable[..., Any]
Headers = Mapping[str, str | None]


class Reply(NamedTuple):
    """What is compared of an answer."""

    status: int
    code: int | None


class Called(NamedTuple):
    """What became of one request."""

    status: int
    headers: dict[str, str]
    body: bytes

    def reply(self) -> Reply:
        """Return what is compared."""
        text = self.body.decode()
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
            text = lines[-1] if lines else ""
        try:
            message = json.loads(text)
        except ValueError:
            return Reply(self.status, None)
        return Reply(self.status, message.get("error", {}).get("code"))


async def call(app: Application, method: str, headers: Headers, content: bytes) -> Called:
    """Send one request to an ASGI application, and hang up once it has begun to answer with a stream."""
    lines = [(name.encode(), value.encode()) for name, value in headers.items() if value is not None]
    scope = {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "query_string": b"",
        "headers": [*lines, (b"content-length", str(len(content)).encode())],
    }
    requests = [{"type": "http.request", "body": content, "more_body": False}]
    gone = trio.Event()
    started: list[Any] = []
    parts: list[bytes] = []

    async def receive() -> Any:
        if requests:
            return requests.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            started.append(message)
            if method == "GET":
                gone.set()
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    (start,) = started
    told = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Called(start["status"], told, b"".join(parts))


def reference() -> StreamableHTTPSessionManager:
    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=json.dumps(params.arguments))])

    async def list_tools(_context: Any, _params: PaginatedRequestParams) -> ListToolsResult:
        return ListToolsResult(tools=[])

    server: Server[Any] = Server("reference")
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    security = TransportSecuritySettings(allowed_hosts=[HOST], allowed_origins=[ORIGIN])
    return StreamableHTTPSessionManager(server, security_settings=security, max_request_body_size=LIMIT)


def ours(desk: Desk) -> tuple[McpServer, HttpApp]:
    server = McpServer(NOTES, desk.open)
    return server, HttpApp(
        server, lambda _caller, name: desk.open(name), HttpOptions(limits=Limits(max_message_bytes=LIMIT))
    )


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


INFO = {"name": "tester", "version": "1"}
BODIES: dict[str, Any] = {
    "ping": message("ping"),
    "list": message("tools/list"),
    "call": message("tools/call", name="echo", arguments={"text": "a"}),
    "unknown method": message("no/such"),
    "initialize": message("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=INFO),
    "notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "response": {"jsonrpc": "2.0", "id": 9, "result": {}},
    "nothing": b"",
    "no JSON": b"{",
    "too long": b" " * (LIMIT + 1),
}
HANDSHAKE = {None, "2025-11-25", "2025-03-26"}
"""The versions that a header may name, or no header at all, for a request to be of the handshake era."""

MEDIA = "application/json, text/event-stream"

requests = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT", "HEAD", "OPTIONS"]),
        "body": st.sampled_from([*BODIES]),
        "version": st.sampled_from(
            [None, "2025-11-25", "2025-03-26", "2026-07-28", "2026-07-28", "2027-01-01", "x"]
        ),
        "session": st.sampled_from(["own", "own", None, "unknown"]),
        "routed": st.sampled_from(["tools/call", "tools/list", "no/such", "initialize", None]),
        "named": st.sampled_from(["echo", "other", None]),
        "accept": st.sampled_from(
            [MEDIA, MEDIA, MEDIA, "*/*", "application/json", "text/event-stream", None]
        ),
        "content-type": st.sampled_from(
            ["application/json"] * 3 + ["application/json; charset=utf-8", "text/plain", None]
        ),
        "host": st.sampled_from([HOST] * 4 + ["evil.example"]),
        "origin": st.sampled_from([None] * 3 + [ORIGIN, "https://evil.example"]),
    }
)


def headers(asked: Mapping[str, Any], session: str) -> dict[str, str | None]:
    named = {"own": session, "unknown": "f" * 32, None: None}[asked["session"]]
    plain = {name: asked[name] for name in ("accept", "content-type", "host", "origin")}
    return plain | {
        "mcp-session-id": named,
        "mcp-protocol-version": asked["version"],
        "mcp-method": asked["routed"],
        "mcp-name": asked["named"],
    }


def body(asked: Mapping[str, Any]) -> bytes:
    said = BODIES[asked["body"]]
    if isinstance(said, bytes):
        return said
    if "params" in said and asked["version"] not in HANDSHAKE:
        said = {**said, "params": {**said["params"], "_meta": MODERN_META}}
    return json.dumps(said).encode()


def several_faults(asked: Mapping[str, Any]) -> bool:
    """Whether a request has more than one fault, of which either may be told first."""
    said, modern = asked["body"], asked["version"] not in HANDSHAKE
    faults = [
        asked["host"] != HOST,
        asked["origin"] == "https://evil.example",
        asked["method"] not in {"POST", *(() if modern else ("GET", "DELETE"))},
        asked["method"] == "POST" and not str(asked["content-type"]).startswith("application/json"),
        asked["method"] in {"POST", "GET"} and asked["accept"] not in {MEDIA, "*/*"},
        not modern and asked["session"] == "unknown",
        not modern and asked["session"] is None and said != "initialize",
        said == "too long",
        asked["method"] == "POST" and said in {"nothing", "no JSON"},
    ]
    return sum(map(bool, faults)) > 1


@pytest.mark.promise("http.eras")
@given(requests.filter(lambda asked: not several_faults(asked)))
def test_the_same_request_gets_the_same_status_and_code(asked: dict[str, Any]) -> None:
    theirs, mine = trio.run(_both, asked)
    assert mine == expected(theirs)


def expected(theirs: Reply) -> Reply:
    """Return what is expected of our application, which differs from the SDK's on purpose in a few places."""
    if theirs.status == 406:
        return theirs._replace(code=-32600)  # the same sentence in both eras
    return theirs


async def _both(asked: dict[str, Any]) -> tuple[Reply, Reply]:
    replies = []
    manager, (server, app) = reference(), ours(Desk())
    opening = {"host": HOST, "accept": MEDIA, "content-type": "application/json"}
    handshake = {"session": None, "version": None}
    async with manager.run(), server.running(), app.running():
        for each in (manager.asgi_app, app):
            opened = await call(each, "POST", opening, body({**handshake, "body": "initialize"}))
            session = opened.headers["mcp-session-id"]
            known = opening | {"mcp-session-id": session}
            await call(each, "POST", known, body({**handshake, "body": "notification"}))
            with trio.fail_after(PATIENCE):
                answer = await call(each, asked["method"], headers(asked, session), body(asked))
            replies.append(answer.reply())
    return replies[0], replies[1]
