"""Hooks of clients, from starting the process to its end, beside an interpreter that does nothing.

A person waits for a hook before each prompt, and a model after each tool. The limits are of processor time,
for an interpreter that takes 12 ms. What hooks answer and what becomes of what they tell is checked: a hook
that fails would be quick.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.client import ToolCall, serving
from bench.harness import Figure, Plan, Report, Table, check, middle, take_turns
from bench.servers import environment, greenroom
from greenroom.transports.clients.hooks.failures import failures_of
from greenroom.transports.clients.hooks.spool import waiting

MOST_OWNED_MS = 45.0
MOST_TOLD_ALONE_MS = 60.0
MOST_ASKED_ALONE_MS = 250.0
MOST_VERSION_MS = 60.0
IDLE = "python -c pass"
VERSION = "--version"
NO_OWNER = ", no owner"
ASKED_ALONE = f"user-prompt{NO_OWNER}"
TOLD_ALONE = tuple(f"{hook}{NO_OWNER}" for hook in ("post-tool", "stop", "session-end"))
PROGRAM = (sys.executable, "-m", "greenroom.transports.cli")
WHO = ("--user", "ann", "--agent", "claude-code")
MEMORY = "The staging database is called heron."
STORED = ToolCall("store_memory", {"content": MEMORY, "namespace": "user:ann"}, {})


class Took(NamedTuple):
    """Seconds on the clock, and of the processor."""

    wall: float
    processor: float


def run(plan: Plan) -> Report:
    """Measure each hook, with a server that has the folder open and without one."""
    with plan.folder() as folder:
        served, alone = folder / "served", folder / "alone"
        with serving(greenroom(alone, *WHO, "--embedder", "none")) as client:
            client.call(STORED)
        with serving(greenroom(served, *WHO, "--embedder", "none")) as client:
            client.call(STORED)
            numbers = itertools.count()
            contenders: dict[str, Callable[[], Took]] = {
                IDLE: partial(_timed, (sys.executable, "-c", "pass"), b"", folder, lambda _: None),
                "session-start": partial(_started, served, numbers),
                "user-prompt": partial(_prompted, served, numbers, "heron"),
                "post-tool": partial(_told, "post-tool", served, numbers),
                "stop": partial(_told, "stop", served, numbers),
                "session-end": partial(_told, "session-end", served, numbers),
                **{each: partial(_told, each.removesuffix(NO_OWNER), alone, numbers) for each in TOLD_ALONE},
                ASKED_ALONE: partial(_prompted, alone, numbers, "partial"),
                VERSION: partial(_timed, (*PROGRAM, VERSION), b"", folder, _is_version),
            }
            if not plan.smoke:
                take_turns(contenders, 1)  # so that no contender reads its modules from the disk
            results = take_turns(contenders, plan.size(21, 1))
            told = sum(len(results[each]) for each in TOLD_ALONE)
            check(waiting(alone).files >= told, f"of {told} events of no owner there wait {waiting(alone)}")
            check(_is_drained(served, client.call), f"the owner left what waits: {waiting(served)}")
        for each in (served, alone):
            check(failures_of(each).count == 0, f"a hook failed: {failures_of(each)}")
    medians = {name: Took(*middle(rounds)) for name, rounds in results.items()}
    idle = medians[IDLE]
    rows: list[list[str | float]] = [
        [name, took.wall * 1e3, (took.wall - idle.wall) * 1e3, took.processor * 1e3]
        for name, took in medians.items()
    ]
    columns = ["process", "ms", f"above {IDLE}, ms", "processor ms"]
    figures = [
        Figure(what=f"{name}, processor ms", value=took.processor * 1e3, most=_most(name))
        for name, took in medians.items()
        if name != IDLE
    ]
    return Report(tables=[Table(title="hooks, medians", columns=columns, rows=rows)], figures=figures)


def _most(name: str) -> float:
    """Return the most milliseconds of the processor that a process may take."""
    if name == VERSION:
        return MOST_VERSION_MS
    if name == ASKED_ALONE:
        return MOST_ASKED_ALONE_MS
    return MOST_TOLD_ALONE_MS if name in TOLD_ALONE else MOST_OWNED_MS


def _started(data: Path, numbers: Iterator[int]) -> Took:
    return _hook("session-start", data, {"session_id": f"s-{next(numbers)}", "source": "startup"}, _is_object)


def _prompted(data: Path, numbers: Iterator[int], expected: str) -> Took:
    """Ask in a new session: what a session has, it is not given again."""

    def check_answer(output: bytes) -> None:
        context = json.loads(output).get("hookSpecificOutput", {}).get("additionalContext", "")
        check(
            "heron" in context and expected in context,
            f"the prompt was answered with {output!r}: {failures_of(data)}",
        )

    said = {"session_id": f"s-{next(numbers)}", "prompt": "What is the staging database called?"}
    return _hook("user-prompt", data, said, check_answer)


def _told(hook: str, data: Path, numbers: Iterator[int]) -> Took:
    """Tell a turn of a session of its own, of a transcript but for `post-tool`."""
    number = next(numbers)
    event: dict[str, Any] = {"session_id": f"s-{number}"}
    if hook == "post-tool":
        event |= {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": "ok"}}
    else:
        transcript = data.parent / "projects" / f"s-{number}.jsonl"
        transcript.parent.mkdir(exist_ok=True)
        turn = {"type": "user", "message": {"role": "user", "content": f"We decided on number {number}."}}
        transcript.write_text((json.dumps(turn) + "\n") * 200)
        event["transcript_path"] = str(transcript)
    return _hook(hook, data, event, _is_object)


def _hook(hook: str, data: Path, said: object, check_answer: Callable[[bytes], None]) -> Took:
    flags = ("--data", str(data), *WHO, "--limit", "60")  # a busy machine shows in the figures
    command = (*PROGRAM, "hook", hook, *flags)
    return _timed(command, json.dumps(said).encode(), data.parent, check_answer)


def _timed(command: tuple[str, ...], given: bytes, home: Path, check_answer: Callable[[bytes], None]) -> Took:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command,
        input=given,
        stdout=subprocess.PIPE,
        check=True,
        cwd=home,
        env=environment() | {"CLAUDE_CONFIG_DIR": str(home)},
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check_answer(done.stdout)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _is_object(output: bytes) -> None:
    check(isinstance(json.loads(output), dict), f"a hook wrote {output!r}")


def _is_version(output: bytes) -> None:
    check(output.startswith(b"greenroom "), f"{VERSION} wrote {output!r}")


def _is_drained(data: Path, call: Callable[[ToolCall], object]) -> bool:
    """Return whether nothing waits; what the server is asked meanwhile gives it time."""
    for _ in range(1_000):
        if not waiting(data).files:
            return True
        call(STORED)
    return False
