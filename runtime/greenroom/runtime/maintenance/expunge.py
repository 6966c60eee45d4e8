"""Expunging: what was deleted leaves a store's file, and rows of a journal say no more than they may.

LMDB uses the pages of what was deleted again and does not clear them, and a deleted key may still divide
two pages of its tree, in a compact copy as well. So what is left is written row by row into a new file,
which takes the old one's place. Before that, in the old one, rows of a journal are redacted
(`JournalKeys.redacted`), which takes the store's secret, and the runtime forgets what it keeps without
knowing of whom it is: answers to requests that are repeated, and messages that could not be delivered.

Each step can be done again: whatever interrupts it, the next time does the rest. All of this blocks, and
takes the owner's lock meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

import lmdb

from greenroom.runtime.base.address import Address
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.journal.chain import (
    LINK_BYTES,
    NUMBER_BYTES,
    STRANGE,
    JournalKeys,
    decoded,
    scan,
    start_of,
)
from greenroom.runtime.journal.secrets import find_secret
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import ACTORS, INDEXES, MIN_SIZE, TABLES, store_error
from greenroom.runtime.lmdb.files import DATA_FILE, LMDB_LOCK_FILE, sync_file, sync_folder
from greenroom.runtime.lmdb.key_blinding import strip_plain_key
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.lmdb.write_batch import Op, WriteBatch
from greenroom.runtime.maintenance.backup import REWRITTEN, remove_left_over, temporary, written
from greenroom.runtime.maintenance.reencrypt import owned
from greenroom.runtime.store.integrity import inspect_file
from greenroom.runtime.store.store import Store

T = TypeVar("T")
P = TypeVar("P")
_KEPT: Final = (
    lmdb_keys.ANSWERS,
    lmdb_keys.index_prefix(lmdb_keys.ANSWER_TIMES),
    lmdb_keys.RELAYED,
    lmdb_keys.DEAD,
)
_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class ExpungeInfo:
    """A store whose file has nothing in it that was deleted.

    Attributes:
        folder: The folder of the store.
        before: The bytes of its file before.
        after: And now.
        redacted: How many rows of the journal were redacted.
    """

    folder: Path
    before: int
    after: int
    redacted: int


def expunge(
    folder: Path,
    *,
    encryption: Encryption | None,
    secrets: Sequence[Path],
    journal: str,
    index: str,
    of: type[T],
    about: Address,
    says: type[P],
    redact: Callable[[T, list[P]], T | None],
    options: RuntimeOptions | None = None,
) -> ExpungeInfo:
    """Redact rows of a journal of a stopped store, and rewrite its file without what was deleted.

    The folder must have room for a second file of the store's size.

    Args:
        folder: The folder of the store.
        encryption: Has the key of a store that is encrypted.
        secrets: The folders in which the store's secret may be.
        journal: The journal's name.
        index: A shared index that has rows of the same type, which go instead of being redacted.
        of: The type of both.
        about: The actor whose records say what is to be redacted; they go when that is done.
        says: The type of those records.
        redact: Returns what a row may still say; None: it stays as it is.
        options: Limits of the store.

    Raises:
        StoreOwnedError: a process owns the folder; stop it first.
        StoreKeyError: the store is encrypted with another key; nothing was changed.
        StoreDamagedError: the store is damaged; nothing was changed.
        StorageFullError: there is no room for the new file; what is there is gone on with the next time.
        StoreError: there is no store in the folder, or its secret is not here.
    """
    limits = options if options is not None else RuntimeOptions()
    with owned(folder, encryption) as (owner, _):
        data = owner.folder / DATA_FILE
        before = data.stat().st_size
        store = Store(owner.folder, encryption=encryption, max_size=limits.max_size, min_free=limits.min_free)
        with closing(store):
            keys = JournalKeys(journal, find_secret(secrets, store.id, store.secret_mark))
            known = [record for _, record in _records(store, about, says)]

            def judge(row: T) -> T | None:
                return redact(row, known)

            redacted = _commit(store, _redactions(store, keys, of, judge))
            _commit(store, _deletions(store, index, of, judge))
            _commit(store, ((ACTORS, key, None) for key, _ in _records(store, about, says)))
            unlock = store.unlock
        _rewrite(owner, unlock)
        remove_left_over(owner.folder)
        owner.mark_clean()
        return ExpungeInfo(owner.folder, before, data.stat().st_size, redacted)


def _commit(store: Store, ops: Iterator[Op]) -> int:
    """Commit in batches, the last of which is whole; return how many there were."""
    done = 0
    batch: list[Op] = []
    for op in [*ops]:  # what is read is not what is being written
        batch.append(op)
        if len(batch) == _BATCH:
            done += _write(store, batch)
            batch = []
    return done + _write(store, batch)


def _write(store: Store, batch: list[Op]) -> int:
    if batch:
        work = WriteBatch(None, batch, reserve=True)
        store.commit([work])
        if work.error is not None:
            raise work.error
    return len(batch)


def _redactions(
    store: Store, keys: JournalKeys, of: type[T], redact: Callable[[T], T | None]
) -> Iterator[Op]:
    with store.snapshot() as snapshot:
        before = start_of(keys, snapshot).link
        for number, record in scan(snapshot, keys.name):
            if number == STRANGE:
                continue
            row = decoded(number, record, of)
            kept = redact(row.value)
            if kept is not None and kept != row.value:
                redacted = keys.redacted(before, number, record, kept)
                yield INDEXES, keys.prefix + number.to_bytes(NUMBER_BYTES), redacted
            before = record[:LINK_BYTES]


def _deletions(store: Store, index: str, of: type[T], redact: Callable[[T], T | None]) -> Iterator[Op]:
    for key, payload in store.scan(INDEXES, lmdb_keys.index_prefix(index)):
        if redact(lmdb_keys.decode(lmdb_keys.decode(payload, lmdb_keys.RowRecord).value, of)) is not None:
            yield INDEXES, key, None
    for prefix in _KEPT:
        for key in store.keys(INDEXES, prefix):
            yield INDEXES, key, None


def _records(store: Store, address: Address, of: type[P]) -> Iterator[tuple[bytes, P]]:
    prefix = lmdb_keys.prefix_of(address, store.blinder) + lmdb_keys.OWN
    for key, payload in store.scan(ACTORS, prefix):
        record = payload if store.blinder is None else strip_plain_key(payload)
        yield key, lmdb_keys.decode(record, of)


def _rewrite(owner: FolderLock, unlock: bytes | None) -> None:
    """Put a file with the same rows, checked to the end, in the place of the store's, in one step."""
    data, new = owner.folder / DATA_FILE, owner.folder / REWRITTEN
    what = f"{data} cannot be rewritten"
    with written(what), temporary(new):
        inspect_file(data)
        try:
            _copy_rows(data, new)
        except lmdb.Error as error:
            raise store_error(error, what) from error
        inspect_file(new, name="the rewritten store", records=True, unlock=unlock)
        sync_file(new)
        # It describes readers of the old file; LMDB makes another.
        (owner.folder / LMDB_LOCK_FILE).unlink(missing_ok=True)
        new.replace(data)
    sync_folder(owner.folder)


def _copy_rows(data: Path, new: Path) -> None:
    """Write all rows of a store's file, as they are, into an empty one."""
    with (
        lmdb.open(os.fspath(data), subdir=False, readonly=True, lock=False, max_dbs=len(TABLES)) as old,
        lmdb.open(
            os.fspath(new),
            subdir=False,
            lock=False,
            sync=False,
            max_dbs=len(TABLES),
            map_size=2 * data.stat().st_size + MIN_SIZE,
        ) as target,
        old.begin() as source,
    ):
        with target.begin(write=True) as transaction, source.cursor() as names:
            for key, value in names:
                if key not in TABLES:
                    transaction.put(key, value)
        for name in TABLES:
            table = target.open_db(name)
            with source.cursor(old.open_db(name, source, create=False)) as cursor:
                rows = iter(cursor)
                while batch := list(islice(rows, _BATCH)):
                    with target.begin(write=True) as transaction, transaction.cursor(table) as writing:
                        writing.putmulti(batch, append=True)
