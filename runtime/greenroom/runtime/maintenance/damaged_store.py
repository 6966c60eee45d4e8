"""A damaged store: its tables, their sound rows and their gaps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from greenroom.runtime.base.errors import RecordDamagedError, StoreDamagedError
from greenroom.runtime.lmdb.encryption import Encryption, unseal
from greenroom.runtime.lmdb.environment import ACTORS, INDEXES, RECENT_TABLE, SEAL_KEY, TABLES
from greenroom.runtime.lmdb.key_blinding import NAME_BYTES
from greenroom.runtime.lmdb.pages import Page
from greenroom.runtime.lmdb.recent import merge_over, unpack
from greenroom.runtime.maintenance.orphan_pages import Orphans, recover_tables
from greenroom.runtime.store.page_proofs import Prover, Tree, child_of

_RECENT: Final = len(TABLES)
_OWN: Final = b"!"
_AFTER_OWN: Final = b'"'


class Sound(NamedTuple):
    """A sound row: its key, and its record as stored."""

    key: bytes
    record: bytes


class Gap(NamedTuple):
    """A range of keys in which rows may be missing.

    Attributes:
        start: The first key that may be missing.
        end: The first key after the range; None for the end of the table.
        why: The cause: what is damaged.
        keys: The keys of the damaged records as read, perhaps wrong. None if a page is damaged.
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


@dataclass(frozen=True, slots=True)
class MissingRange:
    """A range of keys with missing rows.

    Attributes:
        start: The first key, with escapes.
        end: The key after the last; empty for the end of the table.
    """

    table: str
    start: str
    end: str
    why: str


class DamagedStore:
    """A damaged store."""

    def __init__(self, prover: Prover, encryption: Encryption | None, path: Path) -> None:
        self._prover = prover
        head = max(prover.heads())
        self.names = prover.names(head)
        try:
            self._trees = [*prover.tables(self.names), prover.recent(self.names)]
            self._orphans = Orphans(prover, head, [self.names, *self._trees])
        except StoreDamagedError:
            self.names, self._trees = recover_tables(prover, head)
            self._orphans = Orphans(prover, head, self._trees, {head.root})
        self.bytes = path.stat().st_size
        self.unlock = None if encryption is None else encryption.key()
        opened = unseal(self.names.get(SEAL_KEY), self.unlock, os.fspath(path))
        self.codec, self.blinder = opened.codec, opened.blinder
        self.gaps: list[list[Gap]] = []
        self._mends = False
        self.missing_rows = sum(tree.rows for tree in self._trees)
        for table in range(len(self._trees)):
            found: list[Gap] = []
            for each in self._salvage(table):
                if isinstance(each, Gap):
                    found.append(each)
                else:
                    self.missing_rows = max(0, self.missing_rows - 1)
            self.gaps.append(found)
        self._recent = self._read_recent()

    def _read_recent(self) -> list[dict[bytes, bytes | None]]:
        """Return the sound recent rows by table, None for a deletion; see `lmdb.recent`."""
        found: list[dict[bytes, bytes | None]] = [{} for _ in TABLES]
        for each in self._salvage(_RECENT):
            row = unpack(self.codec.open(*each)) if isinstance(each, Sound) else None
            if row is not None:
                found[row.table][row.key] = row.record
        return found

    def _salvage(self, table: int) -> Iterator[Sound | Gap]:
        """Yield the sound rows of a table's pages and the gaps, in order."""
        tree = self._trees[table]
        self._mends = table == _RECENT  # as the next owner does
        if tree.rows or tree.depth:
            yield from self._salvage_below(tree, tree.root, tree.depth, b"", None)

    def _salvage_below(
        self, tree: Tree, number: int, depth: int, lower: bytes, upper: bytes | None
    ) -> Iterator[Sound | Gap]:
        try:
            page = self._prover.bounded(number, lower, upper, is_leaf=depth == 1)
        except StoreDamagedError as error:
            if depth == 1:
                yield Gap(lower, upper, str(error))
            else:
                yield from self._salvage_orphans(tree, lower, upper, str(error))
            return
        if page.is_leaf:
            yield from self._salvage_rows(page, lower, upper)
            return
        for child in range(len(page.keys)):
            below, low, high = child_of(page, child, lower, upper)
            yield from self._salvage_below(tree, below, depth - 1, low, high)

    def _salvage_orphans(
        self, tree: Tree, lower: bytes, upper: bytes | None, why: str
    ) -> Iterator[Sound | Gap]:
        """Yield a lost branch's sound rows, and gaps where a leaf may be lost."""
        leaves, is_whole = self._orphans.below(tree, lower, upper)
        for leaf, after in zip_longest(leaves, leaves[1:]):
            first, last = leaf.keys[0], leaf.keys[-1] + b"\0"
            if not is_whole and lower < first:
                yield Gap(lower, first, why)
            end = upper if after is None else after.keys[0]
            yield from self._salvage_rows(leaf, first, end if is_whole else last)
            lower = last
        if not is_whole:
            yield Gap(lower, upper, why)

    def _salvage_rows(self, page: Page, lower: bytes, upper: bytes | None) -> Iterator[Sound | Gap]:
        """Yield a leaf's rows; a damaged row may have any key between its sound neighbours."""
        after = lower
        why = ""
        lost: list[bytes] = []
        for key, value in zip(page.keys, page.values, strict=True):
            try:
                record = self._prover.value(value)
                record = self._sound_record(key, record)
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

    def _sound_record(self, key: bytes, record: bytes) -> bytes:
        """Return a record, mended if it is a recent row; raise if it is damaged."""
        try:
            self.codec.open(key, record)
        except RecordDamagedError:
            payload = self.codec.mend(key, record) if self._mends else None
            if payload is None or unpack(payload) is None:
                raise
            return self.codec.seal(key, payload)
        return record

    def sound(self, table: int) -> Iterator[Sound]:
        """Yield the sound rows of a table, with the recent rows over them, in order."""
        recent = self._recent[table]
        stored = ((each.key, each.record) for each in self._salvage(table) if isinstance(each, Sound))
        return (
            Sound(key, record) for key, record in merge_over(stored, iter(sorted(recent.items())), recent)
        )

    def ranges(self) -> Iterator[MissingRange]:
        """Yield the ranges with missing rows, for people."""
        for name, gaps in zip((*TABLES, RECENT_TABLE), self.gaps, strict=True):
            for gap in gaps:
                end = "" if gap.end is None else key_text(gap.end)
                yield MissingRange(name.decode(), key_text(gap.start), end, gap.why)

    @property
    def lacks_rows(self) -> bool:
        """Whether rows of shared indexes may be missing, besides the runtime's own rows."""
        return bool(self.gaps[_RECENT]) or any(
            gap.start < _OWN or gap.end is None or gap.end > _AFTER_OWN for gap in self.gaps[INDEXES]
        )

    def gaps_of(self, prefix: bytes) -> list[Gap]:
        """Return the gaps that may affect the actor with this prefix."""
        own = [gap for gap in self.gaps[ACTORS] if gap.touches(prefix)]
        return own + [Gap(b"", None, gap.why) for gap in self.gaps[_RECENT]]  # these may be of any actor

    def prefix_in(self, key: bytes) -> bytes:
        """Return the prefix of the actor to which a key belongs."""
        kind = key.index(0) + 1
        return key[: key.index(0, kind) + 1 if self.blinder is None else kind + NAME_BYTES]


def key_text(key: bytes) -> str:
    """Render a key of a table for people."""
    return key.decode("ascii", errors="backslashreplace").replace("\0", " ")
