"""The store: tables of rows in one LMDB file, read in any thread, written in groups by one.

Promises: a work is committed whole or not at all; what `commit` did not mark with an error is on disk
when it returns; after an error that is not about space nothing is committed any more.
The store does *not* know what rows mean, who owns the folder (`FolderLock`), or whether the file is sound
(`check_store`; LMDB has no page checksums, and a damaged file can kill the process).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import lmdb

from greenroom.runtime.base.errors import StoreError, StoreKeyError
from greenroom.runtime.base.statistics import StoreStatistics
from greenroom.runtime.journal.chain import HashChains, JournalKeys
from greenroom.runtime.journal.revocations import META_KEY, RevocationLog
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.encryption import Encryption, open_seal, rewrap
from greenroom.runtime.lmdb.environment import (
    ACTORS as ACTORS,
)
from greenroom.runtime.lmdb.environment import (
    INDEXES as INDEXES,
)
from greenroom.runtime.lmdb.environment import (
    META as META,
)
from greenroom.runtime.lmdb.environment import (
    MIN_SIZE,
    SECRET_KEY,
    STORE_KEY,
    TABLES,
    open_environment,
    store_error,
)
from greenroom.runtime.lmdb.files import DATA_FILE, prepare_folder
from greenroom.runtime.lmdb.snapshot import CachedSnapshot, Snapshot, TableView
from greenroom.runtime.lmdb.write_batch import Op as Op
from greenroom.runtime.lmdb.write_batch import WriteBatch as WriteBatch
from greenroom.runtime.store.page_proofs import ProvenSnapshot, ProvenView, Prover
from greenroom.runtime.store.writer import Writer, disk_free


class Store:
    """One open LMDB environment.

    `get`, `scan`, `keys`, `copy_to` and `statistics` are for any thread, `commit` for one thread at a time.

    Args:
        folder: Where ``greenroom.mdb`` lies; made when missing. Its owner lock is the caller's affair.
        codec: Turns payloads into records and back, in the place of the one that the store asks for.
        encryption: How the store is to be encrypted.
        is_checked: Whether all that is in the file is known to be sound; else what is read is proven.
        max_size: Address space to reserve, in bytes; the quota.
        min_free: Below this many free bytes on the disk only deletes and reserve works are committed.
        sync: Whether a commit waits for the disk. Without, a crash of the process loses nothing, but a
            power cut may destroy the store.

    Attributes:
        is_checked: Whether all that is in the file is known to be sound; set by a later check, too.
        has_own_codec: Whether its records are what every program reads that has its key, if it has one.
        writer: What commits; its figures are for any thread.
        unlock: The key-encryption key of a store that is encrypted; it is shown nowhere.
        blinder: Hides names in the keys of such a store. Its users apply it: the store takes keys as given.
        id: Told from every other store by it; a backup's is the same.
        secret_mark: By what the secret that it is used with is recognised; empty before the first.

    Raises:
        StoreError: the folder cannot hold a store, or the map cannot be reserved.
        StorageFullError: the disk has no room for a new store.
        StoreDamagedError: the file is no LMDB file, or none of ours.
        StoreTooNewError: a newer program wrote the store.
        StoreKeyError: it is encrypted with another key, or encryption is required and it is not.
    """

    def __init__(
        self,
        folder: Path,
        *,
        codec: RecordCodec | None = None,
        encryption: Encryption | None = None,
        is_checked: bool = True,
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
        self.is_checked = is_checked
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
            self._codec = opened.codec if codec is None else codec
            self.unlock = opened.unlock
            self.blinder = opened.blinder
            self._prover = None if is_checked else Prover(self._path, self._codec)
            self.writer = Writer(
                self._environment, self._tables, self._codec, self.folder, min_free=min_free, sync=sync
            )
            with self._environment.begin() as transaction:
                self.id = (transaction.get(STORE_KEY) or b"").decode()
                self.secret_mark = (transaction.get(SECRET_KEY) or b"").decode()
        except BaseException as error:
            self._environment.close()  # before another may open it in this process
            if isinstance(error, lmdb.Error):
                raise store_error(error, f"{self._path} cannot be opened") from error
            raise

    @property
    def key_mark(self) -> str:
        """By what its key-encryption key is recognised; empty for a store that is not encrypted."""
        if self.unlock is None or self.blinder is None:
            return ""
        from greenroom.runtime.lmdb import record_cipher  # noqa: PLC0415 - see there

        return record_cipher.mark_of(self.unlock)

    def mark_secret(self, mark: str) -> None:
        """Note which secret the store is used with. Before anything is committed.

        Raises:
            StorageFullError: there is no room for it.
            StoreError: it could not be written.
        """
        if mark == self.secret_mark:
            return
        try:
            with self._environment.begin(write=True) as transaction:
                transaction.put(SECRET_KEY, mark.encode())
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be written") from error
        self.secret_mark = mark

    def take_identity(self, other: Store) -> None:
        """Be known by the id and with the secret of another store, whose rows this one gets.

        Raises:
            StoreError: it could not be written.
        """
        try:
            with self._environment.begin(write=True) as transaction:
                transaction.put(STORE_KEY, other.id.encode())
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be written") from error
        self.id = other.id
        self.mark_secret(other.secret_mark)

    def rewrap(self, unlock: bytes) -> bytes:
        """Have the data key of an encrypted store wrapped with another key from now on; see `rewrap`.

        Raises:
            StoreKeyError: the store is not encrypted.
            StoreError: it could not be written.
        """
        if self.unlock is None:
            raise StoreKeyError(f"{self._path} is not encrypted; `greenroom encrypt` rewrites it")
        try:
            wrapped = rewrap(self._environment, self.unlock, unlock, os.fspath(self._path))
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be written") from error
        self.unlock = unlock
        return wrapped

    @property
    def state(self) -> int:
        """A number that grows with every commit."""
        self._check_usable()
        number: int = self._environment.info()["last_txnid"]
        return number

    def open_journals(self, keys: Iterable[JournalKeys]) -> None:
        """Find where journals end, so that works may append to them. Before anything is committed."""
        with self.snapshot() as snapshot:
            self.writer.chains = HashChains(keys, snapshot)

    def open_revocation_log(self, path: Path, now: int) -> RevocationLog:
        """Keep a list of what outlasts restored backups; return it. Before anything is committed.

        Raises:
            StoreError: as `RevocationLog`.
        """
        payload = self.get(META, META_KEY)
        known = 0 if payload is None else lmdb_keys.decode(payload, int)
        lasting = self.writer.revocation_log = RevocationLog(path, known, now)
        return lasting

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Open one view of the committed rows, as of now.

        While it is open the file cannot use the pages that it sees again and may grow: do not keep one.

        Raises:
            StoreDamagedError: (while snapshot) a record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        self._check_usable()
        try:
            with self._environment.begin() as transaction:
                self._open_readings += 1
                try:
                    yield self._read(transaction)
                finally:
                    self._open_readings -= 1
        except lmdb.Error as error:
            raise store_error(error, f"{self._path} cannot be read") from error

    def _read(self, transaction: lmdb.Transaction[bytes]) -> Snapshot:
        if self._prover is None or self.is_checked:
            return Snapshot(transaction, self._tables, self._codec)
        return ProvenSnapshot(self._prover, transaction.id())

    def cached_snapshot(self, table: int) -> CachedSnapshot:
        """Return a reader of single rows whose reads share one view, for the event loop.

        Raises:
            StoreError: (while snapshot) the store is closed, or this process was forked from its opener.
        """

        def begin() -> TableView:
            self._check_usable()
            try:
                transaction = self._environment.begin(self._tables[table])
            except lmdb.Error as error:
                raise store_error(error, f"{self._path} cannot be read") from error
            if self._prover is None or self.is_checked:
                return transaction
            return ProvenView(self._prover, transaction, table)

        return CachedSnapshot(begin, self._codec.open)

    def get(self, table: int, key: bytes) -> bytes | None:
        """Return the committed payload under ``key``, or None.

        Raises:
            StoreDamagedError: the record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        with self.snapshot() as snapshot:
            return snapshot.get(table, key)

    def scan(
        self, table: int, prefix: bytes, *, start: bytes | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the committed rows whose keys begin with ``prefix``, in key order.

        What is yielded is the state at the first ``next``; an iterator that is neither exhausted nor closed
        costs what an open `snapshot` does.

        Args:
            table: ACTORS, INDEXES or META.
            prefix: What the keys begin with; empty for all.
            start: The first key wanted, inclusive: the lowest, or in reverse the highest.
            reverse: Highest key first.

        Raises:
            StoreDamagedError: a record's checksum is wrong.
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        with self.snapshot() as snapshot:
            yield from snapshot.scan(table, prefix, start=start, reverse=reverse)

    def keys(self, table: int, prefix: bytes) -> Iterator[bytes]:
        """Yield the committed keys that begin with ``prefix``, in order; their records may be damaged.

        Raises:
            StoreError: as `scan`, which also says what an open iterator costs.
        """
        with self.snapshot() as snapshot:
            yield from snapshot.keys(table, prefix)

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._path} was opened before a fork; a forked process must open a store itself"
            )
        if self._closed:
            raise StoreError(f"{self._path} is closed")

    def commit(self, works: Sequence[WriteBatch]) -> None:
        """Commit all works in one transaction, or mark those that found no room with an error.

        When space runs out, each is tried again in a transaction of its own, in order. A work that
        fails gets `StorageFullError` and so do its owner's later ones, untried.

        Raises:
            StoreFailedError: anything else went wrong. None of these works may be answered, and every
                later call raises it again, because LMDB would go on as if nothing had happened.
        """
        self._check_usable()
        self.writer.commit(works)

    def statistics(self) -> StoreStatistics:
        """Return what the store holds and has done.

        Raises:
            StoreError: the store is closed, or this process was forked from the one that opened it.
        """
        self._check_usable()
        try:
            in_use, writer = self.writer.in_use(), self.writer
            return StoreStatistics(
                used_bytes=in_use.size,
                map_bytes=self._environment.info()["map_size"],
                file_bytes=self._path.stat().st_size,
                disk_free=disk_free(self.folder),
                rows=in_use.rows,
                commits=writer.commits,
                works=writer.works,
                failures=writer.failures,
                last_commit_seconds=writer.last_seconds,
                max_commit_seconds=writer.max_seconds,
                scans=self._open_readings,
                integrity="checked" if self.is_checked else "unchecked",
            )
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{self._path} cannot be read") from error

    def room(self) -> int:
        """Return about how many bytes a commit can write before there is no page left, reserve included.

        Raises:
            StoreError: as `statistics`.
        """
        self._check_usable()
        try:
            used = self.writer.in_use().size
            file_bytes, most = self._path.stat().st_size, self._environment.info()["map_size"]
            return max(0, min(most, file_bytes + disk_free(self.folder)) - used)
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
        if self._prover is not None:
            self._prover.close()
        try:
            if not self._sync and self.writer.broken is None:
                self._environment.sync(True)
        finally:
            self._environment.close()
