"""The replies about the server: its health, statistics, store and clients, and advice."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.app.savings.requests import SavingsHistory, SavingsReport
from greenroom.actors.core.presence.requests import ConnectedClient, Rates
from greenroom.actors.core.replies.replies import Reply, SessionSummary
from greenroom.actors.core.validation.types import BRIEF

Severity = Literal["error", "warning"]
ServerStatus = Literal["ok", "stopping", "failed"]
"""The value of ``/healthz``: whether the server serves."""
PartStatus = Literal["ok", "off", "degraded", "failed"]

Whose = Annotated[Literal["mine", "all"], Meta(description="all: everybody's; needs the scope admin")]


class PartHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one part of the server.

    Attributes:
        status: ``degraded``: it works, but needs attention.
        cause: The reason, and the remedy if there is one.
    """

    part: str
    status: PartStatus
    cause: str


class Health(Reply, frozen=True, kw_only=True):
    """Answers `HealthCheck`.

    Attributes:
        status: The value of ``/healthz``: whether the server serves.
    """

    status: ServerStatus
    worst: PartStatus
    parts: Annotated[list[PartHealth], Meta(extra_json_schema=BRIEF)]
    checked_at: datetime


class ServerStats(Reply, frozen=True, kw_only=True):
    """Answers `GetStats`.

    Attributes:
        server: The output of `greenroom stats --json`; for administrators only.
    """

    version: str
    savings: Annotated[SavingsReport, Meta(extra_json_schema=BRIEF)]
    server: dict[str, Any] | UnsetType = UNSET


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """A count of items that the caller may see.

    Attributes:
        is_more: Whether there are more than were counted.
    """

    count: int
    is_more: bool = False
    newest: str | None = None
    newest_at: datetime | None = None


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the folder, with its clients.

    Attributes:
        pid: Its process id; for administrators only.
        role: Whether it owns the folder or is attached to the owner.
        clients: Its clients; callers who are no administrators see only their own.
        calls: Its requests in the last hour.
    """

    pid: int | None
    version: str
    role: Literal["owner", "attached"]
    is_this: bool
    since: datetime
    clients: list[ConnectedClient]
    left_out: int
    connections: dict[str, int]
    calls: int


class StoreView(msgspec.Struct, frozen=True, kw_only=True):
    """The store.

    Attributes:
        commits: The transactions since it was opened.
        last_commit_seconds: The duration of the last group commit.
        is_checked: Whether the whole file was checked.
        audit_records: The number of the last audit record.
    """

    used_bytes: int
    max_bytes: int
    file_bytes: int
    disk_free: int
    rows: int
    commits: int
    last_commit_seconds: float
    is_checked: bool
    audit_records: int


class EmbedderView(msgspec.Struct, frozen=True, kw_only=True):
    """The embedder: its model, its state, its backlog, and why it fails."""

    embedder: str
    state: str
    texts_waiting: int
    embedded: int
    queries: int
    queries_without: int
    trouble: str | None


class BackupView(msgspec.Struct, frozen=True, kw_only=True):
    """The last known backup: its time, file and size."""

    made_at: datetime
    path: str
    bytes: int


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A matter for the operator's attention."""

    severity: Severity
    topic: str
    sentence: str
    remedy: str


class LearnedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that was stored or changed lately, with the beginning of its text."""

    memory_id: str
    key: str
    namespace: str
    text: str
    author: str
    at: datetime
    unreviewed: bool


class LateDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that a session of late recorded; ``purpose`` is the session's."""

    session_id: str
    purpose: str
    what: str
    why: str | None
    by: str
    at: datetime


class DayOfWork(msgspec.Struct, frozen=True, kw_only=True):
    """A day in UTC: how many memories and sessions began."""

    begins: datetime
    memories: int
    sessions: int


class LatelyDone(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller's agents did of late, newest first.

    Attributes:
        running: Sessions that are open, by their last activity.
        ended: Sessions that are terminated or archived, likewise.
        days: The last days that memories or sessions began on, oldest first, without gaps.
    """

    learned: list[LearnedMemory]
    decided: list[LateDecision]
    running: list[SessionSummary]
    ended: list[SessionSummary]
    days: list[DayOfWork]


class Overview(Reply, frozen=True, kw_only=True):
    """Answers `GetOverview`. Absent members are only for administrators, or need another scope."""

    version: str
    health: list[PartHealth]
    advice: list[Advice]
    sessions: Counted | UnsetType = UNSET
    memories: Counted | UnsetType = UNSET
    corpora: Counted | UnsetType = UNSET
    processes: list[ProcessView]
    rates: Rates | UnsetType = UNSET
    store: StoreView | UnsetType = UNSET
    embedder: EmbedderView | UnsetType = UNSET
    backup: BackupView | UnsetType | None = UNSET
    savings: SavingsHistory
    lately: LatelyDone
    looked_at: datetime
