"""The folder of a store: its checks and modes, and durable files.

This module does not depend on LMDB or on ownership.
"""

from __future__ import annotations

import sys

if sys.platform not in ("linux", "darwin"):
    raise ImportError(f"Greenroom runs on Linux and macOS; it does not know {sys.platform}")

import errno
import os
import re
import zlib
from typing import TYPE_CHECKING, Final

from greenroom.runtime.base.errors import StorageFullError, StoreError
from greenroom.runtime.base.full_sync import sync_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DATA_FILE: Final = "greenroom.mdb"
LMDB_LOCK_FILE: Final = "greenroom.mdb-lock"
OWNER_FILE: Final = "owner.lock"
SPOOL_FOLDER: Final = "spool"
"""The subfolder of events for the next owner."""
MODELS_FOLDER: Final = "models"
"""The subfolder of installed embedders, beside a user's own store."""
BESIDES: Final = frozenset({"lost+found", SPOOL_FOLDER, MODELS_FOLDER})
"""The entries that a folder without a store may have."""

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The errors of a full disk, quota or file size limit."""

# On these file systems, locks or shared memory maps work on one machine only (WSL mounts Windows' disks by
# 9p). The names are the kernels' names, without the prefix "fuse.".
_REMOTE: Final = (
    r"9p|acfs|afpfs|afs|beegfs|ceph|cifs|coda|davfs2?|gcsfuse|gfs2?|glusterfs|goofys|gpfs|grpcfuse|gvfsd-fuse|lustre"
    r"|ncpfs|nfs4?|ocfs2|osxfs|prl_fs|rclone|s3fs|smb[23]|smbfs|sshfs|vboxsf|vmhgfs(-fuse)?|webdav(fs)?"
)


def prepare_folder(folder: Path, *, create: bool = True) -> Path:
    """Check that ``folder`` can hold a store, and return its real path.

    A missing folder is created. An existing one must be empty or hold a store, so that a mistyped ``--data``
    never changes the mode of someone's home.
    """
    folder = folder.resolve()
    try:
        if not folder.exists():
            if not create:
                raise StoreError(f"there is no store at {folder}; the first server on that folder makes one")
            refuse_remote(folder)
            _make(folder)
        entries = {entry.name for entry in os.scandir(folder)}
        if not entries & {DATA_FILE, OWNER_FILE}:
            if not create:
                raise StoreError(f"there is no store in {folder}")
            if entries - BESIDES:
                raise StoreError(
                    f"{folder} holds other things and no Greenroom store; "
                    "choose an empty or a new folder with --data"
                )
        refuse_remote(folder)
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise folder_error(error, f"{folder} cannot hold a store") from error
    return folder


def _make(folder: Path) -> None:
    missing = [parent for parent in folder.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(exist_ok=True)
        sync_folder(parent.parent)
    folder.mkdir(FOLDER_MODE, exist_ok=True)
    folder.chmod(FOLDER_MODE)  # a umask may have removed even our own rights
    sync_folder(folder.parent)


def refuse_remote(folder: Path) -> None:
    """Refuse a file system with locks and memory maps that work on one machine only."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - has no types; takes 30 ms, which the check's child saves

    mounts = [(partition.mountpoint, partition.fstype) for partition in psutil.disk_partitions(all=True)]
    mount, kind = mount_of(folder, mounts)
    if is_remote(kind):
        raise StoreError(
            f"{folder} lies on {kind} (mounted at {mount}), where neither locks nor shared memory are sure; "
            "choose a folder on a local disk with --data"
        )


def mount_of(folder: Path, mounts: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the mount point that ``folder`` lies on and the kind of its file system."""
    best, kind = "", ""
    for mount, fstype in mounts:
        # Of two mounts at one place, the later hides the earlier.
        if len(mount) >= len(best) and folder.is_relative_to(mount):
            best, kind = mount, fstype
    return best, kind


def is_remote(kind: str) -> bool:
    """Return whether a kind of file system is shared with other machines."""
    return re.fullmatch(_REMOTE, kind.lower().removeprefix("fuse.")) is not None


def create_file(path: Path, content: bytes = b"") -> None:
    """Create ``path`` with mode 0600 under any umask; after a failure, leave nothing behind."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        os.fchmod(descriptor, FILE_MODE)
        while content:
            content = content[os.write(descriptor, content) :]
    except BaseException:
        path.unlink()
        raise
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    sync_file(folder, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path, flags: int = os.O_RDONLY) -> None:
    """Make the bytes of ``path`` durable."""
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def replace_store(new: Path, folder: Path) -> None:
    """Replace a folder's store by a synced file of the same folder, in one step."""
    # The lock file describes readers of the old file; LMDB creates a new one.
    (folder / LMDB_LOCK_FILE).unlink(missing_ok=True)
    new.replace(folder / DATA_FILE)
    sync_folder(folder)


def checksum(path: Path) -> str:
    """Return the CRC-32 of a file as eight digits; a cached gigabyte takes 0.3 s."""
    buffer = bytearray(1 << 20)
    found = 0
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            found = zlib.crc32(memoryview(buffer)[:count], found)
    return f"{found:08x}"


def folder_error(error: OSError, what: str) -> StoreError:
    """Return ``error`` as a `StoreError` about ``what``."""
    sentence = f"{what}: {error.strerror or error}"
    return StorageFullError(sentence) if error.errno in NO_ROOM else StoreError(sentence)
