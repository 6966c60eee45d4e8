"""The actor that keeps what a user's hooks did: which events are taken, and what was given to whom."""

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
from greenroom.actors.core.validation.times import (
    DAY,
    SECOND,
    optional_datetime,
    to_datetime,
    to_microseconds,
)
from greenroom.actors.hooks import records
from greenroom.actors.hooks.records import StoredGiven, StoredHas, StoredMemory, StoredSession
from greenroom.actors.schemas import hook_work as schemas
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.actors.sessions.requests.hook_events import Turn
from greenroom.runtime import Actor, Address, Context, Slices, handles

TIMER: Final = "forget"
LAST: Final = 10
"""Sessions of a project that are looked at for what may be offered."""
EARLIER: Final = 3
"""Sessions of the same project that are told of."""
WRITE: Final = "recalled"
WRITTEN_AFTER: Final = 10 * SECOND
ROW_BYTES: Final = 1_000
MEMORY_BYTES: Final = 600
"""What a row of the ledger takes that waits to be written, about, and each memory in it."""
_MOST_OPEN: Final = 50
"""Rows of a session that are looked at for uses; of older ones none is seen any more."""


def hook_address(owner: str) -> Address:
    """Return the actor of an owner, a user's namespace or that of an agent that works for none."""
    return Address(schemas.KIND, owner)


