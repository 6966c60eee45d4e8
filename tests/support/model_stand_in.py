"""A stand-in for a model, over loopback, in the words of three makers' APIs: real clients ask it.

It first calls the shell tool that a client offers, once, and then answers with a text. What it was asked is
kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SAID = "Done, said the model."
COMMAND = "echo ran by the model"


class StandIn(ThreadingHTTPServer):
    """The server of one test.

    Attributes:
        asked: The bodies of the requests for an answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def model_stand_in() -> Iterator[StandIn]:
    """Serve while a client is run."""
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        if "/messages" in self.path:
            events = _anthropic(asked)
        elif "/responses" in self.path:
            events = _openai(asked)
        else:
            events = _gemini(asked)
            if "alt=sse" not in self.path:
                self._answer(200, "application/json", json.dumps(events[0]).encode())
                return
        body = "".join(
            (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
            for event in events
        ).encode()
        self._answer(200, "text/event-stream", body)

    def do_GET(self) -> None:
        self._answer(404, "application/json", b"{}")

    do_HEAD = do_GET  # noqa: N815 - the library finds it by its name

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing on the terminal."""


def _anthropic(asked: dict[str, Any]) -> list[dict[str, Any]]:
    tools = {tool["name"] for tool in asked.get("tools", ())}
    calls = "Bash" in tools and "tool_result" not in str(asked["messages"])
    if calls:
        block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
        typed = json.dumps({"command": COMMAND, "description": "says it"})
        delta = {"type": "input_json_delta", "partial_json": typed}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": SAID}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def _openai(asked: dict[str, Any]) -> list[dict[str, Any]]:
    tools = {tool.get("name") for tool in asked.get("tools", ())}
    item: dict[str, Any]
    if "exec_command" in tools and "function_call_output" not in str(asked["input"]):
        item = {
            "type": "function_call",
            "call_id": "c",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": COMMAND}),
        }
    else:
        content = [{"type": "output_text", "text": SAID}]
        item = {"type": "message", "role": "assistant", "id": "m", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]


def _gemini(asked: dict[str, Any]) -> list[dict[str, Any]]:
    part: dict[str, Any] = {"text": SAID}
    if "run_shell_command" in str(asked.get("tools")) and "functionResponse" not in str(asked["contents"]):
        part = {"functionCall": {"name": "run_shell_command", "args": {"command": COMMAND}}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}}]
