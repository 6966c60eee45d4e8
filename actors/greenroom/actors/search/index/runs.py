"""Check a run from an untrusted source, and turn it into a segment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index import arrays, records
from greenroom.actors.search.index.document import FIELDS, Document, Field
from greenroom.actors.search.index.memtable import Run, Terms
from greenroom.actors.search.index.rows import NAMED, TYPES, plain_columns
from greenroom.actors.search.index.segment import Chunk, Postings, cut, unpack
from greenroom.runtime import Slices


class ReadRun(NamedTuple):
    """A checked run: its postings, each row's length by field, and the rows' flags."""

    chunks: dict[Field, list[Chunk]]
    lengths: dict[Field, npt.NDArray[np.uint32]]
    flags: npt.NDArray[np.uint8]


def read(run: Run, kept: Sequence[bool]) -> Slices[ReadRun]:
    """Check a run, then keep and renumber wanted rows; a `ValueError` if it is invalid."""
    mask = np.array(kept, np.bool_)
    flags = np.frombuffer(run.flags, np.uint8)
    if len(flags) != len(mask) or not run.fields.keys() <= set(FIELDS):
        raise ValueError("its rows or fields are others")
    chunks: dict[Field, list[Chunk]] = {}
    lengths = {field: np.zeros(int(mask.sum()), np.uint32) for field in FIELDS}
    for field in FIELDS:
        if (found := run.fields.get(field)) is None:
            continue
        terms, ends, (rows, times) = _check(found, len(mask))
        yield
        if not mask.all():
            terms, ends, (rows, times) = _select(mask, terms, ends, (rows, times))
        total = np.bincount(rows, times, len(lengths[field]))
        lengths[field] = np.minimum(total, 2**32 - 1).astype(np.uint32)
        chunks[field] = []
        for chunk in cut(terms, ends, rows, times):
            chunks[field].append(chunk)
            yield
    return ReadRun(chunks, lengths, flags[mask])


def _check(found: Terms, size: int) -> tuple[Sequence[str], npt.NDArray[np.uint32], Postings]:
    """Check that terms, ends and postings are sorted, so that every reader terminates."""
    ends = np.frombuffer(found.ends, np.uint32)
    packed = np.frombuffer(found.postings, np.uint64)
    if len(ends) != len(found.terms) or (int(ends[-1]) if len(ends) else 0) != len(packed):
        raise ValueError("its parts have other lengths")
    counts = ends.astype(np.int64)
    counts[1:] -= counts[:-1].copy()
    if not all(map(lt, found.terms, islice(found.terms, 1, None))) or (counts <= 0).any():
        raise ValueError("its terms are in no order")
    steps = packed[1:] >> np.uint64(16) > packed[:-1] >> np.uint64(16)
    steps[ends[:-1].astype(np.int64) - 1] = True
    rows, times = unpack(packed)
    if not steps.all() or (packed >> np.uint64(16) >= size).any() or not times.all():
        raise ValueError("its postings are in no order")
    return found.terms, ends, (rows, times)


def _select(
    mask: npt.NDArray[np.bool_], terms: Sequence[str], ends: npt.NDArray[np.uint32], postings: Postings
) -> tuple[Sequence[str], npt.NDArray[np.uint32], Postings]:
    """Keep only the rows of a mask, renumbered, and their terms."""
    rows, times = postings
    wanted = mask[rows]
    numbers = np.repeat(np.arange(len(terms)), np.diff(ends, prepend=np.uint32(0)))[wanted]
    counts = np.bincount(numbers, minlength=len(terms))
    places = np.cumsum(mask, dtype=np.int32) - np.int32(1)
    left = [terms[number] for number in np.flatnonzero(counts).tolist()]
    ends = np.cumsum(counts[counts > 0], dtype=np.uint32)
    return left, ends, (places[rows[wanted]], times[wanted])


def blocks(
    ids: Sequence[int], like: Document, run: ReadRun, *, packed: bool
) -> list[tuple[records.BlockRecord, dict[str, bytes]]]:
    """Return the column records of rows; in all but ids and terms they equal ``like``."""
    size = len(ids)
    columns = {name: np.zeros(size, kind) for name, kind in TYPES.items()}
    columns["id"][:] = ids
    columns["flags"][:] = run.flags
    columns["alive"][:] = True
    for field, lengths in run.lengths.items():
        columns[f"length.{field}"][:] = lengths
    for name, value in plain_columns(like).items():
        columns[name][:] = value
    names = {name: [getattr(like, name)] for name in NAMED if name != "partition"}
    if like.conversation is None:
        names["conversation"] = []
        columns["conversation"][:] = -1
    partitions = [msgspec.msgpack.encode(like.partition)]
    return [
        arrays.block_of(
            {name: column[start : start + records.BLOCK_ROWS] for name, column in columns.items()},
            names,
            partitions,
            packed=packed,
        )
        for start in range(0, size, records.BLOCK_ROWS)
    ]