class HookActor(Actor):
    """What the hooks of one user's clients told and were given; its key is the user's namespace."""

    kind = schemas.KIND
    names = staticmethod(records.names_in)

    def __init__(self) -> None:
        self._waiting: list[StoredGiven] = []

    def resident_bytes(self) -> int:
        """Return an estimate of what waits to be written."""
        return sum(ROW_BYTES + MEMORY_BYTES * len(row.memories) for row in self._waiting)

    @handles(schemas.LookUpSession)
    def look_up(self, request: schemas.LookUpSession, context: Context) -> Slices[schemas.HookState]:
        """Answer what a session has, and whether an event is taken."""
        self._check(context)
        has = context.get(records.has_key(request.of), StoredHas) or StoredHas()
        earlier = yield from self._earlier(request.of, context)
        return schemas.HookState(
            taken=bool(request.event_id)
            and context.get(records.event_key(request.event_id), int) is not None,
            memories=has.memories,
            lines=has.lines,
            open=list(_open(has, context)),
            carried=context.get(records.carried_key(request.of), list[Turn]) or [],
            earlier=earlier,
            findings=[
                each for each in request.findings if context.get(records.finding_key(each), int) is None
            ],
        )

    @handles(schemas.LastSessions)
    def last_sessions(self, request: schemas.LastSessions, context: Context) -> Slices[list[schemas.Earlier]]:
        """Answer the newest sessions of a project, those with a request before those without one."""
        self._check(context)
        found = yield from _of_project(request.project, context)
        found.sort(key=lambda each: each.request == "")
        return [_earlier(each) for each in found[:LAST]]

    @handles(schemas.NoteGiven)
    def note_given(self, request: schemas.NoteGiven, context: Context) -> None:
        """Keep a row of the ledger, and that the session has what is in it."""
        self._check(context)
        given = request.given
        self._touch(request, context, request=given.query)
        if request.fresh:
            context.delete(records.has_key(request.of))
        if not given.memories and not given.lines:
            return
        self._write_waiting(context)
        row = StoredGiven(
            at=context.now,
            client=request.of.client,
            session=request.of.session,
            project=request.of.project,
            agent=given.agent,
            hook=given.hook,
            reason=given.reason,
            query=given.query,
            memories=_stored(given.memories),
            lines=len(given.lines),
            tokens=given.tokens,
            partial=given.partial,
            least=given.least,
            left_out=given.left_out,
        )
        number = _add_row(row, context)
        has = context.get(records.has_key(request.of), StoredHas) or StoredHas()
        memories = {**has.memories, **{each.memory_id: each.version for each in given.memories}}
        changed = StoredHas(
            memories=dict(list(memories.items())[-schemas.MOST_HAD :]),
            lines=list(dict.fromkeys([*has.lines, *given.lines]))[-schemas.MOST_HAD :],
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

    @handles(schemas.NoteRecalled)
    def note_recalled(self, request: schemas.NoteRecalled, context: Context) -> None:
        """Remember a recall, and write it with others soon: who recalls waits for no disk."""
        self._check(context)
        row = StoredGiven(
            at=context.now,
            client="",
            session="",
            project="",
            agent=context.principal.agent_id,
            hook="recall",
            reason="",
            query=without_secrets(request.task)[0],
            memories=_stored(request.memories),
            lines=0,
            tokens=request.tokens,
            partial=request.partial,
            left_out=request.left_out,
        )
        self._waiting.append(row)
        if len(self._waiting) > schemas.MOST_WAITING:
            self._write_waiting(context)
        elif len(self._waiting) == 1:
            context.set_timer(WRITE, context.now + WRITTEN_AFTER, schemas.WriteRecalled())

    @handles(schemas.WriteRecalled)
    def write_recalled(self, _: schemas.WriteRecalled, context: Context) -> None:
        """Write the recalls that wait."""
        self._write_waiting(context)

    @handles(schemas.NoteTaken)
    def note_taken(self, request: schemas.NoteTaken, context: Context) -> None:
        """Keep that an event is taken, and which memories were used."""
        self._check(context)
        if context.get(records.event_key(request.event_id), int) is not None:
            return
        context.put(records.event_key(request.event_id), context.now)
        for finding in request.findings:
            context.put(records.finding_key(finding), context.now)
        self._touch(request, context, request=request.request, ended=request.ended)
        if request.carried and request.ended is None:
            context.put(records.carried_key(request.of), request.carried)
        else:
            context.delete(records.carried_key(request.of))
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

    @handles(schemas.ReadGiven)
    def read(self, request: schemas.ReadGiven, context: Context) -> Slices[schemas.GivenRead]:
        """Answer rows of the ledger, newest first; of projects, those of which the sender is a member."""
        self._check(context)
        self._write_waiting(context)
        shown: list[schemas.GivenView] = []
        total = 0
        for key, row in context.scan(StoredGiven, prefix=records.GIVEN, reverse=True):
            number = records.number_of(key)
            if _may_see(context.principal, row) and _fits(row, number, request):
                total += 1
                if len(shown) < request.limit and (request.before is None or number < request.before):
                    shown.append(_view(row, number))
            if context.should_yield():
                yield
        audit_record.record_read(context, context.principal, "read_given", None, found=len(shown))
        return schemas.GivenRead(given=shown, total=total)

    @handles(schemas.ForgetOldHooks)
    def forget(self, _: schemas.ForgetOldHooks, context: Context) -> Slices[None]:
        """Forget what is too old, or too much; come back for the rest."""
        context.use_reserve()
        since = context.now - schemas.KEPT_DAYS * DAY
        most = {records.FINDINGS: schemas.MOST_FINDINGS, records.SESSIONS: schemas.MOST_SESSIONS}
        has_more = False
        for prefix in (records.EVENTS, records.FINDINGS, records.SESSIONS, records.GIVEN):
            times: list[tuple[int, bytes]] = []
            for key, record in context.scan(_TYPES[prefix], prefix=prefix):
                times.append((_time_of(record), key))
                if context.should_yield():
                    yield
            times.sort()
            surplus = len(times) - most.get(prefix, len(times))
            for place, (at, key) in enumerate(times):
                if place < surplus or at < since:
                    context.delete(key)
                    if prefix == records.SESSIONS:
                        for other in (records.HAS, records.CARRIED):
                            context.delete(other + key[len(records.SESSIONS) :])
                else:
                    has_more = True
        if has_more:
            context.set_timer(TIMER, context.now + DAY, schemas.ForgetOldHooks())

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Forget all of it, where it is a person's who is erased; elsewhere, which of theirs was told."""
        self._write_waiting(context)
        if not request.person.has_root(context.address.key):
            return (yield from _erase_told(request, context))
        counts = {"hook_events": 0, "hook_sessions": 0, "given": 0}
        named = {records.EVENTS: "hook_events", records.SESSIONS: "hook_sessions", records.GIVEN: "given"}
        keys: list[bytes] = []
        for key, _ in context.scan(msgspec.Raw):
            keys.append(key)
            if key[:1] in named:
                counts[named[key[:1]]] += 1
            if context.should_yield():
                yield
        if keys and not request.dry_run:
            context.use_reserve()
            context.cancel_timer(TIMER)
            for key in keys:
                context.delete(key)
                if context.should_yield():
                    yield
        return ErasedPart(counts={kind: count for kind, count in counts.items() if count})

    # -- parts -------------------------------------------------------------

    def _check(self, context: Context) -> None:
        """Check that this is the sender's own.

        Raises:
            Refusal: ``PERMISSION_DENIED``: it is another's.
        """
        if user_namespace(context.principal) != context.address.key:
            raise auth_errors.permission_denied("hooks", "hooks: they are another's")

    def _write_waiting(self, context: Context) -> None:
        """Stage the rows that wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        context.cancel_timer(WRITE)
        for row in waiting:
            _add_row(row, context)
        if context.timer_due(TIMER) is None:
            context.set_timer(TIMER, context.now + DAY, schemas.ForgetOldHooks())

    def _touch(
        self,
        told: schemas.NoteGiven | schemas.NoteTaken,
        context: Context,
        *,
        request: str,
        ended: str | None = None,
    ) -> None:
        """Stage that a session was heard of; what waited in a spool is no later than what came since."""
        principal: Principal = context.principal
        of, at = told.of, min(to_microseconds(told.at), context.now)
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
            ),
        )
        if context.timer_due(TIMER) is None:
            context.set_timer(TIMER, context.now + DAY, schemas.ForgetOldHooks())

    def _earlier(self, of: schemas.ClientSession, context: Context) -> Slices[list[schemas.Earlier]]:
        """Return the last sessions of a session's project but itself, the last with words among them."""
        found = yield from _of_project(of.project, context, besides=records.session_key(of))
        newest, older = found[:EARLIER], found[EARLIER:]
        if not any(each.request for each in newest):
            newest += [each for each in older if each.request][:1]
        return [_earlier(each) for each in newest]

    def _use(self, number: int, memory_id: str, context: Context) -> None:
        """Stage that a use of a memory was seen."""
        key = records.given_key(number)
        row = context.get(key, StoredGiven)
        if row is None:
            return
        memories = [
            msgspec.structs.replace(each, used=context.now)
            if each.memory_id == memory_id and each.used is None
            else each
            for each in row.memories
        ]
        context.put(key, msgspec.structs.replace(row, memories=memories))


def _of_project(project: str, context: Context, besides: bytes = b"") -> Slices[list[StoredSession]]:
    """Return a project's sessions but one, the one last heard of first."""
    found: list[StoredSession] = []
    for key, session in context.scan(StoredSession, prefix=records.SESSIONS):
        if key != besides and session.project == project:
            found.append(session)
        if context.should_yield():
            yield
    return sorted(found, key=lambda each: each.last, reverse=True)


def _earlier(session: StoredSession) -> schemas.Earlier:
    return schemas.Earlier(
        client=session.client,
        session=session.session,
        began=to_datetime(session.began),
        last=to_datetime(session.last),
        ended=optional_datetime(session.ended),
        reason=session.reason,
        request=session.request,
    )


_TYPES: Final[dict[bytes, Any]] = {
    records.EVENTS: int,
    records.FINDINGS: int,
    records.SESSIONS: StoredSession,
    records.GIVEN: StoredGiven,
}


def _time_of(record: int | StoredSession | StoredGiven) -> int:
    if isinstance(record, int):
        return record
    return record.last if isinstance(record, StoredSession) else record.at


def _open(has: StoredHas, context: Context) -> Iterator[tuple[int, datetime, schemas.GivenMemory]]:
    for number in has.open:
        row = context.get(records.given_key(number), StoredGiven)
        if row is None:
            continue
        for memory in row.memories:
            if memory.used is None:
                fields = msgspec.structs.asdict(memory)
                del fields["used"]
                yield number, to_datetime(row.at), schemas.GivenMemory(**fields)


def _stored(memories: Iterable[schemas.GivenMemory]) -> list[StoredMemory]:
    """Return memories as they are kept: without their keys, which say something of what they say."""
    return [StoredMemory(**{**msgspec.structs.asdict(each), "key": ""}) for each in memories]


def _add_row(row: StoredGiven, context: Context) -> int:
    """Stage a row of the ledger, and the end of the oldest; returns its number."""
    number = context.get(records.NEXT, int) or 0
    context.put(records.NEXT, number + 1)
    context.put(records.given_key(number), row)
    if number >= schemas.MOST_GIVEN:
        context.delete(records.given_key(number - schemas.MOST_GIVEN))
    return number


def _fits(row: StoredGiven, number: int, asked: schemas.ReadGiven) -> bool:
    return (
        row.session.startswith(asked.session)
        and asked.agent in {"", row.agent}
        and asked.by in {None, row.hook}
        and asked.number in {None, number}
        and (not asked.memory_id or any(each.memory_id == asked.memory_id for each in row.memories))
    )


def _erase_told(request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Forget which memories of a person who is erased were told to another's agents."""
    count = 0
    for key, row in context.scan(StoredGiven, prefix=records.GIVEN):
        left = [each for each in row.memories if not request.person.has_root(each.namespace)]
        if len(left) < len(row.memories):
            count += len(row.memories) - len(left)
            if not request.dry_run:
                context.use_reserve()
                context.put(key, msgspec.structs.replace(row, memories=left))
        if context.should_yield():
            yield
    return ErasedPart(counts={"told": count} if count else {})


def _view(row: StoredGiven, number: int) -> schemas.GivenView:
    fields = msgspec.structs.asdict(row) | {"number": number}
    memories = []
    for memory in row.memories:
        shown = msgspec.structs.asdict(memory)
        del shown["marks"]
        memories.append(schemas.MemoryGiven(**{**shown, "used": optional_datetime(memory.used)}))
    return schemas.GivenView(**{**fields, "at": to_datetime(row.at), "memories": memories})


def _may_see(principal: Principal, row: StoredGiven) -> bool:
    """Return whether a reader may know of a row, its project and its memories."""
    return policy.may_see_session(principal, row.project or None) and all(
        policy.may_see_about(principal, each.namespace) for each in row.memories
    )
