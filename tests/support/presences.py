"""Processes of a folder, as they tell of themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from greenroom.actors.core.presence.requests import ConnectedClient, ProcessPresence, Traffic

SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def client_of(**told: Any) -> ConnectedClient:
    """Return a client; what is not told is plain."""
    usual: dict[str, Any] = {"name": None, "tool": None, "agent": "bot", "transport": "stdio", "since": SINCE}
    return ConnectedClient(**usual | told)


def process_of(name: str, *clients: ConnectedClient, **told: Any) -> ProcessPresence:
    """Return a process with these clients."""
    usual: dict[str, Any] = {
        "id": name,
        "pid": 4_242,
        "version": "1",
        "role": "attached",
        "since": SINCE,
        "traffic": Traffic(bounds=(), minutes=[], operations=[]),
    }
    return ProcessPresence(**usual | {"clients": list(clients)} | told)


def process_with(browser: str) -> ProcessPresence:
    """Return a process at which a browser has logged in."""
    return process_of(browser, client_of(transport="browser", browser=browser))
