"""From the start of one tool to its having the work that another one left: what a person waits for.

The tool before it has begun a session, worked in it and ended. The next one starts its server, begins, and
is answered with that session and its briefing. Once as our own client, so that nearly all of the time is the
server's; and once as a program on the Python SDK, from the start of its process, which is what such a tool
needs. The same program at a server on the SDK that only echoes shows how much of that is the SDK's. Another
session is one that hooks of Claude Code kept, which is begun with the call that is offered. Processor time
is that of all processes, to their ends.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.client import ToolCall, serving, started
from bench.harness import Figure, Plan, Report, Table, check, middle, take_turns
from bench.servers import ECHO, environment, greenroom

DECISION = "no release on a Friday"
ORDER = "Write the notes of release 2, and leave out what was reverted."
MESSAGES = 200
WHOLE_SECONDS = 2.0
MOST_RATIO = 1.0
WHO = ("--user", "ann")
ECHOED = ToolCall("echo", {"text": ORDER}, {"text": ORDER})

# A tool on the Python SDK, as small as it can be: it makes one call, and says what it was answered.
TOOL = """
import json, os, sys
import trio
from mcp import Client, StdioServerParameters

async def main(tool, given, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ))
    async with Client(server) as client:
        result = await client.call_tool(tool, json.loads(given))
        print(json.dumps(result.structured_content), flush=True)

trio.run(main, *sys.argv[1:])
"""


def run(plan: Plan) -> Report:
    """Measure each way."""
    with plan.folder() as folder:
        messages = plan.size(MESSAGES, 3)
        command, kept = greenroom(folder / "data", *WHO), greenroom(folder / "kept", *WHO)
        start = ToolCall("start_session", {}, {"session_id": _left(command, messages), "restored": True})
        offered = _kept_by_hooks(kept, folder / "kept", messages)
        contenders: dict[str, Callable[[], list[float]]] = {
            "with the start of the server, for a client without weight": partial(_taken_up, command, start),
            "the same, of what hooks kept": partial(_taken_up, kept, offered),
            "a tool on the Python SDK, from the start of its process": partial(_by_a_tool, command, start),
            "the same tool at a server that only echoes": partial(_by_a_tool, ECHO, ECHOED),
        }
        if not plan.smoke:
            take_turns(contenders, 1)  # so that no contender reads its modules from the disk
        results = take_turns(contenders, plan.size(15, 1))
    medians = {name: middle(times) for name, times in results.items()}
    light, of_hooks, whole, echoed = medians.values()
    rows: list[list[str | int | float | None]] = [
        ["start_session alone", light[2] * 1e3, None],
        ["the same, of what hooks kept", of_hooks[2] * 1e3, None],
    ]
    rows += [[name, took[0] * 1e3, took[1] * 1e3] for name, took in medians.items()]
    title, columns = "until a tool has the work of the one before it", ["what", "ms", "processor ms"]
    ratio = "a tool on the Python SDK, to the same at a server that only echoes"
    return Report(
        tables=[Table(title=title, columns=columns, rows=rows)],
        figures=[
            Figure(what="hand-over to a tool on the Python SDK, s", value=whole[0], most=WHOLE_SECONDS),
            Figure(what=ratio, value=whole[0] / echoed[0], most=MOST_RATIO),
            Figure(what=f"{ratio}, processor time", value=whole[1] / echoed[1], most=MOST_RATIO),
        ],
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
        client.call(ToolCall("add_message", {"session_id": session, "content": ORDER}, {"success": True}))
    return session


def _kept_by_hooks(command: Sequence[str], data: Path, messages: int) -> ToolCall:
    """Have a hook tell a transcript, as Claude Code does; return the call that is offered for it."""
    transcript = data.parent / "projects" / "s.jsonl"
    transcript.parent.mkdir()
    texts = [*(f"Note {number} of the release is written." for number in range(messages)), ORDER]
    turns = ({"type": "user", "message": {"role": "user", "content": text}} for text in texts)
    transcript.write_text("".join(f"{json.dumps(turn)}\n" for turn in turns))
    hook = ("hook", "stop", "--client", "claude-code", "--agent", "claude-code", "--limit", "60")
    subprocess.run(
        (sys.executable, "-m", "greenroom.transports.cli", *hook, "--data", str(data), *WHO),
        input=json.dumps(
            {"session_id": "s", "transcript_path": str(transcript), "cwd": str(data.parent)}
        ).encode(),
        stdout=subprocess.DEVNULL,
        check=True,
        env=environment() | {"CLAUDE_CONFIG_DIR": str(data.parent)},
    )
    with serving(command) as client:
        start = ToolCall("start_session", {"workspace_path": str(data.parent)}, {"restored": False})
        while not (offers := client.call(start)["offered"]):  # the server takes in what the hook left
            pass
    call = offers[0]["call"]
    return ToolCall(call["tool"], call["arguments"], {"continues": offers[0]["session_id"]})


def _taken_up(command: Sequence[str], call: ToolCall) -> list[float]:
    """Return the seconds to the answer, those of the processor, and those that the call alone took."""
    began, before = time.perf_counter(), _processor()
    with started(command) as client:
        client.begin()
        asked = time.perf_counter()
        answer = client.call(call)
        answered = time.perf_counter()
    _check(answer, call)
    return [answered - began, _processor() - before, answered - asked]


def _by_a_tool(command: Sequence[str], call: ToolCall) -> list[float]:
    """Return the seconds to the answer, and those of the processor."""
    began, before = time.perf_counter(), _processor()
    program = [sys.executable, "-c", TOOL, call.tool, json.dumps(call.arguments), *command]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment()) as tool:
        assert tool.stdout is not None
        line = tool.stdout.readline()
        seconds = time.perf_counter() - began
        check(tool.wait() == 0, "the tool did not end well")
    _check(json.loads(line), call)
    return [seconds, _processor() - before]


def _processor() -> float:
    """Return the seconds of the processor that processes took which we started and which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _check(answer: Mapping[str, Any], call: ToolCall) -> None:
    given = {name: answer.get(name) for name in call.expected}
    check(given == call.expected, f"{call.tool} answered {answer}, without {call.expected}")
    if "restored" in call.expected:
        decided = [made["what"] for made in answer["context"]["decisions"]]
        check(decided == [DECISION], f"the decisions are not those that were recorded: {decided}")
    if call is not ECHOED:
        check(ORDER in answer["briefing"], f"the last message is not in the briefing: {answer}")
