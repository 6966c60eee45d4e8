"""What there is below a root, in short: terms, days and vectors of its memories, by shelf, in a shared index.

A search over more roots than it can ask reads this to choose those that it asks. It is written in the
commit of each memory, so the next search knows of it. The tag in sort keys is what stands for the root in
memory ids:

    "m" tag           by which rules it was made, and up to which update it is put together
    "b" tag part      what was put together: terms and days
    "p" tag part      likewise: vectors
    "r" tag update    one memory after that
    "v" tag update    its vector

It says at least what there is: words of what was removed go when it is put together anew, with the index's
upkeep. A root of an older program has none until a search wants it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from greenroom.actors.auth import namespaces as names
from greenroom.actors.auth.policy import MemoryShelf
from greenroom.actors.base.times import DAY
from greenroom.actors.index import TidyIndex
from greenroom.actors.index.index import TIMER
from greenroom.actors.memory import records
from greenroom.actors.text.analyze import current_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from greenroom.actors.index.corpus import Corpus
    from greenroom.actors.index.document import Analysed, Field
    from greenroom.actors.memory.records import Entry, Gist
    from greenroom.actors.memory.repository import Keeper
    from greenroom.actors.schemas.vectors import Vectors
    from greenroom.runtime import Context, Slices

INDEX = "gists"
META, PARTS, ROWS, MIDDLES, VECTORS = b"m", b"b", b"r", b"p", b"v"
LOOSE = 512
"""Memories that have rows of their own before they are put together, when the index has its upkeep."""
CLEARED = 64
"""Memories whose own rows are deleted in one step of that."""
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


class VectorRow(msgspec.Struct, frozen=True, array_like=True):
    """Vectors of what lies on one shelf, or of the middles of groups of it.

    Attributes:
        shelf: Whose it is.
        space: What they can be compared with.
        scales: What the values are multiplied with, float32.
        values: The vectors, int8, one after the other.
    """

    shelf: MemoryShelf
    space: str
    scales: bytes
    values: bytes


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
    if gist is None and _is_first(context, entry):
        gist = records.Gist(rules, entry.update - 1, cleared=entry.update - 1)
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


def note_vectors(
    keeper: Keeper, context: Context, space: str, vectors: Sequence[tuple[int, Vectors]]
) -> None:
    """Stage the vectors of memories that are not put together yet; those that are get theirs by `renew`."""
    gist = keeper.gist(context)
    if gist is None or gist.rules != current_rules().name:
        return
    for update, vector in vectors:
        held = keeper.updated(context, update) if update > gist.upto else None
        if held is not None:
            scale = struct.pack("<f", vector.scale)
            row = VectorRow(keeper.shelf(held.entry), space, scale, vector.values)
            context.put_row(INDEX, VECTORS + keeper.tag + update.to_bytes(8), row)


def renew(keeper: Keeper, context: Context, space: str) -> Slices[None]:
    """Stage vectors of what is put together, now that all of it has some in a new space."""
    gist = keeper.gist(context)
    if gist is not None and gist.parts and gist.rules == current_rules().name and gist.space != space:
        yield from _put_together(keeper, context)


def forget(keeper: Keeper, context: Context, update: int) -> None:
    """Stage that a memory that is removed has no row of its own any more."""
    gist = keeper.gist(context)
    if gist is not None and update > gist.cleared:
        _delete_own(keeper, context, update)


def clear(keeper: Keeper, context: Context) -> None:
    """Stage that nothing is left of a root without memories."""
    gist = keeper.gist(context)
    if gist is not None:
        _delete_parts(keeper, context, gist)
        for update in range(gist.cleared + 1, gist.upto + 1):
            _delete_own(keeper, context, update)
        context.delete(records.GIST)
        context.delete_row(INDEX, META + keeper.tag)
        keeper.set_gist(None)


def make(keeper: Keeper, context: Context) -> Slices[None]:
    """Stage what there is, put together, for a search that does not know it; all has to be in the index."""
    if keeper.counter:
        yield from _put_together(keeper, context)


def remake(keeper: Keeper, context: Context) -> Slices[None]:
    """Stage what there is, put together anew from an index that was made anew."""
    if keeper.gist(context) is not None:
        yield from _put_together(keeper, context)


def tidy(keeper: Keeper, context: Context) -> Slices[None]:
    """Stage a step of putting many memories together, if there is one, and come back for the next."""
    gist = keeper.gist(context)
    if gist is None or keeper.indexed_to is not None:
        return
    if gist.cleared < gist.upto:
        end = min(gist.cleared + CLEARED, gist.upto)
        for update in range(gist.cleared + 1, end + 1):
            _delete_own(keeper, context, update)
        _stage(keeper, context, msgspec.structs.replace(gist, cleared=end))
    elif keeper.counter - gist.upto >= LOOSE:
        yield from _put_together(keeper, context)
    else:
        return
    context.set_timer(TIMER, context.now, TidyIndex())


def _put_together(keeper: Keeper, context: Context) -> Slices[None]:
    corpus = yield from keeper.index.loaded(context)
    old = keeper.gist(context)
    parts = 0
    if old is not None:
        _delete_parts(keeper, context, old)
    spaces = corpus.spaces()
    space = spaces[-1] if spaces else None
    for row in _rows(corpus, space):
        if row is not None:
            kind = PARTS if isinstance(row, GistRow) else MIDDLES
            context.put_row(INDEX, kind + keeper.tag + parts.to_bytes(4), row)
            parts += 1
        if context.slice_over():
            yield
    if space is not None and corpus.without_vectors(space, 1):
        space = None  # what comes later is taken in by `renew`
    cleared = keeper.counter if old is None else old.cleared
    _stage(keeper, context, records.Gist(current_rules().name, keeper.counter, parts, cleared, space))


def _rows(corpus: Corpus, space: str | None) -> Iterator[GistRow | VectorRow | None]:
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
        if space is not None:
            yield from _middles(corpus, space, mask, shelf)


def _middles(
    corpus: Corpus, space: str, mask: npt.NDArray[np.bool_], shelf: MemoryShelf
) -> Iterator[VectorRow | None]:
    """Yield the middles of groups of a shelf's vectors, which stand for them all."""
    from greenroom.actors.memory._middles import middles  # noqa: PLC0415 - needs numpy, loaded by now

    found = corpus.vectors(space)
    if found is not None:
        values, scales = yield from middles(found[0], found[1], mask & found[2])
        if len(scales):
            yield VectorRow(shelf, space, scales.tobytes(), values.tobytes())


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


def _is_first(context: Context, entry: Entry) -> bool:
    """Return whether no memory is there that was updated before."""
    first = next(context.scan(bytes, prefix=records.UPDATES), None)
    return first is None or first[0] == records.update_key(entry.update)


def _delete_own(keeper: Keeper, context: Context, update: int) -> None:
    for kind in (ROWS, VECTORS):
        context.delete_row(INDEX, kind + keeper.tag + update.to_bytes(8))


def _delete_parts(keeper: Keeper, context: Context, gist: Gist) -> None:
    for part in range(gist.parts):
        for kind in (PARTS, MIDDLES):
            context.delete_row(INDEX, kind + keeper.tag + part.to_bytes(4))
