"""The audit log as lines of JSON, oldest record first, in parts of bounded size."""

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
    fits,
    shown,
)
from greenroom.actors.core.audit.record import AuditRow
from greenroom.actors.core.replies.replies import Reply
from greenroom.actors.core.validation import types
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.runtime import Checkpoint, IndexReader, Query, Slices

MOST_RECORDS: Final = 1_000
"""Records in one part: about 300 kB."""
Number = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""A record's number, which fits into a key."""


class AuditPart(Reply, frozen=True, kw_only=True):
    """Answers `ExportAuditLog`, oldest first.

    Attributes:
        next_start: From where the next part goes on; null after the last one.
        checkpoint: What the log was when the first part was read, up to which it goes; null in the others.
    """

    records: list[AuditRecord]
    count: int
    next_start: int | None
    checkpoint: Checkpoint | None


class ExportAuditLog(Query[AuditPart], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True):
    """Read the linked records of the audit log, oldest first, to keep them elsewhere.

    Attributes:
        start: The first number that is wanted.
        until: The last one; None, of the first part, for what there is.
    """

    flushes_journals: ClassVar[bool] = True
    deed: ClassVar[str] = "export_audit"

    action: Annotated[Word, Meta(description="such as add_message or authenticate")] | None = None
    outcome: Annotated[Outcome | None, Meta(description="how it ended")] = None
    agent: Annotated[Word, Meta(description="whose deeds")] | None = None
    user: Annotated[Word, Meta(description="for which user")] | None = None
    key_id: Annotated[Word, Meta(description="by which API key")] | None = None
    session_id: types.SessionId | None = None
    after: types.Start | None = None
    before: types.End | None = None
    start: Annotated[Number, Meta(description="first number that is wanted")] = 0
    until: Annotated[Number, Meta(description="last one; default the newest")] | None = None

    def run(self, reader: IndexReader) -> Slices[AuditPart]:
        """Answer a part; each is a deed, too."""
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
            found = shown(entry.value, entry.time, entry.times, entry.number)
            if fits(self, found):
                records.append(found)
            if reader.should_yield():
                yield
        filters = sorted(name for name in filters_of(self) if name not in {"start", "until"})
        audit_record.record_read(
            reader, reader.principal, self.deed, None, filters=filters, start=self.start, records=len(records)
        )
        return AuditPart(records=records, count=len(records), next_start=following, checkpoint=checkpoint)


class AuditLines:
    """An export as lines: of each record its JSON, at the end of the checkpoint up to which it goes.

    Args:
        ask: Asks for a part.
        first: The first part, with the filters.

    Attributes:
        count: How many records there were so far.
        checkpoint: Up to where it goes, once the first part is here.
    """

    def __init__(self, ask: Callable[[ExportAuditLog], Awaitable[AuditPart]], first: ExportAuditLog) -> None:
        self._ask = ask
        self._next: ExportAuditLog | None = first
        self.count = 0
        self.checkpoint: Checkpoint | None = None

    async def more(self) -> bytes:
        """Return the next lines; nothing once all are there."""
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

    def _follow(self, asked: ExportAuditLog, part: AuditPart) -> None:
        if part.next_start is None or self.checkpoint is None:
            self._next = None
        else:
            self._next = msgspec.structs.replace(asked, start=part.next_start, until=self.checkpoint.count)


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"
