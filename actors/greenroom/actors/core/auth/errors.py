"""The refusals of the domain, each worded once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from greenroom.runtime import Refusal

MAX_VALUE_BYTES = 1_048_576
"""The most bytes of UTF-8 of one value (a content, a metadata object, a memory value)."""
_CONTINUED: Final = "start_session with restore_from begins one that continues it"


def session_not_found(session_id: str) -> Refusal:
    """Refuse a session that is unknown or hidden; the reply is the same for both."""
    return Refusal(
        "SESSION_NOT_FOUND",
        f"there is no session {session_id!r} that you may see; list_sessions shows those",
        session_id=session_id,
    )


def session_closed(session_id: str, status: str) -> Refusal:
    """Refuse a write to a session that has ended."""
    reopened = "" if status == "archived" else "reopen_session opens it again, and "
    return Refusal(
        "SESSION_CLOSED",
        f"the session {session_id!r} is {status} and takes no more writes; {reopened}{_CONTINUED}",
        session_id=session_id,
        status=status,
    )


def not_terminated(session_id: str, status: str) -> Refusal:
    """Refuse to reopen a session that is not terminated."""
    remedy = _CONTINUED if status == "archived" else "it is open"
    return invalid(
        "session_id",
        f"session_id: {session_id!r} is {status}, and only a terminated session is reopened; {remedy}",
        status=status,
    )


def nothing_recorded() -> Refusal:
    """Refuse a request that records nothing."""
    return invalid(
        "files_accessed",
        "files_accessed: there is nothing to record; give files_accessed, recent_searches, decisions or "
        "workflow_state",
    )


def event_conflict(session_id: str, event_id: str) -> Refusal:
    """Refuse an event id that belongs to another event."""
    return Refusal(
        "IDEMPOTENCY_CONFLICT",
        f"the session {session_id!r} has another event with the id {event_id!r}; append yours under an id "
        "of its own",
        session_id=session_id,
        event_id=event_id,
    )


def session_moved_on(session_id: str, last_event: str) -> Refusal:
    """Refuse an event whose predecessor is no longer the last event."""
    return Refusal(
        "VERSION_CONFLICT",
        f"the session {session_id!r} has got another event meanwhile; read it anew, then append yours",
        session_id=session_id,
        last_event=last_event,
    )


def resource_not_found(uri: str) -> Refusal:
    """Refuse a URI that is unknown, hidden or malformed; all get the same reply."""
    shown = uri[:200]
    return Refusal(
        "RESOURCE_NOT_FOUND",
        f"there is no resource {shown!r} that you may see; list those that are",
        uri=shown,
    )


def no_current_session(uri: str) -> Refusal:
    """Refuse a URI of the current session if there is no current session."""
    return Refusal(
        "RESOURCE_NOT_FOUND",
        f"you work in no session, so there is no {uri[:200]!r}; start_session or restore_session first",
        uri=uri[:200],
    )


def parent_not_found(message_id: int) -> Refusal:
    """Refuse a parent message that is unknown or hidden; both get the same reply."""
    return Refusal(
        "PARENT_MESSAGE_NOT_FOUND",
        f"there is no message {message_id} here that you may see; use a message_id from get_messages",
        parent_message_id=message_id,
    )


def memory_not_found(key: str, scope: str) -> Refusal:
    """Refuse a key without a live entry, or without that version."""
    return Refusal(
        "MEMORY_NOT_FOUND",
        f"you have no {scope} memory {key!r}, or not that version; list_memory shows what there is",
        key=key,
        scope=scope,
    )


def neither_id_nor_key() -> Refusal:
    """Refuse a memory that is named by both id and key, or by neither."""
    return invalid("memory_id", "memory_id: give either memory_id or key")


def key_exists(key: str, scope: str) -> Refusal:
    """Refuse to overwrite a live entry without the caller's consent."""
    return Refusal(
        "KEY_EXISTS",
        f"you already have a {scope} memory {key!r}; choose another key or set overwrite to true",
        key=key,
        scope=scope,
    )


def no_memory(named: str | None, *, where: str | None = None, hidden: bool = False) -> Refusal:
    """Refuse a memory that is unknown, ``hidden``, expired or forgotten; all get the same reply."""
    place = "" if where is None else f" in {where!r}"
    refusal = Refusal(
        "MEMORY_NOT_FOUND",
        f"there is no memory {named!r}{place} that you may see, or not that version; "
        "list_memories shows what there is",
        memory=named,
        **({} if where is None else {"namespace": where}),
    )
    return denial(refusal) if hidden else refusal


def ambiguous_key(key: str, forms: Sequence[str], ids: Sequence[str | None]) -> Refusal:
    """Refuse a key that several memories have in different Unicode forms, stored by older programs."""
    named = " and ".join(map(ascii, forms))
    return invalid(
        "key",
        f"key: {key!a} may mean several memories, whose keys differ in the form of Unicode alone: "
        f"{named}; name one by its very key or its memory_id",
        forms=[{"key": form, "memory_id": each} for form, each in zip(forms, ids, strict=True)],
    )


