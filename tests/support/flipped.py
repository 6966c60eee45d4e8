"""Single records of a store, damaged one at a time behind the back of whoever has it open."""

from __future__ import annotations

import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import lmdb
from support.effort import by_night

from bench.damaging import rewrite
from greenroom.runtime import ACTORS, INDEXES

_BESIDE_ITS_KEY = 1_500
"""Bytes of a record that lies on the same page as its key."""
_BY_DAY = {"value": 24, "key": 16, "neighbours": 16}
TABLES = {ACTORS: b"actors", INDEXES: b"indexes"}


class Record(NamedTuple):
    """A record of a store: its table, its key, and the bytes that lie on disk."""

    table: int
    key: bytes
    raw: bytes


class Sound:
    """A store as it was closed, to be brought back after each damage.

    Args:
        folder: The store's, which nobody has open.
    """

    def __init__(self, folder: Path) -> None:
        paths = [folder / "greenroom.mdb", folder / "owner.lock"]
        self._files = [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in paths]

    def bring_back(self) -> None:
        """Write the files as they were, over what became of them."""
        for path, content, when in self._files:
            rewrite(path, content, when)


def records_of(folder: Path, scratch: Path) -> list[Record]:
    """Return all records of a store, which may be open: they are read in a copy."""
    copy = scratch / "copied.mdb"
    shutil.copyfile(folder / "greenroom.mdb", copy)
    environment = lmdb.open(str(copy), subdir=False, readonly=True, lock=False, max_dbs=8)
    found: list[Record] = []
    try:
        for table, name in TABLES.items():
            database = environment.open_db(name, create=False)
            with environment.begin(database) as transaction:
                found += [Record(table, key, raw) for key, raw in transaction.cursor()]
    finally:
        environment.close()
        copy.unlink()
    return found


def chosen(records: list[Record], damage: str, seed: str) -> list[list[Record]]:
    """Return which records of a store to damage together, each time; by night that is all there are.

    Args:
        records: All of them, in order.
        damage: `value`, `neighbours` for the values of two that lie beside each other, or `key` for a key
            that grows and stays in order: a file is refused where one leaves its page or the order.
        seed: What chooses some of them by day.
    """
    if damage == "neighbours":
        found = [[one, other] for one, other in pairwise(records) if one.table == other.table]
    elif damage == "key":
        behind = [*records[1:], None]
        found = [[each] for each, after in zip(records, behind, strict=True) if _stays(each, after)]
    else:
        found = [[each] for each in records]
    most = by_night(len(found), by_day=min(len(found), _BY_DAY[damage]))
    return random.Random(seed).sample(found, most)  # noqa: S311 - nothing secret


def _stays(record: Record, after: Record | None) -> bool:
    """Return whether a record with a flipped bit in its key is behind where it was, and before the next."""
    key = record.key[:-1] + bytes([record.key[-1] ^ 1])
    is_before = after is None or after.table != record.table or key < after.key
    return record.key < key and is_before and len(record.raw) < _BESIDE_ITS_KEY


def flip(folder: Path, *records: Record, in_key: bool = False) -> None:
    """Flip the last bit of records wherever they lie in the file; whoever has it open sees that.

    Args:
        folder: The store's.
        records: Which.
        in_key: Whether it is the last bit of their keys, and not of what lies under these.
    """
    path = folder / "greenroom.mdb"
    content = path.read_bytes()
    with path.open("r+b") as file:
        for record in records:
            sought = record.key + record.raw if in_key else record.raw
            last = len(record.key if in_key else record.raw) - 1
            at = content.find(sought)
            assert at >= 0, record
            while at >= 0:
                file.seek(at + last)
                file.write(bytes([content[at + last] ^ 1]))
                at = content.find(sought, at + 1)
