"""What there is below a root, in short: the terms and days of its memories, by shelf, in a shared index.

A search over more roots than it can ask reads this to choose those that it asks. It is written in the
commit of each memory, so the next search knows of it. The tag in sort keys is what stands for the root in
memory ids:

    "m" tag           by which rules it was made, and up to which update it is put together
    "b" tag part      what was put together
    "r" tag update    one memory after that

It says at least what there is: words of what was removed go when it is put together anew, with the index's
upkeep. A root of an older program has none until a search wants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from greenroom.actors import _namespaces as names
from greenroom.actors._policy import MemoryShelf
from greenroom.actors._times import DAY
from greenroom.actors.memory import _records as records
from greenroom.actors.search._text import current_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from greenroom.actors.index._corpus import Corpus
    from greenroom.actors.index._document import Analysed, Field
    from greenroom.actors.memory._keeper import Keeper
    from greenroom.actors.memory._records import Entry, Gist
    from greenroom.runtime import Context, Slices

INDEX = "gists"
PARTS, META, ROWS = b"b", b"m", b"r"
LOOSE = 512
"""Memories that have a row of their own before they are put together, when the index has its upkeep."""
_PART = 2_048  # terms in one row
_LOOKED_UP = 64  # terms, without a look whether the slice is over
_FIELDS: tuple[Field, ...] = ("text", "tags", "key", "author")


class GistRow(msgspec.Struct, frozen=True, array_like=True):
    """What there is on one shelf, or a part of it.

    Attributes:
        shelf: Whose it is.
        terms: What it is found by.
        days: When it was made, in days since 1970.
        newest: When the newest of it was made, in microseconds since 1970.
    """

    shelf: MemoryShelf
    terms: list[str]
    days: list[int]
    newest: int


class GistMeta(msgspec.Struct, frozen=True, array_like=True):
    """By which rules texts became terms, and up to which update they are put together."""

    rules: str
    upto: int


def names_in(key: bytes) -> tuple[tuple[int, int], ...]:
    """Say where in a sort key the root is."""
    return ((1, 1 + names.ROOT_TAG_BYTES),) if len(key) > names.ROOT_TAG_BYTES else ()


def note(keeper: Keeper, context: Context, entry: Entry, analysed: Analysed) -> None:
    """Stage what a memory says that was just written."""
    gist, rules = keeper.gist(context), current_rules().name
    if gist is None and entry.update == 1:
        gist = records.Gist(rules)
        _stage(keeper, context, gist)
    if gist is None:  # of an older program: made when a search wants it
        return
    if gist.rules != rules:
        if gist.rules:
            _doubt(keeper, context, gist)
        return
    terms = {term for field in _FIELDS for term in analysed.counts.get(field, ())}
    row = GistRow(keeper.shelf(entry), sorted(terms), [entry.created_at // DAY], entry.created_at)
    context.put_row(INDEX, ROWS + keeper.tag + entry.update.to_bytes(8), row)


def forget(keeper: Keeper, context: Context, update: int) -> None:
    """Stage that a memory that is removed has no row of its own any more."""
    gist = keeper.gist(context)
    if gist is not None and update > gist.upto:
        context.delete_row(INDEX, ROWS + keeper.tag + update.to_bytes(8))


def clear(keeper: Keeper, context: Context) -> None:
    """Stage that nothing is left of a root without memories."""
    gist = keeper.gist(context)
    if gist is not None:
        _delete_parts(keeper, context, gist, 0)
        _stage(keeper, context, records.Gist(gist.rules, keeper.counter))


def make(keeper: Keeper, context: Context) -> Slices[None]:
    """Stage what there is, put together, unless that is known; all of it has to be in the index."""
    gist = keeper.gist(context)
    if keeper.counter and (gist is None or gist.rules != current_rules().name):
        yield from _put_together(keeper, context)


def tidy(keeper: Keeper, context: Context) -> Slices[None]:
    """Stage that the rows of many memories are put together."""
    gist = keeper.gist(context)
    if gist is not None and keeper.indexed_to is None and keeper.counter - gist.upto >= LOOSE:
        yield from _put_together(keeper, context)


def _put_together(keeper: Keeper, context: Context) -> Slices[None]:
    corpus = yield from keeper.index.loaded(context)
    old = keeper.gist(context)
    parts = 0
    for row in _rows(corpus):
        if row is not None:
            context.put_row(INDEX, PARTS + keeper.tag + parts.to_bytes(4), row)
            parts += 1
        if context.slice_over():
            yield
    if old is not None:
        _delete_parts(keeper, context, old, parts)
        for update in range(old.upto + 1, keeper.counter + 1):
            context.delete_row(INDEX, ROWS + keeper.tag + update.to_bytes(8))
            if context.slice_over():
                yield
    _stage(keeper, context, records.Gist(current_rules().name, keeper.counter, parts))


def _rows(corpus: Corpus) -> Iterator[GistRow | None]:
    """Yield what there is by shelf, in parts, and now and then None."""
    import numpy as np  # noqa: PLC0415 - loaded by now

    alive = corpus.alive
    for number in np.unique(corpus.shelf[alive]).tolist():
        mask = alive & (corpus.shelf == number)
        terms: set[str] = set()
        for field in _FIELDS:
            for block in corpus.vocabulary(field):
                for some in _cut(block, _LOOKED_UP):
                    terms.update(term for term in some if mask[corpus.postings(field, term)[0]].any())
                    yield None
        created = corpus.created[mask]
        days = np.unique(created // DAY).tolist()
        shelf, newest = corpus.names["shelf"].names[number], int(created.max())
        for some in _cut(sorted(terms), _PART):
            yield GistRow(shelf, list(some), days, newest)
            days = []


def _cut(terms: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (terms[start : start + size] for start in range(0, max(1, len(terms)), size))


def _stage(keeper: Keeper, context: Context, gist: Gist) -> None:
    context.put(records.GIST, gist)
    context.put_row(INDEX, META + keeper.tag, GistMeta(gist.rules, gist.upto))
    keeper.set_gist(gist)


def _doubt(keeper: Keeper, context: Context, gist: Gist) -> None:
    """Stage that what there is does not tell of all memories any more."""
    gist = records.Gist("", gist.upto, gist.parts)
    context.put(records.GIST, gist)
    context.delete_row(INDEX, META + keeper.tag)
    keeper.set_gist(gist)


def _delete_parts(keeper: Keeper, context: Context, gist: Gist, start: int) -> None:
    for part in range(start, gist.parts):
        context.delete_row(INDEX, PARTS + keeper.tag + part.to_bytes(4))
