"""Memories that were forgotten and are kept: those that can be restored, what was forgotten last first.

They are in no index and in no order, so each page looks through the entries of the root.
"""

from __future__ import annotations

import heapq
from struct import Struct
from typing import NamedTuple

from greenroom.actors.auth import policy
from greenroom.actors.auth.namespaces import is_below
from greenroom.actors.base import paging
from greenroom.actors.base.times import to_datetime
from greenroom.actors.memory import indexing, records
from greenroom.actors.memory.browsing import listed
from greenroom.actors.memory.records import PLAIN, Entry
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.schemas import memory_review as review
from greenroom.runtime import Context, Slices

_PLACE = Struct(">QQ")


class _Gone(NamedTuple):
    """A forgotten entry; they are ordered by when they were forgotten, then by number, which no two share."""

    deleted_at: int
    number: int
    entry: Entry


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
    newest: list[_Gone] = []
    total = 0
    for _, entry in context.scan(Entry, prefix=records.ENTRIES):
        if entry.deleted_at is not None and _is_shown(repository, context, entry, namespace):
            total += 1
            gone = _Gone(entry.deleted_at, entry.number, entry)
            if before is None or gone[:2] < before:
                put = heapq.heappush if len(newest) <= request.limit else heapq.heappushpop
                put(newest, gone)
        if context.should_yield():
            yield
    newest.sort(reverse=True)
    shown = newest[: request.limit]
    found: list[review.KeptMemory] = []
    for each in shown:
        found.append((yield from _kept(repository, context, each.entry)))
        if context.should_yield():
            yield
    cursor = None
    if len(newest) > len(shown):
        cursor = paging.encode(_PLACE.pack(*shown[-1][:2]), binding)
    return review.ForgottenMemories(namespace=namespace, memories=found, total=total, next_cursor=cursor)


def _is_shown(repository: MemoryRepository, context: Context, entry: Entry, namespace: str) -> bool:
    return (
        records.is_live(entry.expires_at, context.now)
        and is_below(repository.namespace(entry.sub), namespace)
        and repository.may_see(context.principal, entry)
    )


def _kept(repository: MemoryRepository, context: Context, entry: Entry) -> Slices[review.KeptMemory]:
    details = entry.details or PLAIN
    assert details.deleted_at is not None, "it was forgotten"
    place = repository.entry_key(records.entry_key(entry.session_id, entry.key, entry.sub), details.partition)
    occupant = context.get(place, Entry)
    return review.KeptMemory(
        memory=(yield from listed(repository, context, entry)),
        forgotten_at=to_datetime(details.deleted_at),
        forgotten_by=details.deleted_by,
        key_is_taken=occupant is not None and records.is_there(occupant, context.now),
        may_restore=policy.may_write_namespace(context.principal, repository.namespace(entry.sub)),
    )
