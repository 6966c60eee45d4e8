"""Works, a codec and disks for tests of the store itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from greenroom.runtime import ACTORS, PlainCodec, StorageFullError, Store, WriteBatch


def put(key: bytes, payload: bytes = b"", owner: object = None, *, reserve: bool = False) -> WriteBatch:
    return WriteBatch(owner, [(ACTORS, key, payload)], reserve)


def delete(key: bytes) -> WriteBatch:
    return WriteBatch(None, [(ACTORS, key, None)])


def fill(store: Store, *, reserve: bool = False, size: int = 3000) -> int:
    """Put rows until one is refused, and return how many there are."""
    count = 0
    while True:
        works = [
            put(b"fill%08d" % (count + n), os.urandom(size), owner=n, reserve=reserve) for n in range(20)
        ]
        store.commit(works)
        for work in works:
            if work.error is not None:
                assert isinstance(work.error, StorageFullError)
                return count
            count += 1


class BrokenCodec(PlainCodec):
    def seal(self, key: bytes, payload: bytes) -> bytes:
        if key == b"bad":
            raise ValueError("no key for the cipher")
        return super().seal(key, payload)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Give a disk of its own, or skip where that is not allowed."""
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", os.fspath(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: a full disk needs a tmpfs of its own, which only root may mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
