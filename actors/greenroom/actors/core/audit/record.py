"""The audit log: who did what when, and what was denied; never any content, and no secrets.

What changes something is recorded in the commit of the change (`record`). Searches, denials and everything
else that changes nothing is noted and follows within a second (`note`), so that nobody waits for it.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.runtime import Address, Context, Journal, Message, Refusal

INDEX: Final = "audit"
"""Where records were before there was a journal; they stay there until they are too old."""

JOURNAL: Final = "audit"
LONGEST: Final = 200
"""Characters of a text in a record; more is cut off."""


class AuditRow(msgspec.Struct, frozen=True, array_like=True):
    """One record. ``agent`` is None for what the server does by itself, such as expiry.

    Attributes:
        at: When, in microseconds since 1970 UTC; 0 where the journal says it.
        agent: The agent's id.
        session: The session that it is about.
        action: What was done: a tool's name, mostly.
        details: What else is known: targets, sizes, counts.
        outcome: ``done``, ``denied`` or ``failed``.
        agent_type: The agent's type.
        user: Whom the agent works for.
        key_id: By which API key it came.
        address: Where its connection comes from.
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
    """Return the record of a deed."""
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
    """Stage an audit record of what the sender of the present message does."""
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
    """Buffer an audit record of a read, such as a search; it is written with a later commit."""
    notes.append_soon(JOURNAL, row(principal, action, session, details, outcome))


def record_resource_read(context: Context, **size: Any) -> None:
    """Record that the actor is read as a resource, and how much of it: counts by their names."""
    kind, key = context.address.kind, context.address.key
    if kind == "session":
        record_read(context, context.principal, "read_resource", key, **size)
    else:
        record_read(context, context.principal, "read_resource", None, target=f"{kind}/{key}", **size)


def journal(*, ttl: int, max_bytes: int | None) -> Journal:
    """Return the journal of the audit log.

    Args:
        ttl: After how many microseconds records may go.
        max_bytes: How many bytes of records are kept.
    """
    return Journal(JOURNAL, ttl=ttl, max_bytes=max_bytes, lost=_lost, broken=_broken, denied=_denied)


def _lost(count: int) -> AuditRow:
    return row(None, "lose_records", None, {"records": count}, "failed")


def _broken(first: int, last: int) -> AuditRow:
    return row(None, "miss_records", None, {"first": first, "last": last}, "failed")


def _denied(
    principal: Principal | None, address: Address | None, message: Message[Any], refusal: Refusal
) -> AuditRow:
    """Return the record of a refusal for want of rights."""
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


def action_of(asked: type) -> str:
    """Return the action's name of a request type: its ``deed``, or ``add_message`` for ``AddMessage``."""
    deed: str | None = getattr(asked, "deed", None)
    if deed is not None:
        return deed
    name = asked.__name__
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")
