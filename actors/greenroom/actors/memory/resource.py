"""An agent's memory as one resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from greenroom.actors.audit import record as audit_record
from greenroom.actors.base import cursor as base_cursor
from greenroom.actors.base.times import to_datetime
from greenroom.actors.memory.records import Entry, is_live, view
from greenroom.actors.schemas import replies
from greenroom.actors.schemas import resource_reads as resources
from greenroom.runtime import Context, Slices

NEWEST_ENTRIES = 1_000


def memory_resource(
    context: Context, uri: str, entries: Iterator[Entry], binding: str
) -> Slices[resources.MemoryResource]:
    """Return the newest live entries by scope, and how many there are.

    Args:
        context: The message's context.
        uri: The resource's.
        entries: All entries, newest update first.
        binding: What the cursor is good for.
    """
    everywhere: list[replies.MemoryEntry] = []
    sessions: dict[str, list[replies.MemoryEntry]] = {}
    counts: Counter[str | None] = Counter()
    newest = last = None
    for entry in entries:
        if is_live(entry.expires_at, context.now):
            newest = newest or entry
            if counts.total() < NEWEST_ENTRIES:
                last = entry
                scope = everywhere if entry.session_id is None else sessions.setdefault(entry.session_id, [])
                scope.append(view(entry))
            counts[entry.session_id] += 1
        if context.should_yield():
            yield
    total = counts.total()
    audit_record.record_resource_read(context, entries=total)
    has_more = total > NEWEST_ENTRIES
    return resources.MemoryResource(
        agent_id=context.address.key,
        memory=resources.MemoryByScope(global_=everywhere, sessions=sessions),
        counts=resources.MemoryCounts(
            global_=counts.pop(None, 0),
            sessions={session: count for session, count in counts.items() if session is not None},
            total=total,
        ),
        has_more=has_more,
        cursor=base_cursor.encode(last.update.to_bytes(8), binding)
        if has_more and last is not None
        else None,
        resource_info=resources.ResourceInfo(
            uri=uri,
            reader=context.address.key,
            last_updated=None if newest is None else to_datetime(newest.updated_at),
        ),
    )
