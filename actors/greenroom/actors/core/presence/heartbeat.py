"""A process tells the owner of the folder of itself, from time to time and when it ends."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trio

from greenroom.actors.core.presence.actor import PRESENCE, TELL_SECONDS
from greenroom.actors.core.presence.requests import (
    ConnectedClient,
    LeavePresence,
    ProcessPresence,
    TellPresence,
    Traffic,
)
from greenroom.runtime import GreenroomError, RuntimeClient
from greenroom.runtime.base.version import program_version

LEAVE_SECONDS: Final = 0.1
"""How long the owner may take to hear that this process ends: it forgets it soon in any case."""
EMBEDDED: Final = "embedded"
"""How a program is connected that has the folder open itself."""
logger = logging.getLogger(__name__)


async def tell_of_process(
    runtime: RuntimeClient,
    process: str,
    told: Callable[[], Awaitable[ProcessPresence]],
    end_browser: Callable[[str], object],
) -> None:
    """Tell the owner from time to time, until it is cancelled; then that the process ends.

    Args:
        runtime: The open runtime of the process.
        process: Its id.
        told: Returns what is told now.
        end_browser: Logs out a browser that the owner names.
    """
    try:
        while True:
            try:
                for browser in await runtime.ask(PRESENCE, TellPresence(process=await told())):
                    end_browser(browser)
            except (GreenroomError, OSError) as error:  # a takeover, or an older owner
                logger.debug("this process cannot tell of itself now: %s", error)
            await trio.sleep(TELL_SECONDS)
    finally:
        with trio.move_on_after(LEAVE_SECONDS, shield=True):
            try:
                await runtime.ask(PRESENCE, LeavePresence(process=process))
            except GreenroomError as error:
                logger.debug("this process cannot tell that it ends: %s", error)


def is_owner(runtime: RuntimeClient) -> bool:
    """Return whether this process owns the folder.

    Raises:
        StoreError: no owner has been reached yet.
    """
    relay = runtime.statistics().relay
    return relay is None or relay.role == "owner"


async def tell_of_program(runtime: RuntimeClient) -> None:
    """Tell of the program that embeds a runtime, by the name of its file, until it is cancelled."""
    process, since = secrets.token_hex(8), datetime.now(UTC)
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in {"", "-c", "-m"} else "python"
    program = ConnectedClient(name=name, tool=None, agent=None, transport=EMBEDDED, since=since)

    async def told() -> ProcessPresence:
        return ProcessPresence(
            id=process,
            pid=os.getpid(),
            version=program_version(),
            role="owner" if is_owner(runtime) else "attached",
            since=since,
            clients=[program],
            traffic=Traffic(bounds=(), minutes=[], operations=[]),
        )

    await tell_of_process(runtime, process, told, lambda _browser: None)
