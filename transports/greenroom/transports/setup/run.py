"""Programs of clients, run for what they say, and killed where that takes too long."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import trio


async def run(command: Sequence[str], patience: float) -> subprocess.CompletedProcess[bytes]:
    """Run a program without input and return what it said.

    Args:
        command: The program and its arguments.
        patience: After so many seconds it is killed.

    Raises:
        OSError: It cannot be run.
        TooSlowError: It was killed.
    """
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
