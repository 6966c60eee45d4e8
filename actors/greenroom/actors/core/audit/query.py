"""Reading and verifying the audit log, newest first, in pages."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.replies import ListReply, Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.runtime import Checkpoint, IndexReader, JournalReport, Procedure, RollbackGap, Slices

R_co = TypeVar("R_co", covariant=True)
MOST_SCANNED: Final = 20_000
"""At most this many records are scanned for one page; its cursor continues after them."""

ORDERLY: Final = timedelta(minutes=1)
"""The times of records may deviate this much from the order of their commits."""

_NAMED: Final = ("action", "outcome", "agent", "user", "key_id", "session_id")
Outcome = Literal["done", "denied", "failed"]
Word = Annotated[str, Meta(min_length=1, max_length=100)]


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the audit log.

    Attributes:
        number: Its place; null if it is older than the chain.
        times: How often it happened around that time.
        agent: The agent; null for the server itself and for unauthenticated clients.
        user: The user it works for.
        session_id: The session concerned.
        details: Targets, sizes, counts; never contents.
    """

    number: int | None
    time: datetime
    times: int
    action: str
    outcome: str
    agent: str | None
    agent_type: str | None
    user: str | None
    key_id: str | None
    address: str | None
    session_id: str | None
    details: dict[str, Any]


class AuditLog(ListReply, frozen=True, kw_only=True):
    """Answers `GetAuditLog`, newest first. ``scanned`` counts the records read."""

    lists: ClassVar[tuple[str, ...]] = ("records",)

    records: list[AuditRecord]
    count: int
    scanned: int
    next_cursor: str | None


