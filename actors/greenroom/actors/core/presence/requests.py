"""Who is connected to the processes of a folder, and how much is asked of them: what each tells the owner."""

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
        name: Its own name for itself; null where it told none.
        tool: The tool that it is taken for.
        agent: The agent that it works as; null where nobody has asked yet.
        user: Whom that works for.
        transport: How it is connected; ``browser`` for one that has logged in.
        since: Since when.
        open_requests: What it asked and is not answered.
        key_id: The API key by which it came.
        address: Where it comes from.
        browser: What names a browser, to log it out.
    """

    name: str | None
    tool: str | None
    agent: str | None
    agent_type: str | None = None
    user: str | None = None
    transport: str
    since: datetime
    open_requests: int = 0
    key_id: str | None = None
    address: str | None = None
    browser: str | None = None


class MinuteTraffic(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one minute.

    Attributes:
        minute: Which one, since 1970 UTC.
        buckets: How many took how long: a count for each bound, and one beyond.
        failed: How many of them ended with an error.
    """

    minute: int
    buckets: tuple[int, ...]
    failed: int


class OperationTraffic(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one kind in the last hour, likewise."""

    operation: str
    buckets: tuple[int, ...]
    failed: int


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one process.

    Attributes:
        bounds: The upper bounds of the time classes, in seconds.
        minutes: The minutes of the last hour in which there were some, oldest first.
        operations: Each kind of request in the last hour.
    """

    bounds: tuple[float, ...]
    minutes: list[MinuteTraffic]
    operations: list[OperationTraffic]


class ProcessPresence(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the folder.

    Attributes:
        id: Random, for the life of the process.
        pid: Its process id.
        version: Of its program.
        role: Whether it owns the folder.
        since: When it was started.
        clients: Who is connected to it.
        clients_left_out: How many more there are.
        connections: Open connections of each transport.
        traffic: What was asked of it.
        hooks_waiting: Events of hooks that wait to be taken; of the owner alone.
        hooks_refused: Events of hooks that could not be read, likewise.
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
    """Tell the owner of the folder of a process. Not a tool.

    It is answered with the browsers that the process is to log out.
    """

    process: ProcessPresence


class LeavePresence(Message[None], frozen=True, kw_only=True):
    """Say that a process ends. Not a tool."""

    process: str


class ReadPresence(Message[list[ProcessPresence]], frozen=True, kw_only=True):
    """Read what processes told in the last seconds, the owner first. Not a tool."""


class EndBrowserSession(Message[bool], frozen=True, kw_only=True):
    """Have a browser logged out by its process; answered with whether there is such a one. Not a tool."""

    browser: str


class BrowserEnded(Reply, frozen=True, kw_only=True):
    """Answers `EndBrowser`."""

    browser: str
