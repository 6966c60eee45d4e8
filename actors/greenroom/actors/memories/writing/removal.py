"""Remove memories: forget, purge, sweep expired ones, and drop damaged ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.replies.damage import filter_damage
from greenroom.actors.core.validation.times import SECOND
from greenroom.actors.memories.requests import keyvalue_requests as requests
from greenroom.actors.memories.requests.replies import MemoryForgotten
from greenroom.actors.memories.requests.requests import DropMemory, ForgetMemory
from greenroom.actors.memories.storage import links, records
from greenroom.actors.memories.storage.records import Entry, VersionTimes
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.runtime import Context, RecordDamagedError, Slices, pass_over

SWEEP = "sweep"
SWEEP_EVERY = 60 * SECOND
"""Expiry times are rounded up to this, so that one sweep removes all records that expire close together."""
SWEEP_EVERY_HEARD = SECOND
"""The same for a resource, because the sweep notifies its subscribers of an expiry."""
SWEEP_BATCH = 200
"""One sweep has about this many effects, so that others do not wait long for the disk."""
SWEEP_SLICES = 4
"""One sweep has this many slices of at most 5 ms each, so that the actor is not busy for long."""
EFFECTS_OF_EXPIRY = 11
"""Effects of one expiry: its row, the version and, for the newest, the entry, id, end and index rows."""


def unlist(repository: MemoryRepository, context: Context, entry: Entry) -> None:
    """Stage the removal of an entry's newest version from lists and searches."""
    repository.drop_summary(context)
    repository.mapped.pop(entry.update, None)
    repository.publish(context, entry)
    for key in records.order_keys(entry):
        context.delete(key)
    if repository.is_indexed(entry):
        repository.index.remove(context, entry.update)


def clear(repository: MemoryRepository, context: Context, stored: StoredEntry) -> None:
    """Stage the release of a dead entry's key.

    An expired entry is removed. A forgotten one moves to another record key and keeps its history.
    """
    where, entry = stored
    if entry.deleted_at is None or not records.is_live(entry.expires_at, context.now):
        remove(repository, context, stored)
        return
    prefix = records.entry_key(entry.session_id, entry.key, entry.sub)
    aside = prefix + records.forgotten_suffix(entry.number)
    context.delete(where)
    context.put(aside, entry)
    context.put(records.id_key(repository.tail(entry.number)), aside)
    if entry.expires_at is not None:
        context.put(records.expiry_key(entry.expires_at, entry.number, entry.version), aside)


def forget(repository: MemoryRepository, context: Context, stored: StoredEntry, by: str) -> None:
    """Stage that an entry is forgotten: it is hidden, but its history is kept."""
    where, entry = stored
    unlist(repository, context, entry)
    repository.note_end(context, entry)
    links.relink(repository, context, entry, None)
    details = msgspec.structs.replace(
        repository.details_of(context, entry), deleted_at=context.now, deleted_by=by, supersedes=None
    )
    links.record_supersession(context, entry, details)
    context.put(where, msgspec.structs.replace(entry, details=details))
    if repository.forgotten is not None:
        repository.forgotten[entry.number] = context.now


def remove(repository: MemoryRepository, context: Context, stored: StoredEntry) -> None:
    """Stage an entry's removal at a constant cost; the sweep removes long histories."""
    where, entry = stored
    repository.drop_summary(context)
    repository.note_end(context, entry)
    if entry.deleted_at is None:
        unlist(repository, context, entry)
    else:
        repository.publish_about(context, entry)
    context.delete(where)
    if repository.header is not None:
        context.delete(records.id_key(repository.tail(entry.number)))
    links.relink(repository, context, entry, None)
    is_linked = entry.details is not None and entry.details.superseded_by is not None
    is_linked = is_linked or any(context.keys(records.pairs_prefix(entry.number)))
    if repository.uses.drop(context, entry.number).ratings or entry.versions > 1 or is_linked:
        context.put(records.deleted_key(entry.number), True)
        sweep_soon(context)
    else:
        context.delete(records.version_key(entry.number, entry.version))
        if entry.expires_at is not None:
            context.delete(records.expiry_key(entry.expires_at, entry.number, entry.version))


def sweep(repository: MemoryRepository, _: requests.SweepMemory, context: Context) -> Slices[None]:
    """Stage the removal of a batch of expired or purged records, oldest expiry first; repeat."""
    context.use_reserve()
    batch = context.most_rows(SWEEP_BATCH)
    expired = effects = slices = 0
    for key, where in context.scan(bytes, prefix=records.EXPIRIES):
        expires_at, number, version = (int.from_bytes(key[at : at + 8]) for at in (1, 9, 17))
        if records.is_live(expires_at, context.now):
            sweep_by(repository, context, expires_at)
            break
        if effects >= batch or slices >= SWEEP_SLICES:
            sweep_soon(context)
            break
        expired += 1
        effects += EFFECTS_OF_EXPIRY
        context.delete(key)
        context.delete(records.version_key(number, version))
        try:
            entry = context.get(where, Entry)
        except RecordDamagedError:  # it stays, and replies report it, until it is forgotten
            entry = None
        if entry is not None and (entry.number, entry.version) == (number, version):
            remove(repository, context, StoredEntry(where, entry))
        slices += context.should_yield()
        yield
    if expired:
        repository.unlist_if_empty(context)
        audit_record.record(context, "expire_memory", None, owner=context.address.key, versions=expired)
    yield from _purge_history(context, batch - effects)


