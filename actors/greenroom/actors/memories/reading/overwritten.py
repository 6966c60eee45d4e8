"""List the caller's memories that others have changed, each in the caller's own last version."""

from __future__ import annotations

from itertools import islice
from typing import Final

from greenroom.actors.core.auth import policy
from greenroom.actors.core.replies.damage import read_undamaged
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.memories.requests.overwritten import ListOverwritten, OverwrittenMemory
from greenroom.actors.memories.storage import indexing, links, records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.storage.views import newest_first, to_version_view
from greenroom.runtime import Context, Slices

_AMONG: Final = 2_000
"""Only this many of the newest memories are looked at."""
_LARGEST: Final = 10_000


def list_overwritten(
    repository: MemoryRepository, request: ListOverwritten, context: Context
) -> Slices[list[OverwrittenMemory]]:
    """Return the caller's own last versions; nothing of what others wrote in their place."""
    yield from indexing.finish(repository, context)
    found: list[OverwrittenMemory] = []
    for stored in islice(newest_first(repository, context), _AMONG):
        if len(found) == request.limit:
            break
        if _is_overwritten(repository, context, stored.entry):
            one = yield from _read(repository, context, stored.entry)
            if one is not None and not set(request.tags).isdisjoint(one.own.tags):
                found.append(one)
        yield
    return found


def _is_overwritten(repository: MemoryRepository, context: Context, entry: Entry) -> bool:
    return (
        entry.details is not None
        and entry.details.own_version is not None
        and records.is_there(entry, context.now)
        and policy.owns_memory(context.principal, repository.partition(entry))
        and repository.may_see(context.principal, entry)
    )


def _read(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[OverwrittenMemory | None]:
    """Return the owner's version; None if it is gone, large, unreviewed or replaced."""
    details = entry.details or PLAIN
    number = details.own_version
    assert number is not None, "the memory was changed by others"
    version = read_undamaged(context, repository.version_of, context, entry, number)
    successor = read_undamaged(context, links.successor, repository, context, entry)
    if version is None or successor is not None or not records.is_live(version.expires_at, context.now):
        return None
    own = yield from to_version_view(repository, context, entry, number, version, most=_LARGEST)
    if own.withheld or own.unreviewed:
        return None
    return OverwrittenMemory(
        own=own, version=entry.version, at=to_datetime(entry.updated_at), by=details.changed_by or ""
    )
