"""Export of the audit log as lines of JSON, oldest first, in bounded parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.query import MOST_SCANNED, AuditRecord, FilteredAudit, to_audit_record
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies.replies import Reply
from greenroom.runtime import Checkpoint, IndexReader, Slices

MOST_RECORDS: Final = 1_000
"""The most records in one part: about 300 kB."""
Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A record's number; it fits into a key."""
_encode_lines = msgspec.json.Encoder().encode_lines


class AuditPart(Reply, frozen=True, kw_only=True):
    """Answers `ExportAuditLog`, oldest first.

    Attributes:
        next_start: Where the next part starts; null after the last one.
        checkpoint: The end of the export, taken with the first part; null in the others.
    """

    records: list[AuditRecord]
    count: int
    next_start: int | None
    checkpoint: Checkpoint | None


@operation(
    "export_audit_log",
    scope="audit:read",
)
class ExportAuditLog(FilteredAudit[AuditPart], frozen=True, kw_only=True):
    """Read the linked records of the audit log, oldest first, to keep them elsewhere.

    Without ``until`` it is the first part, up to the newest record.
    """

    audit_action: ClassVar[str] = "export_audit"

    start: Annotated[Number, Meta(description="first number that is wanted")] = 0
    until: Annotated[Number, Meta(description="last one; default the newest")] | None = None

    def run(self, reader: IndexReader) -> Slices[AuditPart]:
        """Return a part; record the reading, too."""
        checkpoint = reader.checkpoint(audit_record.JOURNAL) if self.until is None else None
        until = self.until if checkpoint is None else checkpoint.count
        records: list[AuditRecord] = []
        following = None
        for scanned, entry in enumerate(reader.entries(audit_record.JOURNAL, AuditRow, start=self.start)):
            if until is not None and entry.number > until:
                break
            if len(records) == MOST_RECORDS or scanned == MOST_SCANNED:
                following = entry.number
                break
            found = to_audit_record(entry.value, entry.time, entry.times, entry.number)
            if self.matches(found):
                records.append(found)
            yield
        filters = sorted(name for name in self.filters() if name not in {"start", "until"})
        audit_record.record_read(
            reader,
            reader.principal,
            self.audit_action,
            None,
            filters=filters,
            start=self.start,
            records=len(records),
        )
        return AuditPart(records=records, count=len(records), next_start=following, checkpoint=checkpoint)


class AuditLines:
    """An export as lines of JSON: the records, then the checkpoint."""

    def __init__(self, ask: Callable[[ExportAuditLog], Awaitable[AuditPart]], first: ExportAuditLog) -> None:
        self._ask = ask
        self._next: ExportAuditLog | None = first
        self.count = 0
        self.checkpoint: Checkpoint | None = None

    async def more(self) -> bytes:
        """Return the next lines; empty at the end."""
        while self._next is not None:
            part = await self._ask(self._next)
            self.checkpoint = self.checkpoint or part.checkpoint
            self.count += part.count
            lines: list[Any] = list(part.records)
            if part.next_start is None or self.checkpoint is None:
                self._next = None
                lines.append({"checkpoint": self.checkpoint})
            else:
                until = self.checkpoint.count
                self._next = msgspec.structs.replace(self._next, start=part.next_start, until=until)
            if lines:
                return _encode_lines(lines)
        return b""
