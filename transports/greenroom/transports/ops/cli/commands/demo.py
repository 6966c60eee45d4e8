"""`greenroom demo`: a server, two agents, a crash; every claim that is printed is checked.

The server is a process of its own on a temporary folder, and the agents reach it over a real
WebSocket. What they do is in `demo_story`; here is what is around it.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import CONFIG_VARIABLE, PREFIX
from greenroom.transports.ops.cli.support.error_report import leaf_errors, run_until_signal
from greenroom.transports.ops.cli.support.step_printer import Narrator

PATIENCE: Final = 60.0  # seconds for everything; it takes a tenth of that
ANNOUNCEMENT: Final = "greenroom serve: listening on "
Starter = Callable[[str], Awaitable[tuple[str, trio.Process]]]


def demo(_chosen: argparse.Namespace, _resolved: Resolved) -> int:
    """Play everything; return 0 if every claim held, else 1."""
    logging.getLogger().addHandler(logging.NullHandler())  # the narrator tells what happens
    return run_until_signal("demo", _on_folder, exit_codes.INTERRUPTED)


async def _on_folder() -> int:
    begun, shown = trio.current_time(), Narrator()
    with TemporaryDirectory(prefix="greenroom-demo-", ignore_cleanup_errors=True) as home:
        try:
            with trio.move_on_after(PATIENCE) as patience:
                async with trio.open_nursery() as nursery:
                    await _play(shown, partial(_start_server, nursery, Path(home)))
                    nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - whatever it is, the demo has failed and says so
            for leaf in leaf_errors(error):
                shown.fail(str(leaf) or type(leaf).__name__)
    if patience.cancelled_caught:
        shown.fail(f"something did not happen within {PATIENCE:g} s")
    return exit_codes.OK if shown.finish(trio.current_time() - begun) else exit_codes.FAILED


async def _play(shown: Narrator, start: Starter) -> None:
    shown.tell("Greenroom on a temporary folder: two agents share a session, and the server crashes.")
    shown.step("A server starts on an empty folder")
    begun = trio.current_time()
    with shown.waiting("a server starts"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, _load)
            url, server = await start("127.0.0.1:0")
    shown.tell(f"it listens at {url} after {trio.current_time() - begun:.1f} s")
    from greenroom.transports.ops.cli.commands.demo_story import story  # noqa: PLC0415 - see _load

    await story(shown, start, url, server)


def _load() -> None:
    from greenroom.transports.ops.cli.commands import demo_story  # noqa: F401, PLC0415 - takes as long as a server


async def _start_server(nursery: trio.Nursery, home: Path, address: str) -> tuple[str, trio.Process]:
    """Start a server on the store in `home`, with no setting of this user; it ends with the nursery.

    Args:
        nursery: Where it runs.
        home: Holds whatever it makes, its control socket as well.
        address: Where it is to listen, as HOST:PORT; port 0 takes any free one.

    Returns:
        The URL at which it listens, and its process.

    Raises:
        RuntimeError: It ended before it listened; the message is what it said.
    """
    configuration = home / "config.toml"
    configuration.touch()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
    environment |= dict.fromkeys(("XDG_RUNTIME_DIR", "TMPDIR"), str(home))
    program = [sys.executable, "-m", "greenroom.transports.ops.cli", "serve", "--ws", address]
    process: trio.Process = await nursery.start(
        partial(
            trio.run_process,
            [*program, "--data", str(home / "store"), "--secrets", str(home / "secrets")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            deliver_cancel=_kill,
            env=environment | {CONFIG_VARIABLE: str(configuration)},
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
    )
    said: str = await nursery.start(_listen_to, process.stderr)
    if not said.startswith(ANNOUNCEMENT):
        raise RuntimeError(said)
    return said.removeprefix(ANNOUNCEMENT), process


async def _kill(process: trio.Process) -> None:
    process.kill()


async def _listen_to(
    errors: trio.abc.ReceiveStream, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Report the server's announcement, or its last words instead; then read on, so that it never waits."""
    said, is_announced = "", False
    async for part in errors:
        said = "" if is_announced else said + part.decode(errors="replace")
        for line in said.splitlines(keepends=True):
            if line.startswith(ANNOUNCEMENT) and line.endswith("\n"):
                is_announced = True
                task_status.started(line.strip())
    if not is_announced:
        task_status.started(said.strip().rpartition("\n")[2] or "it ended without a word")
