"""Commands of `greenroom` in processes of their own, read line by line or through a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import termios
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from harness import PATIENCE, clean_environment
from support.forking import forked_program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Program:
    """A command that runs, and what it prints.

    Attributes:
        modes_before: How its terminal treated keys before the command started; None without one.
    """

    def __init__(
        self, process: trio.Process, output: trio.lowlevel.FdStream, modes_before: list[object] | None
    ) -> None:
        self.process = process
        self.printed = ""
        self.modes_before = modes_before
        self._output = output
        self._seen = 0

    async def until(self, expected: str) -> str:
        """Read on until the output, from where the last search ended, has this text; return up to it."""
        while (found := self.printed.find(expected, self._seen)) < 0:
            assert await self._more(), f"ended without {expected!r}:\n{self.printed}"
        begin, self._seen = self._seen, found + len(expected)
        return self.printed[begin : self._seen]

    async def line_with(self, expected: str) -> str:
        """Read on to the next line that has this text, and return it whole."""
        return (await self.until(expected)).rpartition("\n")[2] + (await self.until("\n"))[:-1]

    async def end(self) -> int:
        """Read the rest and return the exit code."""
        while await self._more():
            pass
        return await self.process.wait()

    async def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return await self.end()

    async def press(self, keys: str) -> None:
        """Press keys, where there is a keyboard."""
        await self._output.send_all(keys.encode())

    def modes(self) -> list[object]:
        """Return how the terminal treats what is typed."""
        return termios.tcgetattr(self._output.fileno())

    async def _more(self) -> bool:
        try:
            part = await self._output.receive_some()
        except trio.BrokenResourceError:  # Linux's way to say that a terminal's last user is gone
            part = b""
        self.printed += part.decode(errors="replace")
        return bool(part)


@asynccontextmanager
async def running(
    home: Path, *arguments: str, terminal: bool = False, keyboard: bool = False, **more: str
) -> AsyncIterator[Program]:
    """Run a command with its output, errors among it, in a pipe or on a terminal; kill what is left of it."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    modes_before = termios.tcgetattr(theirs) if terminal else None
    try:
        process = await trio.lowlevel.open_process(
            [*forked_program(), *arguments],
            stdin=theirs if keyboard else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=keyboard,  # else a passphrase would be read from the terminal of who tests
            env=clean_environment(home, TERM="xterm", COLUMNS="120", LINES="40", **more),
        )
    finally:
        os.close(theirs)
    async with trio.lowlevel.FdStream(ours) as output:
        try:
            with trio.fail_after(PATIENCE):
                yield Program(process, output, modes_before)
        finally:
            if process.returncode is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
