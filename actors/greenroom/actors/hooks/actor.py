"""The actor that stores a user's hook events and injection log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.core.validation.times import (
    DAY,
    SECOND,
    optional_datetime,
    to_datetime,
    to_microseconds,
)
from greenroom.actors.hooks import records
from greenroom.actors.hooks.records import StoredContents, StoredInjection, StoredMemory, StoredSession
from greenroom.actors.memories.recall.replies import HOOKS, GivenMemory, NoteRecalled
from greenroom.actors.sessions.requests import hook_messages, injection_log
from greenroom.actors.sessions.requests.hook_events import Turn
from greenroom.runtime import Actor, Address, Context, Slices, handles

TIMER: Final = "forget"
LAST: Final = 10
"""At most this many sessions of a project are offered for a hand-over."""
EARLIER: Final = 3
"""A briefing names at most this many earlier sessions of the same project."""
TYPED: Final = 4
"""A briefing has at most this many of a session's last requests."""
WRITE: Final = "recalled"
WRITTEN_AFTER: Final = 10 * SECOND
ROW_BYTES: Final = 1_000
MEMORY_BYTES: Final = 600
"""Estimated bytes of a waiting row of the injection log, and of each memory in it."""
_MOST_OPEN: Final = 50
"""A use is looked for in this many of the newest rows of a session; older rows count as unused."""


def hook_address(owner: str) -> Address:
    """Return the address of an owner's hook actor; ``owner`` is a user's or agent's namespace."""
    return Address(HOOKS, owner)


