"""Write groups of commit units to LMDB; distinguish a full disk from other failures.

The changes of a small group become recent rows; see `lmdb.recent`. A large group, a group with which these
would be too many, and every group while space is short go into their tables, with all recent rows.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb

from greenroom.runtime.base.errors import OwnershipLostError, StoreDamagedError, StoreError, StoreFailedError
from greenroom.runtime.base.full_sync import sync_commit
from greenroom.runtime.base.statistics import SECONDS, WORKS, Histogram
from greenroom.runtime.journal.chain import ChainUpdate, HashChains
from greenroom.runtime.journal.revocations import META_KEY, RevocationLog
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import (
    INDEXES,
    META,
    FormerFormat,
    is_out_of_space,
    store_error,
    write_format,
)
from greenroom.runtime.lmdb.files import DATA_FILE
from greenroom.runtime.lmdb.recent import (
    MOST_BYTES,
    MOST_ROW_BYTES,
    MOST_ROWS,
    NONE,
    NUMBER_BYTES,
    RecentRow,
    RecentRows,
    bytes_of,
    pack,
)
from greenroom.runtime.lmdb.write_batch import (
    TABLE_COUNT,
    Changes,
    JournalEntry,
    Space,
    WriteBatch,
    entries_growth,
    growth,
    merge,
    select_fitting,
)

OLD_COUNT_BYTES: Final = 1 << 20
"""After the store has grown by this many bytes, the pages in use are counted again."""

PLENTY_BYTES: Final = 1 << 30
LATELY_SECONDS: Final = 0.1
"""With `PLENTY_BYTES` to spare, the disk's free space is not read again for `LATELY_SECONDS`."""

_MANY: Final = 16
"""A group with more than this part of `MOST_BYTES` is written once, into its tables, not twice."""

_APPLY_BYTES: Final = 16 << 20
"""With less room than this, rows go into their tables at once: writing all recent rows there takes pages."""

_VIEWS: Final = 16
"""The recent rows of this many commits are kept, for readers that have just opened a view."""


class InUse(NamedTuple):
    """The bytes of the pages in use, and their rows."""

    size: int
    rows: int