def sweep_by(repository: MemoryRepository, context: Context, time: int) -> None:
    """Set the timer of a sweep soon after ``time``, unless an earlier one is set."""
    every = SWEEP_EVERY_HEARD if repository.is_resource else SWEEP_EVERY
    due = (time // every + 1) * every
    already = context.timer_due(SWEEP)
    if already is None or due < already:
        context.set_timer(SWEEP, due, requests.SweepMemory())


def sweep_soon(context: Context) -> None:
    """Set the timer of a sweep to now."""
    due = context.now + 1
    if context.timer_due(SWEEP) != due:
        context.set_timer(SWEEP, due, requests.SweepMemory())


def purge(context: Context) -> Slices[None]:
    """Stage the removal of all records that removed entries left."""
    for keys in _left_over(context):
        for key in keys:
            context.delete(key)
        yield


def _purge_history(context: Context, effects: int) -> Slices[None]:
    """Stage about ``effects`` removals of records that removed entries left; repeat for the rest."""
    for keys in _left_over(context):
        if effects <= 0:
            sweep_soon(context)
            return
        for key in keys:
            context.delete(key)
        effects -= len(keys)
        yield


def _left_over(context: Context) -> Iterator[tuple[bytes, ...]]:
    """Yield groups of keys that removed entries left; each entry's mark comes last."""
    for mark, _ in context.scan(bool, prefix=records.DELETED):
        number = int.from_bytes(mark[1:])
        met: list[RecordDamagedError] = []
        prefix = records.versions_prefix(number)
        only = filter_damage(context, prefix, met.append)  # damage next to it belongs to another memory
        versions = context.scan(VersionTimes, prefix=prefix, on_damage=only)
        for key, ends in versions:
            if ends.expires_at is None:
                yield (key,)
            else:
                yield key, records.expiry_key(ends.expires_at, number, int.from_bytes(key[9:17]))
        for error in met:
            yield (context.own_key(error),)
        for prefix_of in (records.ratings_prefix, records.successors_prefix, records.pairs_prefix):
            for key, _ in context.scan(msgspec.Raw, prefix=prefix_of(number), on_damage=pass_over):
                yield (key,)
        yield (mark,)


def forget_damaged(
    repository: MemoryRepository, context: Context, request: ForgetMemory | DropMemory, namespace: str
) -> MemoryForgotten | None:
    """Remove the memory of a request if it is damaged; None if it is not.

    Nothing of the memory is kept, since it cannot be read.

    Raises:
        RecordDamagedError: it may belong to someone else, or the request expects a version.
    """
    memory_id = request.memory_id if isinstance(request, ForgetMemory) else None
    expected = request.expected_version if isinstance(request, ForgetMemory) else None
    try:
        if memory_id is not None:
            repository.find_id(context, memory_id, forgotten=True)
            return None
        assert request.key is not None, "one of both was given"
        repository.find(context, repository.sub(namespace), None, request.key)
    except RecordDamagedError as error:
        if not error.entry:
            raise
        places: Iterable[bytes]
        if memory_id is None:
            places = records.entry_keys(None, request.key or "", repository.sub(namespace))
        else:
            places = filter(None, [context.get(records.id_key(records.tail_of_id(memory_id)), bytes)])
        if expected is not None or not remove_damaged(repository, context, places):
            raise
    else:
        return None
    audit_record.record(
        context, "forget_memory", None, namespace=namespace, key=request.key, memory_id=memory_id, purged=True
    )
    return MemoryForgotten(
        forgotten=1, purged=True, confirm_needed=False, matched=1, remaining=0, memories=[]
    )


def remove_damaged(repository: MemoryRepository, context: Context, places: Iterable[bytes]) -> bool:
    """Stage the removal of damaged, visible entries at some places; return whether there is any."""
    found = [where for place in places for where in _damaged_at(repository, context, place)]
    if not found:
        return False
    context.use_reserve()
    repository.drop_summary(context)
    for where in found:
        _remove_rows(repository, context, where)
    repository.unlist_if_empty(context)
    sweep_soon(context)
    return True


def _damaged_at(repository: MemoryRepository, context: Context, place: bytes) -> Iterator[bytes]:
    met: list[RecordDamagedError] = []
    for _ in context.scan(Entry, prefix=place, on_damage=filter_damage(context, place, met.append)):
        pass
    for error in met:
        suffix = context.own_key(error, place)
        if repository.shows_place(context.principal, suffix):
            yield place + suffix


def _remove_rows(repository: MemoryRepository, context: Context, where: bytes) -> None:
    context.delete(where)
    repository.note_lost_end(context, where)
    for key, listed in context.scan(bytes, prefix=records.UPDATES):
        if listed == where:
            update = int.from_bytes(key[1:])
            context.delete(key)
            context.delete(records.ORDER + records.scope_of_entry(where) + key[1:])
            repository.mapped.pop(update, None)
            repository.index.remove(context, update)
    for key, listed in context.scan(bytes, prefix=records.id_key(b"")):
        if listed == where:
            context.delete(key)
            _remove_values(repository, context, key[1:])


def _remove_values(repository: MemoryRepository, context: Context, tail: bytes) -> None:
    """Stage the removal of versions and uses by the tail of an id."""
    last = 0
    for key in context.keys(records.VERSIONS):
        number = int.from_bytes(key[1:9])
        if number != last and repository.tail(number) == tail:
            repository.uses.drop(context, number)
            context.put(records.deleted_key(number), True)
        last = number