class HookActor(Actor):
    """Hook events and injection log of one user; the key is the user's namespace."""

    kind = HOOKS
    names = staticmethod(records.names_in)

    def __init__(self) -> None:
        self._waiting: list[StoredInjection] = []

    def resident_bytes(self) -> int:
        """Estimate the memory of the rows that wait to be written."""
        return sum(ROW_BYTES + MEMORY_BYTES * len(row.memories) for row in self._waiting)

    @handles(hook_messages.LookUpSession)
    def look_up(
        self, request: hook_messages.LookUpSession, context: Context
    ) -> Slices[hook_messages.HookState]:
        """Return what a session already has, and whether an event was ingested."""
        self._check(context)
        has = context.get(records.has_key(request.of), StoredContents) or StoredContents()
        earlier = yield from self._earlier(request.of, context)
        return hook_messages.HookState(
            taken=bool(request.event_id)
            and context.get(records.event_key(request.event_id), int) is not None,
            memories=has.memories,
            lines=has.lines,
            open=list(_list_open(has, context)),
            carried=context.get(records.carried_key(request.of), list[Turn]) or [],
            heard=context.get(records.heard_key(request.of), list[int]) or [],
            earlier=earlier,
            findings=[
                each for each in request.findings if context.get(records.finding_key(each), int) is None
            ],
        )

    @handles(hook_messages.WhichTyped)
    def which_typed(self, request: hook_messages.WhichTyped, context: Context) -> list[str]:
        """Return the findings that the person typed."""
        self._check(context)
        return [each for each in request.findings if context.get(records.typed_key(each), int) is not None]

    @handles(hook_messages.LastSessions)
    def last_sessions(
        self, request: hook_messages.LastSessions, context: Context
    ) -> Slices[list[hook_messages.Earlier]]:
        """Return the newest sessions of a project; those with a request come first."""
        self._check(context)
        found = yield from _find_sessions(request.project, context)
        found.sort(key=lambda each: each.request == "")
        return [_earlier(each) for each in found[:LAST]]

    @handles(injection_log.NoteGiven)
    def note_given(self, request: injection_log.NoteGiven, context: Context) -> None:
        """Add a row to the injection log; record that the session has the row's contents."""
        self._check(context)
        given = request.given
        self._touch(request, context, request=request.request)
        if request.fresh:
            context.delete(records.has_key(request.of))
        if not given.memories and not given.lines:
            return
        self._write_waiting(context)
        row = StoredInjection(
            at=context.now,
            client=request.of.client,
            session=request.of.session,
            project=request.of.project,
            agent=given.agent,
            hook=given.hook,
            reason=given.reason,
            query=given.query,
            memories=_to_stored(given.memories),
            lines=len(given.lines),
            tokens=given.tokens,
            partial=given.partial,
            least=given.least,
            left_out=given.left_out,
        )
        number = _add_row(row, context)
        has = context.get(records.has_key(request.of), StoredContents) or StoredContents()
        memories = {**has.memories, **{each.memory_id: each.version for each in given.memories}}
        changed = StoredContents(
            memories=dict(list(memories.items())[-hook_messages.MOST_HAD :]),
            lines=list(dict.fromkeys([*has.lines, *given.lines]))[-hook_messages.MOST_HAD :],
            open=[*has.open, *([number] if given.memories else [])][-_MOST_OPEN:],
        )
        context.put(records.has_key(request.of), changed)
        audit_record.record(
            context,
            "give_context",
            None,
            hook=given.hook,
            client=request.of.client[: audit_record.LONGEST],
            memories=len(given.memories),
            lines=len(given.lines),
            tokens=given.tokens,
        )

    @handles(NoteRecalled)
    def note_recalled(self, request: NoteRecalled, context: Context) -> None:
        """Log a recall, to be written later: a recall must not wait for the disk."""
        self._check(context)
        row = StoredInjection(
            at=context.now,
            client="",
            session="",
            project="",
            agent=context.principal.agent_id,
            hook="recall",
            reason="",
            query=without_secrets(request.task)[0],
            memories=_to_stored(request.memories),
            lines=0,
            tokens=request.tokens,
            partial=request.partial,
            left_out=request.left_out,
        )
        self._waiting.append(row)
        if len(self._waiting) > injection_log.MOST_WAITING:
            self._write_waiting(context)
        elif len(self._waiting) == 1:
            context.set_timer(WRITE, context.now + WRITTEN_AFTER, injection_log.WriteRecalled())

    @handles(injection_log.WriteRecalled)
    def write_recalled(self, _: injection_log.WriteRecalled, context: Context) -> None:
        """Write the waiting recalls to the injection log."""
        self._write_waiting(context)

    @handles(hook_messages.NoteTaken)
    def note_taken(self, request: hook_messages.NoteTaken, context: Context) -> None:
        """Record that an event was ingested, and which memories were used."""
        self._check(context)
        if context.get(records.event_key(request.event_id), int) is not None:
            return
        context.put(records.event_key(request.event_id), context.now)
        for finding in request.findings:
            context.put(records.finding_key(finding), context.now)
        for finding in request.typed:
            context.put(records.typed_key(finding), context.now)
        self._touch(request, context, request=request.request, ended=request.ended)
        if request.carried and request.ended is None:
            context.put(records.carried_key(request.of), request.carried)
        else:
            context.delete(records.carried_key(request.of))
        if request.heard:  # kept at the end, too, as the session may be resumed
            context.put(records.heard_key(request.of), request.heard)
        for number, memory_id in request.used:
            self._use(number, memory_id, context)
        audit_record.record(
            context,
            "take_hook_event",
            None,
            client=request.of.client[: audit_record.LONGEST],
            findings=len(request.findings),
            used=len(request.used),
        )

    @handles(injection_log.ReadGiven)
    def read(self, request: injection_log.ReadGiven, context: Context) -> Slices[injection_log.GivenRead]:
        """Return visible rows of the injection log, newest first."""
        self._check(context)
        self._write_waiting(context)
        page: list[injection_log.GivenView] = []
        total = 0
        for key, row in context.scan(StoredInjection, prefix=records.GIVEN, reverse=True):
            number = records.number_of(key)
            if _may_see(context.principal, row) and _fits(row, number, request):
                total += 1
                if len(page) < request.limit and (request.before is None or number < request.before):
                    page.append(_view(row, number))
            yield
        audit_record.record_read(context, context.principal, "read_given", None, found=len(page))
        return injection_log.GivenRead(given=page, total=total)

    @handles(hook_messages.ForgetOldHooks)
    def forget(self, _: hook_messages.ForgetOldHooks, context: Context) -> Slices[None]:
        """Delete expired and surplus records; set a timer for the rest."""
        context.use_reserve()
        since = context.now - injection_log.KEPT_DAYS * DAY
        most = {
            records.FINDINGS: hook_messages.MOST_FINDINGS,
            records.TYPED: hook_messages.MOST_FINDINGS,
            records.SESSIONS: hook_messages.MOST_SESSIONS,
        }
        has_more = False
        for prefix in _TYPES:
            times: list[tuple[int, bytes]] = []
            for key, record in context.scan(_TYPES[prefix], prefix=prefix):
                is_time = isinstance(record, int)
                at = record if is_time else record.last if prefix == records.SESSIONS else record.at
                times.append((at, key))
                yield
            times.sort()
            surplus = len(times) - most.get(prefix, len(times))
            for place, (at, key) in enumerate(times):
                if place < surplus or (at < since and prefix != records.TYPED):
                    context.delete(key)
                    if prefix == records.SESSIONS:
                        for other in (records.HAS, records.CARRIED, records.HEARD):
                            context.delete(other + key[len(records.SESSIONS) :])
                else:
                    has_more = True
        if has_more:
            context.set_timer(TIMER, context.now + DAY, hook_messages.ForgetOldHooks())

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase a person's hook data, and the person's memories from other people's logs."""
        self._write_waiting(context)
        if not request.person.has_root(context.address.key):
            return (yield from _erase_from_log(request, context))
        counts = {"hook_events": 0, "hook_sessions": 0, "given": 0}
        named = {records.EVENTS: "hook_events", records.SESSIONS: "hook_sessions", records.GIVEN: "given"}
        keys: list[bytes] = []
        for key, _ in context.scan(msgspec.Raw):
            keys.append(key)
            if key[:1] in named:
                counts[named[key[:1]]] += 1
            yield
        if keys and not request.dry_run:
            context.use_reserve()
            context.cancel_timer(TIMER)
            for key in keys:
                context.delete(key)
                yield
        return ErasedPart(counts={kind: count for kind, count in counts.items() if count})

    # -- parts -------------------------------------------------------------

    def _check(self, context: Context) -> None:
        """Refuse access to someone else's hook data."""
        if user_namespace(context.principal) != context.address.key:
            raise auth_errors.permission_denied("hooks", "hooks: they belong to someone else")

    def _write_waiting(self, context: Context) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        context.cancel_timer(WRITE)
        for row in waiting:
            _add_row(row, context)
        if context.timer_due(TIMER) is None:
            context.set_timer(TIMER, context.now + DAY, hook_messages.ForgetOldHooks())

    def _touch(
        self,
        note: injection_log.NoteGiven | hook_messages.NoteTaken,
        context: Context,
        *,
        request: str,
        ended: str | None = None,
    ) -> None:
        """Stage a session's last activity; a late event does not change newer state."""
        principal: Principal = context.principal
        of, at = note.of, min(to_microseconds(note.at), context.now)
        key = records.session_key(of)
        known = context.get(key, StoredSession) or StoredSession(
            of.client, of.session, of.project, principal.agent_id, at, at
        )
        if at < known.last:
            ended, request = known.reason if known.ended else None, known.request
        context.put(
            key,
            msgspec.structs.replace(
                known,
                project=of.project or known.project,
                last=max(at, known.last),
                ended=None if ended is None else max(at, known.last),
                reason="" if ended is None else ended,
                request=request or known.request,
                typed=_with_request(known.typed, request),
            ),
        )
        if context.timer_due(TIMER) is None:
            context.set_timer(TIMER, context.now + DAY, hook_messages.ForgetOldHooks())

    def _earlier(
        self, of: hook_messages.ClientSession, context: Context
    ) -> Slices[list[hook_messages.Earlier]]:
        """Return the project's last sessions besides this one; if possible, one has a request."""
        found = yield from _find_sessions(of.project, context, besides=records.session_key(of))
        newest, older = found[:EARLIER], found[EARLIER:]
        if not any(each.request for each in newest):
            newest += [each for each in older if each.request][:1]
        return [_earlier(each) for each in newest]

    def _use(self, number: int, memory_id: str, context: Context) -> None:
        key = records.given_key(number)
        row = context.get(key, StoredInjection)
        if row is None:
            return
        memories = [
            msgspec.structs.replace(each, used=context.now)
            if each.memory_id == memory_id and each.used is None
            else each
            for each in row.memories
        ]
        context.put(key, msgspec.structs.replace(row, memories=memories))


