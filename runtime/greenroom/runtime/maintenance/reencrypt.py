"""Encrypt a store, change its key, or give it another secret.

A store in the clear is rewritten into a new file, which replaces the old one when it is complete, on the disk
and checked. The next call continues an interrupted rewrite if the store has not changed; the new file is
never in the clear. The old file is unlinked; its blocks on the disk, and older copies, are not erased.

All of this blocks, and holds the owner's lock until the end.
"""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from greenroom.runtime.actor.actor import Actor, kinds_by_name
from greenroom.runtime.base.errors import ConfigurationError, StoreDamagedError, StoreError
from greenroom.runtime.base.options import RuntimeOptions
from greenroom.runtime.journal.secrets import Secret, keep_aside, make_secret
from greenroom.runtime.lmdb import keys
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import (
    ACTORS,
    INDEXES,
    META,
    STORE_KEY,
    TABLES,
    open_environment,
    put_secret_mark,
    store_error,
)
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error, replace_store, sync_file
from greenroom.runtime.lmdb.key_blinding import KeyBlinder, Names, with_plain_key
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.lmdb.write_batch import Op
from greenroom.runtime.maintenance.backup import older_stores
from greenroom.runtime.maintenance.temporary_copies import NEW_STORE, remove_left_over
from greenroom.runtime.store.integrity import TableReport, check_store, damaged_records, inspect_file
from greenroom.runtime.store.record_damage import StoreCheck
from greenroom.runtime.store.store import Store

_PROGRESS: Final = b"rewriting"
_BATCH: Final = 2_000
_BATCH_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class EncryptInfo:
    """An encrypted store, and older stores beside it that are still in the clear.

    ``tables`` is empty if the store was encrypted before.
    """

    folder: Path
    tables: tuple[TableReport, ...]
    in_the_clear: tuple[Path, ...]


class _Progress(msgspec.Struct, array_like=True):
    """The progress of a rewrite: the source's state, the table, and the last key."""

    state: int
    table: int = 0
    after: bytes = b""


def encrypt(
    folder: Path,
    encryption: Encryption,
    *,
    actors: Iterable[type[Actor]],
    indexes: Iterable[keys.Index],
    options: RuntimeOptions | None = None,
) -> EncryptInfo:
    """Encrypt a store in the clear by rewriting it; leave an encrypted store unchanged.

    This also removes copies in the clear that killed commands left beside the store. The folder must have
    room for a second file. Pass all actor classes and indexes that have records or rows in the store.

    Raises:
        ConfigurationError: the store has an unknown actor or index; nothing was changed.
        StorageFullError: there is no room for the new file; the next call continues.
        StoreError: see its subclasses.
    """
    limits = options if options is not None else RuntimeOptions()
    names = _Names(
        {kind: actor.names for kind, actor in kinds_by_name(tuple(actors)).items()},
        keys.index_table(indexes),
    )
    key = encryption.key()
    wanted = Encryption(lambda: key, required=True)
    with own_store(folder, encryption) as (owner, check):
        if check.damaged:
            raise damaged_records(str(owner.folder / DATA_FILE), check.damaged)
        place = owner.folder / NEW_STORE
        with closing(_open(owner.folder, Encryption(wanted.key), limits)) as old:
            done = old.blinder is not None
            if not done:
                _rewrite(old, place, wanted, names, limits)
        tables: tuple[TableReport, ...] = ()
        if not done:
            tables = _exchange(owner, place, wanted)
        remove_left_over(owner.folder, older=True)
        owner.mark_clean(is_checked=check.is_whole or not done)
        return EncryptInfo(owner.folder, tables, older_stores(owner.folder))


def rekey(folder: Path, encryption: Encryption, new: Encryption) -> Path:
    """Wrap the data key of an encrypted store with another key, without rewriting records.

    The file is read once, to find and overwrite the old wrapped key. Older backups still need the old key.

    Raises:
        StoreError: see its subclasses.
    """
    with own_store(folder, encryption) as (owner, check):
        with closing(Store(owner.folder, encryption=encryption)) as store:
            before = store.rewrap(new.key())
        _overwrite(owner.folder / DATA_FILE, before)
        owner.mark_clean(is_checked=check.is_whole, is_damaged=bool(check.damaged))
        return owner.folder


