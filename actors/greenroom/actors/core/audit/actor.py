"""The audit actor: records actions outside of actors, such as accepted and denied connections."""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.types import SessionId
from greenroom.runtime import (
    Actor,
    Address,
    Context,
    GreenroomError,
    Message,
    Refusal,
    RuntimeClient,
    handles,
)

LOG: Final = Address("audit", "log")
_BACKUP: Final = b"b"


_LOST: Final[WeakKeyDictionary[RuntimeClient, int]] = WeakKeyDictionary()
"""For each runtime, the number of records lost since the last accepted record."""


class _OfSession(msgspec.Struct):
    """The part of a request's arguments that goes into the record of its denial."""

    session_id: SessionId | None = None


_session_in: Final = msgspec.json.Decoder(_OfSession).decode


class NoteDeed(Message[None], frozen=True, kw_only=True):
    """Record an action or a denial outside of actors."""

    action: str
    outcome: str = "done"
    session: str | None = None
    address: str | None = None
    key_id: str | None = None
    details: dict[str, str | int | float | bool | None] = msgspec.field(default_factory=dict)


class LastBackup(msgspec.Struct, frozen=True, kw_only=True):
    """The last backup: time in microseconds since 1970, path, and size."""

    at: int
    to: str
    bytes: int


class ReadLastBackup(Message[LastBackup | None], frozen=True, kw_only=True):
    """Read the last backup; None if none was recorded."""


class AuditActor(Actor):
    """Appends rows to the journal. It stores one record of its own: the last backup.

    b       the last backup
    """

    kind = "audit"

    @handles(NoteDeed)
    def note(self, message: NoteDeed, context: Context) -> None:
        """Buffer the audit record."""
        row = audit_record.row(
            context.principal, message.action, message.session, dict(message.details), message.outcome
        )
        if message.address is not None or message.key_id is not None:
            row = msgspec.structs.replace(
                row, address=message.address or row.address, key_id=message.key_id or row.key_id
            )
        context.append_soon(audit_record.JOURNAL, row)
        to, size = message.details.get("to"), message.details.get("bytes")
        if message.action == "backup_store" and isinstance(to, str) and isinstance(size, int):
            context.put(_BACKUP, LastBackup(at=context.now, to=to, bytes=size))

    @handles(ReadLastBackup)
    def read_backup(self, message: ReadLastBackup, context: Context) -> LastBackup | None:  # noqa: ARG002  as every handler
        """Return the last backup."""
        return context.get(_BACKUP, LastBackup)


def record_action(
    runtime: RuntimeClient,
    action: str,
    *,
    principal: Principal | None = None,
    outcome: str = "done",
    session: str | None = None,
    address: str | None = None,
    key_id: str | None = None,
    **details: Any,
) -> None:
    """Record an action outside of actors, such as an accepted or denied connection.

    This never fails or waits. Pass no text that an unauthenticated client can choose freely: strangers could
    fill the log, because only equal records are counted as one. ``address`` and ``key`` are for records
    without a principal. The outcome is ``done``, ``denied`` or ``failed``.
    """
    note = NoteDeed(
        action=action, outcome=outcome, session=session, address=address, key_id=key_id, details=details
    )
    lost = _LOST.pop(runtime, 0)
    try:
        if lost:
            runtime.tell(LOG, NoteDeed(action="lose_records", outcome="failed", details={"records": lost}))
        lost = 0
        runtime.tell(LOG, note, principal=principal)
    except GreenroomError:  # too many records wait, or the owner is away
        _LOST[runtime] = lost + 1


def record_denial(runtime: RuntimeClient, principal: Principal, request: object, refusal: Refusal) -> None:
    """Record a denial that was raised outside of an actor.

    A denial by an actor is recorded where the actor runs, before the refusal arrives here.
    """
    session, uri = getattr(request, "session_id", None), getattr(request, "uri", None)
    target = {"target": uri[: audit_record.LONGEST]} if isinstance(uri, str) else {}
    _record_denial(runtime, principal, type(request), refusal, session, **target)


def record_unread_denial(
    runtime: RuntimeClient, principal: Principal, request: type[Any], arguments: bytes, refusal: Refusal
) -> None:
    """Record the denial of a request before its arguments are read.

    The record contains only one of the arguments: the session.
    """
    try:
        session = _session_in(arguments).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        session = None
    _record_denial(runtime, principal, request, refusal, session)


def _record_denial(
    runtime: RuntimeClient,
    principal: Principal,
    request: type[Any],
    refusal: Refusal,
    session: object,
    **target: str,
) -> None:
    if not refusal.is_denial:
        return
    refusal.is_denial = False
    record_action(
        runtime,
        audit_record.action_of(request),
        principal=principal,
        outcome="denied",
        session=session[: audit_record.LONGEST] if isinstance(session, str) else None,
        **audit_record.details_of(refusal),
        **target,
    )
