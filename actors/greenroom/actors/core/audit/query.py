"""Reading the audit log: by people who may, newest first, in pages."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.replies import ListReply, Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.times import to_datetime
from greenroom.runtime import Checkpoint, IndexReader, JournalReport, Query, RollbackGap, Slices

MOST_SCANNED: Final = 20_000
"""So many records are looked at for one page; then it ends, and its cursor goes on."""

ORDERLY: Final = timedelta(minutes=1)
"""Records are in the order in which they were committed; their times are, but for less than this."""

_NAMED: Final = ("action", "outcome", "agent", "user", "key_id", "session_id")
Outcome = Literal["done", "denied", "failed"]
Word = Annotated[str, Meta(min_length=1, max_length=100)]


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the audit log.

    Attributes:
        number: Its place; null for one from before the log was linked.
        time: When.
        times: How often the same happened about then.
        action: What was done.
        outcome: How it ended.
        agent: The agent; null for the server itself, or for somebody who is nobody yet.
        agent_type: Its type.
        user: Whom it works for.
        key_id: By which API key it came.
        address: From where.
        session_id: The session that it is about.
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
    """Answers `GetAuditLog`, newest first. ``scanned`` is how many records were looked at."""

    lists: ClassVar[tuple[str, ...]] = ("records",)

    records: list[AuditRecord]
    count: int
    scanned: int
    next_cursor: str | None


class GetAuditLog(Query[AuditLog], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read the audit log, newest first."""

    flushes_journals: ClassVar[bool] = True

    action: Annotated[Word, Meta(description="such as add_message or authenticate")] | None = None
    outcome: Annotated[Outcome | None, Meta(description="how it ended")] = None
    agent: Annotated[Word, Meta(description="whose deeds")] | None = None
    user: Annotated[Word, Meta(description="for which user")] | None = None
    key_id: Annotated[Word, Meta(description="by which API key")] | None = None
    session_id: types.SessionId | None = None
    after: types.Start | None = None
    before: types.End | None = None
    cursor: types.Cursor | None = None
    limit: types.Limit200 = 50

    def run(self, reader: IndexReader) -> Slices[AuditLog]:
        """Answer a page; reading the log is a deed, too."""
        filters = {name: value for name, value in filters_of(self).items() if name not in {"cursor", "limit"}}
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
            if fits(self, found):
                records.append(found)
            if reader.should_yield():
                yield
        audit_record.record_read(reader, reader.principal, "get_audit_log", None, filters=sorted(filters))
        return AuditLog(
            records=records,
            count=len(records),
            scanned=scanned,
            next_cursor=paging.encode(position, binding) if has_more else None,
        )


class ReadAuditLog(Query[AuditLog], frozen=True, kw_only=True):
    """Read the audit log, oldest first, from a number on, as it grows."""

    flushes_journals: ClassVar[bool] = True

    start: int = 0
    limit: int = 1_000

    def run(self, reader: IndexReader) -> Slices[AuditLog]:
        """Answer a page of linked records."""
        records: list[AuditRecord] = []
        for entry in reader.entries(audit_record.JOURNAL, AuditRow, start=self.start):
            if len(records) == self.limit:
                break
            records.append(shown(entry.value, entry.time, entry.times, entry.number))
            if reader.should_yield():
                yield
        return AuditLog(records=records, count=len(records), scanned=len(records), next_cursor=None)