def _overwrite(path: Path, remains: bytes) -> None:
    """Overwrite bytes with zeros in the free pages of a stopped store's file."""
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
            while (at := content.find(remains)) >= 0:
                content[at : at + len(remains)] = bytes(len(remains))
            content.flush()
    except OSError as error:
        raise folder_error(
            error, f"{path} opens with the new key, but still has what the old one opens"
        ) from error


@contextmanager
def own_store(folder: Path, encryption: Encryption | None) -> Iterator[tuple[FolderLock, StoreCheck]]:
    """Own a folder with a store; yield the lock and the check of the store."""
    with FolderLock(folder, create=False) as owner:
        owner.store_file()
        remove_left_over(owner.folder)
        yield owner, check_store(owner, encryption)


def _open(folder: Path, encryption: Encryption, limits: RuntimeOptions) -> Store:
    return Store(folder, encryption=encryption, max_size=limits.max_size, min_free=limits.min_free)


# -- from one file to another --------------------------------------------------------


def _rewrite(old: Store, place: Path, encryption: Encryption, names: _Names, limits: RuntimeOptions) -> None:
    """Write the remaining rows of the old store into the new one."""
    new, progress = _resume_or_begin(old, place, encryption, limits)
    with closing(new):
        new.take_identity(old)
        assert new.blinder is not None
        for table in range(progress.table, len(TABLES)):
            after = progress.after if table == progress.table else b""
            for batch, last in _batches(old, table, after):
                ops: list[Op] = [
                    (table, *names.hide(new.blinder, table, key, payload)) for key, payload in batch
                ]
                ops.append((META, _PROGRESS, keys.encode(_Progress(old.state, table, last))))
                new.write(ops)
        new.write([(META, _PROGRESS, None)])
        if new.statistics().rows != old.statistics().rows:
            raise StoreDamagedError(
                f"rewriting {old.folder} came to {new.statistics().rows} rows instead of "
                f"{old.statistics().rows}; it was left as it is: see `greenroom verify`"
            )


def _resume_or_begin(
    old: Store, place: Path, encryption: Encryption, limits: RuntimeOptions
) -> tuple[Store, _Progress]:
    """Return the new store and its progress; resume if the old store has not changed."""
    if place.exists():
        try:
            inspect_file(place / DATA_FILE)  # the system may have crashed since
            new = _open(place, Encryption(encryption.key), limits)
        except StoreError:  # the file is useless: it has another key, is damaged, or was not begun
            pass
        else:
            payload = new.get(META, _PROGRESS) if new.blinder is not None else None
            if payload is not None:
                progress = keys.decode(payload, _Progress)
                if progress.state == old.state:
                    return new, progress
            new.close()
        shutil.rmtree(place)
    new = _open(place, encryption, limits)
    progress = _Progress(old.state)
    new.write([(META, _PROGRESS, keys.encode(progress))])
    return new, progress


def _batches(old: Store, table: int, after: bytes) -> Iterator[tuple[list[tuple[bytes, bytes]], bytes]]:
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for key, payload in old.scan(table, b"", start=after or None):
        if key == after:
            continue
        batch.append((key, payload))
        size += len(key) + len(payload)
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield batch, key
            batch, size = [], 0
    if batch:
        yield batch, batch[-1][0]


def _exchange(owner: FolderLock, place: Path, encryption: Encryption) -> tuple[TableReport, ...]:
    """Check the new file to the end, then replace the old file in one step."""
    new = place / DATA_FILE
    tables = inspect_file(new, name="the rewritten store", records=True, unlock=encryption.key())
    sync_file(new)
    replace_store(new, owner.folder)
    return tables


# -- from one row to another ---------------------------------------------------------


