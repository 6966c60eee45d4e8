"""Copies of a store: backup, verify and restore, for its owner or on a folder that nobody owns.

No copy is trusted before a child has read it to the end, and no file appears under its
final name before it is whole and on the disk. All of this blocks: call it from a thread.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from greenroom.runtime.base.errors import StorageFullError, StoreError
from greenroom.runtime.journal.checkpoints import mark_restored
from greenroom.runtime.journal.revocations import has_revocation_log
from greenroom.runtime.journal.secrets import is_secret_at
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import identity_of
from greenroom.runtime.lmdb.files import (
    DATA_FILE,
    FILE_MODE,
    LMDB_LOCK_FILE,
    folder_error,
    sync_file,
    sync_folder,
)
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity import TableReport as TableReport
from greenroom.runtime.store.integrity import inspect_file
from greenroom.runtime.store.store import Store

# Fixed names, so that the next attempt overwrites what a crash leaves behind.
_VERIFYING: Final = DATA_FILE + ".verifying"
_RESTORING: Final = DATA_FILE + ".restoring"
_KEPT: Final = DATA_FILE + ".before-restore"
REWRITTEN: Final = DATA_FILE + ".new"
"""The file that `expunge` writes, until it takes the store's place."""
NEW_STORE: Final = "encrypting"
"""The folder within the store's own in which the new file of `encrypt` grows."""
LEFT_OVER: Final = (_VERIFYING, _RESTORING, REWRITTEN, NEW_STORE)
"""Copies that are there while something goes on, and afterwards if it was killed."""
_one_verify: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """A finished backup.

    Attributes:
        path: The file.
        file_bytes: Its length.
        tables: What is in it.
    """

    path: Path
    file_bytes: int
    tables: tuple[TableReport, ...]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """A store that was found sound, records included.

    Attributes:
        folder: The folder of the store.
        file_bytes: The length of its file.
        tables: What is in it.
    """

    folder: Path
    file_bytes: int
    tables: tuple[TableReport, ...]


@dataclass(frozen=True, slots=True)
class RestoreInfo:
    """A store that was brought back.

    Attributes:
        folder: The folder of the store.
        kept: Where the file that was there before is kept, None if there was none. `restore` takes it, too.
        tables: What is in the store now.
        has_secret: Whether its secret is here. If not, the next start makes another one, unless the file is
            brought here before; API keys and passports made with the old one end then.
        has_list: Whether there is the list of what has ended since the backup. If not, that comes back.
    """

    folder: Path
    kept: Path | None
    tables: tuple[TableReport, ...]
    has_secret: bool = True
    has_list: bool = True


def backup(
    source: Store | Path,
    destination: Path,
    *,
    encryption: Encryption | None = None,
    poll: Callable[[], None] = lambda: None,
) -> BackupInfo:
    """Write the store as of now into a new file that `restore` takes; mode 0600.

    Commits go on meanwhile. The copy is compact (nothing deleted is in it) and checked, records
    included. While it is made, it needs room for two copies beside the destination.

    Args:
        source: The open store of this process, or the folder of one that nobody owns.
        destination: A file that does not exist, in a folder that does.
        encryption: Has the key of an encrypted store that is not open.
        poll: Called several times a second; what it raises ends the work and leaves from here.

    Raises:
        StoreError: the destination exists or cannot be written; there is no store in the folder.
        StoreOwnedError: another process owns the folder.
        StorageFullError: there is no room for the copy.
        StoreDamagedError: the store is damaged; no backup was made.
        StoreKeyError: it is encrypted with another key; no backup was made.
    """
    destination = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a link
    if os.path.lexists(destination):
        raise StoreError(f"{destination} exists and is not overwritten; name a new file")
    part = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}")
    with written(f"the backup {destination} cannot be written"), temporary(part):
        with _sound_source(source, part.with_name(part.name + ".raw")) as (raw, name):
            inspect_file(raw, name=name, compact=part, poll=poll)
        unlock = _unlock(source, encryption)
        tables = inspect_file(part, name=f"the backup of {name}", records=True, unlock=unlock, poll=poll)
        sync_file(part)
        publish(part, destination)
        return BackupInfo(path=destination, file_bytes=destination.stat().st_size, tables=tables)


def verify(
    source: Store | Path, *, encryption: Encryption | None = None, poll: Callable[[], None] = lambda: None
) -> VerifyReport:
    """Check the structure and every record of a store.

    An open store is copied first, since a file that is being written looks damaged; the folder
    must have room for the copy.

    Args:
        source: The open store of this process, or the folder of one that nobody owns.
        encryption: Has the key of an encrypted store that is not open.
        poll: Called several times a second; what it raises ends the work and leaves from here.

    Raises:
        StoreDamagedError: naming what is wrong and the remedy.
        StoreKeyError: it is encrypted with another key.
        StoreError: there is no store in the folder, or it could not be read.
        StoreOwnedError: another process owns the folder.
        StorageFullError: there is no room for the copy.
    """
    folder = source.folder if isinstance(source, Store) else source
    if isinstance(source, Store):
        room_for_copy(source)
    with (
        _one_verify,
        written(f"{folder} cannot be checked"),
        _sound_source(source, folder / _VERIFYING) as (path, name),
    ):
        unlock = _unlock(source, encryption)
        tables = inspect_file(path, name=name, records=True, unlock=unlock, poll=poll)
        return VerifyReport(folder=folder, file_bytes=path.stat().st_size, tables=tables)


