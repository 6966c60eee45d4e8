"""Erase a person's own session as a whole, or their data in another session."""

from __future__ import annotations

from collections import Counter

import msgspec

from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.erasure import ERASED, ErasedPart, EraseFrom, Person
from greenroom.actors.sessions.handlers import lifecycle, writes
from greenroom.actors.sessions.handlers.session_naming import default_name
from greenroom.actors.sessions.handlers.work_context import publish_decisions
from greenroom.actors.sessions.session import Session
from greenroom.actors.sessions.storage import directory, migrations, work_context
from greenroom.actors.sessions.storage.migrations import StoredMigration, ToolState
from greenroom.actors.sessions.storage.records import (
    COMPACTIONS,
    COUNTERS,
    HEADER,
    METADATA,
    STATE,
    Entry,
    Header,
    Naming,
    SenderCounter,
    StoredCompaction,
    StoredMessage,
    partition_prefix,
)
from greenroom.runtime import Context, Slices


def erase(session: Session, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Erase, or only count, a person's own session or their data in another session."""
    person, header = request.person, session.header
    counts: Counter[str] = Counter()
    if header is None:
        return ErasedPart(counts={})
    is_whole = person.has_session(header.user_id, header.created_by)
    senders = [counter for _, counter in context.scan(SenderCounter, prefix=COUNTERS)]
    for sender in senders:
        if _is_written_by(person, sender):
            counts["messages"] += sender.count
        elif is_whole:
            counts["messages_of_others"] += sender.count
    if is_whole:
        counts["sessions"] = 1
        for prefix in (STATE, METADATA):
            counts["session_fields"] += sum(1 for _ in context.scan(msgspec.Raw, prefix=prefix))
    else:
        counts["session_notes"] = len((yield from _notes(session, person, context)))
    is_known = (
        person.has_agent(header.created_by)
        or any(_is_written_by(person, sender) for sender in senders)  # even if no message is left
        or any(migrations.listed_at(context, owner) for owner in person.roots)
        or _is_name_from(person, header)
        or _is_holder(person, context.get(migrations.TOOL_STATE, ToolState))
    )
    if not request.dry_run and (is_known or any(counts.values())):
        context.use_reserve()
        for audience in session.activity:
            session.publish(context, audience)
        publish_decisions(context, header)
        if is_whole:
            yield from lifecycle.remove(session, context)
        else:
            yield from _clean(session, header, person, context)
        session.activate(context)
    return ErasedPart(counts={kind: count for kind, count in counts.items() if count})


def _clean(session: Session, header: Header, person: Person, context: Context) -> Slices[None]:
    directory.remove(context, session.activity)
    for key in (yield from _notes(session, person, context)):
        context.delete(key)
    for owner in person.roots:
        migrations.remove_recent(context, owner, header.project_id)
    state = context.get(migrations.TOOL_STATE, ToolState)
    if state is not None and _is_holder(person, state):
        left = [holder for holder in state.holders if not person.has_agent(holder.agent)]
        context.put(migrations.TOOL_STATE, msgspec.structs.replace(state, holders=left))
    if person.has_agent(header.created_by):
        header = msgspec.structs.replace(header, created_by=ERASED)
        context.put(HEADER, header)
    if _is_name_from(person, header):
        purpose = default_name(migrations.find_tool(context, header.created_by))
        header = msgspec.structs.replace(header, purpose=purpose, naming=Naming(0))
        context.put(HEADER, header)
    removed = yield from _drop_messages(person, context)
    yield from session.message_search.vectors.forget(context, removed)
    directory.put_base(context, header)
    session.activate(context)
    for audience, activity in session.activity.items():
        directory.move(context, audience, None, activity)


def _notes(session: Session, person: Person, context: Context) -> Slices[list[bytes]]:
    found: list[bytes] = []
    for owner in person.roots:
        prefix = work_context.prefix_of(owner)
        found += [key for key, _ in context.scan(msgspec.Raw, prefix=prefix)]
        yield
    common = session.work_context.common(context)
    found += [key for key, decision in common.decisions.items() if _is_made_by(person, decision)]
    if common.workflow is not None and _is_made_by(person, common.workflow):
        found.append(work_context.prefix_of(work_context.COMMON) + b"w")
    found += [
        key
        for key, move in context.scan(StoredMigration, prefix=migrations.MIGRATIONS)
        if person.has_agent(move.by)
    ]
    found += [
        key for key, made in context.scan(StoredCompaction, prefix=COMPACTIONS) if person.has_agent(made.by)
    ]
    return found


def _is_made_by(person: Person, entry: work_context.StoredDecision | work_context.StoredWorkflow) -> bool:
    return person.has_agent(entry.by) or entry.user == person.user


def _is_name_from(person: Person, header: Header) -> bool:
    return header.naming is not None and bool(header.naming.by) and person.has_agent(header.naming.by)


def _is_holder(person: Person, work: ToolState | None) -> bool:
    return work is not None and any(person.has_agent(holder.agent) for holder in work.holders)


def _is_written_by(person: Person, sender: SenderCounter) -> bool:
    """Return whether a person's agents sent the messages, or are their only readers."""
    kind, _, agent = sender.audience.partition(":")
    return person.has_agent(sender.sender) or (kind == "agent" and person.has_agent(agent))


def _drop_messages(person: Person, context: Context) -> Slices[list[int]]:
    """Stage the removal of a person's messages, event ids and counters; return the ids."""
    removed: list[int] = []
    for counter_key, counter in list(context.scan(SenderCounter, prefix=COUNTERS)):
        if not _is_written_by(person, counter):
            continue
        context.delete(counter_key)
        partition = Partition(counter.audience, counter.visibility)
        prefix = partition_prefix(partition)
        for key, message in context.scan(StoredMessage, prefix=prefix):
            if message.sender == counter.sender:
                removed.append(int.from_bytes(key[len(prefix) :]))
                writes.drop_message(context, Entry(removed[-1], partition, message))
            yield
    return removed
