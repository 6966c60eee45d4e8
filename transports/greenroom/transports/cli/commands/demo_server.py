"""A `greenroom serve` in a process of its own, for programs that show what a server does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import trio

from greenroom.transports.config.settings import CONFIG_VARIABLE, PREFIX

ANNOUNCEMENT: Final = "greenroom serve: listening on "


class ServerDidNotStartError(Exception):
    """The server ended before it listened; the message is what it said."""


class ServerProcess:
    """A server that listens.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, process: trio.Process, url: str) -> None:
        self.url = url
        self._process = process

    @property
    def address(self) -> str:
        """Where it listens, as HOST:PORT."""
        return urlsplit(self.url).netloc

    async def kill(self) -> None:
        """End it at once, in the middle of whatever it does (SIGKILL)."""
        self._process.kill()
        await self._process.wait()


class Servers:
    """Servers on one store, one after the other. Made by `servers`."""

    def __init__(self, home: Path, nursery: trio.Nursery) -> None:
        self._home = home
        self._nursery = nursery
        self.processes: list[trio.Process] = []

    async def start(self, address: str) -> ServerProcess:
        """Return a server that listens at `address`, as HOST:PORT; port 0 takes any free one.

        Raises:
            ServerDidNotStartError: It ended before it listened.
        """
        # Whatever the server makes is to be in the one folder, its control socket as well.
        own = dict.fromkeys(("XDG_RUNTIME_DIR", "TMPDIR"), str(self._home))
        configuration = self._home / "config.toml"
        configuration.touch()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        program = [sys.executable, "-m", "greenroom.transports.cli", "serve"]
        process = await trio.lowlevel.open_process(
            [
                *program,
                *("--data", str(self._home / "store"), "--secrets", str(self._home / "secrets")),
                *("--ws", address),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment | own | {CONFIG_VARIABLE: str(configuration)},
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
        self.processes.append(process)
        assert process.stderr is not None, "it is a pipe"
        said = await self._nursery.start(_listen_to, process.stderr)
        if not said.startswith(ANNOUNCEMENT):
            raise ServerDidNotStartError(said)
        return ServerProcess(process, said.removeprefix(ANNOUNCEMENT))


@asynccontextmanager
async def servers(home: Path) -> AsyncIterator[Servers]:
    """Start servers on the store in `home`, with no setting of this user; none is left at the end."""
    async with trio.open_nursery() as nursery:
        started = Servers(home, nursery)
        try:
            yield started
        finally:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                for process in started.processes:
                    process.kill()
                    await process.wait()


async def _listen_to(
    errors: trio.abc.ReceiveStream, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Report the server's announcement, or its last words instead; then reads on and forgets."""
    said, is_announced = "", False
    async with errors:
        async for part in errors:  # on and on, so that the server never waits for a reader
            said = "" if is_announced else said + part.decode(errors="replace")
            for line in said.splitlines(keepends=True):
                if line.startswith(ANNOUNCEMENT) and line.endswith("\n"):
                    is_announced = True
                    task_status.started(line.strip())
    if not is_announced:
        task_status.started(said.strip().rpartition("\n")[2] or "it ended without a word")
