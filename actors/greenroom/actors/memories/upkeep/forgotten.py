"""Memories that were forgotten and are kept: those that can be restored, what was forgotten last first.

They are in no index and in no order of the store. Which there are is found once while the actor is in
memory, and kept there from then on (`MemoryRepository.forgotten`), so that a page costs what it shows.
"""

from __future__ import annotations

from struct import Struct

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import is_below
from greenroom.actors.core.replies import paging
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.memories.reading.browsing import listed
from greenroom.actors.memories.requests import review
from greenroom.actors.memories.storage import indexing, records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.runtime import Context, Slices

_PLACE = Struct(">QQ")


def list_forgotten(
    repository: MemoryRepository, request: review.ListForgotten, context: Context
) -> Slices[review.ForgottenMemories]:
    """Answer a page of what was forgotten below a namespace and is kept."""
    namespace = request.namespace or repository.root
    yield from indexing.finish(repository, context)
    binding = f"forgotten {namespace}"
    before = None
    if request.cursor is not None:
        before = _PLACE.unpack(paging.decode(request.cursor, binding, _PLACE.size))
    known = yield from _known(repository, context)
    found: list[review.KeptMemory] = []
    cursor, last = None, (0, 0)
    for number, at in sorted(known.items(), key=lambda each: each[::-1], reverse=True):
        if before is not None and (at, number) >= before:
            continue
        stored = repository.by_number(context, number)
        if stored is None or stored.entry.deleted_at is None:  # it is restored, or gone for good
            del known[number]
        elif _is_shown(repository, context, stored.entry, namespace):
            if len(found) == request.limit:
                cursor = paging.encode(_PLACE.pack(*last), binding)
                break
            found.append((yield from _kept(repository, context, stored.entry)))
            last = (at, number)
        if context.should_yield():
            yield
    return review.ForgottenMemories(namespace=namespace, memories=found, next_cursor=cursor)


def _known(repository: MemoryRepository, context: Context) -> Slices[dict[int, int]]:
    """Return when which entries were forgotten, by their numbers; some may not be forgotten any more."""
    if repository.forgotten is None:
        known: dict[int, int] = {}
        for _, entry in context.scan(Entry, prefix=records.ENTRIES):
            if entry.deleted_at is not None:
                known[entry.number] = entry.deleted_at
            if context.should_yield():
                yield
        repository.forgotten = known
    return repository.forgotten


def _is_shown(repository: MemoryRepository, context: Context, entry: Entry, namespace: str) -> bool:
    return (
        records.is_live(entry.expires_at, context.now)
        and is_below(repository.namespace(entry.sub), namespace)
        and repository.may_see(context.principal, entry)
    )


def _kept(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[review.KeptMemory]:
    details = entry.details or PLAIN
    assert details.deleted_at is not None, "it was forgotten"
    places = repository.places(entry.session_id, entry.key, entry.sub, repository.partition(entry))
    occupants = (context.get(place, Entry) for place in places)
    return review.KeptMemory(
        memory=(yield from listed(repository, context, entry)),
        forgotten_at=to_datetime(details.deleted_at),
        forgotten_by=details.deleted_by,
        key_is_taken=any(each is not None and records.is_there(each, context.now) for each in occupants),
        may_restore=policy.may_write_namespace(context.principal, repository.namespace(entry.sub)),
    )
