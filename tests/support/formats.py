"""Stores of the format before this one: what is in their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import lmdb

from greenroom.runtime import Encryption

OLD, NEW = 3, 4
FORMAT, FORMER, RECENT = b"greenroom.format", b"greenroom.former", b"recent"
WAYS = {"clear": None, "encrypted": Encryption(lambda: b"k" * 32, required=True)}


def names_in(folder: Path) -> dict[bytes, bytes]:
    """Return LMDB's unnamed table of a store, also of one that is open: its tables and facts."""
    copy = folder.parent / "names.mdb"
    shutil.copyfile(folder / "greenroom.mdb", copy)
    with (
        lmdb.open(str(copy), subdir=False, readonly=True, lock=False) as environment,
        environment.begin() as transaction,
    ):
        return dict(transaction.cursor())


def format_in(folder: Path) -> int:
    """Return the number of a store's format."""
    return int(names_in(folder)[FORMAT])


def crash_image(folder: Path, copy: Path) -> Path:
    """Return a folder with the file as it is now: as after a crash of its process."""
    copy.mkdir()
    shutil.copyfile(folder / "greenroom.mdb", copy / "greenroom.mdb")
    return copy
