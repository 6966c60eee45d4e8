"""The store: tables of rows in one LMDB file, with one writing thread.

Promises: a unit is committed whole or not at all; when `commit` returns, each unit without an error is on
disk; after an error that is not about space, nothing more is committed. The store does *not* know the meaning
of rows, the owner of the folder (`FolderLock`), or whether the file is sound (`check_store`; LMDB has no page
checksums, and a damaged file can crash the process).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import lmdb

from greenroom.runtime.base.errors import RecordDamagedError, StoreError, StoreKeyError
from greenroom.runtime.base.statistics import StoreStatistics
from greenroom.runtime.journal.chain import HashChains, JournalKeys
from greenroom.runtime.journal.revocations import META_KEY, RevocationLog
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.encryption import Encryption, open_seal, rewrap
from greenroom.runtime.lmdb.environment import (
    FIRST_SECRET_KEY,
    FORMER_KEY,
    META,
    MIN_SIZE,
    RECENT_TABLE,
    SECRET_KEY,
    STORE_KEY,
    TABLES,
    FormerFormat,
    open_environment,
    open_recent,
    put_secret_mark,
    store_error,
)
from greenroom.runtime.lmdb.files import DATA_FILE, prepare_folder
from greenroom.runtime.lmdb.recent import NONE, RecentRows
from greenroom.runtime.lmdb.snapshot import CachedSnapshot, OnDamage, Snapshot, TableView
from greenroom.runtime.lmdb.write_batch import Changes, Op, WriteBatch
from greenroom.runtime.store.page_proofs import ProvenSnapshot, ProvenView, Prover, Tree, ViewPassedError
from greenroom.runtime.store.recent_table import read_recent
from greenroom.runtime.store.record_damage import (
    SOUND,
    DamagedRecord,
    KnownDamage,
    ReportingCodec,
    StoreCheck,
)
from greenroom.runtime.store.writer import Writer, disk_free

_ATTEMPTS: Final = 10
"""Attempts to open a view during commits."""


class Store:
    """One open LMDB environment.

    `get`, `scan`, `keys`, `copy_to` and `statistics` are for any thread, `commit` for one thread at a time.

    Args:
        codec: A codec instead of the store's own.
        check: The result of a check; unless the whole file is sound, reads are proven.
        min_free: Below this many free bytes on the disk only deletes and reserve units are committed.
        sync: Whether a commit waits for the disk. If False, a crash of the process loses nothing, but a power
            cut may destroy the store.

    Attributes:
        is_checked: Whether the whole file has been checked, perhaps with damaged records.
        has_own_codec: Whether it uses its own codec, and not one given by the caller.
        unlock: The key-encryption key of an encrypted store; never displayed.
        blinder: Hides names in the keys of an encrypted store. The callers apply it to keys.
        id: The store's id, the same in its backups.
        secret_mark: The mark of the store's secret; empty while it has none.
        first_secret_mark: The mark of the secret before its first change; empty or the same if it had none.
    """

    def __init__(
        self,
        folder: Path,
        *,
        codec: RecordCodec | None = None,
        encryption: Encryption | None = None,
        check: StoreCheck = SOUND,
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
        self.min_free = min_free
        self.is_checked = check.is_whole
        # Recent rows are mended, or the store is not opened.
        damaged = [each for each in check.damaged if each.table != RECENT_TABLE.decode()]
        self.damage = KnownDamage(os.fspath(self._path), damaged)
        self._sync = sync
        self._pid = os.getpid()
        self._open_readings = 0
        self._closed = False
        try:
            self._environment = open_environment(self.folder, max_size=max_size, sync=sync)
            self._tables = tuple(self._environment.open_db(name) for name in TABLES)
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{self._path} cannot be opened") from error
        try:
            opened = open_seal(self._environment, self._tables, encryption, os.fspath(self._path))
            self.has_own_codec = codec is None
            self._codec = ReportingCodec(opened.codec if codec is None else codec, self._record_damage)
            self.unlock = opened.unlock
            self.blinder = opened.blinder
            recent = open_recent(self._environment, self._path)
            self._prover = Prover(self._path, self._codec)
            self.writer = Writer(
                self._environment,
                self._tables,
                recent,
                self._codec,
                self.folder,
                min_free=min_free,
                sync=sync,
            )
            found, last = read_recent(self._path, opened.codec if codec is None else codec)
            if last:
                self.writer.load(found, last)
                self.settle()
            with self._environment.begin() as transaction:
                self.id = (transaction.get(STORE_KEY) or b"").decode()
                self.secret_mark = (transaction.get(SECRET_KEY) or b"").decode()
                self.first_secret_mark = (transaction.get(FIRST_SECRET_KEY) or b"").decode()
                self.writer.former = FormerFormat.parse(transaction.get(FORMER_KEY))
        except BaseException as error:
            self._environment.close()  # before this process may open it again
            if isinstance(error, lmdb.Error):
                raise store_error(error, f"{self._path} cannot be opened") from error
            raise

    def settle(self, *, twice: bool = False) -> None:
        """Write the recent rows into their tables, as `Writer.settle` does."""
        recent = self.writer.recent
        self.writer.settle(twice=twice)
        if self.damage.found:
            self.damage.discard(self._written_over((), recent))

    @property
    def key_mark(self) -> str:
        """The mark of its key-encryption key; empty for a store in the clear."""
        if self.unlock is None or self.blinder is None:
            return ""
        from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

        return record_cipher.mark_of(self.unlock)

    def mark_secret(self, mark: str) -> None:
        """Record the mark of the store's secret, before any commit."""
        if mark == self.secret_mark:
            return
        with self._translate_errors("written"), self._environment.begin(write=True) as transaction:
            self.first_secret_mark = put_secret_mark(transaction, mark)
        self.secret_mark = mark

    def take_identity(self, other: Store) -> None:
        """Adopt the id and the secret of another store, which this one replaces."""
        with self._translate_errors("written"), self._environment.begin(write=True) as transaction:
            transaction.put(STORE_KEY, other.id.encode())
        self.id = other.id
        self.mark_secret(other.first_secret_mark or other.secret_mark)
        self.mark_secret(other.secret_mark)

    def rewrap(self, unlock: bytes) -> bytes:
        """Wrap the data key of an encrypted store with another key; see `encryption.rewrap`."""
        if self.unlock is None:
            raise StoreKeyError(f"{self._path} is not encrypted; `greenroom encrypt` rewrites it")
        with self._translate_errors("written"):
            wrapped = rewrap(self._environment, self.unlock, unlock, os.fspath(self._path))
        self.unlock = unlock
        return wrapped

    @property
    def state(self) -> int:
        """A number that grows with every commit."""
        self._check_usable()
        number: int = self._environment.info()["last_txnid"]
        return number

    def open_journals(self, keys: Iterable[JournalKeys]) -> None:
        """Find the ends of journals, before any commit."""
        with self.snapshot() as snapshot:
            self.writer.chains = HashChains(keys, snapshot)

    def open_revocation_log(self, path: Path, now: int) -> RevocationLog:
        """Open the revocation log and return it, before any commit."""
        try:
            payload = self.get(META, META_KEY)
        except RecordDamagedError:
            payload = None  # then the whole log is replayed, which actors tolerate
        known = 0 if payload is None else lmdb_keys.decode(payload, int)
        log = self.writer.revocation_log = RevocationLog(path, known, now)
        return log

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Open one view of the committed rows, as of now.

        Close it soon: meanwhile the file cannot reuse its pages and may grow.

        Raises:
            StoreDamagedError: (in the block) a record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        try:
            transaction, trees, recent = self._begin()
            with transaction:
                self._open_readings += 1
                try:
                    if trees is None:
                        yield Snapshot(transaction, self._tables, self._codec, recent)
                    else:
                        yield ProvenSnapshot(self._prover, trees, recent)
                finally:
                    self._open_readings -= 1
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be read") from error

    @property
    def is_sound(self) -> bool:
        """Whether the whole file is known to be sound, so that LMDB can read it."""
        return self.is_checked and not self.damage.found

    def take_check(self, check: StoreCheck, since: int | None = None) -> None:
        """Apply the result of a check; damage recorded since that `KnownDamage.step` stays."""
        self.damage.replace(check.damaged, since)
        self.is_checked = self.is_checked or check.is_whole

    def _record_damage(self, error: RecordDamagedError) -> None:
        """Record a damaged record, whose key may be wrong; reads are proven from now on."""
        if self.damage.lies_at(error.lies_at):
            return
        table = ""
        is_gone = self.damage.is_gone(error.lies_at)  # an older view may still have this record
        with (
            suppress(lmdb.Error, OSError, StoreError),
            closing(Prover(self._path, None)) as prover,
            self._environment.begin() as transaction,
        ):
            for name, tree in zip(TABLES, prover.trees(transaction.id()), strict=True):
                record = tree.get(error.lies_at)
                if record is not None and not self._codec.is_sound(error.lies_at, record):
                    table, is_gone = name.decode(), False
        if is_gone:
            return
        lies_at = b"" if error.lies_at == error.key else error.lies_at
        self.damage.add(DamagedRecord(table, error.key, self.blinder is not None, lies_at))

    def _begin(self, table: Any = None) -> tuple[lmdb.Transaction[bytes], list[Tree] | None, RecentRows]:
        """Open a view with its recent rows, and its tables if reads must be proven."""
        self._check_usable()
        for attempt in range(_ATTEMPTS):
            transaction = self._environment.begin(table)
            try:
                recent = self._recent_over(transaction)
                return transaction, None if self.is_sound else self._prover.trees(transaction.id()), recent
            except ViewPassedError:
                transaction.abort()
                if attempt == _ATTEMPTS - 1:
                    raise
            except BaseException:
                transaction.abort()
                raise
        raise AssertionError("the last attempt returns or raises")

    def _recent_over(self, transaction: lmdb.Transaction[bytes]) -> RecentRows:
        """Return the recent rows that a view sees."""
        recent = self.writer.recent_at(transaction.id())
        if recent is None:
            raise ViewPassedError(f"many commits came while a view of {self._path} was opened")
        return recent

    def cached_snapshot(self, table: int) -> CachedSnapshot:
        """Return a reader of single rows that share one view, for the event loop."""

        def begin() -> tuple[TableView, Changes]:
            try:
                transaction, trees, recent = self._begin(self._tables[table])
            except lmdb.Error as error:
                raise store_error(error, f"{self._path} cannot be read") from error
            view = transaction if trees is None else ProvenView(transaction, trees[table])
            return view, recent.changes[table]

        return CachedSnapshot(begin, self._codec.open_quietly, self._record_damage)

    def get(self, table: int, key: bytes) -> bytes | None:
        """Return the committed payload under ``key``, or None."""
        with self.snapshot() as snapshot:
            return snapshot.get(table, key)

    def scan(
        self,
        table: int,
        prefix: bytes,
        *,
        start: bytes | None = None,
        reverse: bool = False,
        on_damage: OnDamage | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the committed rows whose keys begin with ``prefix``, in key order.

        It reads the rows as of the first ``next``, from ``start``, inclusive: the lowest key, or in reverse
        the highest. Exhaust or close it. The first damaged record raises, unless ``on_damage`` is given.
        """
        with self.snapshot() as snapshot:
            yield from snapshot.scan(table, prefix, start=start, reverse=reverse, on_damage=on_damage)

    def keys(self, table: int, prefix: bytes, *, start: bytes | None = None) -> Iterator[bytes]:
        """Yield the committed keys that begin with ``prefix``, in order; their records may be damaged."""
        with self.snapshot() as snapshot:
            yield from snapshot.keys(table, prefix, start=start)

    @contextmanager
    def _translate_errors(self, done: str) -> Iterator[None]:
        """Translate an error of LMDB or the system to a `StoreError`."""
        try:
            yield
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{self._path} cannot be {done}") from error

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._path} was opened before a fork; a forked process must open a store itself"
            )
        if self._closed:
            raise StoreError(f"{self._path} is closed")

    def commit(self, units: Sequence[WriteBatch]) -> None:
        """Commit all units in one transaction; units without room get an error.

        When space runs out, each unit is tried in its own transaction. A unit that fails gets
        `StorageFullError`, and so do later units of the same owner.

        Raises:
            StoreFailedError: another failure. None of these units may be answered, and every later call
                raises it again.
        """
        self._check_usable()
        if not self.damage.found:
            self.writer.commit(units)
            return
        moved = [record for record in self.damage if record.lies_at]
        for unit in units if moved else ():
            _free_places(unit, moved)
        recent = self.writer.recent
        self.writer.commit(units, applies=True)
        self.damage.discard(self._written_over(units, recent))

    def write(self, ops: Iterable[Op]) -> None:
        """Commit changes on their own, using the reserve if needed, or raise the `StoreError`."""
        unit = WriteBatch(None, ops, reserve=True)
        self.commit([unit])
        if unit.error is not None:
            raise unit.error

    def _written_over(self, units: Sequence[WriteBatch], recent: RecentRows) -> list[DamagedRecord]:
        """Return the known damaged records that have been written or deleted."""
        if self.writer.recent:  # there was no room to write them into their tables
            recent = NONE
        written = [unit.changes for unit in units if unit.error is None]
        changed = {
            (name.decode(), key)
            for tables in (*written, recent.changes)
            for name, changes in zip(TABLES, tables, strict=False)
            for key in changes
        }
        if not self.writer.recent:
            changed |= {each.place for each in self.damage if each.table == RECENT_TABLE.decode()}
        return [record for record in self.damage if record.place in changed or self._is_new_in_meta(record)]

    def _is_new_in_meta(self, record: DamagedRecord) -> bool:
        """Return whether a damaged row that belongs to the store itself was written since."""
        if record.table != TABLES[META].decode():
            return False
        try:
            return self.get(META, record.place[1]) is not None
        except StoreError:
            return False

    def statistics(self) -> StoreStatistics:
        """Return the statistics of the store."""
        self._check_usable()
        with self._translate_errors("read"):
            in_use, writer = self.writer.in_use(), self.writer
            known = self.damage.found
            return StoreStatistics(
                used_bytes=in_use.size,
                map_bytes=self._environment.info()["map_size"],
                file_bytes=self._path.stat().st_size,
                disk_free=disk_free(self.folder),
                rows=in_use.rows + self._count_recent(),
                commits=writer.commits,
                works=writer.units,
                failures=writer.failures,
                last_commit_seconds=writer.last_seconds,
                max_commit_seconds=writer.max_seconds,
                scans=self._open_readings,
                former_format=self.writer.former_format,
                integrity="unchecked" if not self.is_checked else "damaged" if known else "checked",
                damaged_records=len(known),
                damaged=self.damage.names(),
            )

    def _count_recent(self) -> int:
        """Return by how many rows the recent rows change the number of rows."""
        with self._environment.begin() as transaction:
            recent = self.writer.recent_at(transaction.id()) or NONE
            return sum(
                (payload is not None) - (transaction.get(key, db=table) is not None)
                for table, changes in zip(self._tables, recent.changes, strict=True)
                for key, payload in changes.items()
            )

    def room(self) -> int:
        """Return about how many bytes a commit can write, reserve included."""
        self._check_usable()
        with self._translate_errors("read"):
            used = self.writer.in_use().size
            file_bytes, most = self._path.stat().st_size, self._environment.info()["map_size"]
            return max(0, min(most, file_bytes + disk_free(self.folder)) - used)

    def copy_to(self, descriptor: int) -> None:
        """Copy the file page by page to an open file, while commits go on.

        Recent rows go into their tables first, so that the copy has nothing that was deleted before. No tree
        is walked, so damage is copied and cannot crash this process.
        """
        self._check_usable()
        with self._translate_errors("copied"):
            self.settle()
            self._environment.copyfd(descriptor)

    def close(self) -> None:
        """Close the file; idempotent, without a running commit, and not in a forked child."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._prover.close()
        try:
            with suppress(lmdb.Error, StoreError):  # then the next owner does it
                self.settle(twice=True)
            if not self._sync and self.writer.broken is None:
                self._environment.sync(True)
        finally:
            self._environment.close()


def _free_places(unit: WriteBatch, moved: Sequence[DamagedRecord]) -> None:
    """If a unit changes damaged records, make it delete them at their wrong keys, too."""
    freed: list[Changes] = [
        {each.lies_at: None for each in moved if each.table == name.decode() and each.key in changes}
        for name, changes in zip(TABLES, unit.changes, strict=False)
    ]
    if any(freed):
        unit.changes = [free | changes for free, changes in zip(freed, unit.changes, strict=True)]
