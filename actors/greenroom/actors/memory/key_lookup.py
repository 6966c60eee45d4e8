"""Look-up by key in every namespace below the root and every session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from greenroom.actors.memory import records, upgrade
from greenroom.actors.memory.repository import MemoryRepository, StoredEntry
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.index.corpus import Corpus

_BEHIND_UPDATES = b"\xff" * 8


def rows_of_key(
    repository: MemoryRepository, context: Context, corpus: Corpus, key: str
) -> Slices[list[int]]:
    """Return the index rows of all memories that have a key, visible or not."""
    rows = []
    for stored in (yield from _held(repository, context, key)):
        row = corpus.row(stored.entry.update)
        if row is not None:
            rows.append(row)
    return rows


def locate(
    repository: MemoryRepository, request: requests.LocateKey, context: Context
) -> Slices[replies.KeyLocated]:
    """Answer where a key has memories that the sender may see."""
    yield from upgrade.finish(repository, context)
    places = [
        replies.KeyPlace(
            namespace=repository.namespace(stored.entry.sub),
            memory_id=repository.memory_id(stored.entry.number),
            session_id=stored.entry.session_id,
        )
        for stored in (yield from _held(repository, context, request.key))
        if records.is_live(stored.entry.expires_at, context.now)
        and (request.forgotten or stored.entry.deleted_at is None)
        and repository.may_see(context.principal, stored.entry)
    ]
    return replies.KeyLocated(places=places)


def _held(repository: MemoryRepository, context: Context, key: str) -> Slices[list[StoredEntry]]:
    found: list[StoredEntry] = []
    for scope in _scopes(context):
        found += repository.live_entries_of_key(context, records.key_in_scope(scope, key))
        if context.should_yield():
            yield
    return found


def _scopes(context: Context) -> Iterator[bytes]:
    """Yield what tells the root, the namespaces below it and the sessions apart; of each one row is read."""
    scope = records.scope_bytes(None)
    yield scope
    start = None
    while (first := next(context.scan(bytes, prefix=records.ORDER, start=start), None)) is not None:
        scope = records.scope_of_update(first[0])
        start = records.ORDER + scope + _BEHIND_UPDATES
        if scope != records.GLOBAL:
            yield scope
