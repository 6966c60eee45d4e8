"""Audit records: who did what when, in the same commit as the deed, never any content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from greenroom.runtime import Context

INDEX = "audit"


class AuditRow(msgspec.Struct, frozen=True, array_like=True):
    """One record. ``agent`` is None for what the server does by itself, such as expiry."""

    at: int
    agent: str | None
    session: str | None
    action: str
    details: dict[str, Any]


def record(context: Context, action: str, session: str | None, **details: Any) -> None:
    """Stage an audit record of what the sender of the present message does.

    Rows sort by time; random bytes tell those of one actor and one microsecond apart.
    """
    agent = None if context.principal is None else context.principal.agent_id
    row = AuditRow(context.now, agent, session, action, details)
    context.put_row(INDEX, context.now.to_bytes(8) + context.random.randbytes(8), row)
