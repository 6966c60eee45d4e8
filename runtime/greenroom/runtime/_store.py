"""The store: tables of rows in one LMDB file, read in any thread, written in groups by one.

Promises: a work is committed whole or not at all; what `commit` did not mark with an error is on disk
when it returns; after an error that is not about space nothing is committed any more.
The store does *not* know what rows mean, who owns the folder (`Owner`), or whether the file is sound
(`check_structure`; LMDB has no page checksums, and a damaged file can kill the process).
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import lmdb

from greenroom.runtime._codec import PlainCodec, RecordCodec
from greenroom.runtime._environment import (
    ACTORS as ACTORS,
)
from greenroom.runtime._environment import (
    INDEXES as INDEXES,
)
from greenroom.runtime._environment import (
    META as META,
)
from greenroom.runtime._environment import (
    MIN_SIZE,
    TABLES,
    is_want_of_room,
    open_environment,
    store_error,
    write_format,
)
from greenroom.runtime._errors import StoreError, StoreFailedError
from greenroom.runtime._folder import DATA_FILE, prepare_folder
from greenroom.runtime._histogram import SECONDS, WORKS, Histogram
from greenroom.runtime._reading import Glance, Reading
from greenroom.runtime._work import Changes, Space, admit, growth, map_full, merged
from greenroom.runtime._work import Op as Op
from greenroom.runtime._work import Work as Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What the store holds and has done. Sizes are bytes, durations seconds.

    Attributes:
        used_bytes: Pages in use by rows; freed pages are used again and do not count.
        map_bytes: The quota (``max_size``).
        file_bytes: The file's length; it never shrinks.
        disk_free: Free space of the disk for this user.
        rows: Rows of all tables.
        commits: Transactions committed since opening.
        works: Works committed since opening.
        failures: Works refused or failed since opening.
        last_commit_seconds: Duration of the newest group, fsync included.
        max_commit_seconds: Duration of the slowest group.
        scans: Readings open now; each keeps the pages that it sees from being used again.
    """

    used_bytes: int
    map_bytes: int
    file_bytes: int
    disk_free: int
    rows: int
    commits: int
    works: int
    failures: int
    last_commit_seconds: float
    max_commit_seconds: float
    scans: int


PLENTY_BYTES: Final = 1 << 30
LATELY_SECONDS: Final = 0.1
"""With so much more than needed free on the disk, it is not asked again for so long."""

OLD_COUNT_BYTES: Final = 1 << 20
"""By how many bytes the store may have grown since the pages in use were counted last."""


class _NoRoomError(Exception):
    """A transaction failed for want of space; nothing of it is on disk."""


