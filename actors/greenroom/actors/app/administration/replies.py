"""What people see first: what there is, who is connected, how the server is, what should be done."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.app.administration.server import PartHealth
from greenroom.actors.app.savings.requests import SavingsReport
from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.actors.core.replies.replies import Reply

Severity = Literal["error", "warning"]


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are that the caller may see.

    Attributes:
        count: The number.
        is_more: Whether there are more, which were not counted.
        newest: What changed last.
        newest_at: When.
    """

    count: int
    is_more: bool = False
    newest: str | None = None
    newest_at: datetime | None = None


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the folder, and who is connected to it.

    Attributes:
        pid: Its process id; for administrators alone.
        role: Whether it owns the folder, or is attached to the one that does.
        is_this: Whether it answers here.
        clients: Who is connected: to who is no administrator, their own clients.
        left_out: How many more clients there are.
        connections: Open connections of each transport.
        calls: What was asked of it in the last hour.
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


class RatesOfMinute(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a minute: how many a second, how many failed, the times that half and 99 % kept."""

    minute: datetime
    per_second: float
    failed: int
    median_ms: float | None
    p99_ms: float | None


class OperationRate(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of one kind in the last hour, likewise."""

    operation: str
    calls: int
    failed: int
    median_ms: float | None
    p99_ms: float | None


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of the last hour, of all processes together; those most asked first."""

    calls: int
    minutes: list[RatesOfMinute]
    operations: list[OperationRate]


class StoreView(msgspec.Struct, frozen=True, kw_only=True):
    """The store.

    Attributes:
        used_bytes: Size of what is in it.
        max_bytes: How large it may grow.
        file_bytes: Length of its file.
        disk_free: Free bytes on its disk.
        rows: Its rows.
        commits: Transactions since it was opened.
        last_commit_seconds: How long the last group of them took.
        is_checked: Whether all of its file was found sound.
        audit_records: The number of the audit log's last record.
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
    """The embedder: which, how it is, what waits for it, and why it fails."""

    embedder: str
    state: str
    texts_waiting: int
    embedded: int
    queries: int
    queries_without: int
    trouble: str | None


class BackupView(msgspec.Struct, frozen=True, kw_only=True):
    """The last backup that is known of: when, into which file, how large."""

    made_at: datetime
    path: str
    bytes: int


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody should look at.

    Attributes:
        topic: What it is about.
        sentence: What is wrong.
        remedy: What to do.
    """

    severity: Severity
    topic: str
    sentence: str
    remedy: str


class PeriodSavings(msgspec.Struct, frozen=True, kw_only=True):
    """What was saved in one hour or day, that begins at a time, in UTC.

    Attributes:
        saved_tokens: Tokens prevented.
        total_tokens: Of it and all periods before it together.
        by_operation: Tokens prevented by each operation.
        hit_rates: Hits by lookups, of each level of caches in which somebody looked.
    """

    begins: datetime
    saved_tokens: int
    total_tokens: int
    by_operation: dict[str, int]
    hit_rates: dict[str, float]


class SavingsHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What was saved over time: in each of the last 48 hours, and of the last 90 days.

    Attributes:
        whose: ``all``: everybody's; ``mine``: what the caller's user did.
        report: The sums of the days.
    """

    whose: Literal["mine", "all"]
    hours: list[PeriodSavings]
    days: list[PeriodSavings]
    report: SavingsReport


class Overview(Reply, frozen=True, kw_only=True):
    """Answers `GetOverview`. What has no value here is for administrators, or needs another scope.

    Attributes:
        health: How every part is.
        advice: What should be looked at, errors first.
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
