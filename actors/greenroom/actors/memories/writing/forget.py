"""Forget memories: one by name, or all that match filters; several only with a confirmation."""

from __future__ import annotations

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.memories.requests import replies, requests
from greenroom.actors.memories.storage import indexing, records
from greenroom.actors.memories.storage.repository import MemoryRepository, StoredEntry
from greenroom.actors.memories.storage.views import EntryFilter, newest_first, to_forgotten
from greenroom.actors.memories.writing import removal
from greenroom.actors.memories.writing.store_requests import check_version
from greenroom.runtime import Context, Slices

SHOWN = 100
"""A reply lists at most this many memories."""
AT_ONCE = 1_000
"""One commit forgets at most this many memories, so that other writes do not wait long."""
ROWS = 5
"""The number of rows that one memory has in different places of the store: entry, id, end, quality."""


def forget(
    repository: MemoryRepository, request: requests.ForgetMemory, context: Context
) -> Slices[replies.MemoryForgotten]:
    """Forget the named or matching memories, or list what would be forgotten."""
    given = [request.memory_id is not None, request.key is not None, request.filters is not None]
    if sum(given) != 1:
        raise auth_errors.invalid("memory_id", "memory_id: give one of memory_id, key and filters")
    namespace = request.namespace or repository.root
    if request.memory_id is None:
        policy.check_writes_namespace(context.principal, namespace)
    yield from indexing.finish(repository, context)
    at_once = _batch_size(context)
    if request.filters is None:
        gone_damaged = removal.forget_damaged(repository, context, request, namespace)
        if gone_damaged is not None:
            return gone_damaged
        stored = _find_named(repository, context, request, namespace)
        check_version(repository, namespace, stored[0].entry.key, stored[0], request.expected_version)
        matched = len(stored)
    else:
        fitting = EntryFilter(repository, context, request.filters, request.namespace)
        stored, matched = yield from _find_matches(repository, context, fitting, max(at_once, SHOWN))
    done = request.confirm or matched == 1
    gone = stored[:at_once] if done else []
    answer = _reply(repository, gone, gone or stored, matched, purge=request.purge)
    if gone:
        yield from _end(repository, context, gone, purge=request.purge, action="forget_memory")
    return answer


def _find_matches(
    repository: MemoryRepository, context: Context, wanted: EntryFilter, most: int
) -> Slices[tuple[list[StoredEntry], int]]:
    """Return the newest matching memories, at most ``most``, and the number of all matches."""
    newest: list[StoredEntry] = []
    matched = 0
    for one in newest_first(repository, context):
        if wanted.fits(one.entry):
            matched += 1
            if matched <= most:
                newest.append(one)
        yield
    return newest, matched


def drop(
    repository: MemoryRepository, request: requests.DropMemory, context: Context
) -> Slices[replies.MemoryForgotten]:
    """Delete a memory for the memory service; a missing one is no error."""
    policy.check_writes_namespace(context.principal, request.namespace)
    yield from indexing.finish(repository, context)
    gone_damaged = removal.forget_damaged(repository, context, request, request.namespace)
    if gone_damaged is not None:
        return gone_damaged
    stored = repository.find(context, repository.sub(request.namespace), None, request.key)
    there = [] if stored is None else [stored]
    if request.purge:
        there += [
            one
            for one in _find_forgotten(repository, context, request.namespace, request.key)
            if one != stored
        ]
    gone = there[: _batch_size(context)]
    answer = _reply(repository, gone, gone, len(there), purge=request.purge)
    if gone:
        details = {"task_id": request.task_id, "by": request.deleted_by}
        yield from _end(repository, context, gone, purge=request.purge, action="delete_memory", **details)
    return answer


def _reply(
    repository: MemoryRepository,
    gone: list[StoredEntry],
    named: list[StoredEntry],
    matched: int,
    *,
    purge: bool,
) -> replies.MemoryForgotten:
    """Make the reply before the effects; memories that are kept wait for a confirmation."""
    return replies.MemoryForgotten(
        forgotten=len(gone),
        purged=purge and bool(gone),
        confirm_needed=bool(named) and not gone,
        matched=matched,
        remaining=matched - len(gone),
        memories=[to_forgotten(repository, one.entry) for one in named[:SHOWN]],
    )


def _batch_size(context: Context) -> int:
    """Return how many memories fit into one commit; in a full store, few."""
    return max(1, context.most_rows(ROWS * AT_ONCE) // ROWS)


def _find_named(
    repository: MemoryRepository, context: Context, request: requests.ForgetMemory, namespace: str
) -> list[StoredEntry]:
    """Return the memories of an id or a key; for a purge also forgotten ones."""
    stored: list[StoredEntry] = []
    if request.memory_id is not None:
        one = repository.find_id(context, request.memory_id, forgotten=request.purge)
        if one is not None:
            policy.check_writes_namespace(context.principal, repository.namespace(one.entry.sub))
            return [one]
        raise repository.not_found(context, request.memory_id, None)
    assert request.key is not None, "one of both was given"
    one = repository.find(context, repository.sub(namespace), None, request.key)
    if one is not None:
        stored.append(one)
    if request.purge:
        stored += [
            each for each in _find_forgotten(repository, context, namespace, request.key) if each != one
        ]
    if not stored:
        raise repository.not_found(context, None, request.key, namespace)
    return stored


def _find_forgotten(
    repository: MemoryRepository, context: Context, namespace: str, key: str
) -> list[StoredEntry]:
    """Return the forgotten memories of a key that the caller may see."""
    keys = records.entry_keys(None, key, repository.sub(namespace))
    return [
        stored
        for stored in repository.entries_of_key(context, keys)
        if stored.entry.deleted_at is not None and repository.may_see(context.principal, stored.entry)
    ]


def _end(
    repository: MemoryRepository,
    context: Context,
    gone: list[StoredEntry],
    *,
    purge: bool,
    action: str,
    **details: str,
) -> Slices[None]:
    context.use_reserve()
    for stored in gone:
        # An earlier memory in the list may have superseded this one; then its end has changed this record.
        current = repository.by_number(context, stored.entry.number)
        assert current is not None, "it is still there"
        if purge:
            removal.remove(repository, context, current)
        else:
            removal.forget(repository, context, current, details.get("by", context.principal.agent_id))
        entry = current.entry
        repository.record(context, action, entry, old_version=entry.version, purged=purge, **details)
        yield
    repository.unlist_if_empty(context)
