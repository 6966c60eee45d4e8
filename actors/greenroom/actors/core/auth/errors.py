"""The domain's refusals, each worded once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from greenroom.runtime import Refusal

MAX_VALUE_BYTES = 1_048_576
"""The most that one value (a content, a metadata object, a memory value) may take as UTF-8."""
_CONTINUED: Final = "start_session with restore_from begins one that continues it"


def session_not_found(session_id: str) -> Refusal:
    """Unknown and forbidden sessions are refused with this same answer."""
    return Refusal(
        "SESSION_NOT_FOUND",
        f"there is no session {session_id!r} that you may see; list_sessions shows those",
        session_id=session_id,
    )


def session_closed(session_id: str, status: str) -> Refusal:
    """The session has ended and takes no more writes."""
    reopened = "" if status == "archived" else "reopen_session opens it again, and "
    return Refusal(
        "SESSION_CLOSED",
        f"the session {session_id!r} is {status} and takes no more writes; {reopened}{_CONTINUED}",
        session_id=session_id,
        status=status,
    )


def not_terminated(session_id: str, status: str) -> Refusal:
    """Only a session that was terminated is opened again."""
    remedy = _CONTINUED if status == "archived" else "it is open"
    return invalid(
        "session_id",
        f"session_id: {session_id!r} is {status}, and only a terminated session is reopened; {remedy}",
        status=status,
    )


def nothing_recorded() -> Refusal:
    """There is nothing to record."""
    return invalid(
        "files_accessed",
        "files_accessed: there is nothing to record; give files_accessed, recent_searches, decisions or "
        "workflow_state",
    )


def event_conflict(session_id: str, event_id: str) -> Refusal:
    """The id that the caller gives an event is that of another one."""
    return Refusal(
        "IDEMPOTENCY_CONFLICT",
        f"the session {session_id!r} has another event with the id {event_id!r}; append yours under an id "
        "of its own",
        session_id=session_id,
        event_id=event_id,
    )


def session_moved_on(session_id: str, last_event: str) -> Refusal:
    """Another event came before the caller's, who says after which one theirs belongs."""
    return Refusal(
        "VERSION_CONFLICT",
        f"the session {session_id!r} has got another event meanwhile; read it anew, then append yours",
        session_id=session_id,
        last_event=last_event,
    )


def resource_not_found(uri: str) -> Refusal:
    """Unknown, forbidden and impossible URIs are refused with this same answer."""
    shown = uri[:200]
    return Refusal(
        "RESOURCE_NOT_FOUND",
        f"there is no resource {shown!r} that you may see; list those that are",
        uri=shown,
    )


def no_current_session(uri: str) -> Refusal:
    """The client works in no session."""
    return Refusal(
        "RESOURCE_NOT_FOUND",
        f"you work in no session, so there is no {uri[:200]!r}; start_session or restore_session first",
        uri=uri[:200],
    )


def parent_not_found(message_id: int) -> Refusal:
    """Unknown and hidden parents are refused with this same answer."""
    return Refusal(
        "PARENT_MESSAGE_NOT_FOUND",
        f"there is no message {message_id} here that you may see; use a message_id from get_messages",
        parent_message_id=message_id,
    )


def memory_not_found(key: str, scope: str) -> Refusal:
    """No live entry, or no such version of it."""
    return Refusal(
        "MEMORY_NOT_FOUND",
        f"you have no {scope} memory {key!r}, or not that version; list_memory shows what there is",
        key=key,
        scope=scope,
    )


def neither_id_nor_key() -> Refusal:
    """A memory is named by its id or by its key, and by one of them alone."""
    return invalid("memory_id", "memory_id: give either memory_id or key")


def key_exists(key: str, scope: str) -> Refusal:
    """A live entry is there and the caller did not want it overwritten."""
    return Refusal(
        "KEY_EXISTS",
        f"you already have a {scope} memory {key!r}; choose another key or set overwrite to true",
        key=key,
        scope=scope,
    )


def no_memory(named: str | None, *, where: str | None = None, hidden: bool = False) -> Refusal:
    """Unknown, forbidden (``hidden``), expired and forgotten memories are refused with this same answer."""
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
    """Several memories have a key in other forms of Unicode, as older programs stored them."""
    named = " and ".join(map(ascii, forms))
    return invalid(
        "key",
        f"key: {key!a} may mean several memories, whose keys differ in the form of Unicode alone: "
        f"{named}; name one by its very key or its memory_id",
        forms=[{"key": form, "memory_id": each} for form, each in zip(forms, ids, strict=True)],
    )