class Writer:
    """Commit groups, in one thread at a time.

    Attributes:
        check_held: Called before each commit; raises if this process no longer owns the folder. A new owner
            opens the store with a transaction, so it sees all earlier commits.
        recent: The recent rows.
        former: The format before this program changed it; None if it did not.
    """

    def __init__(
        self,
        environment: lmdb.Environment,
        tables: Sequence[Any],
        recent: Any,
        codec: RecordCodec,
        folder: Path,
        *,
        min_free: int,
        sync: bool,
    ) -> None:
        self._environment = environment
        self._sync = sync
        self._tables = tables
        self._recent_table = recent
        self.recent = NONE
        self.former: FormerFormat | None = None
        self._recent_number = 0
        self._views = {environment.info()["last_txnid"]: NONE}
        self._guard = threading.Lock()  # copies settle in threads of their own
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
        self.check_held: Callable[[], None] = lambda: None
        self.chains: HashChains | None = None
        self.revocation_log: RevocationLog | None = None
        self.commits = self.units = self.failures = 0
        self.broken: StoreFailedError | None = None
        self.damage: StoreDamagedError | None = None
        self.last_seconds = self.max_seconds = 0.0
        self.group_works = Histogram(WORKS)
        self.group_seconds = Histogram(SECONDS)
        self.sync_seconds = Histogram(SECONDS)

    def load(self, recent: RecentRows, number: int) -> None:
        """Take over the recent rows of the last owner, up to a number."""
        self.recent, self._recent_number = recent, number
        self._views = {self._environment.info()["last_txnid"]: recent}

    def settle(self, *, twice: bool = False) -> None:
        """Write the recent rows into their tables; without room they stay.

        This may run in any thread. With ``twice`` an empty commit follows, so that the page before the last
        one leads to the same tables: `greenroom repair` finds them by it.
        """
        with self._guard:
            if not self.recent or self.broken is not None:
                return
            try:
                self._write((), (), applies=True)
                if twice:
                    self._write((), (), applies=True)
            except StoreFailedError as error:
                self.broken = error
                raise
            except lmdb.Error as error:
                if not is_out_of_space(error, self._folder, self.recent.size):
                    raise

    @property
    def former_format(self) -> int:
        """The format before this program changed it, until that is reported; else 0."""
        return 0 if self.former is None or self.former.is_reported else self.former.version

    def take_former_format(self) -> int:
        """Return the former format, and record that it is reported, in any thread."""
        with self._guard:
            version = self.former_format
            if self.former is not None and version:
                self.former = self.former._replace(is_reported=True)
                # After a failure the next owner reports it again.
                with suppress(lmdb.Error, StoreError), self._environment.begin(write=True) as transaction:
                    self.former.put(transaction)
                    self.check_held()
            return version

    def recent_at(self, transaction: int) -> RecentRows | None:
        """Return the recent rows that a view of LMDB sees.

        None if too many commits have come since.
        """
        views = self._views
        found = views.get(transaction)
        if found is not None:
            return found
        # Transactions that change no rows of actors have no entry of their own.
        before = max((number for number in list(views) if number <= transaction), default=None)
        return None if before is None else views.get(before)

    def commit(self, units: Sequence[WriteBatch], *, applies: bool = False) -> None:
        """Commit all units or mark them with errors; see `Store.commit`.

        With ``applies``, the recent rows go into their tables, too.
        """
        with self._guard:
            self._commit_all(units, applies=applies)

    def _commit_all(self, units: Sequence[WriteBatch], *, applies: bool) -> None:
        if self.broken is not None:
            raise self.broken
        began = time.perf_counter()
        try:
            self._commit(units, applies=applies)
            self.check_place()
        except Exception as error:
            self.broken = self._closing_error(error)
            raise self.broken from error
        self.failures += sum(unit.error is not None for unit in units)
        self.last_seconds = time.perf_counter() - began
        self.max_seconds = max(self.max_seconds, self.last_seconds)
        self.group_works.observe(len(units))
        self.group_seconds.observe(self.last_seconds)

    def check_place(self) -> None:
        """Check that the file is still where the next start will look for it."""
        try:
            found = _identity(self._path)
        except (FileNotFoundError, NotADirectoryError):
            found = None
        if found == self._file:
            return
        raise (OwnershipLostError if found is None else StoreFailedError)(
            f"{self._path} was removed, renamed or replaced while it was served, so nothing more is "
            "answered; what was answered before is in the file that was there: put that back, or restore a "
            "backup"
        )

    def _closing_error(self, error: Exception) -> StoreFailedError:
        if isinstance(error, OwnershipLostError):
            return error
        try:
            self.check_place()
        except StoreFailedError as gone:
            return gone
        failure = (
            store_error(error, f"{self._path} cannot be written") if isinstance(error, lmdb.Error) else None
        )
        if isinstance(failure, StoreDamagedError):
            self.damage = failure
            return StoreFailedError(f"{failure}; nothing more is answered")
        return StoreFailedError(
            f"the store in {self._folder} could not be written ({error}), so nothing more is answered. "
            "Check the disk and start again: all that was answered is there"
        )

    def in_use(self) -> InUse:
        """Return the pages and rows in use; for any thread."""
        size = rows = 0
        with self._environment.begin() as transaction:
            for table in self._tables:
                stat = transaction.stat(table)
                size += stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])
                rows += stat["entries"]
        return InUse(size, rows)

    def _commit(self, units: Sequence[WriteBatch], *, applies: bool) -> None:
        revocations = [entry for unit in units for entry in unit.revocations]
        if revocations and self.revocation_log is not None:
            self.revocation_log.append(revocations)
        failed: dict[object, StoreError] = {}
        admitted, changes, entries = units, merge(units), _entries(units)
        size = growth(changes) + entries_growth(entries)
        if any(unit.error is not None for unit in units) or not self._has_plenty(size):
            admitted = select_fitting(units, self._space(), failed)
            changes, entries = merge(admitted), _entries(admitted)
            size = growth(changes) + entries_growth(entries)
        applies = applies or self._is_much(changes, entries) or self._is_short(size)
        ways = (True,) if applies else (False, True)
        if admitted and not self._has_room(changes, size, len(admitted), entries, ways=ways):
            for unit in admitted:
                unit.error = failed.get(unit.owner)
                if unit.error is None and not self._has_room_alone(unit):
                    unit.error = failed[unit.owner] = self._space().out_of_space_error()

    def _has_room_alone(self, unit: WriteBatch) -> bool:
        size = unit.growth()
        if self._has_room(unit.changes, size, 1, unit.entries):
            return True
        if size and not unit.reserve:
            return False
        # A delete or a reserve unit is retried: pages freed by a commit can be used two commits later. If
        # there is no room to apply all recent rows, it becomes one of them.
        rotates = self._has_room((), 0, 0, ways=(False,))
        return rotates and self._has_room(unit.changes, size, 1, unit.entries, ways=(True, False))

    def _is_much(self, changes: Sequence[Changes], entries: Sequence[JournalEntry]) -> bool:
        """Return whether a group is large, or would be too much with the recent rows."""
        rows = sum(map(len, changes)) + len(entries)
        size = bytes_of(changes) + sum(len(row) for _, _, row in entries)
        recent = self.recent
        return (
            2 * rows > MOST_ROWS
            or _MANY * size > MOST_BYTES
            or any(payload and len(payload) > MOST_ROW_BYTES for each in changes for payload in each.values())
            or rows + len(recent) > MOST_ROWS
            or size + recent.size > MOST_BYTES
        )

    def _is_short(self, size: int) -> bool:
        """Return whether there may soon be no room to apply all recent rows.

        What is deleted makes room only in its table, too.
        """
        space = Space(
            self._map_bytes, self._used + self._grown, self._disk_free, self._min_free + _APPLY_BYTES
        )
        return space.refusal(size + _APPLY_BYTES, from_reserve=False) is not None

    def _has_room(
        self,
        changes: Sequence[Changes],
        size: int,
        units: int,
        entries: Sequence[JournalEntry] = (),
        *,
        ways: Sequence[bool] = (True,),
    ) -> bool:
        """Write and commit in the first way that finds room; return whether one did.

        A way is whether the rows go into their tables.
        """
        for applied in ways:
            try:
                self._write(changes, entries, applies=applied)
            except lmdb.Error as error:
                if not is_out_of_space(error, self._folder, size):
                    raise
            else:
                self._grown += size
                self.commits += 1
                self.units += units
                return True
        return False

    def _write(self, changes: Sequence[Changes], entries: Sequence[JournalEntry], *, applies: bool) -> None:
        """Write and commit ``changes`` by table; if there are none, commit an empty transaction.

        With ``applies``, they and all recent rows go into their tables; else they become recent rows.
        """
        update = self.chains.append(entries) if entries and self.chains is not None else None
        head = None if self.revocation_log is None else self.revocation_log.head
        added = _with_heads(changes, update, head)
        number = -1
        try:
            with self._environment.begin(write=True) as transaction:
                number = transaction.id()
                if not any(added) and not (applies and self.recent):
                    recent = self.recent
                    write_format(transaction)
                elif applies:
                    recent = NONE
                    self._apply(transaction, added)
                else:
                    recent = self.recent.with_changes(added)
                    self._append(transaction, added)
                self._views[number] = recent  # before a reader can open this view
                self.check_held()
                began = time.perf_counter()
        except BaseException:
            self._views.pop(number, None)
            raise
        self.recent = recent
        for old in sorted(self._views)[:-_VIEWS]:
            del self._views[old]
        if self._sync:
            try:
                sync_commit(self._environment)
            except lmdb.Error as error:  # this is no lack of space: the commit is in the file
                raise StoreFailedError(str(error)) from error
        if update is not None and self.chains is not None:
            self.chains.advance(update)
        if head is not None and self.revocation_log is not None:
            self.revocation_log.mark_stored(head)
        self.sync_seconds.observe(time.perf_counter() - began)

    def _apply(self, transaction: lmdb.Transaction[bytes], added: Sequence[Changes]) -> None:
        """Write changes and all recent rows into their tables."""
        for table, old, new in zip(self._tables, self.recent.changes, added, strict=True):
            if rows := old | new:
                self._write_table(transaction, table, rows)
        if self.recent:
            transaction.drop(self._recent_table, delete=False)

    def _append(self, transaction: lmdb.Transaction[bytes], added: Sequence[Changes]) -> None:
        """Write changes as recent rows."""
        seal = self._seal
        number = self._recent_number
        rows = []
        for table, changes in enumerate(added):
            for key, payload in changes.items():
                number += 1
                place = number.to_bytes(NUMBER_BYTES)
                row = RecentRow(table, key, None if payload is None else seal(key, payload))
                rows.append((place, seal(place, pack(row))))
        with transaction.cursor(self._recent_table) as cursor:
            _, put = cursor.putmulti(rows, append=True)
        if put != len(rows):  # LMDB passes over rows that are out of order
            raise StoreFailedError(f"only {put} of {len(rows)} recent rows of {self._path} could be written")
        self._recent_number = number

    def _write_table(self, transaction: lmdb.Transaction[bytes], table: Any, rows: Changes) -> None:
        puts = []
        for key in sorted(rows):  # neighbours share pages, so a cursor finds the next key faster
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
        """Return whether ``size`` bytes surely fit, by cached figures."""
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
        with suppress(lmdb.ReadersFullError):  # this must not fail a commit: the last figure suffices
            self._used = self.in_use().size
            self._grown = 0
        self._disk_free = disk_free(self._folder)
        return Space(self._map_bytes, self._used, self._disk_free, self._min_free)


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)  # noqa: PTH116  takes half the time of a Path, and runs after each commit
    return status.st_dev, status.st_ino


def _with_heads(
    changes: Sequence[Changes], update: ChainUpdate | None, head: int | None
) -> Sequence[Changes]:
    """Return changes by table, with the rows and heads of journals."""
    added = [*changes, *({} for _ in range(TABLE_COUNT - len(changes)))]
    if update is not None:
        added[INDEXES] = added[INDEXES] | dict(update.rows)
        added[META] = added[META] | dict(update.heads)
    if head is not None:
        added[META] = added[META] | {META_KEY: keys.encode(head)}
    return added


def _entries(units: Sequence[WriteBatch]) -> list[JournalEntry]:
    return [entry for unit in units if unit.entries for entry in unit.entries]


def disk_free(folder: Path) -> int:
    """Return the free space for this user on the disk that holds ``folder``, in bytes."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
