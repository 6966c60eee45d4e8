"""Audit records: who did what when, and what was denied; never contents or secrets.

A change is recorded in its own commit (`record`). Searches, denials and other reads are buffered and follow
within a second (`record_read`), so no request waits for them.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.runtime import Address, Context, Journal, Message, Refusal

INDEX: Final = "audit"
"""The index of records from before the journal existed; they stay there until they expire."""

JOURNAL: Final = "audit"
LONGEST: Final = 200
"""The most characters of a text in a record; longer texts are truncated."""


class AuditRow(msgspec.Struct, frozen=True, array_like=True):
    """One record. ``agent`` is None if the server acted by itself, as in expiry.

    Attributes:
        at: The time in microseconds since 1970 UTC; 0 if the journal has the time.
        action: What was done: usually a tool's name.
        details: Targets, sizes, counts.
        outcome: ``done``, ``denied`` or ``failed``.
        user: The user the agent works for.
    """

    at: int
    agent: str | None
    session: str | None
    action: str
    details: dict[str, Any]
    outcome: str = "done"
    agent_type: str | None = None
    user: str | None = None
    key_id: str | None = None
    address: str | None = None


class AuditBuffer(Protocol):
    """Buffers audit records: the context of a handler or procedure, an index reader, a runtime."""

    def append_soon(self, journal: str, value: Any) -> None:
        """Buffer a row of a journal; it is written with a later commit."""


def row(
    principal: Principal | None,
    action: str,
    session: str | None,
    details: dict[str, Any],
    outcome: str = "done",
) -> AuditRow:
    """Return the record of an action."""
    if principal is None:
        return AuditRow(0, None, session, action, details, outcome)
    if principal.seen_by is not None:
        details = {**details, "seen_by": principal.seen_by}
    return AuditRow(
        0,
        principal.agent_id,
        session,
        action,
        details,
        outcome,
        principal.agent_type,
        principal.user,
        principal.key_id,
        principal.address,
    )


def record(context: Context, action: str, session: str | None, **details: Any) -> None:
    """Stage an audit record: the sender of the current message did an action."""
    context.append(JOURNAL, row(context.principal, action, session, details))


def record_read(
    notes: AuditBuffer,
    principal: Principal | None,
    action: str,
    session: str | None,
    *,
    outcome: str = "done",
    **details: Any,
) -> None:
    """Buffer an audit record of a read; a later commit writes it."""
    notes.append_soon(JOURNAL, row(principal, action, session, details, outcome))


def record_resource_read(context: Context, **size: Any) -> None:
    """Record that the actor was read as a resource; ``size`` has counts by name."""
    kind, key = context.address.kind, context.address.key
    if kind == "session":
        record_read(context, context.principal, "read_resource", key, **size)
    else:
        record_read(context, context.principal, "read_resource", None, target=f"{kind}/{key}", **size)


def journal(*, ttl: int, max_bytes: int | None) -> Journal:
    """Return the journal of the audit log; ``ttl`` is in microseconds."""
    return Journal(JOURNAL, ttl=ttl, max_bytes=max_bytes, lost=_lost, broken=_broken, denied=_denied)


def _lost(count: int) -> AuditRow:
    return row(None, "lose_records", None, {"records": count}, "failed")


def _broken(first: int, last: int) -> AuditRow:
    return row(None, "miss_records", None, {"first": first, "last": last}, "failed")


def _denied(
    principal: Principal | None, address: Address | None, message: Message[Any], refusal: Refusal
) -> AuditRow:
    """Return the record of a denial."""
    session = address.key if address is not None and address.kind == "session" else None
    details = details_of(refusal)
    if address is not None and session is None:
        details["target"] = f"{address.kind}/{address.key}"[:LONGEST]
    return row(principal, action_of(type(message)), session, details, "denied")


def details_of(refusal: Refusal) -> dict[str, Any]:
    """Return the details of a refusal that an audit record may contain."""
    details: dict[str, Any] = {"code": refusal.code}
    for name in ("field", "scope", "namespace", "unit"):
        if isinstance(value := refusal.details.get(name), str):
            details[name] = value[:LONGEST]
    return details


def action_of(request_type: type) -> str:
    """Return the action of a request type: its ``audit_action``, else its name in snake case."""
    action: str | None = getattr(request_type, "audit_action", None)
    if action is not None:
        return action
    name = request_type.__name__
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