class AuditChecked(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `CheckAudit`.

    Attributes:
        report: What is there, and what is wrong with it.
        breaks: Where the log was found not to go on from what had been seen, when the store was opened.
        checkpoint: What the log is now.
    """

    report: JournalReport
    breaks: list[RollbackGap]
    checkpoint: Checkpoint


class CheckAudit(Query[AuditChecked], frozen=True, kw_only=True):
    """Check the audit log against its links, against what was seen of it before, and against checkpoints."""

    flushes_journals: ClassVar[bool] = True

    checkpoints: tuple[Checkpoint, ...] = ()

    def run(self, reader: IndexReader) -> Slices[AuditChecked]:
        """Answer with what was found; a check is a deed, too."""
        report = yield from reader.check(audit_record.JOURNAL, self.checkpoints)
        breaks = reader.rollback_gaps(audit_record.JOURNAL)
        found = len(report.findings)
        outcome = "failed" if found else "done"
        audit_record.record_read(
            reader, reader.principal, "verify_audit", None, outcome=outcome, findings=found
        )
        return AuditChecked(report=report, breaks=breaks, checkpoint=reader.checkpoint(audit_record.JOURNAL))


class AuditGap(msgspec.Struct, frozen=True, kw_only=True):
    """Records that had been seen and were not there when the store was opened.

    Attributes:
        first: The first of them.
        last: The last of them that was seen.
        found_at: When that was found.
        restored: Whether a backup had been put in the store's place by `greenroom restore`.
    """

    first: int
    last: int
    found_at: datetime
    restored: bool


class AuditState(Reply, frozen=True, kw_only=True):
    """Answers `GetAuditState`.

    Attributes:
        first: The number of the oldest record that is kept.
        last: The number of the newest one.
        gaps: Where the log did not go on from what had been seen of it.
    """

    first: int
    last: int
    gaps: list[AuditGap]


class GetAuditState(Query[AuditState], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Tell how much the audit log has and where some was missing, without a check of all of it."""

    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> AuditState:
        """Look at its two ends."""
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
    """Answers `VerifyAudit`.

    Attributes:
        is_intact: Whether the log is what the server wrote.
        records: How many were checked.
        wrong: What is wrong, in words.
        summary: All of it in a sentence.
    """

    is_intact: bool
    records: int
    wrong: list[str]
    summary: str


class VerifyAudit(Query[AuditVerified], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Check every record of the audit log against its links, and against what was seen of it before."""

    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Slices[AuditVerified]:
        """Answer with what was found."""
        checked = yield from CheckAudit().run(reader)
        report, lost = checked.report, [gap for gap in checked.breaks if not gap.restored]
        wrong = [str(each) for each in report.findings]
        wrong += [f"records {gap.first} to {gap.last} had been seen and are not there" for gap in lost]
        summary = f"{report.rows:,} records are intact" if not wrong else "; ".join(wrong)
        return AuditVerified(is_intact=not wrong, records=report.rows, wrong=wrong, summary=summary)


class CheckpointAudit(Query[Checkpoint], frozen=True, kw_only=True):
    """Take a checkpoint of the audit log."""

    flushes_journals: ClassVar[bool] = True

    def run(self, reader: IndexReader) -> Checkpoint:
        """Answer with it."""
        return reader.checkpoint(audit_record.JOURNAL)


_PLACE_BYTES: Final = 9
_LINKED: Final = b"j"
_UNLINKED: Final = b"o"


def _newest_first(reader: IndexReader, after: bytes | None) -> Iterator[tuple[bytes, AuditRecord]]:
    """Yield the linked records, then those from before, each with its place."""
    if after is None or after.startswith(_LINKED):
        start = None if after is None else max(0, int.from_bytes(after[1:_PLACE_BYTES]) - 1)
        for entry in reader.entries(audit_record.JOURNAL, AuditRow, start=start, reverse=True):
            place = _LINKED + entry.number.to_bytes(_PLACE_BYTES - 1)
            yield place, shown(entry.value, entry.time, entry.times, entry.number)
    old = after[1:] if after is not None and after.startswith(_UNLINKED) else None
    for row in reader.rows(audit_record.INDEX, AuditRow, start=old, reverse=True):
        if row.sort_key != old:
            yield _UNLINKED + row.sort_key, shown(row.value, row.value.at, 1, None)


def filters_of(asked: msgspec.Struct) -> dict[str, Any]:
    """Return what is given of a request's fields."""
    return {name: value for name, value in msgspec.structs.asdict(asked).items() if value is not None}


def fits(asked: Any, found: AuditRecord) -> bool:
    """Return whether a record fits the filters of a request for some."""
    if any(getattr(asked, name) not in {None, getattr(found, name)} for name in _NAMED):
        return False
    if asked.after is not None and found.time < asked.after:
        return False
    return asked.before is None or found.time < asked.before


def shown(row: AuditRow, time: int, times: int, number: int | None) -> AuditRecord:
    """Return a row as it is shown."""
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
