"""Rebuild damaged records of memories that can be derived from other records.

An entry and its values have no copy, so damage to one of these loses the entry. Orders, ids, the index and
quality records are derived from the sound entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import GeneratorType
from typing import Any, Final

import msgspec

from greenroom.actors.core.replies.damage import filter_damage
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import Entry, Quality, Rating
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.search.index import records as index_records
from greenroom.runtime import Context, RecordDamagedError, Slices, pass_over

Handler = Callable[[Any, Any, Context], Any]
LOST: Final = b""
"""The value of an order or id row if the record of its entry is damaged, too."""


def with_rebuild(handler: Handler) -> Handler:
    """Wrap a handler: rebuild a damaged derived record, then run the handler again."""

    @wraps(handler)
    def handle(repository: MemoryRepository, message: Any, context: Context) -> Any:
        try:
            reply = handler(repository, message, context)
        except RecordDamagedError as error:
            return retry(repository, message, context, error)
        return guard(repository, message, context, reply) if isinstance(reply, GeneratorType) else reply

    def guard(
        repository: MemoryRepository, message: Any, context: Context, slices: Slices[Any]
    ) -> Slices[Any]:
        try:
            return (yield from slices)
        except RecordDamagedError as error:
            return (yield from retry(repository, message, context, error))

    def retry(
        repository: MemoryRepository, message: Any, context: Context, error: RecordDamagedError
    ) -> Slices[Any]:
        rebuilt = set[bytes]()
        while True:
            letter = context.own_key(error)[:1] if can_rebuild(context, error) else b""
            if not letter or letter in rebuilt:
                raise error
            rebuilt.add(letter)
            context.roll_back()
            uses = repository.uses
            repository.activate(context)
            repository.uses = uses  # waiting uses are stored nowhere else
            yield from _REBUILDERS[letter](repository, context)
            context.keep_effects()
            try:
                reply = handler(repository, message, context)
                return (yield from reply) if isinstance(reply, GeneratorType) else reply
            except RecordDamagedError as another:
                error = another

    return handle


def can_rebuild(context: Context, error: RecordDamagedError) -> bool:
    """Return whether a damaged record can be rebuilt from others."""
    return not error.entry and context.is_own(error) and context.own_key(error)[:1] in _REBUILDERS


def _find_damaged(context: Context, prefix: bytes) -> list[bytes]:
    """Return the keys of damaged records under a prefix, as stored."""
    met: list[RecordDamagedError] = []
    for _ in context.scan(msgspec.Raw, prefix=prefix, on_damage=filter_damage(context, prefix, met.append)):
        pass
    return [context.own_key(error) for error in met]


def _sound_entries(context: Context) -> Iterator[StoredEntry]:
    for where, entry in context.scan(Entry, prefix=records.ENTRIES, on_damage=pass_over):
        yield StoredEntry(where, entry)


def _rebuild_orders(_: MemoryRepository, context: Context) -> Slices[None]:
    in_all = {int.from_bytes(key[1:]): key for key in _find_damaged(context, records.UPDATES)}
    in_scope = {int.from_bytes(key[-8:]): key for key in _find_damaged(context, records.ORDER)}
    for where, entry in _sound_entries(context):
        if entry.deleted_at is None:
            in_all.pop(entry.update, None)
            in_scope.pop(entry.update, None)
            for key in records.order_keys(entry):
                if _is_wrong(context, key):
                    context.put(key, where)
        yield
    for key in in_all.values():
        context.put(key, LOST)
    if in_scope:
        yield from _mark_in_scopes(context, in_scope)


def _mark_in_scopes(context: Context, lost: dict[int, bytes]) -> Slices[None]:
    """Mark order rows as lost, by update; for an unknown scope, try all scopes."""
    scopes: set[bytes] = set()
    for _, where in context.scan(bytes, prefix=records.UPDATES, on_damage=pass_over):
        scopes.add(records.scope_of_entry(where))
        yield
    for update, stored in lost.items():
        for key in (stored, *(records.ORDER + scope + update.to_bytes(8) for scope in scopes)):
            if context.own_key_of(key) == stored:
                context.put(key, LOST)


def _is_wrong(context: Context, key: bytes) -> bool:
    """Return whether a required record is damaged or missing."""
    try:
        return context.get(key, bytes) is None
    except RecordDamagedError:
        return True


def _rebuild_ids(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Rebuild the rows that find entries by id."""
    left = set(_find_damaged(context, records.id_key(b"")))
    for where, entry in _sound_entries(context):
        key = records.id_key(repository.tail(entry.number))
        if _is_wrong(context, key):
            left.discard(key)
            context.put(key, where)
        yield
    for key in left:
        context.put(key, LOST)


def _rebuild_expiries(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Rebuild the rows by which expired versions are removed."""
    for key in _find_damaged(context, records.EXPIRIES):
        stored = repository.by_number(context, int.from_bytes(key[9:17]))
        if stored is None:
            context.delete(key)
        else:
            context.put(key, stored.record_key)
        yield


def _rebuild_qualities(_: MemoryRepository, context: Context) -> Slices[None]:
    """Sum up the ratings again; the counts of uses are lost."""
    for key in _find_damaged(context, records.QUALITIES):
        prefix = records.ratings_prefix(int.from_bytes(key[1:]))
        ratings = [each.rating for _key, each in context.scan(Rating, prefix=prefix, on_damage=pass_over)]
        context.put(key, Quality(rated=sum(ratings), ratings=len(ratings)))
        yield


def _rebuild_pairs(_repository: MemoryRepository, context: Context) -> Slices[None]:
    """Rebuild the marks of accepted pairs; the keys of the marks hold all their data."""
    for key in _find_damaged(context, records.pairs_prefix(0)[:1]):
        context.put(key, True)
    yield


def _rebuild_removed(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Restore the marks of removed entries, unless the entry exists."""
    for key in _find_damaged(context, records.DELETED):
        if repository.by_number(context, int.from_bytes(key[1:])) is None:
            context.put(key, True)
        else:
            context.delete(key)
    yield


def _rebuild_index(repository: MemoryRepository, context: Context) -> Slices[None]:
    yield from repository.index.rebuild(context, repository.documents(context))


def _rebuild_unread(repository: MemoryRepository, context: Context) -> Slices[None]:
    """Rebuild the index, since it is unknown which entries it lacks."""
    context.delete(records.UNREAD)
    yield from _rebuild_index(repository, context)


_REBUILDERS: Final[dict[bytes, Callable[[MemoryRepository, Context], Slices[None]]]] = {
    records.UPDATES: _rebuild_orders,
    records.ORDER: _rebuild_orders,
    records.id_key(b""): _rebuild_ids,
    records.EXPIRIES: _rebuild_expiries,
    records.QUALITIES: _rebuild_qualities,
    records.pairs_prefix(0)[:1]: _rebuild_pairs,
    records.DELETED: _rebuild_removed,
    records.UNREAD: _rebuild_unread,
    index_records.ALL: _rebuild_index,
}
"""The function that rebuilds damaged records, by the first letter of their keys."""
