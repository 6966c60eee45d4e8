"""An MCP client over any pair of streams, with access to every line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import trio

MODERN_META: Final[dict[str, Any]] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""The ``_meta`` of each request in the era without a handshake, for `McpClient.meta`."""


class McpClient:
    """A client of either era of MCP.

    It neither checks what it sends nor hides what it receives, so tests can send invalid requests.

    Args:
        source: The stream of the server's lines.
        sink: The stream of the client's lines.

    Attributes:
        meta: The ``_meta`` of every request.
    """

    def __init__(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        self._source = source
        self._sink = sink
        self._received = b""
        self._last_id = 0
        self.meta: Mapping[str, Any] = {}

    async def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        await self._sink.send_all(data)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message of JSON-RPC."""
        await self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive_line(self) -> bytes:
        """Return the next line, or nothing at the end of the output."""
        while b"\n" not in self._received:
            chunk = await self._source.receive_some()
            if not chunk:
                assert not self._received, f"the output ends within a line: {self._received[-200:]!r}"
                return b""
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line

    async def receive(self) -> dict[str, Any]:
        """Return the next message, a reply or a notification."""
        line = await self.receive_line()
        assert line, "the output has ended"
        message: dict[str, Any] = json.loads(line)
        return message

    async def rest(self) -> list[dict[str, Any]]:
        """Return everything up to the end of the output."""
        messages = []
        while line := await self.receive_line():
            messages.append(json.loads(line))
        return messages

    async def end_input(self) -> None:
        """End the input of the server."""
        await self._sink.aclose()

    async def send_request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        full = {**(params or {})}
        if self.meta or "_meta" in full:
            full["_meta"] = {**self.meta, **full.get("_meta", {})}
        await self.send({"id": self._last_id, "method": method, "params": full})
        return self._last_id

    async def send_call(self, tool: str, arguments: Mapping[str, Any], **meta: Any) -> int:
        """Send a call of a tool and return its id."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        return await self.send_request("tools/call", params)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send one request and return its reply; no other request may be open."""
        number = await self.send_request(method, params)
        answer = await self.receive()
        assert answer["id"] == number, f"an answer to another request: {answer}"
        return answer

    async def initialize(self, name: str = "tester", version: str = "2025-11-25") -> dict[str, Any]:
        """Initialize as a client of the handshake era; return the server's result."""
        info = {"name": name, "version": "1"}
        answer = await self.request(
            "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        )
        await self.send({"method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its reply, a success or a failure."""
        result = (await self.request("tools/call", {"name": tool, "arguments": arguments}))["result"]
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        return answer
