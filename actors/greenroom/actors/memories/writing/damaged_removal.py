"""Remove memories with a damaged record: the rows that lead to them, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.replies.damage import filter_damage
from greenroom.actors.memories.requests.replies import MemoryForgotten
from greenroom.actors.memories.requests.requests import DropMemory, ForgetMemory
from greenroom.actors.memories.storage import records
from greenroom.actors.memories.storage.records import Entry
from greenroom.actors.memories.storage.repository import MemoryRepository
from greenroom.actors.memories.writing import removal
from greenroom.runtime import Context, RecordDamagedError


def forget_damaged(
    repository: MemoryRepository, context: Context, request: ForgetMemory | DropMemory, namespace: str
) -> MemoryForgotten | None:
    """Remove the memory of a request if it is damaged; None if it is not.

    Nothing of it is kept, since it cannot be read.

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
        if expected is not None or not remove_at(repository, context, places):
            raise
    else:
        return None
    audit_record.record(
        context, "forget_memory", None, namespace=namespace, key=request.key, memory_id=memory_id, purged=True
    )
    return MemoryForgotten(
        forgotten=1, purged=True, confirm_needed=False, matched=1, remaining=0, memories=[]
    )


def remove_at(repository: MemoryRepository, context: Context, places: Iterable[bytes]) -> bool:
    """Stage the removal of damaged, visible entries at some places; return whether there is any."""
    found = [where for place in places for where in _damaged_at(repository, context, place)]
    if not found:
        return False
    context.use_reserve()
    repository.drop_summary(context)
    for where in found:
        _remove(repository, context, where)
    repository.unlist_if_empty(context)
    removal.sweep_soon(context)
    return True


def _damaged_at(repository: MemoryRepository, context: Context, place: bytes) -> Iterator[bytes]:
    met: list[RecordDamagedError] = []
    for _ in context.scan(Entry, prefix=place, on_damage=filter_damage(context, place, met.append)):
        pass
    for error in met:
        suffix = context.own_key(error, place)
        if repository.shows_place(context.principal, suffix):
            yield place + suffix


def _remove(repository: MemoryRepository, context: Context, where: bytes) -> None:
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
