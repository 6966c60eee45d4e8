"""Deleting a session, and erasing a person from one: their own whole, of another's what they wrote there."""

from __future__ import annotations

from collections import Counter

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.person import ERASED, Person
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.actors.sessions import migrations
from greenroom.actors.sessions.compactions import COMPACTIONS, StoredCompaction
from greenroom.actors.sessions.handlers.events import event_key
from greenroom.actors.sessions.handover import unnamed
from greenroom.actors.sessions.large_events import drop_parts
from greenroom.actors.sessions.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.requests.requests import Deleted, DeleteSession
from greenroom.actors.sessions.sharing import SharingSession
from greenroom.actors.sessions.storage import directory, work_context
from greenroom.actors.sessions.storage.records import (
    COUNTERS,
    HEADER,
    METADATA,
    STATE,
    Header,
    Naming,
    SenderCounter,
    StoredMessage,
    partition_prefix,
)
from greenroom.runtime import Context, Slices, handles


class ErasableSession(SharingSession):
    """A session that can be deleted, and from which a person can be erased."""

    @handles(EraseFrom)
    def erase(self, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
        """Erase a person's session, or what they left in another's; or count it."""
        person, header = request.person, self._header
        counts: Counter[str] = Counter()
        if header is None:
            return ErasedPart(counts={})
        is_whole = person.has_session(header.user_id, header.created_by)
        senders = _senders(context)
        for sender in senders:
            if _wrote(person, sender):
                counts["messages"] += sender.count
            elif is_whole:
                counts["messages_of_others"] += sender.count
        if is_whole:
            counts["sessions"] = 1
            for prefix in (STATE, METADATA):
                counts["session_fields"] += sum(1 for _ in context.scan(msgspec.Raw, prefix=prefix))
        else:
            counts["session_notes"] = len((yield from self._notes(person, context)))
        is_known = (
            person.has_agent(header.created_by)
            or any(_wrote(person, sender) for sender in senders)  # whose messages may be gone
            or any(migrations.listed_at(context, owner) for owner in person.roots)
            or _named(person, header)
            or _worked(person, context.get(migrations.WORK, ToolState))
        )
        if not request.dry_run and (is_known or any(counts.values())):
            context.use_reserve()
            for audience in self._activity:
                self._tell_of(context, audience)
            self._tell_of_decisions(context, header)
            yield from (self._end(header, context) if is_whole else self._clean(header, person, context))
            self.activate(context)
        return ErasedPart(counts={kind: count for kind, count in counts.items() if count})

    @handles(DeleteSession)
    def delete(self, request: DeleteSession, context: Context) -> Slices[Deleted]:
        """Delete the session for good, whoever wrote in it; its id can be taken again."""
        header = self._visible(context)
        policy.check_deletes_session(context.principal, header.user_id, header.created_by)
        context.use_reserve()
        for audience in self._activity:
            self._tell_of(context, audience)
        self._tell_of_decisions(context, header)
        yield from self._end(header, context)
        audit_record.record(context, "delete_session", request.session_id)
        self.activate(context)
        return Deleted()

    def _clean(self, header: Header, person: Person, context: Context) -> Slices[None]:
        """Stage that nothing of a person is left, and that listings count what is."""
        directory.remove(context, self._activity)
        for key in (yield from self._notes(person, context)):
            context.delete(key)
        for owner in person.roots:
            migrations.remove_recent(context, owner, header.project_id)
        work = context.get(migrations.WORK, ToolState)
        if work is not None and _worked(person, work):
            left = [holder for holder in work.holders if not person.has_agent(holder.agent)]
            context.put(migrations.WORK, msgspec.structs.replace(work, holders=left))
        if person.has_agent(header.created_by):
            header = msgspec.structs.replace(header, created_by=ERASED)
            context.put(HEADER, header)
        if _named(person, header):
            header = msgspec.structs.replace(
                header, purpose=unnamed(self._tool(header, context)), naming=Naming(0)
            )
            context.put(HEADER, header)
        removed = yield from _drop_messages(person, context)
        yield from self._finder.vectors.forget(context, removed)
        directory.put_base(context, header)
        self.activate(context)
        for audience, activity in self._activity.items():
            directory.move(context, audience, None, activity)

    def _notes(self, person: Person, context: Context) -> Slices[list[bytes]]:
        """Return the keys of a person's part of the work context, decisions, steps and compactions."""
        found: list[bytes] = []
        for owner in person.roots:
            prefix = work_context.prefix_of(owner)
            found += [key for key, _ in context.scan(msgspec.Raw, prefix=prefix)]
            if context.should_yield():
                yield
        common = self._common(context)
        found += [key for key, decision in common.decisions.items() if _made(person, decision)]
        if common.workflow is not None and _made(person, common.workflow):
            found.append(work_context.prefix_of(work_context.COMMON) + b"w")
        found += [
            key
            for key, move in context.scan(StoredMigration, prefix=migrations.LOG)
            if person.has_agent(move.by)
        ]
        found += [
            key
            for key, made in context.scan(StoredCompaction, prefix=COMPACTIONS)
            if person.has_agent(made.by)
        ]
        return found


def _made(person: Person, said: work_context.StoredDecision | work_context.StoredWorkflow) -> bool:
    return person.has_agent(said.by) or said.user == person.user


def _named(person: Person, header: Header) -> bool:
    """Return whether a session's name was made of what a person wrote."""
    return header.naming is not None and bool(header.naming.by) and person.has_agent(header.naming.by)


def _worked(person: Person, work: ToolState | None) -> bool:
    """Return whether agents of a person began to work in a session."""
    return work is not None and any(person.has_agent(holder.agent) for holder in work.holders)


def _senders(context: Context) -> list[SenderCounter]:
    return [counter for _, counter in context.scan(SenderCounter, prefix=COUNTERS)]


def _wrote(person: Person, sender: SenderCounter) -> bool:
    """Return whether messages are a person's: an agent of theirs sent them, or is alone to see them."""
    kind, _, agent = sender.audience.partition(":")
    return person.has_agent(sender.sender) or (kind == "agent" and person.has_agent(agent))


def _drop_messages(person: Person, context: Context) -> Slices[list[int]]:
    """Stage the removal of a person's messages, of their ids as events, and of their counters.

    Returns:
        The messages' ids.
    """
    removed: list[int] = []
    for counter_key, counter in list(context.scan(SenderCounter, prefix=COUNTERS)):
        if not _wrote(person, counter):
            continue
        context.delete(counter_key)
        partition = Partition(counter.audience, counter.visibility)
        for key, message in context.scan(StoredMessage, prefix=partition_prefix(partition)):
            if message.sender == counter.sender:
                context.delete(key)
                removed.append(int.from_bytes(key[len(partition_prefix(partition)) :]))
                if message.event is not None:
                    context.delete(event_key(partition, message.event.event_id))
                    drop_parts(context, partition, removed[-1], message.event.whole_bytes)
            if context.should_yield():
                yield
    return removed
