"""Processes that share a folder, seen from the test: see `tool`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from harness import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TESTS = Path(__file__).parent.parent


class Tool:
    """One process, what it is asked and what it says.

    Attributes:
        role: What it said last of its role.
        heard: The topics that it heard of, in order.
        ended: What it said when it ended with an error.
    """

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._input = process.stdin
        self._output = process.stdout
        self._received = b""
        self._asked = 0
        self.answers: dict[int, Any] = {}
        self.role = ""
        self.heard: deque[str] = deque()
        self.ended: dict[str, str] = {}

    async def send(self, do: str, **words: Any) -> int:
        """Ask for something; return its number."""
        return (await self.send_all([{"do": do, **words}]))[0]

    async def send_all(self, commands: list[dict[str, Any]]) -> list[int]:
        """Ask for several things in one piece; return their numbers."""
        first = self._asked + 1
        self._asked += len(commands)
        numbers = list(range(first, first + len(commands)))
        lines = [
            json.dumps({"id": number, **command}) for number, command in zip(numbers, commands, strict=True)
        ]
        await self._input.send_all("".join(line + "\n" for line in lines).encode())
        return numbers

    async def answer(self, number: int) -> Any:
        """Return what came of a number: the value, or the name of the error in a set of one."""
        while number not in self.answers:
            await self._more()
        words = self.answers.pop(number)
        return words["value"] if "value" in words else {words["error"]}

    async def ask(self, do: str, **words: Any) -> Any:
        """Ask for something and return what comes of it."""
        return await self.answer(await self.send(do, **words))

    async def is_owner(self) -> None:
        """Wait until it owns the folder."""
        while self.role != "owner":
            await self._more()

    async def has_heard(self, topic: str) -> None:
        """Wait for the next thing that it hears, which is this topic."""
        while not self.heard:
            await self._more()
        assert self.heard.popleft() == topic

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def end_input(self) -> int:
        """End its input, read what it still says, and return the exit code."""
        await self._input.aclose()
        while await self._more(to_the_end=True):
            pass
        return await self.process.wait()

    async def _more(self, *, to_the_end: bool = False) -> bool:
        part = await self._output.receive_some()
        if not part:
            assert to_the_end, "the process has ended"
            return False
        *lines, self._received = (self._received + part).split(b"\n")
        for line in lines:
            words = json.loads(line)
            if "id" in words:
                self.answers[words["id"]] = words
            elif "role" in words:
                self.role = words["role"]
            elif "heard" in words:
                self.heard.append(words["heard"])
            else:
                self.ended = words
        return True


@asynccontextmanager
async def tool(folder: Path, *, wait: bool = True, **options: Any) -> AsyncIterator[Tool]:
    """Run a process on the folder; kill it at the end if it still runs."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "support.tool", str(folder), json.dumps({"durability": "process"} | options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    it = Tool(process)
    try:
        with trio.fail_after(PATIENCE):
            while wait and not it.role and await it._more(to_the_end=True):
                pass
            yield it
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
