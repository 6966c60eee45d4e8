"""Which rows of the index have a key: looked up where the key lies, in every namespace and session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.memory import _records as records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from greenroom.actors.index._corpus import Corpus
    from greenroom.actors.memory._keeper import Keeper
    from greenroom.runtime import Context, Slices


def rows_of_key(keeper: Keeper, context: Context, corpus: Corpus, key: str) -> Slices[list[int]]:
    """Return the rows of all memories that have a key, whoever may see them."""
    rows: list[int] = []
    for session_id, sub in _scopes(keeper, context, corpus):
        for held in keeper.places_in_use(context, records.entry_key(session_id, key, sub)):
            row = corpus.row(held.entry.update)
            if row is not None:
                rows.append(row)
        if context.slice_over():
            yield
    return rows


def _scopes(keeper: Keeper, context: Context, corpus: Corpus) -> Iterator[tuple[str | None, str]]:
    """Yield the sessions and the namespaces below the root in which there are memories."""
    for namespace in corpus.namespaces:
        yield None, keeper.sub(namespace)
    prefix = start = records.ENTRIES + records.SESSION
    while (first := next(context.scan(msgspec.Raw, prefix=prefix, start=start), None)) is not None:
        session_id = first[0][len(prefix) :].partition(b"\0")[0]
        yield session_id.decode(), ""
        start = prefix + session_id + b"\1"