class FilteredAudit(Procedure[R_co], Generic[R_co], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """The filters of requests that read the audit log."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    action: Annotated[Word, Meta(description="such as add_message or authenticate")] | None = None
    outcome: Annotated[Outcome | None, Meta(description="how it ended")] = None
    agent: Annotated[Word, Meta(description="acting agent")] | None = None
    user: Annotated[Word, Meta(description="for which user")] | None = None
    key_id: Annotated[Word, Meta(description="by which API key")] | None = None
    session_id: types.SessionId | None = None
    after: types.Start | None = None
    before: types.End | None = None

    def filters(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}

    def matches(self, found: AuditRecord) -> bool:
        """Return whether a record matches the filters."""
        if any(getattr(self, name) not in {None, getattr(found, name)} for name in _NAMED):
            return False
        if self.after is not None and found.time < self.after:
            return False
        return self.before is None or found.time < self.before


@operation(
    "get_audit_log",
    scope="audit:read",
    tool=ToolText(
        title="Read audit log",
        description="See who did what and what was denied, newest first, never contents; page by page.",
        weight=1,
    ),
)
class GetAuditLog(FilteredAudit[AuditLog], frozen=True, kw_only=True):
    """Read the audit log, newest first."""

    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50

    def run(self, reader: IndexReader) -> Slices[AuditLog]:
        """Return a page; record the reading, too."""
        filters = {name: value for name, value in self.filters().items() if name not in {"cursor", "limit"}}
        binding = f"audit {msgspec.json.encode(filters).decode()}"
        place = None if self.cursor is None else paging.decode(self.cursor, binding)
        records: list[AuditRecord] = []
        scanned = 0
        position = b""
        has_more = False
        for place_of_row, found in _newest_first(reader, place):
            if self.after is not None and found.time < self.after - ORDERLY:
                break
            if len(records) == self.limit or scanned == MOST_SCANNED:
                has_more = True
                break
            scanned += 1
            position = place_of_row
            if self.matches(found):
                records.append(found)
            yield
        audit_record.record_read(reader, reader.principal, "get_audit_log", None, filters=sorted(filters))
        return AuditLog(
            records=records,
            count=len(records),
            scanned=scanned,
            next_cursor=paging.encode(position, binding) if has_more else None,
        )


class ReadAuditLog(Procedure[AuditLog], frozen=True, kw_only=True):
    """Read the growing audit log, oldest first, starting at a record number."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    start: int = 0
    limit: int = 1_000

    def run(self, reader: IndexReader) -> Slices[AuditLog]:
        """Return a page of linked records."""
        records: list[AuditRecord] = []
        for entry in reader.entries(audit_record.JOURNAL, AuditRow, start=self.start):
            if len(records) == self.limit:
                break
            records.append(to_audit_record(entry.value, entry.time, entry.times, entry.number))
            yield
        return AuditLog(records=records, count=len(records), scanned=len(records), next_cursor=None)


class AuditChecked(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CheckAudit`; ``breaks`` are gaps found when the store was opened."""

    report: JournalReport
    breaks: list[RollbackGap]
    checkpoint: Checkpoint


class CheckAudit(Procedure[AuditChecked], frozen=True, kw_only=True):
    """Verify the audit log by its links, its last seen state, and checkpoints."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    checkpoints: tuple[Checkpoint, ...] = ()

    def run(self, reader: IndexReader) -> Slices[AuditChecked]:
        """Return the findings; record the check, too."""
        report = yield from reader.check(audit_record.JOURNAL, self.checkpoints)
        breaks = reader.rollback_gaps(audit_record.JOURNAL)
        found = len(report.findings)
        outcome = "failed" if found else "done"
        audit_record.record_read(
            reader, reader.principal, "verify_audit", None, outcome=outcome, findings=found
        )
        return AuditChecked(report=report, breaks=breaks, checkpoint=reader.checkpoint(audit_record.JOURNAL))


class AuditGap(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were seen before and were missing when the store was opened.

    ``restored`` says that `greenroom restore` had replaced the store by a backup.
    """

    first: int
    last: int
    found_at: datetime
    restored: bool


class AuditState(Reply, frozen=True, kw_only=True):
    """Answers `GetAuditState` with the numbers of the first and last record, and known gaps."""

    first: int
    last: int
    gaps: list[AuditGap]


@operation(
    "get_audit_state",
    scope="audit:read",
)
class GetAuditState(Procedure[AuditState], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Return the extent and the known gaps of the audit log, without a full check."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> AuditState:
        """Read both ends of the log."""
        first = next(iter(reader.entries(audit_record.JOURNAL, AuditRow)), None)
        return AuditState(
            first=0 if first is None else first.number,
            last=reader.checkpoint(audit_record.JOURNAL).count,
            gaps=[
                AuditGap(
                    first=gap.first, last=gap.last, found_at=to_datetime(gap.time), restored=gap.restored
                )
                for gap in reader.rollback_gaps(audit_record.JOURNAL)
            ],
        )


class AuditVerified(Reply, frozen=True, kw_only=True):
    """Answers `VerifyAudit`, with the faults, and all of it, in words."""

    is_intact: bool
    records: int
    wrong: list[str]
    summary: str


@operation(
    "verify_audit",
    scope="audit:read",
)
class VerifyAudit(Procedure[AuditVerified], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Verify every record of the audit log by links and last seen state."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Slices[AuditVerified]:
        """Return the findings."""
        checked = yield from CheckAudit().run(reader)
        report, lost = checked.report, [gap for gap in checked.breaks if not gap.restored]
        wrong = [str(each) for each in report.findings]
        wrong += [f"records {gap.first} to {gap.last} had been seen and are not there" for gap in lost]
        summary = f"{report.rows:,} records are intact" if not wrong else "; ".join(wrong)
        return AuditVerified(is_intact=not wrong, records=report.rows, wrong=wrong, summary=summary)


class CheckpointAudit(Procedure[Checkpoint], frozen=True, kw_only=True):
    """Take a checkpoint of the audit log."""

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Checkpoint:
        """Return the checkpoint."""
        return reader.checkpoint(audit_record.JOURNAL)


_PLACE_BYTES: Final = 9
_LINKED: Final = b"j"
_UNLINKED: Final = b"o"


def _newest_first(reader: IndexReader, after: bytes | None) -> Iterator[tuple[bytes, AuditRecord]]:
    """Yield the linked records, then records from before the chain, each with its position."""
    if after is None or after.startswith(_LINKED):
        start = None if after is None else max(0, int.from_bytes(after[1:_PLACE_BYTES]) - 1)
        for entry in reader.entries(audit_record.JOURNAL, AuditRow, start=start, reverse=True):
            place = _LINKED + entry.number.to_bytes(_PLACE_BYTES - 1)
            yield place, to_audit_record(entry.value, entry.time, entry.times, entry.number)
    old = after[1:] if after is not None and after.startswith(_UNLINKED) else None
    for row in reader.rows(audit_record.INDEX, AuditRow, start=old, reverse=True):
        if row.sort_key != old:
            yield _UNLINKED + row.sort_key, to_audit_record(row.value, row.value.at, 1, None)


def to_audit_record(row: AuditRow, time: int, times: int, number: int | None) -> AuditRecord:
    """Return the public view of a row."""
    return AuditRecord(
        number=number,
        time=to_datetime(time),
        times=times,
        action=row.action,
        outcome=row.outcome,
        agent=row.agent,
        agent_type=row.agent_type,
        user=row.user,
        key_id=row.key_id,
        address=row.address,
        session_id=row.session,
        details=row.details,
    )
