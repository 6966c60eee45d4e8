"""The replies of the overview: the store, its clients, the server's health, and advice."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.app.administration.server import PartHealth
from greenroom.actors.app.savings.requests import SavingsHistory
from greenroom.actors.core.presence.requests import ConnectedClient, Rates
from greenroom.actors.core.replies.replies import Reply

Severity = Literal["error", "warning"]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """A count of what the caller may see.

    Attributes:
        count: The number.
        is_more: Whether there are more, not counted.
        newest: The item that changed last.
        newest_at: The time of that change.
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
        is_this: Whether it is the answering process.
        clients: Its clients; callers who are no administrators see only their own.
        left_out: How many more clients there are.
        connections: Open connections of each transport.
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
        used_bytes: The size of its content.
        max_bytes: Its largest allowed size.
        file_bytes: The length of its file.
        disk_free: Free bytes on its disk.
        rows: The number of its rows.
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
    """A matter for the operator's attention.

    Attributes:
        topic: Its subject.
        sentence: What is wrong.
        remedy: What to do.
    """

    severity: Severity
    topic: str
    sentence: str
    remedy: str


class Overview(Reply, frozen=True, kw_only=True):
    """Answers `GetOverview`. Absent members are for administrators, or need another scope.

    Attributes:
        health: The health of every part.
        advice: Matters for attention, errors first.
    """

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
    looked_at: datetime
