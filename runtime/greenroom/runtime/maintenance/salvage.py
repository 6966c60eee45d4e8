"""Salvage the sound rows of a damaged table, with the gaps between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.pages import Page
from greenroom.runtime.maintenance.orphan_pages import Orphans
from greenroom.runtime.store.page_proofs import Prover, Tree, child_of


class Sound(NamedTuple):
    """A sound row: its key, and its record as stored."""

    key: bytes
    record: bytes


class Gap(NamedTuple):
    """A range of keys in which rows may be missing.

    Attributes:
        start: The first key that may be missing.
        end: The first that is not; None for the end of the table.
        why: The damage.
        keys: The keys of the damaged records as read, perhaps wrong. None for a page.
    """

    start: bytes
    end: bytes | None
    why: str
    keys: tuple[bytes, ...] = ()

    def touches(self, prefix: bytes) -> bool:
        """Return whether a key with this prefix may be missing."""
        return (self.end is None or self.end > prefix) and (
            self.start <= prefix or self.start.startswith(prefix)
        )


def salvage(prover: Prover, tree: Tree, codec: RecordCodec, orphans: Orphans) -> Iterator[Sound | Gap]:
    """Yield the sound rows of a table, and the gaps between, in order."""
    if tree.rows or tree.depth:
        yield from _Salvage(prover, tree, codec, orphans).below(tree.root, tree.depth, b"", None)


class _Salvage:
    """Walk through a table; as `salvage`."""

    def __init__(self, prover: Prover, tree: Tree, codec: RecordCodec, orphans: Orphans) -> None:
        self._prover = prover
        self._tree = tree
        self._codec = codec
        self._orphans = orphans

    def below(self, number: int, depth: int, lower: bytes, upper: bytes | None) -> Iterator[Sound | Gap]:
        try:
            page = self._prover.bounded(number, lower, upper, is_leaf=depth == 1)
        except StoreDamagedError as error:
            if depth == 1:
                yield Gap(lower, upper, str(error))
            else:
                yield from self._salvage_orphans(lower, upper, str(error))
            return
        if page.is_leaf:
            yield from _rows(self._prover, page, self._codec, lower, upper)
            return
        for child in range(len(page.keys)):
            below, low, high = child_of(page, child, lower, upper)
            yield from self.below(below, depth - 1, low, high)

    def _salvage_orphans(self, lower: bytes, upper: bytes | None, why: str) -> Iterator[Sound | Gap]:
        """Yield the sound rows of a lost branch; a possibly lost leaf is a gap."""
        leaves, is_whole = self._orphans.below(self._tree, lower, upper)
        for leaf, after in zip_longest(leaves, leaves[1:]):
            first, last = leaf.keys[0], leaf.keys[-1] + b"\0"
            if not is_whole and lower < first:
                yield Gap(lower, first, why)
            end = upper if after is None else after.keys[0]
            yield from _rows(self._prover, leaf, self._codec, first, end if is_whole else last)
            lower = last
        if not is_whole:
            yield Gap(lower, upper, why)


def _rows(
    prover: Prover, page: Page, codec: RecordCodec, lower: bytes, upper: bytes | None
) -> Iterator[Sound | Gap]:
    """Yield a leaf's rows; a damaged one may have any key between its sound neighbours."""
    after = lower
    why = ""
    lost: list[bytes] = []
    for key, value in zip(page.keys, page.values, strict=True):
        try:
            record = prover.value(value)
            codec.open(key, record)
        except StoreDamagedError as error:
            why = why or str(error)
            lost.append(key)
            continue
        if lost:
            yield Gap(after, key, why, tuple(lost))
            why, lost = "", []
        yield Sound(key, record)
        after = key + b"\0"
    if lost:
        yield Gap(after, upper, why, tuple(lost))
