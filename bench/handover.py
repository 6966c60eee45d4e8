"""From the start of one tool to its having the work that another one left: what a person waits for.

The tool before it has begun a session, worked in it and ended. The next one starts its server, begins, and
is answered with that session. Once as our own client, so that nearly all of the time is the server's; and
once as a program on the Python SDK, from the start of its process, which is what such a tool needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bench.client import ToolCall, serving, started
from bench.harness import Figure, Plan, Report, Table, check, middle, take_turns
from bench.servers import environment, greenroom

DECISION = "no release on a Friday"
MESSAGES = 200
WHOLE_SECONDS = 2.0

# A tool on the Python SDK, as small as it can be: it begins, and says what it was answered.
TOOL = """
import json, os, sys
import trio
from mcp import Client, StdioServerParameters

async def main(command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server) as client:
        result = await client.call_tool("start_session", {})
        print(json.dumps(result.structured_content), flush=True)

trio.run(main, *sys.argv[1:])
"""


def run(plan: Plan) -> Report:
    """Measure both ways."""
    with plan.folder() as folder:
        command = greenroom(folder / "data")
        session = _left(command, plan.size(MESSAGES, 3))
        contenders: dict[str, Callable[[], list[float]]] = {
            "ours": partial(_taken_up, command, session),
            "whole": partial(_taken_up_by_a_tool, command, session),
        }
        if not plan.smoke:
            take_turns(contenders, 1)  # so that no contender reads its modules from the disk
        results = take_turns(contenders, plan.size(15, 1))
    (server, call), (whole,) = (middle(times) for times in results.values())
    rows: list[list[str | int | float | None]] = [
        ["start_session alone", call * 1e3],
        ["with the start of the server, for a client without weight", server * 1e3],
        ["a tool on the Python SDK, from the start of its process", whole * 1e3],
    ]
    title = "until a tool has the work of the one before it"
    return Report(
        tables=[Table(title=title, columns=["what", "ms"], rows=rows)],
        figures=[Figure(what="hand-over to a tool on the Python SDK, s", value=whole, most=WHOLE_SECONDS)],
    )


def _left(command: Sequence[str], messages: int) -> str:
    """Work as a tool does, and end; return the session."""
    with serving(command) as client:
        began = client.call(ToolCall("start_session", {"purpose": "Ship release 2"}, {"restored": False}))
        session: str = began["session_id"]
        decided = {"decisions": [{"what": DECISION}]}
        client.call(ToolCall("record_context", decided, {"decisions": 1}))
        for number in range(messages):
            said = {"session_id": session, "content": f"note {number} of the release"}
            client.call(ToolCall("add_message", said, {"success": True}))
    return session


def _taken_up(command: Sequence[str], session: str) -> list[float]:
    began = time.perf_counter()
    with started(command) as client:
        client.begin()
        asked = time.perf_counter()
        answer = client.call(ToolCall("start_session", {}, {"restored": True}))
        answered = time.perf_counter()
    _check(answer, session)
    return [answered - began, answered - asked]


def _taken_up_by_a_tool(command: Sequence[str], session: str) -> list[float]:
    began = time.perf_counter()
    program = [sys.executable, "-c", TOOL, *command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment()) as tool:
        assert tool.stdout is not None
        line = tool.stdout.readline()
        seconds = time.perf_counter() - began
        check(tool.wait() == 0, "the tool did not end well")
    _check(json.loads(line), session)
    return [seconds]


def _check(answer: Any, session: str) -> None:
    check(answer["session_id"] == session, f"another session was given: {answer}")
    decided = [made["what"] for made in answer["context"]["decisions"]]
    check(decided == [DECISION], f"the decisions are not those that were recorded: {decided}")
