"""Messages and replies about presence: connected clients, and the traffic of each process."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.replies.replies import Reply
from greenroom.runtime import Message

BrowserId = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{16}(?!\n)$",
        description="of get_overview's clients",
        extra={"takes": "16 of 0-9 a-f"},
    ),
]


class ConnectedClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client or a browser that is connected to a process.

    Attributes:
        name: Its own name; null if it sent none.
        tool: The program that it seems to be.
        transport: Its transport; ``browser`` for a logged-in browser.
        open_requests: The number of requests that have no reply yet.
        last_request: When its last request came; null for a browser, or if there was none.
        browser: The id by which a browser is logged out.
    """

    name: str | None
    tool: str | None
    agent: str | None
    agent_type: str | None = None
    user: str | None = None
    transport: str
    since: datetime
    open_requests: int = 0
    last_request: datetime | None = None
    key_id: str | None = None
    address: str | None = None
    browser: str | None = None


class MinuteTraffic(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one minute since 1970 UTC, in a histogram of their times."""

    minute: int
    buckets: tuple[int, ...]
    failed: int


class OperationTraffic(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one operation in the last hour."""

    operation: str
    buckets: tuple[int, ...]
    failed: int


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one process in the last hour; bounds of its histograms are seconds."""

    bounds: tuple[float, ...]
    minutes: list[MinuteTraffic]
    operations: list[OperationTraffic]


class ProcessPresence(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the folder.

    Attributes:
        id: A random id, constant while the process runs.
        clients_left_out: How many more clients there are.
        connections: Open connections of each transport.
        hooks_waiting: Hook events in the spool; only from the owner.
        hooks_refused: Unreadable hook events; only from the owner.
    """

    id: str
    pid: int
    version: str
    role: Literal["owner", "attached"]
    since: datetime
    clients: list[ConnectedClient]
    clients_left_out: int = 0
    connections: dict[str, int] = {}
    traffic: Traffic
    hooks_waiting: int = 0
    hooks_refused: int = 0


class TellPresence(Message[list[str]], frozen=True, kw_only=True):
    """Send the owner of the folder a heartbeat of a process. Not a tool.

    The reply lists the browsers that the process must log out.
    """

    process: ProcessPresence


class LeavePresence(Message[None], frozen=True, kw_only=True):
    """Report that a process ends. Not a tool."""

    process: str


class ReadPresence(Message[list[ProcessPresence]], frozen=True, kw_only=True):
    """Read the processes with heartbeats in the last seconds, owner first. Not a tool."""


class EndBrowserSession(Message[bool], frozen=True, kw_only=True):
    """Log out a browser; the reply says whether it is known. Not a tool."""

    browser: str


class BrowserEnded(Reply, frozen=True, kw_only=True):
    """Answers `EndBrowser`."""

    browser: str


class RatesOfMinute(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a minute: rate, failures, and the median and 99th percentile of times."""

    minute: datetime
    per_second: float
    failed: int
    median_ms: float | None
    p99_ms: float | None


class OperationRate(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one operation in the last hour."""

    operation: str
    calls: int
    failed: int
    median_ms: float | None
    p99_ms: float | None


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of the last hour of all processes, the most frequent operations first."""

    calls: int
    minutes: list[RatesOfMinute]
    operations: list[OperationRate]