def memory_exists(key: str, namespace: str) -> Refusal:
    """Refuse to create a memory under a key that a live memory has."""
    return Refusal(
        "KEY_EXISTS",
        f"there is already a memory {key!r} in {namespace!r}; choose another key or update that one",
        key=key,
        namespace=namespace,
    )


def hidden_memory_exists(key: str) -> Refusal:
    """Refuse the key of a live memory that the caller's API key does not reach."""
    return Refusal(
        "KEY_EXISTS",
        f"the memory {key!r} there is of projects that your API key does not reach; choose another key",
        key=key,
    )


def timed_out(seconds: float) -> Refusal:
    """Refuse a search of a namespace that took too long; the caller may try again."""
    return Refusal("TIMED_OUT", f"it did not answer within {seconds:.2g} s")


def version_conflict(key: str, namespace: str, expected: int, current: int, **details: Any) -> Refusal:
    """Refuse a write that expects another version of a memory; 0 means no memory."""
    there = f"is at version {current}" if current else "is not there"
    return Refusal(
        "VERSION_CONFLICT",
        f"the memory {key!r} in {namespace!r} {there} and you expected version {expected}; "
        "read it again and decide anew",
        key=key,
        namespace=namespace,
        expected_version=expected,
        current_version=current,
        **details,
    )


def forgotten_meanwhile(key: str, namespace: str, version: int, *, is_forgotten: bool) -> Refusal:
    """Refuse a write to a memory that was forgotten or restored since it was read."""
    became = "was forgotten" if is_forgotten else "is not forgotten"
    return Refusal(
        "VERSION_CONFLICT",
        f"the memory {key!r} in {namespace!r} {became}, unlike you expected; read it again and decide anew",
        key=key,
        namespace=namespace,
        current_version=version,
        is_forgotten=is_forgotten,
    )


def rated_meanwhile(key: str, expected: float | None, current: float | None) -> Refusal:
    """Refuse to withdraw a rating that is not the caller's last one."""
    last = "you have not rated" if current is None else f"you last rated {current:g}"
    return Refusal(
        "VERSION_CONFLICT",
        f"{last} the memory {key!r}, and you expected {expected:g}; nothing was taken back",
        key=key,
        expected_rating=expected,
        current_rating=current,
    )


def session_exists(session_id: str) -> Refusal:
    """Refuse a session id that is taken."""
    return Refusal(
        "KEY_EXISTS",
        f"the session id {session_id!r} is taken; choose another one or leave session_id out",
        session_id=session_id,
    )


def imitation(namespace: str, reserved: str) -> Refusal:
    """Refuse a new root that would be public but imitates the root of an owner."""
    return invalid(
        "namespace",
        f"namespace: {namespace!r} reads like one below {reserved!r} and would be open to everybody; "
        f"write {reserved!r} if you mean that, or choose another first segment",
    )


def denial(refusal: Refusal) -> Refusal:
    """Mark a refusal as a denial for the audit log; the reply stays the same."""
    refusal.is_denial = True
    return refusal


def permission_denied(field: str, sentence: str, **details: Any) -> Refusal:
    """Refuse an argument that claims more than the caller's identity allows."""
    return denial(Refusal("PERMISSION_DENIED", sentence, field=field, **details))


def scope_missing(what: str, scope: str) -> Refusal:
    """Refuse a request whose scope the caller lacks, and name the scope."""
    return denial(
        Refusal(
            "PERMISSION_DENIED",
            f"{what} needs the scope {scope!r}, which you were not given; ask the issuer of your key",
            scope=scope,
        )
    )


def impersonation_is_read_only(what: str, agent: str) -> Refusal:
    """Refuse a request other than a read while the caller impersonates an agent."""
    sentence = f"you see as {agent!r}, which is read-only; ask for {what} as yourself"
    return denial(Refusal("PERMISSION_DENIED", sentence))


def invalid(field: str, sentence: str, **details: Any) -> Refusal:
    """Refuse an invalid argument; ``sentence`` begins with the field's name."""
    return Refusal("VALIDATION_ERROR", sentence, field=field, **details)


def check_span(field: str, start: dt.datetime, end: dt.datetime) -> None:
    """Check that the span in the argument ``field`` does not end before it starts."""
    if start > end:
        first, last = (time.isoformat().replace("+00:00", "Z") for time in (start, end))
        raise invalid(
            field, f"{field}: {first} is later than the end, {last}; exchange them", start=first, end=last
        )


def too_large(field: str, size: int, limit: int = MAX_VALUE_BYTES) -> Refusal:
    """Refuse a value with too many bytes."""
    return invalid(
        field,
        f"{field} has {size:,} bytes of UTF-8 and the limit is {limit:,} bytes",
        limit=limit,
        size=size,
        unit="bytes",
    )


def too_long(field: str, size: int, limit: int) -> Refusal:
    """Refuse a text with too many characters."""
    return invalid(
        field,
        f"{field} has {size:,} characters and the limit is {limit:,}; split it",
        limit=limit,
        size=size,
        unit="characters",
    )


def not_serializable(sentence: str, **details: Any) -> Refusal:
    """Refuse JSON that cannot be stored and returned unchanged."""
    return Refusal("SERIALIZATION_ERROR", sentence, **details)
