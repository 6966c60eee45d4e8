"""Writes groups of write batches to LMDB, and tells a full disk from every other failure."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb

from greenroom.runtime.base.errors import StoreDamagedError, StoreError, StoreFailedError
from greenroom.runtime.base.full_sync import sync_commit
from greenroom.runtime.base.statistics import SECONDS, WORKS, Histogram
from greenroom.runtime.journal.chain import HashChains
from greenroom.runtime.journal.revocations import META_KEY, RevocationLog
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import INDEXES, META, is_want_of_room, store_error, write_format
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.runtime.lmdb.write_batch import (
    Changes,
    JournalEntry,
    Space,
    WriteBatch,
    entries_growth,
    growth,
    merged,
    select_fitting,
)

OLD_COUNT_BYTES: Final = 1 << 20
"""By how many bytes the store may have grown since the pages in use were counted last."""

PLENTY_BYTES: Final = 1 << 30
LATELY_SECONDS: Final = 0.1
"""With so much more than needed free on the disk, it is not asked again for so long."""


class InUse(NamedTuple):
    """How many bytes the pages in use have, and how many rows are in them."""

    size: int
    rows: int


class Writer:
    """Commits groups, one thread at a time.

    Args:
        environment: An open environment.
        tables: Its tables.
        codec: Turns payloads into records.
        folder: Where it lies.
        min_free: As in `Store`.
        sync: As in `Store`.

    Attributes:
        chains: Where the journals end; None for a store that is used without any.
        lasting: The list of what outlasts restored backups; None for a store without a secret.
        commits: Transactions committed.
        works: Works committed.
        failures: Works refused or failed.
        broken: What the first commit that failed for good raised.
        damage: What LMDB came upon when it failed.
        last_seconds: Duration of the newest group.
        max_seconds: Duration of the slowest group.
        group_works: How many works the groups had.
        group_seconds: Durations of the groups.
        sync_seconds: Durations of the commits of their transactions.
    """

    def __init__(
        self,
        environment: lmdb.Environment,
        tables: Sequence[Any],
        codec: RecordCodec,
        folder: Path,
        *,
        min_free: int,
        sync: bool,
    ) -> None:
        self._environment = environment
        self._sync = sync
        self._tables = tables
        self._seal = codec.seal
        self._folder = folder
        self._min_free = min_free
        self._path = os.fspath(folder / DATA_FILE)
        self._file = _identity(self._path)
        self._map_bytes: int = environment.info()["map_size"]
        self._used = 0
        self._grown = OLD_COUNT_BYTES + 1  # nothing is counted yet
        self._disk_free = 0
        self._disk_free_until = 0.0
        self.chains: HashChains | None = None
        self.revocation_log: RevocationLog | None = None
        self.commits = self.works = self.failures = 0
        self.broken: StoreFailedError | None = None
        self.damage: StoreDamagedError | None = None
        self.last_seconds = self.max_seconds = 0.0
        self.group_works = Histogram(WORKS)
        self.group_seconds = Histogram(SECONDS)
        self.sync_seconds = Histogram(SECONDS)

    def commit(self, works: Sequence[WriteBatch]) -> None:
        """Commit all works or mark them with errors; see `Store.commit`.

        Raises:
            StoreFailedError: for good.
        """
        if self.broken is not None:
            raise self.broken
        began = time.perf_counter()
        try:
            self._commit(works)
            self.check_place()
        except Exception as error:
            self.broken = self._closing_error(error)
            raise self.broken from error
        self.failures += sum(work.error is not None for work in works)
        self.last_seconds = time.perf_counter() - began
        self.max_seconds = max(self.max_seconds, self.last_seconds)
        self.group_works.observe(len(works))
        self.group_seconds.observe(self.last_seconds)

    def check_place(self) -> None:
        """Make sure that what is committed is where it is looked for at the next start.

        Raises:
            StoreFailedError: the file was removed, renamed or replaced.
        """
        try:
            found = _identity(self._path)
        except (FileNotFoundError, NotADirectoryError):
            found = None
        if found == self._file:
            return
        raise StoreFailedError(
            f"{self._path} was removed, renamed or replaced while it was served, so nothing more is "
            "answered; what was answered before is in the file that was there: put that back, or restore a "
            "backup"
        )

    def _closing_error(self, error: Exception) -> StoreFailedError:
        try:
            self.check_place()
        except StoreFailedError as gone:
            return gone
        told = (
            store_error(error, f"{self._path} cannot be written") if isinstance(error, lmdb.Error) else None
        )
        if isinstance(told, StoreDamagedError):
            self.damage = told
            return StoreFailedError(f"{told}; nothing more is answered")
        return StoreFailedError(
            f"the store in {self._folder} could not be written ({error}), so nothing more is answered. "
            "Check the disk and start again: all that was answered is there"
        )

    def in_use(self) -> InUse:
        """Return what is in use now; for any thread."""
        size = rows = 0
        with self._environment.begin() as transaction:
            for table in self._tables:
                stat = transaction.stat(table)
                size += stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])
                rows += stat["entries"]
        return InUse(size, rows)

    def _commit(self, works: Sequence[WriteBatch]) -> None:
        lasting = [entry for work in works for entry in work.revocations]
        if lasting and self.revocation_log is not None:
            self.revocation_log.append(lasting)
        failed: dict[object, StoreError] = {}
        admitted, changes, entries = works, merged(works), _entries(works)
        size = growth(changes) + entries_growth(entries)
        if any(work.error is not None for work in works) or not self._has_plenty(size):
            admitted = select_fitting(works, self._space(), failed)
            changes, entries = merged(admitted), _entries(admitted)
            size = growth(changes) + entries_growth(entries)
        if admitted and not self._has_room(changes, size, len(admitted), entries):
            for work in admitted:
                work.error = failed.get(work.owner)
                if work.error is None and not self._has_room_alone(work):
                    work.error = failed[work.owner] = self._space().want_of_room()

    def _has_room_alone(self, work: WriteBatch) -> bool:
        size = work.growth()
        if self._has_room(work.changes, size, 1, work.entries):
            return True
        if size and not work.reserve:
            return False
        # A delete or a reserve work is tried again: what one commit frees can be used in the next but one.
        return self._has_room((), 0, 0) and self._has_room(work.changes, size, 1, work.entries)

    def _has_room(
        self, changes: Sequence[Changes], size: int, works: int, entries: Sequence[JournalEntry] = ()
    ) -> bool:
        try:
            self._write(changes, entries)
        except lmdb.Error as error:
            if is_want_of_room(error, self._folder, size):
                return False
            raise
        self._grown += size
        self.commits += 1
        self.works += works
        return True

    def _write(self, changes: Sequence[Changes], entries: Sequence[JournalEntry]) -> None:
        """Write and commit ``changes``, by table; of no table, a transaction that changes nothing."""
        with self._environment.begin(write=True) as transaction:
            if not changes:
                write_format(transaction)
            for table, rows in zip(self._tables, changes, strict=False):
                if rows:
                    self._write_table(transaction, table, rows)
            if entries and self.chains is not None:
                appended = self.chains.append(entries)
                self._put(transaction, self._tables[INDEXES], appended.rows)
                self._put(transaction, self._tables[META], appended.heads)
            head = None if self.revocation_log is None else self.revocation_log.head
            if head is not None:
                self._put(transaction, self._tables[META], [(META_KEY, keys.encode(head))])
            began = time.perf_counter()
        if self._sync:
            try:
                sync_commit(self._environment)
            except lmdb.Error as error:  # whatever it says, no want of room: the commit is in the file
                raise StoreFailedError(str(error)) from error
        if entries and self.chains is not None:
            self.chains.advance(appended)
        if head is not None and self.revocation_log is not None:
            self.revocation_log.mark_stored(head)
        self.sync_seconds.observe(time.perf_counter() - began)

    def _write_table(self, transaction: lmdb.Transaction[bytes], table: Any, rows: Changes) -> None:
        puts = []
        for key in sorted(rows):  # neighbours share pages, and a cursor finds the next key faster
            payload = rows[key]
            if payload is None:
                transaction.delete(key, db=table)
            else:
                puts.append((key, payload))
        if puts:
            self._put(transaction, table, puts)

    def _put(
        self, transaction: lmdb.Transaction[bytes], table: Any, rows: Sequence[tuple[bytes, bytes]]
    ) -> None:
        seal = self._seal
        with transaction.cursor(table) as cursor:
            cursor.putmulti([(key, seal(key, payload)) for key, payload in rows])

    def _has_plenty(self, size: int) -> bool:
        """Return whether puts that grow the store by ``size`` bytes surely have room, by older figures."""
        if self._grown > OLD_COUNT_BYTES:
            return False
        now = time.monotonic()
        if now >= self._disk_free_until:
            self._disk_free = disk_free(self._folder)
            plenty = self._disk_free > self._min_free + PLENTY_BYTES
            self._disk_free_until = now + LATELY_SECONDS if plenty else now
        space = Space(self._map_bytes, self._used + self._grown, self._disk_free, self._min_free)
        return space.refusal(size, from_reserve=False) is None

    def _space(self) -> Space:
        with suppress(lmdb.ReadersFullError):  # no reason to fail a commit: the last figure will do
            self._used = self.in_use().size
            self._grown = 0
        return Space(self._map_bytes, self._used, disk_free(self._folder), self._min_free)


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)  # noqa: PTH116  half the time of a Path, after each commit
    return status.st_dev, status.st_ino


def _entries(works: Sequence[WriteBatch]) -> list[JournalEntry]:
    return [entry for work in works if work.entries for entry in work.entries]


def disk_free(folder: Path) -> int:
    """Return the free space for this user on the disk that holds ``folder``, in bytes."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
