"""Clients' programs and the configured server, run with a time limit."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import trio

from greenroom.transports.clients.setup.change import SetupError
from greenroom.transports.clients.table import Client


async def run(command: Sequence[str], patience: float) -> subprocess.CompletedProcess[bytes]:
    """Run a program without input and return its output."""
    with trio.fail_after(patience):
        return await trio.run_process(
            command,
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            deliver_cancel=_kill,
        )


async def _kill(process: trio.Process) -> None:
    process.kill()


_VERSION_SECONDS: Final = 10.0  # the slowest known client takes two
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


async def version_of(client: Client) -> str | None:
    """Return the version that a client's program reports, or that of its VS Code extension."""
    program = client.program()
    if program is not None:
        try:
            done = await run([program, "--version"], _VERSION_SECONDS)
        except (OSError, trio.TooSlowError):
            return None
        found = _VERSION.search(done.stdout.decode(errors="replace"))
        return None if found is None else found[0]
    versions = [
        found[0]
        for folder in client.extension_folders()
        if (found := _VERSION.search(folder.name)) is not None
    ]
    return max(versions, key=lambda each: [int(part) for part in re.findall(r"\d+", each)], default=None)


_TRIAL_SECONDS: Final = 60.0  # the first start creates a store


class Found(NamedTuple):
    """The version and the number of tools of a server."""

    version: str
    tools: int


async def try_start(command: str, arguments: list[str]) -> Found:
    """Start a server as a desktop program would, with a minimal environment; list its tools."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - a slow import for one command

    environment = {"HOME": str(Path.home()), "PATH": "/usr/bin:/bin"}
    server = StdioServerParameters(command=command, args=arguments, env=environment)
    try:
        with trio.fail_after(_TRIAL_SECONDS):
            async with Client(server) as client:
                listed = await client.list_tools()
                info = client.server_info
                return Found(info.version if info else "of no version", len(listed.tools))
    except Exception as error:  # noqa: BLE001 - any failure of a foreign program becomes one sentence
        raise SetupError(
            f"{command} does not answer as a server ({error}); run it on a terminal to see why"
        ) from None