def memory_exists(key: str, namespace: str) -> Refusal:
    """A live memory is there and the caller wanted a new one."""
    return Refusal(
        "KEY_EXISTS",
        f"there is already a memory {key!r} in {namespace!r}; choose another key or update that one",
        key=key,
        namespace=namespace,
    )


def hidden_memory_exists(key: str) -> Refusal:
    """A live memory of the same owner is there that the caller may not see."""
    return Refusal(
        "KEY_EXISTS",
        f"the memory {key!r} there is of projects that your API key does not reach; choose another key",
        key=key,
    )


def timed_out(seconds: float) -> Refusal:
    """The memories of a namespace could not be searched in time; ask again."""
    return Refusal("TIMED_OUT", f"it did not answer within {seconds:.2g} s")


def version_conflict(key: str, namespace: str, expected: int, current: int, **details: Any) -> Refusal:
    """The memory is not at the version that the caller expects; 0 stands for no memory."""
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
    """The memory is at the expected version, but forgotten, or there again, unlike the caller expects."""
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
    """The caller's last rating of a memory is another one than it wants to take back."""
    last = "you have not rated" if current is None else f"you last rated {current:g}"
    return Refusal(
        "VERSION_CONFLICT",
        f"{last} the memory {key!r}, and you expected {expected:g}; nothing was taken back",
        key=key,
        expected_rating=expected,
        current_rating=current,
    )


def session_exists(session_id: str) -> Refusal:
    """The id that the caller chose is taken."""
    return Refusal(
        "KEY_EXISTS",
        f"the session id {session_id!r} is taken; choose another one or leave session_id out",
        session_id=session_id,
    )


def imitation(namespace: str, reserved: str) -> Refusal:
    """A new root reads like that of a user, an agent or a project, and would be everybody's."""
    return invalid(
        "namespace",
        f"namespace: {namespace!r} reads like one below {reserved!r} and would be open to everybody; "
        f"write {reserved!r} if you mean that, or choose another first segment",
    )


def imitating_project(project_id: str, reserved: str) -> Refusal:
    """A new session's project reads like one that is a user alone, and would be open to others."""
    return invalid(
        "project_id",
        f"project_id: {project_id!r} reads like one that begins with {reserved!r} and would be open to "
        f"others; write {reserved!r} if you mean that, or choose another name",
    )


def denial(refusal: Refusal) -> Refusal:
    """Mark a refusal as one for want of rights; who is refused gets the same answer as ever."""
    refusal.is_denial = True
    return refusal


def permission_denied(field: str, sentence: str, **details: Any) -> Refusal:
    """The argument claims more than the caller's identity allows."""
    return denial(Refusal("PERMISSION_DENIED", sentence, field=field, **details))


def scope_missing(what: str, scope: str) -> Refusal:
    """The caller's key or token does not reach so far; it names the scope that would."""
    return denial(
        Refusal(
            "PERMISSION_DENIED",
            f"{what} needs the scope {scope!r}, which you were not given; ask whoever gave you your key",
            scope=scope,
        )
    )


def only_looks_on(what: str, agent: str) -> Refusal:
    """Whoever looks on as another agent reads what agents work with, and does nothing else."""
    sentence = f"you look on as {agent!r}, which reads and does nothing else; ask for {what} as yourself"
    return denial(Refusal("PERMISSION_DENIED", sentence))


def invalid(field: str, sentence: str, **details: Any) -> Refusal:
    """An argument breaks a rule; ``sentence`` says which, beginning with the field's name."""
    return Refusal("VALIDATION_ERROR", sentence, field=field, **details)


def check_span(field: str, start: dt.datetime, end: dt.datetime) -> None:
    """Check that a time, the argument ``field``, is not later than the one until which it goes.

    Raises:
        Refusal: ``VALIDATION_ERROR`` naming both.
    """
    if start > end:
        first, last = (time.isoformat().replace("+00:00", "Z") for time in (start, end))
        raise invalid(
            field, f"{field}: {first} is later than the end, {last}; exchange them", start=first, end=last
        )


def too_large(field: str, size: int, limit: int = MAX_VALUE_BYTES) -> Refusal:
    """A value takes more bytes than allowed."""
    return invalid(
        field,
        f"{field} has {size:,} bytes of UTF-8 and the limit is {limit:,} bytes",
        limit=limit,
        size=size,
        unit="bytes",
    )


def too_long(field: str, size: int, limit: int) -> Refusal:
    """A text has more characters than allowed."""
    return invalid(
        field,
        f"{field} has {size:,} characters and the limit is {limit:,}; split it",
        limit=limit,
        size=size,
        unit="characters",
    )


def not_serializable(sentence: str, **details: Any) -> Refusal:
    """The JSON cannot be kept or given back unharmed."""
    return Refusal("SERIALIZATION_ERROR", sentence, **details)
