"""Back up, verify and restore a store, as its owner or if it has none.

A child reads each copy to the end, and a file gets its final name only when it is complete and on the disk.
All these functions block: call them from a thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from greenroom.runtime.base.errors import StorageFullError, StoreError
from greenroom.runtime.journal.checkpoints import mark_restored
from greenroom.runtime.journal.revocations import has_revocation_log
from greenroom.runtime.journal.secrets import is_secret_at
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import forget_unneeded_secret, identity_of
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error, replace_store, sync_file, sync_folder
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.maintenance.temporary_copies import remove_left_over, temporary
from greenroom.runtime.store.integrity import TableReport as TableReport
from greenroom.runtime.store.integrity import check_store, damaged_records, inspect_file
from greenroom.runtime.store.recent_table import has_recent
from greenroom.runtime.store.record_damage import DamagedRecord, StoreCheck
from greenroom.runtime.store.store import Store

_KEPT: Final = DATA_FILE + ".before-restore"
_one_verify: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """A finished backup; it names records that are damaged in the store, too."""

    path: Path
    file_bytes: int
    tables: tuple[TableReport, ...]
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """A store that was found sound, records included."""

    folder: Path
    file_bytes: int
    tables: tuple[TableReport, ...]


@dataclass(frozen=True, slots=True)
class RestoreInfo:
    """A restored store.

    Attributes:
        kept: The previous file, which `restore` accepts, too; None if there was none.
        has_secret: Whether the store's secret is here.
        needs_secret: Whether the store is refused until its secret is here, or until it is opened with
            ``new_secret``, which ends API keys and passports.
        has_list: Whether the revocation log is here. If not, revoked keys become valid again.
        damaged: The names of records that were damaged in the backup; all others are sound.
    """

    folder: Path
    kept: Path | None
    tables: tuple[TableReport, ...]
    has_secret: bool = True
    needs_secret: bool = False
    has_list: bool = True
    damaged: tuple[str, ...] = ()


def backup(
    source: Store | Path,
    destination: Path,
    *,
    encryption: Encryption | None = None,
    poll: Callable[[], None] = lambda: None,
) -> BackupInfo:
    """Write the store into a new file for `restore`, mode 0600, while commits go on.

    The copy is compact and checked, records included; damaged ones are copied unchanged, and named. There
    must be room for two copies beside the destination.

    Args:
        source: The open store of this process, or the folder of a store without an owner.
        destination: A file that does not exist, in a folder that does.
        encryption: Provides the key of an encrypted store that is not open.
        poll: Called several times a second; its exception ends the backup and is raised here.

    Raises:
        StoreError: see its subclasses; or the destination exists. No backup was made.
    """
    destination = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow a link
    if os.path.lexists(destination):
        raise StoreError(f"{destination} exists and is not overwritten; name a new file")
    place, of = destination.parent, _folder_of(source)
    with (
        translate_errors(f"the backup {destination} cannot be written"),
        temporary(place, of=of) as (part, _),
    ):
        damaged: list[DamagedRecord] = []
        if not isinstance(source, Store):
            _settle(source, encryption)
        with _sound_source(source, place, damaged) as (raw, name):
            inspect_file(raw, name=name, compact=part, poll=poll)
            tables = inspect_file(
                part,
                name=f"the backup of {name}",
                records=True,
                unlock=_unlock(source, encryption),
                poll=poll,
                on_damage=damaged.append,
            )
        sync_file(part)
        publish(part, destination)
        return BackupInfo(destination, destination.stat().st_size, tables, tuple(map(str, damaged)))


def verify(
    source: Store | Path, *, encryption: Encryption | None = None, poll: Callable[[], None] = lambda: None
) -> VerifyReport:
    """Check the structure and every record of a store.

    An open store is copied first, because a file looks damaged while it is written; the folder must have room
    for the copy. The arguments are the same as for `backup`.

    Raises:
        StoreDamagedError: it names the damage, up to 50 damaged records, and the remedy.
        StoreError: see its subclasses.
    """
    folder = _folder_of(source)
    since = 0
    if isinstance(source, Store):
        room_for_copy(source)
        since = source.damage.step
    damaged: list[DamagedRecord] = []
    with (
        _one_verify,
        translate_errors(f"{folder} cannot be checked"),
        _sound_source(source, folder, damaged) as (path, name),
    ):
        unlock = _unlock(source, encryption)
        tables = inspect_file(
            path, name=name, records=True, unlock=unlock, poll=poll, on_damage=damaged.append
        )
        if isinstance(source, Store):
            source.take_check(StoreCheck(is_whole=True, damaged=tuple(damaged)), since)
        if damaged:
            raise damaged_records(name, damaged)
        return VerifyReport(folder=folder, file_bytes=path.stat().st_size, tables=tables)


def restore(
    source: Path,
    folder: Path,
    *,
    encryption: Encryption | None = None,
    secrets: Path | None = None,
    needing: Iterable[str] | None = None,
) -> RestoreInfo:
    """Replace a folder's store by a backup in one step; keep the old store.

    Args:
        source: A file that `backup` made.
        folder: The folder of the store, created if missing.
        encryption: Provides the key of an encrypted backup.
        secrets: The folder of the store's secret and of the journals' checkpoints; the restore is recorded
            there.
        needing: The kinds of actors whose records need the secret. A store without such records forgets a
            secret that is not here. None: every store needs its secret.

    Raises:
        StoreDamagedError: not only records of the backup are damaged; nothing was changed.
        StoreError: see its subclasses.
    """
    if not source.is_file():
        raise StoreError(f"there is no backup file {source}")
    with FolderLock(folder) as owner, translate_errors(f"{source} cannot be restored to {folder}"):
        remove_left_over(owner.folder)
        with temporary(owner.folder) as (new, _):
            inspect_file(source, name=f"the backup {source}", compact=new)
            unlock = None if encryption is None else encryption.key()
            damaged: list[DamagedRecord] = []
            tables = inspect_file(
                new, name=f"the backup {source}", records=True, unlock=unlock, on_damage=damaged.append
            )
            places = [owner.folder] if secrets is None else [secrets, owner.folder]
            identity = identity_of(new)
            has_secret = not identity.secret_mark or is_secret_at(places, *identity)
            needs_secret = not has_secret and (needing is None or not forget_unneeded_secret(new, needing))
            sync_file(new)
            kept = _keep(owner.folder / DATA_FILE)
            replace_store(new, owner.folder)
        mark_restored(places, identity.store_id)
        owner.mark_clean(is_damaged=bool(damaged))
        return RestoreInfo(
            folder=owner.folder,
            kept=kept,
            tables=tables,
            has_secret=has_secret,
            needs_secret=needs_secret,
            has_list=not identity.secret_mark or has_revocation_log(places, identity.store_id),
            damaged=tuple(map(str, damaged)),
        )


def room_for_copy(store: Store) -> None:
    """Check that the folder of an open store has room for a copy."""
    statistics = store.statistics()
    if statistics.disk_free - statistics.file_bytes < store.min_free:
        raise StorageFullError(
            f"{store.folder} has no room for the copy that is checked ({statistics.file_bytes} bytes, and "
            f"--min-free keeps {store.min_free}); make room, or stop the server and verify then, which needs "
            "no copy"
        )


def _folder_of(source: Store | Path) -> Path:
    return source.folder if isinstance(source, Store) else source


def _unlock(source: Store | Path, encryption: Encryption | None) -> bytes | None:
    if isinstance(source, Store):
        return source.unlock
    return None if encryption is None else encryption.key()


@contextmanager
def _sound_source(
    source: Store | Path, place: Path, damaged: list[DamagedRecord]
) -> Iterator[tuple[Path, str]]:
    """Yield a file that nothing writes to in the block, and its name for sentences.

    For an open store this is a raw copy in ``place``; for any other store it is the file itself.
    """
    if isinstance(source, Store):
        with temporary(place, of=source.folder) as (copy, descriptor):
            source.copy_to(descriptor)
            yield copy, os.fspath(source.folder / DATA_FILE)
    else:
        with FolderLock(source, create=False) as owner:
            data = owner.store_file()
            remove_left_over(owner.folder)
            owner.is_unchanged()
            yield data, os.fspath(data)
            if not owner.has_changed and not owner.doubtful:  # else the next start must notice this, too
                owner.mark_clean(is_damaged=bool(damaged))


def _settle(folder: Path, encryption: Encryption | None) -> None:
    """Apply recent rows of a store without an owner, so that nothing deleted is copied.

    A store that cannot be opened is copied as it is.
    """
    with suppress(StoreError), FolderLock(folder, create=False) as owner:
        if has_recent(owner.store_file()):
            check = check_store(owner, encryption)
            Store(owner.folder, encryption=encryption, check=check).close()
            owner.mark_clean(is_damaged=bool(check.damaged))


def publish(part: Path, destination: Path) -> None:
    """Give the file its final name without replacing another file."""
    try:
        destination.hardlink_to(part)
    except FileExistsError:
        raise StoreError(f"{destination} exists and is not overwritten; name a new file") from None
    except OSError:  # a file system without hard links, as on a USB stick
        part.rename(destination)
    sync_folder(destination.parent)


def older_stores(folder: Path) -> tuple[Path, ...]:
    """Return the files of older stores that `restore` has kept in a folder."""
    return tuple(sorted(folder.glob(_KEPT + "*")))


def _keep(data: Path) -> Path | None:
    """Give the file a second, unused name, so that it survives its replacement."""
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
def translate_errors(what: str) -> Iterator[None]:
    """Translate an `OSError` to a `StoreError` about ``what``."""
    try:
        yield
    except OSError as error:
        raise folder_error(error, what) from error
