"""The audit actor: records deeds outside of actors, such as connections accepted or denied."""

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
"""How many notes found nobody who took them, since one did."""


class _OfSession(msgspec.Struct):
    """The part of a request's arguments that a record of its denial has."""

    session_id: SessionId | None = None


_session_in: Final = msgspec.json.Decoder(_OfSession).decode


class NoteDeed(Message[None], frozen=True, kw_only=True):
    """Note what was done, or denied, outside of actors."""

    action: str
    outcome: str = "done"
    session: str | None = None
    address: str | None = None
    key_id: str | None = None
    details: dict[str, str | int | float | bool | None] = msgspec.field(default_factory=dict)


class BackupNoted(msgspec.Struct, frozen=True, kw_only=True):
    """The last copy that was made of the store: when, in microseconds since 1970, whereto, and its size."""

    at: int
    to: str
    bytes: int


class ReadLastBackup(Message[BackupNoted | None], frozen=True, kw_only=True):
    """Read which copy was made last; None where none was since this is noted."""


class AuditActor(Actor):
    """What it is told becomes rows of the journal; of its own it has the last backup.

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
            context.put(_BACKUP, BackupNoted(at=context.now, to=to, bytes=size))

    @handles(ReadLastBackup)
    def read_backup(self, message: ReadLastBackup, context: Context) -> BackupNoted | None:  # noqa: ARG002  as every handler
        """Answer which copy was made last."""
        return context.get(_BACKUP, BackupNoted)


def tell(
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
    """Note what was done or denied outside of actors, such as a connection that was let in or not.

    It never fails and waits for nothing. Give no text that a stranger chose freely: records of the same are
    counted as one, and strangers must not be able to fill the log.

    Args:
        runtime: What `open_greenroom` opened.
        action: What it was, such as ``authenticate``.
        principal: Who did it, if that is known.
        outcome: ``done``, ``denied`` or ``failed``.
        session: The session that it is about.
        address: From where, if no principal says so.
        key_id: By which API key, if no principal says so.
        details: What else there is to say: short texts, numbers.
    """
    deed = NoteDeed(
        action=action, outcome=outcome, session=session, address=address, key_id=key_id, details=details
    )
    lost = _LOST.pop(runtime, 0)
    try:
        if lost:
            runtime.tell(LOG, NoteDeed(action="lose_records", outcome="failed", details={"records": lost}))
        lost = 0
        runtime.tell(LOG, deed, principal=principal)
    except GreenroomError:  # too many, or the owner is away
        _LOST[runtime] = lost + 1


def record_denial(runtime: RuntimeClient, principal: Principal, request: object, refusal: Refusal) -> None:
    """Note a refusal for want of rights that no actor said.

    What an actor refuses is noted where the actor is, before the refusal comes here.
    """
    session, uri = getattr(request, "session_id", None), getattr(request, "uri", None)
    target = {"target": uri[: audit_record.LONGEST]} if isinstance(uri, str) else {}
    _tell_denial(runtime, principal, type(request), refusal, session, **target)


def record_unread_denial(
    runtime: RuntimeClient, principal: Principal, request: type[Any], arguments: bytes, refusal: Refusal
) -> None:
    """Record the denial of a request before its arguments are read.

    Of the arguments the record has the session alone.
    """
    try:
        session = _session_in(arguments).session_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        session = None
    _tell_denial(runtime, principal, request, refusal, session)


def _tell_denial(
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
    tell(
        runtime,
        audit_record.action_of(request),
        principal=principal,
        outcome="denied",
        session=session[: audit_record.LONGEST] if isinstance(session, str) else None,
        **audit_record.details_of(refusal),
        **target,
    )