class _Names:
    """Convert rows of a store in the clear to rows of an encrypted store."""

    def __init__(self, kinds: Mapping[str, Names], indexes: Mapping[str, keys.Index]) -> None:
        self._kinds = kinds
        self._indexes = indexes

    def hide(self, blinder: KeyBlinder, table: int, key: bytes, payload: bytes) -> tuple[bytes, bytes]:
        """Return the key and payload of a row in the encrypted store."""
        if table == ACTORS:
            return self._record(blinder, key, payload)
        if table == INDEXES:
            return self._row(blinder, key, payload)
        return key, payload

    def _record(self, blinder: KeyBlinder, key: bytes, payload: bytes) -> tuple[bytes, bytes]:
        end = key.index(0, key.index(0) + 1) + 1
        prefix, letter, own = key[:end], key[end : end + 1], key[end + 1 :]
        kind = prefix[: prefix.index(0)].decode()
        if kind not in self._kinds:
            raise ConfigurationError(
                f"the store has records of {kind!r} actors, which this program does not know, so it cannot "
                "tell names in them; encrypt it with the program that made it"
            )
        place = blinder.prefix(prefix)
        if letter == keys.TIMER_BY_NAME:
            return keys.timer_name_key(place, own.decode(), blinder), _timer(blinder, payload)
        within = place + letter
        hidden = blinder.blind(within, own, self._kinds[kind])
        return within + hidden, with_plain_key(own, hidden, payload)

    def _row(self, blinder: KeyBlinder, key: bytes, payload: bytes) -> tuple[bytes, bytes]:
        if key.startswith(keys.TIMERS):
            return _timer(blinder, key), payload
        if key.startswith((keys.ANSWERS, keys.index_prefix(keys.ANSWER_TIMES))):
            return key[: -keys.TAG_BYTES] + blinder.tag(key[-keys.TAG_BYTES :]), payload
        if key.startswith(b"!"):
            return key, payload  # numbers, times and random bytes
        name = key[: key.index(0)].decode()
        index = self._indexes.get(name)
        if index is None:
            raise ConfigurationError(
                f"the store has rows of an index {name!r}, which this program does not know, so it cannot "
                "tell names in them; encrypt it with the program that made it"
            )
        sort_key = keys.sort_key_of(name, key)
        hidden = blinder.blind(keys.index_prefix(name), sort_key, index.names)
        if hidden != sort_key:
            payload = keys.with_sort_key(payload, sort_key)
        return keys.row_key(name, hidden, blinder.tag(key[-keys.TAG_BYTES :])), payload


def _timer(blinder: KeyBlinder, row: bytes) -> bytes:
    return row[: -keys.TAG_BYTES] + blinder.tag(row[-keys.TAG_BYTES :])


def renew_secret(folder: Path, secrets: Path, *, max_size: int) -> Secret:
    """Create a new secret for a stopped store; keep the old one under its mark.

    Signatures by the old secret become invalid: API keys and passports end, and the audit log up to now can
    only be checked with the old secret.

    Raises:
        StoreError: see its subclasses.
    """
    with FolderLock(folder, create=False) as owner:
        check = check_store(owner)
        try:
            environment = open_environment(owner.folder, max_size=max_size, sync=True)
        except lmdb.Error as error:
            raise store_error(error, f"{owner.folder / DATA_FILE} cannot be opened") from error
        with environment:
            with environment.begin() as transaction:
                store_id = (transaction.get(STORE_KEY) or b"").decode()
            try:
                secret = _replace_secret(secrets, store_id)
            except OSError as error:
                raise folder_error(error, f"the store's secret cannot be made in {secrets}") from error
            try:
                with environment.begin(write=True) as transaction:
                    put_secret_mark(transaction, secret.mark)
            except lmdb.Error as error:
                raise store_error(error, f"{owner.folder / DATA_FILE} cannot be written") from error
        owner.mark_clean(is_checked=check.is_whole, is_damaged=bool(check.damaged))
        return secret


def _replace_secret(secrets: Path, store_id: str) -> Secret:
    path = secrets / f"{store_id}.key"
    with suppress(FileNotFoundError):
        keep_aside(path)
    return make_secret(secrets, store_id)
