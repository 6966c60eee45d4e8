"""What has a key: looked up where the key lies, in every namespace below the root and every session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.actors.memory import records
from greenroom.actors.memory import upgrade as upgrading
from greenroom.actors.schemas import memory_replies as replies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from greenroom.actors.index.corpus import Corpus
    from greenroom.actors.memory.repository import Held, Keeper
    from greenroom.actors.schemas import memories as requests
    from greenroom.runtime import Context, Slices

_BEHIND_UPDATES = b"\xff" * 8


def rows_of_key(keeper: Keeper, context: Context, corpus: Corpus, key: str) -> Slices[list[int]]:
    """Return the rows of all memories that have a key, whoever may see them."""
    rows = []
    for held in (yield from _held(keeper, context, key)):
        row = corpus.row(held.entry.update)
        if row is not None:
            rows.append(row)
    return rows


def locate(keeper: Keeper, request: requests.LocateKey, context: Context) -> Slices[replies.KeyLocated]:
    """Answer where a key has memories that the sender may see."""
    yield from upgrading.finish(keeper, context)
    places = [
        replies.KeyPlace(
            namespace=keeper.namespace(held.entry.sub),
            memory_id=keeper.memory_id(held.entry.number),
            session_id=held.entry.session_id,
        )
        for held in (yield from _held(keeper, context, request.key))
        if records.is_live(held.entry.expires_at, context.now)
        and (request.forgotten or held.entry.deleted_at is None)
        and keeper.may_see(context.principal, held.entry)
    ]
    return replies.KeyLocated(places=places)


def _held(keeper: Keeper, context: Context, key: str) -> Slices[list[Held]]:
    found: list[Held] = []
    for scope in _scopes(context):
        found += keeper.places_in_use(context, records.key_in_scope(scope, key))
        if context.slice_over():
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
