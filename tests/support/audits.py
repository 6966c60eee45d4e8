"""Reading what was added to the audit log, none of which may have what was planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from trio.testing import wait_all_tasks_blocked

from greenroom.actors.core.audit.query import ReadAuditLog

if TYPE_CHECKING:
    from greenroom.actors import AuditRecord
    from greenroom.runtime import RuntimeClient

CONTENT = "wyvernsleepsunderhill"
"""Planted wherever a text is free; no record may have it."""
SPOKEN = "known to nobody"
"""A passphrase, which no record may have either."""


async def last_number(runtime: RuntimeClient) -> int:
    await wait_all_tasks_blocked()
    log = await runtime.query(ReadAuditLog(limit=1_000_000))
    return log.records[-1].number or 0 if log.records else 0


async def since(runtime: RuntimeClient, number: int) -> list[AuditRecord]:
    """Return the records behind a number, once all that was told has arrived."""
    await wait_all_tasks_blocked()
    records = (await runtime.query(ReadAuditLog(start=number + 1, limit=1_000_000))).records
    text = msgspec.json.encode(records).decode()
    assert CONTENT not in text
    assert SPOKEN not in text
    return records