def _with_request(typed: list[str], request: str) -> list[str]:
    """Return the beginnings of a person's last requests.

    A prompt that comes again as a turn counts once.
    """
    line = " ".join(request.split())
    if not line or any(line.startswith(each) or each.startswith(line) for each in typed):
        return typed
    return [*typed, line][-TYPED:]


def _find_sessions(project: str, context: Context, besides: bytes = b"") -> Slices[list[StoredSession]]:
    """Return a project's sessions, except one; the most recently active first."""
    found: list[StoredSession] = []
    for key, session in context.scan(StoredSession, prefix=records.SESSIONS):
        if key != besides and session.project == project:
            found.append(session)
        yield
    return sorted(found, key=lambda each: each.last, reverse=True)


def _earlier(session: StoredSession) -> hook_messages.Earlier:
    return hook_messages.Earlier(
        client=session.client,
        session=session.session,
        began=to_datetime(session.began),
        last=to_datetime(session.last),
        ended=optional_datetime(session.ended),
        reason=session.reason,
        request=session.request,
        typed=session.typed,
    )


_TYPES: Final[dict[bytes, Any]] = {
    records.EVENTS: int,
    records.FINDINGS: int,
    records.TYPED: int,
    records.SESSIONS: StoredSession,
    records.GIVEN: StoredInjection,
}


