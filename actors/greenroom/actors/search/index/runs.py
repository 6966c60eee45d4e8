"""Check runs from an untrusted source, and make one segment of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from greenroom.actors.search.index import arrays, records
from greenroom.actors.search.index.document import FIELDS, Field
from greenroom.actors.search.index.memtable import Part, Run, Terms
from greenroom.actors.search.index.merge import merged_chunks
from greenroom.actors.search.index.rows import NAMED, TYPES, plain_columns
from greenroom.actors.search.index.segment import Chunk, Postings, Segment, cut, unpack
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


def join(runs: Sequence[ReadRun]) -> Slices[ReadRun]:
    """Return one run of the rows of all, in their order."""
    if len(runs) == 1:
        return runs[0]
    flags = np.concatenate([run.flags for run in runs])
    lengths = {field: np.concatenate([run.lengths[field] for run in runs]) for field in FIELDS}
    chunks: dict[Field, list[Chunk]] = {}
    segments = [Segment(len(run.flags), run.chunks) for run in runs]
    yield
    for found in merged_chunks(segments, np.ones(len(flags), np.bool_)):
        if found is not None:
            chunks.setdefault(found[0], []).append(found[1])
        yield
    return ReadRun(chunks, lengths, flags)


def blocks(
    parts: Sequence[Part], run: ReadRun, *, packed: bool
) -> list[tuple[records.BlockRecord, dict[str, bytes]]]:
    """Return the column records of a run's rows, which are the rows of all parts."""
    size = sum(len(part.ids) for part in parts)
    columns = {name: np.zeros(size, kind) for name, kind in TYPES.items()}
    columns["flags"][:] = run.flags
    columns["alive"][:] = True
    for field, lengths in run.lengths.items():
        columns[f"length.{field}"][:] = lengths
    names: dict[str, dict[Any, int]] = {name: {} for name in NAMED}
    start = 0
    for ids, like in parts:
        rows = slice(start, start + len(ids))
        start = rows.stop
        columns["id"][rows] = ids
        for name, value in plain_columns(like).items():
            columns[name][rows] = value
        for name, known in names.items():
            value = getattr(like, name)
            columns[name][rows] = -1 if value is None else known.setdefault(value, len(known))
    partitions = [msgspec.msgpack.encode(partition) for partition in names.pop("partition")]
    listed = {name: list(known) for name, known in names.items()}
    return [
        arrays.block_of(
            {name: column[first : first + records.BLOCK_ROWS] for name, column in columns.items()},
            listed,
            partitions,
            packed=packed,
        )
        for first in range(0, size, records.BLOCK_ROWS)
    ]
