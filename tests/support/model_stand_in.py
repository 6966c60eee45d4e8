"""A stand-in for a model, over loopback, in the words of three makers' APIs: real clients ask it.

It goes through steps, tools that it calls and a text at the end, one for each answer. Unless other steps are
given, it calls the shell tool that a client offers, once. What it was asked is kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

SAID = "Done, said the model."
COMMAND = "echo ran by the model"


class Call(NamedTuple):
    """A call of a tool.

    Attributes:
        tool: The name that its client has for it.
        arguments: What it is called with.
        namespace: The group in which Codex CLI lists the tool.
    """

    tool: str
    arguments: dict[str, Any]
    namespace: str | None = None


Step = str | Call | Callable[[str], Call | str]
"""A text, a call, or what makes one of the result of the tool that was called before."""
_SHELLS = {
    "claude-code": Call("Bash", {"command": COMMAND, "description": "says it"}),
    "codex": Call("exec_command", {"cmd": COMMAND}),
    "gemini": Call("run_shell_command", {"command": COMMAND}),
}


class StandIn(ThreadingHTTPServer):
    """The server of one test.

    Attributes:
        asked: The bodies of the requests for an answer.
        steps: What it does; empty for the default.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[dict[str, Any]] = []
        self.steps: list[Step] = []

    def answer(self, client: str, tools: list[str], results: list[str]) -> Call | str:
        """Return the step that comes after so many results of tools."""
        steps = self.steps or [_SHELLS[client], SAID]
        step = steps[min(len(results), len(steps) - 1)]
        made = step(results[-1]) if callable(step) else step
        return made if isinstance(made, str) or made.tool in tools else SAID

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
        number = len(self.server.asked)
        if "/messages" in self.path:
            events = _anthropic(self.server.answer("claude-code", *_asked_by_claude_code(asked)), number)
        elif "/responses" in self.path:
            events = _openai(self.server.answer("codex", *_asked_by_codex(asked)), number)
        else:
            events = _gemini(self.server.answer("gemini", *_asked_by_gemini(asked)))
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


def results(asked: dict[str, Any]) -> list[str]:
    """Return what tools returned to a model of Codex CLI."""
    return _asked_by_codex(asked)[1]


def _asked_by_claude_code(asked: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the tools that it has, and what those returned that were called."""
    blocks = [block for each in asked["messages"] for block in each["content"] if isinstance(block, dict)]
    results = [_text(block.get("content")) for block in blocks if block["type"] == "tool_result"]
    return [tool["name"] for tool in asked.get("tools", ())], results


def _asked_by_codex(asked: dict[str, Any]) -> tuple[list[str], list[str]]:
    tools = [each for tool in asked.get("tools", ()) for each in (tool, *tool.get("tools", ()))]
    results = [_text(item["output"]) for item in asked["input"] if item["type"] == "function_call_output"]
    return [tool["name"] for tool in tools if "name" in tool], results


def _asked_by_gemini(asked: dict[str, Any]) -> tuple[list[str], list[str]]:
    declared = [each for tool in asked.get("tools", ()) for each in tool.get("functionDeclarations", ())]
    parts = [part for each in asked["contents"] for part in each["parts"]]
    results = [json.dumps(part["functionResponse"]) for part in parts if "functionResponse" in part]
    return [tool["name"] for tool in declared], results


def _text(content: Any) -> str:
    """Return the text of a result, which is one or has parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _anthropic(answer: Call | str, number: int) -> list[dict[str, Any]]:
    if isinstance(answer, Call):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": answer}
    reason = "tool_use" if isinstance(answer, Call) else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    stop = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def _openai(answer: Call | str, number: int) -> list[dict[str, Any]]:
    item: dict[str, Any]
    if isinstance(answer, Call):
        item = {"type": "function_call", "call_id": f"c{number}", "name": answer.tool}
        item["arguments"] = json.dumps(answer.arguments)
        if answer.namespace:
            item["namespace"] = answer.namespace
    else:
        content = [{"type": "output_text", "text": answer}]
        item = {"type": "message", "role": "assistant", "id": "m", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]


def _gemini(answer: Call | str) -> list[dict[str, Any]]:
    part: dict[str, Any] = {"text": answer}
    if isinstance(answer, Call):
        part = {"functionCall": {"name": answer.tool, "args": answer.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}}]
