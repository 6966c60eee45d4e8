"""`greenroom demo`: a server, two agents, a crash; every claim that is printed is checked.

The server is a process of its own on a temporary folder, and the agents reach it over a real
WebSocket. What they do is in `demo_story`; here is what is around it.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import trio

from greenroom.transports.base import exit_codes
from greenroom.transports.cli.commands.demo_server import ServerProcess, Servers, servers
from greenroom.transports.cli.support.error_report import leaf_errors, run_reported
from greenroom.transports.cli.support.narrator import Narrator
from greenroom.transports.cli.support.signals import run_until_signal
from greenroom.transports.cli.support.terminal import understands_escapes
from greenroom.transports.config.load import Resolved

PATIENCE: Final = 60.0  # seconds for everything; it takes a tenth of that


def demo(_chosen: argparse.Namespace, _resolved: Resolved) -> int:
    """Play everything; return 0 if every claim held, else 1."""
    logging.getLogger().addHandler(logging.NullHandler())  # the narrator tells what happens
    return run_reported(
        "demo",
        partial(trio.run, run_until_signal, _on_folder, exit_codes.INTERRUPTED, strict_exception_groups=True),
    )


async def _on_folder() -> int:
    home = Path(tempfile.mkdtemp(prefix="greenroom-demo-"))
    begun, shown = trio.current_time(), _narrator()
    try:
        with trio.move_on_after(PATIENCE) as patience:
            await _play(shown, home)
    except Exception as error:  # noqa: BLE001 - whatever it is, the demo has failed and says so
        for leaf in leaf_errors(error):
            shown.fail(str(leaf) or type(leaf).__name__)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if patience.cancelled_caught:
        shown.fail(f"something did not happen within {PATIENCE:g} s")
    return exit_codes.OK if shown.finish(trio.current_time() - begun) else exit_codes.FAILED


def _narrator() -> Narrator:
    """Return the narrator that fits standard output."""
    if understands_escapes(sys.stdout):
        from greenroom.transports.cli.support.narrator_rich import RichNarrator  # noqa: PLC0415 - lines do without it

        return RichNarrator()
    return Narrator()


async def _play(shown: Narrator, home: Path) -> None:
    async with servers(home) as started:
        shown.tell("Greenroom on a temporary folder: two agents share a session, and the server crashes.")
        shown.step("A server starts on an empty folder")
        begun = trio.current_time()
        with shown.waiting("a server starts"):
            server = await _start_while_loading(started)
        shown.tell(f"it listens at {server.url} after {trio.current_time() - begun:.1f} s")
        from greenroom.transports.cli.commands.demo_story import story  # noqa: PLC0415 - see _load

        await story(shown, started, server)


async def _start_while_loading(started: Servers) -> ServerProcess:
    """Return the first server; the client's library is loaded meanwhile, which takes as long."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, _load)
        return await started.start("127.0.0.1:0")


def _load() -> None:
    from greenroom.transports.cli.commands import demo_story  # noqa: F401, PLC0415 - takes as long as a server