def restore(
    source: Path, folder: Path, *, encryption: Encryption | None = None, secrets: Path | None = None
) -> RestoreInfo:
    """Put a backup in the place of a folder's store, in one step; the store that was there is kept beside it.

    Args:
        source: A file that `backup` made.
        folder: The folder of the store; made when missing.
        encryption: Has the key of a backup that is encrypted.
        secrets: The folder of the store's secret, where what is known of its journals is kept, too: it
            then says that they end earlier on purpose.

    Raises:
        StoreOwnedError: a process owns the folder; stop it first.
        StoreDamagedError: the backup is damaged; nothing was changed.
        StoreTooNewError: a newer program made the backup; nothing was changed.
        StoreKeyError: it is encrypted with another key; nothing was changed.
        StorageFullError: there is no room for the copy; nothing was changed.
        StoreError: the backup cannot be read, or the folder cannot hold a store.
    """
    if not source.is_file():
        raise StoreError(f"there is no backup file {source}")
    with FolderLock(folder) as owner, written(f"{source} cannot be restored to {folder}"):
        data = owner.folder / DATA_FILE
        new = owner.folder / _RESTORING
        with temporary(new):
            inspect_file(source, name=f"the backup {source}", compact=new)
            unlock = None if encryption is None else encryption.key()
            tables = inspect_file(new, name=f"the backup {source}", records=True, unlock=unlock)
            places = [owner.folder] if secrets is None else [secrets, owner.folder]
            identity = identity_of(new)
            has_secret = not identity.secret_mark or is_secret_at(places, *identity)
            if not has_secret:
                identity_of(new, forget_mark=True)
            sync_file(new)
            kept = _keep(data)
            # It describes readers of the old file; LMDB makes another.
            (owner.folder / LMDB_LOCK_FILE).unlink(missing_ok=True)
            new.replace(data)
        sync_folder(owner.folder)
        mark_restored(places, identity.store_id)
        owner.mark_clean()
        return RestoreInfo(
            folder=owner.folder,
            kept=kept,
            tables=tables,
            has_secret=has_secret,
            has_list=not identity.secret_mark or has_revocation_log(places, identity.store_id),
        )


def room_for_copy(store: Store) -> None:
    """Make sure that the folder of an open store has room for the copy that is checked.

    Raises:
        StorageFullError: it has not.
    """
    statistics = store.statistics()
    if statistics.disk_free - statistics.file_bytes < store.min_free:
        raise StorageFullError(
            f"{store.folder} has no room for the copy that is checked ({statistics.file_bytes} bytes, and "
            f"--min-free keeps {store.min_free}); make room, or stop the server and verify then, which needs "
            "no copy"
        )


def _unlock(source: Store | Path, encryption: Encryption | None) -> bytes | None:
    if isinstance(source, Store):
        return source.unlock
    return None if encryption is None else encryption.key()


@contextmanager
def _sound_source(source: Store | Path, copy: Path) -> Iterator[tuple[Path, str]]:
    """Give a file that nobody writes meanwhile (a raw copy, or the one we own) and its name in sentences."""
    if isinstance(source, Store):
        with temporary(copy) as descriptor:
            source.copy_to(descriptor)
            yield copy, os.fspath(source.folder / DATA_FILE)
    else:
        with FolderLock(source, create=False) as owner:
            data = owner.folder / DATA_FILE
            if not data.exists():
                raise StoreError(f"there is no store in {source}")
            owner.is_unchanged()
            yield data, os.fspath(data)
            owner.mark_clean()


@contextmanager
def temporary(path: Path) -> Iterator[int]:
    """Create an empty file for us only, and remove it at the end unless it has got another name."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    try:
        os.fchmod(descriptor, FILE_MODE)
        yield descriptor
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def publish(part: Path, destination: Path) -> None:
    """Give the file its final name without ever replacing another."""
    try:
        destination.hardlink_to(part)
    except FileExistsError:
        raise StoreError(f"{destination} exists and is not overwritten; name a new file") from None
    except OSError:  # a file system without hard links, such as that of a USB stick
        part.rename(destination)
    sync_folder(destination.parent)


def remove_left_over(folder: Path) -> None:
    """Remove what commands that were killed have left of older states of a folder's store."""
    for path in (folder / name for name in LEFT_OVER):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def older_stores(folder: Path) -> tuple[Path, ...]:
    """Return the files of older stores that `restore` has kept in a folder."""
    return tuple(sorted(folder.glob(_KEPT + "*")))


def _keep(data: Path) -> Path | None:
    """Give the file a second name that no other has, so that it outlives its replacement."""
    if not data.exists():
        return None
    for number in count(1):
        kept = data.with_name(_KEPT if number == 1 else f"{_KEPT}-{number}")
        try:
            kept.hardlink_to(data)
        except FileExistsError:
            continue
        break
    return kept


@contextmanager
def written(what: str) -> Iterator[None]:
    """Raise what goes wrong with files as a `StoreError` that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise folder_error(error, what) from error
