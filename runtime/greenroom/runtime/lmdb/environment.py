"""Open the LMDB environment of a store, and translate LMDB's errors."""

from __future__ import annotations

import errno
import logging
import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb

from greenroom.runtime.base.errors import StorageFullError, StoreDamagedError, StoreError, StoreTooNewError
from greenroom.runtime.lmdb import files
from greenroom.runtime.lmdb.write_batch import PAGE

TABLES: Final = (b"actors", b"indexes", b"meta")
ACTORS: Final = 0
"""The table of actors' records."""

INDEXES: Final = 1
"""The table of the rows of shared indexes."""

META: Final = 2
"""The table of the runtime's records about the whole store."""

RECENT_TABLE: Final = b"recent"
"""The table of changes that are not in their tables yet; see `lmdb.recent`."""

FORMAT_VERSION: Final = 4
"""The store format: 2 added encryption, 3 prefixes in the ids of chunks, 4 the table of recent rows."""
# In LMDB's unnamed table, unsealed, because they are read before any codec is known.
# A file that replaces a store keeps IDENTITY_KEYS.
FORMAT_KEY: Final = b"greenroom.format"
FORMER_KEY: Final = b"greenroom.former"
"""The format before this program changed it; see `FormerFormat`. A downgrade removes it."""
SEAL_KEY: Final = b"greenroom.seal"
STORE_KEY: Final = b"greenroom.store"
SECRET_KEY: Final = b"greenroom.secret"
FIRST_SECRET_KEY: Final = b"greenroom.secret.first"
"""The mark of the secret before its first change; missing if it never changed."""
IDENTITY_KEYS: Final = (STORE_KEY, SECRET_KEY, FIRST_SECRET_KEY)
DOWNGRADED_FORMAT: Final = 3
"""The format that `write_downgraded_format` writes."""
_DOWNGRADED_KEYS: Final = frozenset({*TABLES, FORMAT_KEY, SEAL_KEY, *IDENTITY_KEYS})
_FORMER: Final = re.compile(rb"([0-9]{1,9}) ([0-9]{1,11})( reported)?")

MIN_SIZE: Final = 256 * PAGE
MAX_READERS: Final = 4096
LOCK_BYTES: Final = MAX_READERS * 64 + 4096  # a cache line for each reader, and the header
REMEDY: Final = (
    "see what is damaged with `greenroom verify`, then bring back a backup with `greenroom restore FILE`, "
    "or save what is sound with `greenroom repair FILE`"
)
logger = logging.getLogger(__name__)


def open_environment(folder: Path, *, max_size: int, sync: bool) -> lmdb.Environment:
    """Open ``greenroom.mdb`` in ``folder`` for writing; a new one is made durable.

    A store of an older format keeps that until `open_recent`, so one that is refused stays as it is.
    """
    path = folder / files.DATA_FILE
    lock = folder / files.LMDB_LOCK_FILE
    new = not os.path.lexists(path)
    if new:
        files.create_file(path)
    elif path.is_symlink():
        raise StoreError(
            f"{path} is a link, so the lock of this folder would not protect it; put the file itself there"
        )
    if not lock.exists():
        # LMDB maps the file, so write it in full: on a full disk a hole in it would crash the process.
        files.create_file(lock, bytes(LOCK_BYTES))
    environment = lmdb.open(
        os.fspath(path),
        subdir=False,
        map_size=max_size - max_size % PAGE,
        mode=files.FILE_MODE,
        sync=sync,
        metasync=sync,
        max_dbs=len(TABLES) + 1,
        max_readers=MAX_READERS,
        max_spare_txns=1,
    )
    try:
        # Change the mode by name: opening and closing the lock file would release LMDB's locks on it.
        lock.chmod(files.FILE_MODE)
        path.chmod(files.FILE_MODE)
        environment.reader_check()
        with environment.begin(write=True) as transaction:
            if check_format(transaction, path) is None:
                write_format(transaction)
            if transaction.get(STORE_KEY) is None:
                transaction.put(STORE_KEY, secrets.token_hex(8).encode())
        for name in TABLES:
            environment.open_db(name)
        if new:
            files.sync_file(path)
            files.sync_folder(folder)
            files.sync_folder(folder.parent)
    except BaseException:
        environment.close()
        raise
    return environment


