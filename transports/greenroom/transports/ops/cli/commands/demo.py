"""`greenroom demo`: a server, two agents and a crash; it checks each printed claim.

The server is a separate process on a temporary folder, and the agents connect over a real WebSocket. The
story is in `demo_story`; this module starts the server for it.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.base.config.load import Resolved
from greenroom.transports.base.config.settings import CONFIG_VARIABLE, PREFIX
from greenroom.transports.ops.cli.support.error_report import leaf_errors, run_until_signal
from greenroom.transports.ops.cli.support.step_printer import StepPrinter

PATIENCE: Final = 60.0  # seconds for the whole demo, which usually takes a tenth of this time
ANNOUNCEMENT: Final = "greenroom serve: listening on "
_STORY: Final = "greenroom.transports.ops.cli.commands.demo_story"
Starter = Callable[[str], Awaitable[tuple[str, trio.Process]]]


def demo(_chosen: argparse.Namespace, _resolved: Resolved) -> int:
    """Run the demo; return 0 if every claim is true, else 1."""
    logging.getLogger().addHandler(logging.NullHandler())  # the printer reports everything
    return run_until_signal("demo", _on_folder, exit_codes.INTERRUPTED)


async def _on_folder() -> int:
    begun, printer = trio.current_time(), StepPrinter()
    with TemporaryDirectory(prefix="greenroom-demo-", ignore_cleanup_errors=True) as home:
        try:
            with trio.move_on_after(PATIENCE) as patience:
                async with trio.open_nursery() as nursery:
                    await _play(printer, partial(_start_server, nursery, Path(home)))
                    nursery.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - any error means that the demo has failed
            for leaf in leaf_errors(error):
                printer.fail(str(leaf) or type(leaf).__name__)
    if patience.cancelled_caught:
        printer.fail(f"something did not happen within {PATIENCE:g} s")
    return exit_codes.OK if printer.finish(trio.current_time() - begun) else exit_codes.FAILED


async def _play(printer: StepPrinter, start: Starter) -> None:
    printer.tell("Greenroom on a temporary folder: two agents share a session, and the server crashes.")
    printer.step("A server starts on an empty folder")
    begun = trio.current_time()
    with printer.waiting("a server starts"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, partial(import_module, _STORY))  # slow
            url, server = await start("127.0.0.1:0")
    printer.tell(f"it listens at {url} after {trio.current_time() - begun:.1f} s")
    from greenroom.transports.ops.cli.commands.demo_story import story  # noqa: PLC0415 - loads during the server's start

    await story(printer, start, url, server)


async def _start_server(nursery: trio.Nursery, home: Path, address: str) -> tuple[str, trio.Process]:
    """Start a server on the store in `home`, without this user's settings.

    The server ends with the nursery.
    """
    configuration = home / "config.toml"
    configuration.touch()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
    environment |= dict.fromkeys(("XDG_RUNTIME_DIR", "TMPDIR"), str(home))
    program = [sys.executable, "-m", "greenroom.transports.cli", "serve", "--ws", address]
    process: trio.Process = await nursery.start(
        partial(
            trio.run_process,
            [*program, "--data", str(home / "store"), "--secrets", str(home / "secrets")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            deliver_cancel=_kill,
            env=environment | {CONFIG_VARIABLE: str(configuration)},
            start_new_session=True,  # only this process gets Ctrl-C; it then ends the server
        )
    )
    first: str = await nursery.start(_listen_to, process.stderr)
    if not first.startswith(ANNOUNCEMENT):
        raise RuntimeError(first)
    return first.removeprefix(ANNOUNCEMENT), process


async def _kill(process: trio.Process) -> None:
    process.kill()


async def _listen_to(
    errors: trio.abc.ReceiveStream, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED
) -> None:
    """Report the server's announcement, or its last line; read on, so the server never blocks."""
    output, is_announced = "", False
    async for part in errors:
        output = "" if is_announced else output + part.decode(errors="replace")
        for line in output.splitlines(keepends=True):
            if line.startswith(ANNOUNCEMENT) and line.endswith("\n"):
                is_announced = True
                task_status.started(line.strip())
    if not is_announced:
        task_status.started(output.strip().rpartition("\n")[2] or "it ended without a message")