def _list_open(has: StoredContents, context: Context) -> Iterator[tuple[int, datetime, GivenMemory]]:
    for number in has.open:
        row = context.get(records.given_key(number), StoredInjection)
        if row is None:
            continue
        for memory in row.memories:
            if memory.used is None:
                fields = msgspec.structs.asdict(memory)
                del fields["used"]
                yield number, to_datetime(row.at), GivenMemory(**fields)


def _to_stored(memories: Iterable[GivenMemory]) -> list[StoredMemory]:
    """Return memories as they are stored: without keys, which reveal part of the content."""
    return [StoredMemory(**{**msgspec.structs.asdict(each), "key": ""}) for each in memories]


def _add_row(row: StoredInjection, context: Context) -> int:
    """Add a row to the injection log, delete the oldest, return the number."""
    number = context.get(records.NEXT, int) or 0
    context.put(records.NEXT, number + 1)
    context.put(records.given_key(number), row)
    if number >= injection_log.MOST_GIVEN:
        context.delete(records.given_key(number - injection_log.MOST_GIVEN))
    return number


def _fits(row: StoredInjection, number: int, request: injection_log.ReadGiven) -> bool:
    return (
        row.session.startswith(request.session)
        and request.agent in {"", row.agent}
        and request.by in {None, row.hook}
        and request.number in {None, number}
        and (not request.memory_id or any(each.memory_id == request.memory_id for each in row.memories))
    )


def _erase_from_log(request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Remove an erased person's memories from the log of another user."""
    count = 0
    for key, row in context.scan(StoredInjection, prefix=records.GIVEN):
        left = [each for each in row.memories if not request.person.has_root(each.namespace)]
        if len(left) < len(row.memories):
            count += len(row.memories) - len(left)
            if not request.dry_run:
                context.use_reserve()
                context.put(key, msgspec.structs.replace(row, memories=left))
        yield
    return ErasedPart(counts={"told": count} if count else {})


def _view(row: StoredInjection, number: int) -> injection_log.GivenView:
    fields = msgspec.structs.asdict(row) | {"number": number}
    memories = []
    for memory in row.memories:
        fields_of_memory = msgspec.structs.asdict(memory)
        del fields_of_memory["marks"]
        memories.append(
            injection_log.MemoryGiven(**{**fields_of_memory, "used": optional_datetime(memory.used)})
        )
    return injection_log.GivenView(**{**fields, "at": to_datetime(row.at), "memories": memories})


def _may_see(principal: Principal, row: StoredInjection) -> bool:
    """Return whether the caller may see a row, its project and its memories."""
    return policy.may_see_session(principal, row.project or None) and all(
        policy.may_see_about(principal, each.namespace) for each in row.memories
    )
