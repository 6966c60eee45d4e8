"""Export of the audit log as lines of JSON, oldest first, in bounded parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.audit.query import (
    MOST_SCANNED,
    AuditRecord,
    Outcome,
    Word,
    filters_of,
    matches_filters,
    to_audit_record,
)
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.operations import operation
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.runtime import Checkpoint, IndexReader, Procedure, Slices

MOST_RECORDS: Final = 1_000
"""Records in one part: about 300 kB."""
Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A record's number, which fits into a key."""


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
class ExportAuditLog(Procedure[AuditPart], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read the linked records of the audit log, oldest first, to keep them elsewhere.

    Attributes:
        start: The first number.
        until: The last number; None in the first part: the newest.
    """

    runs = "snapshot"
    flushes_journals: ClassVar[bool] = True
    audit_action: ClassVar[str] = "export_audit"

    action: Annotated[Word, Meta(description="such as add_message or authenticate")] | None = None
    outcome: Annotated[Outcome | None, Meta(description="how it ended")] = None
    agent: Annotated[Word, Meta(description="acting agent")] | None = None
    user: Annotated[Word, Meta(description="for which user")] | None = None
    key_id: Annotated[Word, Meta(description="by which API key")] | None = None
    session_id: types.SessionId | None = None
    after: types.Start | None = None
    before: types.End | None = None
    start: Annotated[Number, Meta(description="first number that is wanted")] = 0
    until: Annotated[Number, Meta(description="last one; default the newest")] | None = None

    def run(self, reader: IndexReader) -> Slices[AuditPart]:
        """Return a part; reading it is recorded, too."""
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
            if matches_filters(self, found):
                records.append(found)
            yield
        filters = sorted(name for name in filters_of(self) if name not in {"start", "until"})
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
            self._follow(self._next, part)
            lines = [_line(record) for record in part.records]
            if self._next is None:
                lines.append(_line({"checkpoint": self.checkpoint}))
            if lines:
                return b"".join(lines)
        return b""

    def _follow(self, request: ExportAuditLog, part: AuditPart) -> None:
        if part.next_start is None or self.checkpoint is None:
            self._next = None
        else:
            self._next = msgspec.structs.replace(request, start=part.next_start, until=self.checkpoint.count)


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"
