"""Heartbeats: each process reports to the owner of the folder regularly and when it ends."""

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

from greenroom.actors.core.presence.actor import HEARTBEAT_SECONDS, PRESENCE
from greenroom.actors.core.presence.requests import (
    ConnectedClient,
    LeavePresence,
    ProcessPresence,
    TellPresence,
    Traffic,
)
from greenroom.runtime import GreenroomError, RuntimeClient
from greenroom.runtime.base.system import program_version

LEAVE_SECONDS: Final = 0.1
"""The time, in seconds, to report the end of this process; if that fails, its presence expires soon."""
EMBEDDED: Final = "embedded"
"""The transport of a program that opens the folder itself."""
logger = logging.getLogger(__name__)


async def send_heartbeats(
    runtime: RuntimeClient,
    process: str,
    read_presence: Callable[[], Awaitable[ProcessPresence]],
    end_browser: Callable[[str], object],
) -> None:
    """Send heartbeats to the owner until cancelled; then report the end of the process."""
    try:
        while True:
            try:
                for browser in await runtime.ask(PRESENCE, TellPresence(process=await read_presence())):
                    end_browser(browser)
            except (GreenroomError, OSError) as error:  # a takeover, or an older owner
                logger.debug("this process cannot send a heartbeat now: %s", error)
            await trio.sleep(HEARTBEAT_SECONDS)
    finally:
        with trio.move_on_after(LEAVE_SECONDS, shield=True):
            try:
                await runtime.ask(PRESENCE, LeavePresence(process=process))
            except GreenroomError as error:
                logger.debug("this process cannot report its end: %s", error)


def is_owner(runtime: RuntimeClient) -> bool:
    """Return whether this process owns the folder."""
    relay = runtime.statistics().relay
    return relay is None or relay.role == "owner"


async def send_program_heartbeats(runtime: RuntimeClient) -> None:
    """Until cancelled, send heartbeats for the program that embeds a runtime."""
    process, since = secrets.token_hex(8), datetime.now(UTC)
    name = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in {"", "-c", "-m"} else "python"
    program = ConnectedClient(name=name, tool=None, agent=None, transport=EMBEDDED, since=since)

    async def read_presence() -> ProcessPresence:
        return ProcessPresence(
            id=process,
            pid=os.getpid(),
            version=program_version(),
            role="owner" if is_owner(runtime) else "attached",
            since=since,
            clients=[program],
            traffic=Traffic(bounds=(), minutes=[], operations=[]),
        )

    await send_heartbeats(runtime, process, read_presence, lambda _browser: None)
