"""What test files share: programs in an environment of their own, and the tools in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from support.forking import forked_program

from greenroom.actors import Agent, Principal, Reach, open_greenroom
from greenroom.testing import McpClient, mcp_client

PROGRAM = [sys.executable, "-m", "greenroom.transports.cli"]
PATIENCE = 300.0  # seconds until a test that waits for what never comes gives up


class ServerProcess:
    """A `greenroom serve` of its own and the client at its pipes."""

    def __init__(self, process: trio.Process, errors: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.client = McpClient(process.stdout, process.stdin)
        self._errors = errors

    def errors(self) -> str:
        """Return what it has written to standard error."""
        return self._errors.read_text(errors="replace")


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which no setting of this user is found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GREENROOM_", "XDG_"))}
    return kept | {"HOME": str(home)} | more


def secrets_of(home: Path) -> Path | None:
    """Return where the programs in an environment with this home keep the secret of their store."""
    return next((key.parent for key in home.rglob("*.key")), None)


@asynccontextmanager
async def server_process(
    home: Path, *flags: str, program: list[str] | None = None
) -> AsyncIterator[ServerProcess]:
    """Run a server on the store in `home`; kill it at the end if it still runs."""
    errors = _errors_file(home)
    with errors.open("wb") as stderr:
        process = await trio.lowlevel.open_process(
            program or [*forked_program(), "serve", "--data", str(home / "store"), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=clean_environment(home),
        )
    try:
        with trio.fail_after(PATIENCE):
            yield ServerProcess(process, errors)
    finally:
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def _errors_file(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    return home / f"stderr-{len(list(home.glob('stderr-*')))}"


CODE = Reach(workspaces=(str(Path(__file__).parent / "support"),))
"""A folder of code, which agents may read."""


@asynccontextmanager
async def greenroom(folder: Path, agent: str | None = None, **options: Any) -> AsyncIterator[McpClient]:
    """Serve the real tools on a store in this process."""
    async with open_greenroom(folder) as runtime:

        def agent_for(name: str) -> Agent:
            return Agent(runtime, principal(agent or name), reach=CODE)

        async with mcp_client(agent_for, **options) as client:
            yield client


def principal(agent_id: str, agent_type: str | None = None) -> Principal:
    """Return a local user's agent."""
    return Principal(agent_id=agent_id, agent_type=agent_type, user="user", projects=None)
