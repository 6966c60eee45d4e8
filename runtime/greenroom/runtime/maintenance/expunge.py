"""Expunge deleted data from a store's file, and redact rows of a journal.

LMDB does not clear the pages of deleted data, and a deleted key may still separate two pages of its tree,
even in a compact copy. So the remaining rows are written one by one into a new file, which replaces the old
one. Before that, rows of a journal are redacted (`JournalKeys.redact`), which needs the store's secret. Some
records do not show which person they concern: replies to idempotent requests, and dead letters. These are
deleted, too.

Each step can be repeated: after an interruption the next call does the rest. All of this blocks, and holds
the owner's lock until the end.
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
from greenroom.runtime.base.errors import StorageFullError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.journal import chain
from greenroom.runtime.journal.secrets import find_secret
from greenroom.runtime.lmdb import keys as lmdb_keys
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import (
    ACTORS,
    INDEXES,
    MIN_SIZE,
    RECENT_TABLE,
    TABLES,
    store_error,
)
from greenroom.runtime.lmdb.files import DATA_FILE, replace_store, sync_file
from greenroom.runtime.lmdb.key_blinding import strip_plain_key
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.lmdb.write_batch import Op
from greenroom.runtime.maintenance.backup import translate_errors
from greenroom.runtime.maintenance.reencrypt import own_store
from greenroom.runtime.maintenance.temporary_copies import remove_left_over, temporary
from greenroom.runtime.store.integrity import damaged_records, inspect_file
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
    """A store whose file no longer contains deleted data.

    Attributes:
        before: The bytes of its file before.
        after: The bytes of its file now.
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
    """Redact rows of a stopped store's journal, and rewrite its file without deleted data.

    The folder must have room for a second file of the store's size.

    Args:
        folder: The folder of the store.
        encryption: Provides the key of an encrypted store.
        secrets: The folders in which the store's secret may be.
        journal: The journal's name.
        index: A shared index with rows of the same type, which are deleted instead of redacted.
        of: The type of the journal's and the index's rows.
        about: The actor whose records say what to redact; these records are deleted afterwards.
        says: The type of those records.
        redact: Returns the redacted row; None to keep it as it is.
        options: Limits of the store.

    Raises:
        StorageFullError: there is no room for the new file; the next call continues.
        StoreError: see its subclasses.
    """
    limits = options if options is not None else RuntimeOptions()
    with own_store(folder, encryption) as (owner, check):
        data = owner.folder / DATA_FILE
        if check.damaged:
            raise damaged_records(str(data), check.damaged)
        before = data.stat().st_size
        store = Store(owner.folder, encryption=encryption, max_size=limits.max_size, min_free=limits.min_free)
        with closing(store):
            keys = chain.JournalKeys(journal, find_secret(secrets, store.id, store.secret_mark))
            known = [record for _, record in _records(store, about, says)]

            def judge(row: T) -> T | None:
                return redact(row, known)

            redacted = _commit(store, _redactions(store, keys, of, judge))
            _commit(store, _deletions(store, index, of, judge))
            _commit(store, ((ACTORS, key, None) for key, _ in _records(store, about, says)))
            unlock = store.unlock
        _rewrite(owner, unlock)
        remove_left_over(owner.folder, older=True)
        owner.mark_clean()
        return ExpungeInfo(owner.folder, before, data.stat().st_size, redacted)


def _commit(store: Store, ops: Iterator[Op]) -> int:
    """Commit in batches; return the number of changes."""
    changes = [*ops]  # read all before writing
    for first in range(0, len(changes), _BATCH):
        store.write(changes[first : first + _BATCH])
    return len(changes)


def _redactions(
    store: Store, keys: chain.JournalKeys, of: type[T], redact: Callable[[T], T | None]
) -> Iterator[Op]:
    with store.snapshot() as snapshot:
        before = chain.start_of(keys, snapshot).link
        for number, record in chain.scan(snapshot, keys.name):
            if number == chain.STRANGE:
                continue
            row = chain.decode_row(number, record, of)
            kept = redact(row.value)
            if kept is not None and kept != row.value:
                redacted = keys.redact(before, number, record, kept)
                yield INDEXES, keys.prefix + number.to_bytes(chain.NUMBER_BYTES), redacted
            before = record[: chain.LINK_BYTES]


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
    """Replace the store's file by a checked file with the same rows, in one step."""
    data = owner.folder / DATA_FILE
    what = f"{data} cannot be rewritten"
    with translate_errors(what), temporary(owner.folder) as (new, _):
        inspect_file(data)
        try:
            _copy_rows(data, new)
        except lmdb.Error as error:
            raise store_error(error, what) from error
        inspect_file(new, name="the rewritten store", records=True, unlock=unlock)
        sync_file(new)
        replace_store(new, owner.folder)


def _copy_rows(data: Path, new: Path) -> None:
    """Copy all rows of a store's file into an empty file."""
    with (
        lmdb.open(os.fspath(data), subdir=False, readonly=True, lock=False, max_dbs=len(TABLES) + 1) as old,
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
                if key not in {*TABLES, RECENT_TABLE}:
                    transaction.put(key, value)
        if source.get(RECENT_TABLE) is not None:  # the store was settled, if there was room
            recent = old.open_db(RECENT_TABLE, source, create=False)
            if source.stat(recent)["entries"]:
                raise StorageFullError(
                    f"there is no room to write the newest changes of {data} into their tables"
                )
        for name in TABLES:
            table = target.open_db(name)
            with source.cursor(old.open_db(name, source, create=False)) as cursor:
                rows = iter(cursor)
                while batch := list(islice(rows, _BATCH)):
                    with target.begin(write=True) as transaction, transaction.cursor(table) as writing:
                        writing.putmulti(batch, append=True)
