"""List forgotten memories that can be restored, last forgotten first.

They are in no index and in no order of the store. An activation finds them once and caches them in
`MemoryRepository.forgotten`, so that a page does not scan all entries.
"""

from __future__ import annotations

from struct import Struct

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import is_below
from greenroom.actors.core.replies import paging
from greenroom.actors.core.replies.damage import read_undamaged, skip_damaged
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.memories.reading.browsing import to_listed
from greenroom.actors.memories.requests import review
from greenroom.actors.memories.storage import indexing, records
from greenroom.actors.memories.storage.records import PLAIN, Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.runtime import Context, Slices, pass_over

_PLACE = Struct(">QQ")


def list_forgotten(
    repository: MemoryRepository, request: review.ListForgotten, context: Context
) -> Slices[review.ForgottenMemories]:
    """Return a page of the forgotten memories below a namespace."""
    namespace = request.namespace or repository.root
    yield from indexing.finish(repository, context)
    binding = f"forgotten {namespace}"
    before = None
    if request.cursor is not None:
        before = _PLACE.unpack(paging.decode(request.cursor, binding, _PLACE.size))
    known = yield from _load_forgotten(repository, context)
    found: list[review.KeptMemory] = []
    cursor, last = None, (0, 0)
    for number, at in sorted(known.items(), key=lambda each: each[::-1], reverse=True):
        if before is not None and (at, number) >= before:
            continue
        stored = read_undamaged(context, repository.by_number, context, number)
        if stored is None or stored.entry.deleted_at is None:  # restored or removed since
            del known[number]
        elif _is_visible(repository, context, stored.entry, namespace):
            if len(found) == request.limit:
                cursor = paging.encode(_PLACE.pack(*last), binding)
                break
            kept = yield from skip_damaged(context, _to_kept(repository, context, stored.entry))
            found += [] if kept is None else [kept]
            last = (at, number)
        yield
    return review.ForgottenMemories(namespace=namespace, memories=found, next_cursor=cursor)


def _load_forgotten(repository: MemoryRepository, context: Context) -> Slices[dict[int, int]]:
    """Return times of forgetting by entry number; some entries may not be forgotten any more."""
    if repository.forgotten is None:
        known: dict[int, int] = {}
        for _, entry in context.scan(Entry, prefix=records.ENTRIES, on_damage=pass_over):
            if entry.deleted_at is not None:
                known[entry.number] = entry.deleted_at
            yield
        repository.forgotten = known
    return repository.forgotten


def _is_visible(repository: MemoryRepository, context: Context, entry: Entry, namespace: str) -> bool:
    return (
        records.is_live(entry.expires_at, context.now)
        and is_below(repository.namespace(entry.sub), namespace)
        and repository.may_see(context.principal, entry)
    )


def _to_kept(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[review.KeptMemory]:
    details = entry.details or PLAIN
    assert details.deleted_at is not None, "it was forgotten"
    places = repository.places(entry.session_id, entry.key, entry.sub, repository.partition(entry))
    occupants = (read_undamaged(context, repository.entry_at, context, place) for place in places)
    return review.KeptMemory(
        memory=(yield from to_listed(repository, context, entry)),
        forgotten_at=to_datetime(details.deleted_at),
        forgotten_by=details.deleted_by,
        key_is_taken=any(each is not None and records.is_there(each, context.now) for each in occupants),
        may_restore=policy.may_write_namespace(context.principal, repository.namespace(entry.sub)),
    )