class Store:
    """One open LMDB environment.

    `get`, `scan`, `keys`, `copy_to` and `statistics` are for any thread, `commit` for one thread at a time.

    Args:
        folder: Where ``greenroom.mdb`` lies; made when missing. Its owner lock is the caller's affair.
        codec: Turns payloads into records and back.
        max_size: Address space to reserve, in bytes; the quota.
        min_free: Below this many free bytes on the disk only deletes and reserve works are committed.
        sync: Whether a commit waits for the disk. Without, a crash of the process loses nothing, but a
            power cut may destroy the store.

    Raises:
        StoreError: the folder cannot hold a store, or the map cannot be reserved.
        StorageFullError: the disk has no room for a new store.
        StoreDamagedError: the file is no LMDB file, or none of ours.
        StoreTooNewError: a newer program wrote the store.
    """

    def __init__(
        self,
        folder: Path,
        *,
        codec: RecordCodec | None = None,
        max_size: int = 256 << 30,
        min_free: int = 64 << 20,
        sync: bool = True,
    ) -> None:
        if max_size < MIN_SIZE:
            raise StoreError(
                f"--max-size {max_size} is too small for a store; it takes {MIN_SIZE} bytes or more"
            )
        self.folder = prepare_folder(folder)
        self._path = self.folder / DATA_FILE
        self._codec = PlainCodec() if codec is None else codec
        self.min_free = min_free
        self._sync = sync
        self._pid = os.getpid()
        self._open_readings = 0
        self._last_used = 0
        self._free_lately = (0, 0.0)
        self._grown = OLD_COUNT_BYTES + 1  # nothing is counted yet
        self._commits = self._works = self._failures = 0
        self._last_seconds = self._max_seconds = 0.0
        self.group_works = Histogram(WORKS)
        self.group_seconds = Histogram(SECONDS)
        self.sync_seconds = Histogram(SECONDS)
        self._broken: StoreFailedError | None = None
        self._closed = False
        try:
            self._environment = open_environment(self.folder, max_size=max_size, sync=sync)
            self._tables = tuple(self._environment.open_db(name) for name in TABLES)
            self._map_bytes = self._environment.info()["map_size"]
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{self._path} cannot be opened") from error

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Open one view of the committed rows, as of now.

        While it is open the file cannot use the pages that it sees again and may grow: do not keep one.

        Raises:
            StoreDamagedError: (while reading) a record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        self._check_usable()
        try:
            with self._environment.begin() as transaction:
                self._open_readings += 1
                try:
                    yield Reading(transaction, self._tables, self._codec)
                finally:
                    self._open_readings -= 1
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be read") from error

    def glance(self, table: int) -> Glance:
        """Return a reader of single rows whose reads share one view, for the event loop.

        Raises:
            StoreError: (while reading) the store is closed, or this process was forked from its opener.
        """

        def begin() -> lmdb.Transaction[bytes]:
            self._check_usable()
            try:
                return self._environment.begin(self._tables[table])
            except lmdb.Error as error:
                raise store_error(error, f"{self._path} cannot be read") from error

        return Glance(begin, self._codec.open)

    def get(self, table: int, key: bytes) -> bytes | None:
        """Return the committed payload under ``key``, or None.

        Raises:
            StoreDamagedError: the record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        self._check_usable()
        try:
            with self._environment.begin(self._tables[table]) as transaction:
                record = transaction.get(key)
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be read") from error
        return None if record is None else self._codec.open(key, record)

    def scan(
        self, table: int, prefix: bytes, *, start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the committed rows whose keys begin with ``prefix``, in key order.

        What is yielded is the state at the first ``next``; an iterator that is neither exhausted nor closed
        costs what an open `reading` does.

        Args:
            table: ACTORS, INDEXES or META.
            prefix: What the keys begin with; empty for all.
            start: The first key wanted, inclusive: the lowest, or in reverse the highest.
            reverse: Highest key first.

        Raises:
            StoreDamagedError: a record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        with self.reading() as reading:
            yield from reading.scan(table, prefix, start=start, reverse=reverse)

    def keys(self, table: int, prefix: bytes) -> Iterator[bytes]:
        """Yield the committed keys that begin with ``prefix``, in order; their records may be damaged.

        Raises:
            StoreError: as `scan`, which also says what an open iterator costs.
        """
        with self.reading() as reading:
            yield from reading.keys(table, prefix)

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._path} was opened before a fork; a forked process must open a store itself"
            )
        if self._closed:
            raise StoreError(f"{self._path} is closed")

    def commit(self, works: Sequence[Work]) -> None:
        """Commit all works in one transaction, or mark those that found no room with an error.

        When space runs out, each is tried again in a transaction of its own, in order. A work that
        fails gets `StorageFullError` and so do its owner's later ones, untried.

        Raises:
            StoreFailedError: anything else went wrong. None of these works may be answered, and every
                later call raises it again, because LMDB would go on as if nothing had happened.
        """
        self._check_usable()
        if self._broken is not None:
            raise self._broken
        began = time.perf_counter()
        failed: dict[object, StoreError] = {}
        try:
            admitted, changes = works, merged(works)
            if any(work.error is not None for work in works) or not self._has_plenty(growth(changes)):
                admitted = admit(works, self._space(), failed)
                changes = merged(admitted)
            if admitted and not self._has_room(changes, len(admitted)):
                self._write_singly(admitted, failed)
        except Exception as error:
            self._broken = StoreFailedError(
                f"{self._path} could not be written ({error}), so nothing more is answered. "
                "Check the disk and start again: all that was answered is there"
            )
            raise self._broken from error
        self._failures += sum(work.error is not None for work in works)
        self._last_seconds = time.perf_counter() - began
        self.group_works.note(len(works))
        self.group_seconds.note(self._last_seconds)
        self._max_seconds = max(self._max_seconds, self._last_seconds)

    def _write_singly(self, works: Sequence[Work], failed: dict[object, StoreError]) -> None:
        for work in works:
            work.error = failed.get(work.owner)
            if work.error is None and not self._has_room(work.changes) and not self._after_turnover(work):
                work.error = failed[work.owner] = map_full(self._map_bytes)

    def _has_room(self, changes: Sequence[Changes], works: int = 1) -> bool:
        try:
            self._write(changes)
        except _NoRoomError:
            return False
        self._commits += 1
        self._works += works
        return True

    def _after_turnover(self, work: Work) -> bool:
        """Try a delete or reserve work again: what one commit frees can be used in the next but one."""
        if work.growth() and not work.reserve:
            return False
        return self._has_room([], 0) and self._has_room(work.changes)

    def _write(self, changes: Sequence[Changes]) -> None:
        """Write and commit ``changes``, by table; of no table, a transaction that changes nothing."""
        size = growth(changes)
        try:
            with self._environment.begin(write=True) as transaction:
                if not changes:
                    write_format(transaction)  # LMDB counts a transaction only if it changes something
                for table, rows in zip(self._tables, changes, strict=False):
                    if rows:
                        self._write_table(transaction, table, rows)
                began = time.perf_counter()
            self.sync_seconds.note(time.perf_counter() - began)
        except lmdb.Error as error:
            if is_want_of_room(error, self.folder, size):
                raise _NoRoomError from error
            raise
        self._grown += size

    def _write_table(self, transaction: lmdb.Transaction[bytes], table: Any, rows: Changes) -> None:
        seal = self._codec.seal
        puts = []
        for key in sorted(rows):  # neighbours share pages, and a cursor finds the next key faster
            payload = rows[key]
            if payload is None:
                transaction.delete(key, db=table)
            else:
                puts.append((key, seal(key, payload)))
        if puts:
            with transaction.cursor(table) as cursor:
                cursor.putmulti(puts)

    def _has_plenty(self, size: int) -> bool:
        """Return whether puts that grow the store by ``size`` bytes surely have room, by an older count."""
        if self._grown > OLD_COUNT_BYTES:
            return False
        free = self._disk_free(roughly=True)
        space = Space(self._map_bytes, self._last_used + self._grown, free, self.min_free)
        return space.refusal(size, from_reserve=False) is None

    def _space(self) -> Space:
        with suppress(lmdb.ReadersFullError):  # no reason to fail a commit: the last figure will do
            self._last_used = self._used()[0]
            self._grown = 0
        return Space(self._map_bytes, self._last_used, self._disk_free(), self.min_free)

    def _disk_free(self, *, roughly: bool = False) -> int:
        """Return the free space of the disk; roughly: as it was lately, if there was plenty."""
        now = time.monotonic()
        free, until = self._free_lately
        if roughly and now < until:
            return free
        disk = os.statvfs(self.folder)
        free = disk.f_bavail * disk.f_frsize
        self._free_lately = (free, now + LATELY_SECONDS if free > self.min_free + PLENTY_BYTES else now)
        return free

    def _used(self) -> tuple[int, int]:
        """Return the bytes of the pages in use and the number of rows."""
        used = rows = 0
        with self._environment.begin() as transaction:
            for table in self._tables:
                stat = transaction.stat(table)
                used += stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])
                rows += stat["entries"]
        return used, rows

    def statistics(self) -> StoreStatistics:
        """Return what the store holds and has done.

        Raises:
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        self._check_usable()
        try:
            space = self._space()
            return StoreStatistics(
                used_bytes=space.used_bytes,
                map_bytes=space.map_bytes,
                file_bytes=self._path.stat().st_size,
                disk_free=space.disk_free,
                rows=self._used()[1],
                commits=self._commits,
                works=self._works,
                failures=self._failures,
                last_commit_seconds=self._last_seconds,
                max_commit_seconds=self._max_seconds,
                scans=self._open_readings,
            )
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{self._path} cannot be read") from error

    def copy_to(self, descriptor: int) -> None:
        """Write the file as of now, page by page, to an open file; commits go on meanwhile.

        No tree is walked, so damage is copied and cannot hurt this process.

        Raises:
            StorageFullError: there is no room for the copy.
            StoreError: the copy could not be written.
        """
        self._check_usable()
        try:
            self._environment.copyfd(descriptor)
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{self._path} cannot be copied") from error

    def close(self) -> None:
        """Close the file. Idempotent; no commit may be running; in a forked child it does nothing."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        try:
            if not self._sync and self._broken is None:
                self._environment.sync(True)
        finally:
            self._environment.close()