def open_recent(environment: lmdb.Environment, path: Path) -> Any:
    """Open the table of recent rows; change an older format, which has none."""
    with environment.begin(write=True) as transaction:
        found = check_format(transaction, path)
        if found is not None and found < FORMAT_VERSION:
            _change_format(transaction, path, found)
    return environment.open_db(RECENT_TABLE)


class Identity(NamedTuple):
    """The identity of a store, readable without a codec: its id and its secret's mark."""

    store_id: str
    secret_mark: str


def identity_of(path: Path) -> Identity:
    """Return the identity of a store whose file is sound and not open anywhere."""
    room = path.stat().st_size + MIN_SIZE
    try:
        with (
            lmdb.open(
                os.fspath(path), subdir=False, readonly=True, lock=False, max_dbs=0, map_size=room
            ) as environment,
            environment.begin() as transaction,
        ):
            store_id, mark = (transaction.get(key) or b"" for key in (STORE_KEY, SECRET_KEY))
    except lmdb.Error as error:
        raise store_error(error, f"{path} cannot be read") from error
    return Identity(store_id.decode(), mark.decode())


def forget_unneeded_secret(path: Path, needing: Iterable[str]) -> bool:
    """Forget a closed store's secret if no record of these kinds needs it.

    Returns:
        Whether it was forgotten; the next start then makes another one.
    """
    room = path.stat().st_size + MIN_SIZE
    try:
        with lmdb.open(
            os.fspath(path), subdir=False, lock=False, max_dbs=len(TABLES) + 1, map_size=room
        ) as environment:
            actors = environment.open_db(TABLES[ACTORS], create=False)
            recent = environment.open_db(RECENT_TABLE)
            with environment.begin(write=True) as transaction:
                if transaction.stat(recent)["entries"]:  # they may be such records
                    return False
                for kind in needing:
                    prefix = kind.encode() + b"\0"
                    with transaction.cursor(actors) as cursor:
                        if cursor.set_range(prefix) and cursor.key().startswith(prefix):
                            return False
                transaction.delete(SECRET_KEY)
                transaction.delete(FIRST_SECRET_KEY)
    except lmdb.Error as error:
        raise store_error(error, f"{path} cannot be read or written") from error
    return True


class FormerFormat(NamedTuple):
    """The format before the last change, when it changed, and whether that was reported."""

    version: int
    changed_at: int
    is_reported: bool = False

    @classmethod
    def parse(cls, found: bytes | None) -> FormerFormat | None:
        """Return what a record says; None if there is none, or a damaged one."""
        parts = _FORMER.fullmatch(found or b"")
        return None if parts is None else cls(int(parts[1]), int(parts[2]), parts[3] is not None)

    def put(self, transaction: lmdb.Transaction[bytes]) -> None:
        """Store the record."""
        reported = b" reported" if self.is_reported else b""
        transaction.put(FORMER_KEY, b"%d %d%b" % (self.version, self.changed_at, reported))


def way_back(former: int) -> str:
    """Return the end of a sentence about a changed format: how to go back."""
    if former < DOWNGRADED_FORMAT:
        return "which earlier programs refuse; to go back, `greenroom restore` a backup of before"
    return (
        "which earlier programs refuse; to go back, end what uses it and run `greenroom downgrade`, then "
        "start the earlier program"
    )


def _change_format(transaction: lmdb.Transaction[bytes], path: Path, former: int) -> None:
    """Change an older store's format, whose rows stay as they are; tell it before."""
    becomes = f"{path} has store format {former} and becomes format {FORMAT_VERSION}"
    logger.warning("%s, %s", becomes, way_back(former))
    FormerFormat(former, int(time.time())).put(transaction)
    write_format(transaction)


def format_of(path: Path) -> int | None:
    """Return the format of a sound store that is not open, as `check_format`."""
    room = path.stat().st_size + MIN_SIZE
    try:
        with (
            lmdb.open(
                os.fspath(path), subdir=False, readonly=True, lock=False, max_dbs=0, map_size=room
            ) as environment,
            environment.begin() as transaction,
        ):
            return check_format(transaction, path)
    except lmdb.Error as error:
        raise store_error(error, f"{path} cannot be read") from error


