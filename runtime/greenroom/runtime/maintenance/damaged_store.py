"""A damaged store: its tables, their sound rows and their gaps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from greenroom.runtime.base.errors import StoreDamagedError
from greenroom.runtime.lmdb.codec import PlainCodec, RecordCodec
from greenroom.runtime.lmdb.encryption import NAMES, Encryption
from greenroom.runtime.lmdb.environment import ACTORS, INDEXES, SEAL_KEY, TABLES
from greenroom.runtime.lmdb.key_blinding import NAME_BYTES, KeyBlinder
from greenroom.runtime.maintenance.orphan_pages import Orphans
from greenroom.runtime.maintenance.salvage import Gap, Sound, salvage
from greenroom.runtime.maintenance.table_recovery import recover_tables
from greenroom.runtime.store.page_proofs import Prover

_OWN: Final = b"!"
_AFTER_OWN: Final = b'"'


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
            self._trees = prover.tables(self.names)
            self._orphans = Orphans(prover, head, [self.names, *self._trees])
        except StoreDamagedError:
            self.names, self._trees = recover_tables(prover, head)
            self._orphans = Orphans(prover, head, self._trees, {head.root})
        self.bytes = path.stat().st_size
        self.unlock = None if encryption is None else encryption.key()
        self.codec: RecordCodec = PlainCodec()
        self.blinder: KeyBlinder | None = None
        seal = self.names.get(SEAL_KEY)
        if seal is not None:
            from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

            data_key = record_cipher.unwrap(seal, self.unlock, os.fspath(path))
            self.codec, self.blinder = (
                record_cipher.SealedCodec(data_key),
                KeyBlinder(record_cipher.derive(data_key, NAMES)),
            )
        self.gaps: list[list[Gap]] = []
        self.missing_rows = sum(tree.rows for tree in self._trees)
        for table in range(len(TABLES)):
            found: list[Gap] = []
            for each in self.salvage(table):
                if isinstance(each, Gap):
                    found.append(each)
                else:
                    self.missing_rows = max(0, self.missing_rows - 1)
            self.gaps.append(found)

    def salvage(self, table: int) -> Iterator[Sound | Gap]:
        """Yield the sound rows of a table, and the gaps between, in order."""
        return salvage(self._prover, self._trees[table], self.codec, self._orphans)

    def sound(self, table: int) -> Iterator[Sound]:
        """Yield the sound rows of a table."""
        return (each for each in self.salvage(table) if isinstance(each, Sound))

    def ranges(self) -> Iterator[MissingRange]:
        """Yield the ranges with missing rows, for people."""
        for name, gaps in zip(TABLES, self.gaps, strict=True):
            for gap in gaps:
                end = "" if gap.end is None else key_text(gap.end)
                yield MissingRange(name.decode(), key_text(gap.start), end, gap.why)

    @property
    def lacks_rows(self) -> bool:
        """Whether rows of shared indexes may be missing, and not only the runtime's own."""
        return any(gap.start < _OWN or gap.end is None or gap.end > _AFTER_OWN for gap in self.gaps[INDEXES])

    def gaps_of(self, prefix: bytes) -> list[Gap]:
        """Return the gaps that may affect the actor with this prefix."""
        return [gap for gap in self.gaps[ACTORS] if gap.touches(prefix)]

    def prefix_in(self, key: bytes) -> bytes:
        """Return the prefix of the actor to which a key belongs."""
        kind = key.index(0) + 1
        return key[: key.index(0, kind) + 1 if self.blinder is None else kind + NAME_BYTES]


def key_text(key: bytes) -> str:
    """Render a key of a table for people."""
    return key.decode("ascii", errors="backslashreplace").replace("\0", " ")