def write_downgraded_format(path: Path) -> None:
    """Write the format before recent rows into a closed store's file, in one transaction.

    Raises:
        StoreError: something is in it that this format does not have; nothing was changed.
    """
    room = path.stat().st_size + MIN_SIZE
    try:
        with lmdb.open(
            os.fspath(path), subdir=False, lock=False, max_dbs=len(TABLES) + 1, map_size=room
        ) as environment:
            recent = environment.open_db(RECENT_TABLE)
            with environment.begin(write=True) as transaction:
                names = {key for key, _ in transaction.cursor()} - {RECENT_TABLE, FORMER_KEY}
                if more := sorted(names - _DOWNGRADED_KEYS):
                    raise StoreError(
                        f"{path} has {more[0].decode(errors='replace')!r}, which store format "
                        f"{DOWNGRADED_FORMAT} does not have; nothing was changed: to go back, `greenroom "
                        "restore` a backup of before"
                    )
                if transaction.stat(recent)["entries"]:
                    raise StorageFullError(
                        f"{path} has no room for its newest changes at the place where format "
                        f"{DOWNGRADED_FORMAT} has them; make room on its disk, and try again"
                    )
                transaction.drop(recent, delete=True)
                transaction.delete(FORMER_KEY)
                write_format(transaction, DOWNGRADED_FORMAT)
    except lmdb.Error as error:
        raise store_error(error, f"{path} cannot be written") from error


def put_secret_mark(transaction: lmdb.Transaction[bytes], mark: str) -> str:
    """Store the mark of the store's secret; return the mark of the first secret."""
    before, first = (transaction.get(key) or b"" for key in (SECRET_KEY, FIRST_SECRET_KEY))
    if not first:
        first = before or mark.encode()
        if first != mark.encode():
            transaction.put(FIRST_SECRET_KEY, first)
    transaction.put(SECRET_KEY, mark.encode())
    return first.decode()


def write_format(transaction: lmdb.Transaction[bytes], version: int | None = None) -> None:
    """Write the format's version; even an unchanged one makes LMDB count the transaction."""
    transaction.put(FORMAT_KEY, b"%d" % (FORMAT_VERSION if version is None else version))


def check_format(transaction: lmdb.Transaction[bytes], path: Path) -> int | None:
    """Return the store's format version, as `parse_format`; None for an empty file."""
    found = transaction.get(FORMAT_KEY)
    return None if found is None and transaction.stat()["entries"] == 0 else parse_format(found, path)


def parse_format(found: bytes | None, path: Path) -> int:
    """Return the version in a format record; raise an error if it cannot be read."""
    if found is None or not found.isdigit():
        raise StoreDamagedError(f"{path} is no Greenroom store, or its format record is damaged; {REMEDY}")
    if int(found) > FORMAT_VERSION:
        raise StoreTooNewError(
            f"{path} has store format {int(found)} and this program reads up to {FORMAT_VERSION}; "
            "upgrade Greenroom (nothing was changed)"
        )
    return int(found)


def store_error(error: lmdb.Error | OSError, what: str) -> StoreError:
    """Return ``error`` as a `StoreError` about ``what``."""
    if isinstance(error, OSError):
        return files.folder_error(error, what)
    sentence = f"{what}: {error}"
    if error.code == errno.ENOMEM:
        sentence += "; a smaller --max-size reserves less address space"
    if error.code in files.NO_ROOM or isinstance(error, lmdb.MapFullError):
        return StorageFullError(sentence)
    if isinstance(error, (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError)):
        return StoreDamagedError(f"{sentence}; {REMEDY}")
    return StoreError(sentence)


def is_out_of_space(error: lmdb.Error, folder: Path, size: int) -> bool:
    """Return whether a transaction of about ``size`` bytes failed for lack of space.

    LMDB also reports EIO if the disk became full during a write. So after an EIO a temporary file probes the
    disk.
    """
    if isinstance(error, (lmdb.MapFullError, lmdb.TxnFullError)) or error.code in files.NO_ROOM:
        return True
    if error.code != errno.EIO:
        return False
    left = MIN_SIZE + 2 * size
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            while left > 0:
                left -= probe.write(bytes(min(left, MIN_SIZE)))
    except OSError as failure:
        return failure.errno in files.NO_ROOM
    return False
