"""The lock file of a folder: one process owns it, through one `FolderLock`.

The lock is a record lock on a file of its own (`record_lock`). Rules that keep the lock:
1. Nothing else in Greenroom opens that file while its process owns the folder, because any close would
   release a `lockf`. Before that, a table of the folders that this process owns is checked (`lockf` does not
   exclude its own process).
2. The file is never unlinked, so that all processes lock the same one.
3. A forked child closes its descriptor at once, because an open file's lock lasts as long as any process has
   it open.
4. The file always holds one line of the same length, rewritten in place, so that a folder on a full disk can
   be owned:

    while owned       <pid, padded> <nonce> <nothing yet>
    with the store    <pid, padded> <nonce> <hash of the system's boot and the files>
    left in order     0             <look of the data file> <its checksum, if small and sound> <its top>
    anything else     the file was changed or brought here

   The kernel names no process for an open file's lock. So half of the nonce is random, and half is a hash of
   the random half and of the writing process. A line proves nothing if another process than the named one
   wrote it. A line ends with "doubt" if the store may be damaged, or if records of a small store are. The top
   is a checksum of the pages that lead to the tables (`Pages.top`): only this distinguishes an older commit
   from the last one. Older programs neither write nor read the top.

5. A process that dies loses nothing that it wrote to the kernel, and LMDB writes whole pages in an order that
   keeps the store sound. So after the owner's death a check is needed only if the system may have ended since
   then, that is, if the line names another boot or other files.
6. A process that dies of a fault (SIGSEGV, SIGBUS, SIGABRT and the like) may have died of a damaged file.
   Python's faulthandler then writes the fault over the line, because it has this descriptor at position 0. If
   the program uses faulthandler itself, no fault is recorded.
"""

from __future__ import annotations

import errno
import faulthandler
import hashlib
import logging
import os
import secrets
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import ClassVar, Final, Self
from zlib import crc32

from greenroom.runtime.base.errors import OwnershipLostError, StoreDamagedError, StoreError, StoreOwnedError
from greenroom.runtime.base.full_sync import sync_descriptor
from greenroom.runtime.base.system import boot_id, process_identity
from greenroom.runtime.lmdb.environment import REMEDY
from greenroom.runtime.lmdb.files import (
    DATA_FILE,
    FILE_MODE,
    OWNER_FILE,
    checksum,
    folder_error,
    prepare_folder,
    sync_folder,
)
from greenroom.runtime.lmdb.pages import Pages
from greenroom.runtime.lmdb.record_lock import lock_file, lock_holder

logger = logging.getLogger(__name__)

_WIDTH: Final = 20
_NONCE: Final = 16
_NOTHING_YET: Final = b" " * 16
WORD: Final = slice(_WIDTH + 1, _WIDTH + 33)
_CIRCUMSTANCES: Final = slice(_WIDTH + 1 + _NONCE, _WIDTH + 33)
END: Final = slice(_WIDTH + 34, _WIDTH + 42)
_TOP: Final = slice(_WIDTH + 43, _WIDTH + 51)
FAULT: Final = b"Fatal Python error: "

DIGEST_BYTES: Final = 256 << 20
"""Up to this size, a file's checksum is computed at each end and compared at each start.

For a cached file this takes 0.1 s of the one second in which a server ends after a signal.
"""


_LEFT_BYTES: Final = 200


def _line(pid: int, word: str, end: str = "", top: str = "") -> bytes:
    return f"{pid:<{_WIDTH}} {word:<32} {end:<8}{top and ' '}{top}\n".encode()


def _proof(pid: int, salt: str) -> str:
    """Return the half of a nonce that proves its writer; empty if no such process."""
    process = process_identity(pid)
    return process and hashlib.blake2b(f"{salt} {process}".encode(), digest_size=_NONCE // 4).hexdigest()


def _new_nonce(pid: int) -> str:
    salt = secrets.token_hex(_NONCE // 4)
    return salt + (_proof(pid, salt) or secrets.token_hex(_NONCE // 4))


def parse_owner(line: bytes) -> int:
    """Return the id of the living process that a line names and proves; else 0."""
    pid, nonce = line[:_WIDTH].strip(), line[WORD][:_NONCE].decode(errors="replace")
    if not pid.isdigit():
        return 0
    proof = _proof(int(pid), nonce[: _NONCE // 2])
    return int(pid) if proof and nonce[_NONCE // 2 :] == proof else 0


def _circumstances(descriptor: int, folder: Path) -> bytes:
    """Return a hash, in 16 characters, of this boot and of the folder's files."""
    boot = boot_id()
    try:
        files = [os.fstat(descriptor), (folder / DATA_FILE).stat()]
    except OSError:
        return _NOTHING_YET
    if not boot:
        return _NOTHING_YET
    seen = " ".join([boot, *(f"{status.st_dev} {status.st_ino}" for status in files)])
    return hashlib.blake2b(seen.encode(), digest_size=len(_NOTHING_YET) // 2).hexdigest().encode()


def is_as_left(descriptor: int, folder: Path, line: bytes) -> bool | None:
    """Return whether the line names these files and this boot; None if unknown."""
    recorded = line[_CIRCUMSTANCES]
    return None if recorded == _NOTHING_YET else recorded == _circumstances(descriptor, folder)


def top_of(path: Path) -> str:
    """Return the checksum of the pages that lead to a file's tables; empty if unreadable."""
    try:
        with closing(Pages(path, None)) as pages:
            return f"{crc32(pages.top()):08x}"
    except (OSError, StoreError):
        return ""


def matches_line(data: Path, line: bytes) -> bool | None:
    """Return whether a file has exactly the bytes that a line records; None if unknown.

    Raises:
        StoreDamagedError: the file differs, and so do the pages that lead to its tables.
    """
    left, top = (line[part].decode(errors="replace").strip() for part in (END, _TOP))
    has_checksum = left not in {"", DOUBT} and data.stat().st_size <= DIGEST_BYTES
    if has_checksum and checksum(data) == left:
        return True
    if (top or has_checksum) and top_of(data) != top:
        raise StoreDamagedError(
            f"{data} is damaged: no process has written to it since its last owner left, but what leads to "
            f"its tables has changed, so it may be an older commit; {REMEDY}"
        )
    return False if has_checksum else None


DOUBT: Final = "doubt"
NO_STORE: Final = "no store"


def look_of(folder: Path) -> str:
    """Return 32 characters that change when the data file is written, replaced or cut."""
    try:
        status = (folder / DATA_FILE).stat()
    except FileNotFoundError:
        return NO_STORE
    seen = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return hashlib.blake2b(seen.encode(), digest_size=16).hexdigest()


class FolderLock:
    """The owner lock of a folder, held while the context is open.

    Enter it before opening a `Store`.

    Args:
        create: Whether a missing or empty folder is accepted.

    Attributes:
        folder: The folder's real path, once entered.
        unclean: Whether the last owner left a store without `mark_clean`, or it was changed later; then its
            structure needs a check.
        survived: Whether only that owner's process died, and not the system: the structure is as sound as
            before.
        doubtful: Whether that owner died of a fault or found damage; then read the whole store first.
        lost: Whether the last owner left a store, and now its file is missing or empty.
        has_changed: Whether `is_unchanged` found a changed file that no process has written to.

    Raises:
        StoreOwnedError: (on entering) another process, or another `FolderLock` of this process, has the lock.
        StoreError: (on entering) the folder cannot hold a store, or its file system has no locks.
    """

    # Device and inode of a folder -> its lock in this process.
    _held: ClassVar[dict[tuple[int, int], FolderLock]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()
    _opened: ClassVar[list[FolderLock]] = []
    notes_faults: ClassVar[bool] = False
    """Whether one of this process's locks records the process's faults."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.folder = folder
        self.unclean = False
        self.survived = False
        self.doubtful = False
        self.lost = False
        self.has_changed = False
        self._create = create
        self._pid = 0
        self._descriptor = -1
        self._identity = (0, 0)
        self._file: os.stat_result | None = None
        self._content = b""
        self._left = b""
        self._marked_clean = False
        self._is_checked = False
        self._is_damaged = False
        self._keeps_left = False
        self._has_faulthandler = False

    def __enter__(self) -> Self:
        self.folder = prepare_folder(self.folder, create=self._create)
        status = self.folder.stat()
        self._identity = (status.st_dev, status.st_ino)
        self._pid = os.getpid()
        with self._guard:
            if self._identity in self._held:
                raise StoreOwnedError(self.folder, self._pid)
            try:
                self._descriptor = _lock(self.folder)
                self._file = os.fstat(self._descriptor)
            except OSError as error:
                raise folder_error(error, f"{self.folder} cannot be locked") from error
            self._held[self._identity] = self
        try:
            self._begin()
        except BaseException as error:
            self._release()
            if isinstance(error, OSError):
                raise folder_error(error, f"{self.folder} cannot be taken") from error
            raise
        return self

    def _begin(self) -> None:
        data = self.folder / DATA_FILE
        self._left = left = os.pread(self._descriptor, _LEFT_BYTES, 0)
        in_order = left.startswith(_line(0, "")[:_WIDTH])
        has_data = data.exists()
        no_store = in_order and left[WORD] == _line(0, NO_STORE)[WORD]
        self.lost = in_order and not no_store and not (has_data and data.stat().st_size)
        self.unclean = has_data and not (in_order and left[WORD] == look_of(self.folder).encode())
        self.doubtful = has_data and (left.startswith(FAULT) or left[END].startswith(DOUBT.encode()))
        is_as_it_was = is_as_left(self._descriptor, self.folder, left) is True
        self.survived = self.unclean and not self.doubtful and is_as_it_was
        if left.startswith(FAULT):
            fault = left.removeprefix(FAULT).partition(b"\n")[0].decode(errors="replace")
            logger.warning("the last owner of %s died of a fault: %s", self.folder, fault)
        self._write(_line(self._pid, _new_nonce(self._pid), DOUBT if self.doubtful else ""))
        os.ftruncate(self._descriptor, len(self._content))
        sync_descriptor(self._descriptor)
        sync_folder(self.folder)

    def _write(self, content: bytes) -> None:
        self._content = content
        os.pwrite(self._descriptor, content, 0)

    def __exit__(self, *exception: object) -> None:
        if self._pid == os.getpid():
            self._release()

    def _release(self) -> None:
        if self in self._opened:
            self._opened.remove(self)
        if self._has_faulthandler:
            faulthandler.disable()
            FolderLock.notes_faults = self._has_faulthandler = False
            if self._opened:
                self._opened[0]._note_faults()  # noqa: SLF001  another store of this process is open
        if (self._marked_clean or self.lost or self._keeps_left) and self.is_held():
            with suppress(OSError):  # after a failure the next start checks, which does no harm
                os.pwrite(self._descriptor, self._final_line() if self._marked_clean else self._left, 0)
        with self._guard:
            self._held.pop(self._identity, None)
            self._close()
        self._descriptor = -1

    def _close(self) -> None:
        """Close the lock file, unless its descriptor now belongs to another file."""
        with suppress(OSError):
            if self._file is not None and os.path.samestat(os.fstat(self._descriptor), self._file):
                os.close(self._descriptor)

    def _final_line(self) -> bytes:
        data = self.folder / DATA_FILE
        if not data.exists() or not data.stat().st_size:
            return _line(0, look_of(self.folder))
        end = ""
        if data.stat().st_size <= DIGEST_BYTES:
            end = DOUBT if self._is_damaged else checksum(data) if self._is_checked else ""
        return _line(0, look_of(self.folder), end, top_of(data))

    def store_file(self) -> Path:
        """Return the file of the folder's store, or raise `StoreError` if there is none."""
        data = self.folder / DATA_FILE
        if not data.exists():
            raise StoreError(f"there is no store in {self.folder}")
        return data

    def is_unchanged(self) -> bool:
        """Return whether the data file has exactly the bytes as left; False if unknown.

        This reads a file of up to `DIGEST_BYTES`. Only a check of the whole file finds what was changed.

        Raises:
            StoreDamagedError: the file lacks the last commit, though no process has written to it since.
        """
        if self.unclean:
            return False
        self._keeps_left = True
        is_same = matches_line(self.folder / DATA_FILE, self._left)
        self.has_changed = is_same is False
        self._keeps_left = self.has_changed or self.doubtful
        return is_same is True

    def is_held(self) -> bool:
        """Return whether the lock file is still the locked file and still names this owner.

        If not, another process may consider itself the owner: exit.
        """
        return self._pid == os.getpid() and self._descriptor >= 0 and not self._loss()

    def check_held(self) -> None:
        """Raise `OwnershipLostError` unless this process is still the owner."""
        if loss := self._loss():
            raise OwnershipLostError(f"{loss}; this process must not write any more")

    def _loss(self) -> str:
        try:
            mine = os.fstat(self._descriptor)
            content = os.pread(self._descriptor, len(self._content) + 1, 0)
            if not os.path.samestat(mine, (self.folder / OWNER_FILE).stat()):
                return f"{self.folder} was removed, renamed or replaced, or another process took it over"
        except OSError as error:
            return f"the lock file of {self.folder} is not there any more ({error.strerror})"
        return "" if content == self._content else f"the lock file of {self.folder} was written by another"

    def mark_open(self) -> None:
        """Record that the store is open: if this process dies, no check is then needed.

        After a fault one is. Faults are recorded for the first of several open stores, unless the program
        uses `faulthandler`.
        """
        circumstances = _circumstances(self._descriptor, self.folder).decode()
        with suppress(OSError):  # after a failure the next start checks, which does no harm
            self._write(_line(self._pid, self._content[WORD][:_NONCE].decode() + circumstances))
        self._opened.append(self)
        if not faulthandler.is_enabled():
            self._note_faults()

    def _note_faults(self) -> None:
        faulthandler.enable(self._descriptor, all_threads=False)
        FolderLock.notes_faults = self._has_faulthandler = True

    def mark_doubtful(self) -> None:
        """Record that the store is damaged: the next owner must read all of it first."""
        with suppress(OSError):  # on failure the next owner finds the damage as this one did
            if self.is_held():
                self._write(_line(self._pid, self._content[WORD].decode(), DOUBT))

    def mark_clean(self, *, is_checked: bool = True, is_damaged: bool = False) -> None:
        """Record that the store was closed in order: the next start needs no check.

        Args:
            is_checked: Whether the whole store is known to be sound, as the next start then trusts.
            is_damaged: Whether records, and nothing else, are known to be damaged; the next start of a small
                store finds them again.
        """
        self._marked_clean = True
        self._is_checked = is_checked
        self._is_damaged = is_damaged

    @classmethod
    def _give_up_in_child(cls) -> None:
        """Release the locks in a forked child, which must not hold them or write."""
        if cls.notes_faults:
            faulthandler.disable()
        for lock in cls._held.values():
            lock._close()  # noqa: SLF001  one of this class
            lock._descriptor = -1  # noqa: SLF001  likewise
        cls._held.clear()
        cls._opened.clear()
        cls._guard.release()


os.register_at_fork(
    before=FolderLock._guard.acquire,  # noqa: SLF001  so that no lock is half acquired in a child
    after_in_parent=FolderLock._guard.release,  # noqa: SLF001  likewise
    after_in_child=FolderLock._give_up_in_child,  # noqa: SLF001  likewise
)


def ownership_error(folder: Path) -> StoreOwnedError | None:
    """Return the error that a `FolderLock` would raise now because of another owner, or None.

    Nothing in the folder changes, except that the lock file is created.
    """
    status = folder.stat()
    with FolderLock._guard:  # noqa: SLF001  the rules of the module's head are kept together
        if (status.st_dev, status.st_ino) in FolderLock._held:  # noqa: SLF001  likewise
            return StoreOwnedError(folder, os.getpid())
        try:
            os.close(_lock(folder))
        except StoreOwnedError as refused:
            return refused
        except OSError as error:
            raise folder_error(error, f"{folder} cannot be locked") from error
    return None


def holder_of(descriptor: int) -> int | None:
    """Return the process that locks an owner file: its id, 0 if unknown, else None."""
    holder = lock_holder(descriptor)
    return parse_owner(os.pread(descriptor, END.start, 0)) if holder == 0 else holder


def _lock(folder: Path) -> int:
    """Return a descriptor of the owner file, locked."""
    while True:
        descriptor = os.open(
            folder / OWNER_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE
        )
        try:
            os.fchmod(descriptor, FILE_MODE)
            lock_file(descriptor)
            if os.path.samestat(os.fstat(descriptor), (folder / OWNER_FILE).stat()):
                return descriptor
        except FileNotFoundError:
            pass  # the file was removed between the two lines above: lock the file that all will see
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EAGAIN}:
                try:
                    raise StoreOwnedError(folder, holder_of(descriptor) or 0) from None
                finally:
                    os.close(descriptor)
            os.close(descriptor)
            if error.errno in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}:
                raise StoreError(
                    f"{folder} is on a file system without locks; choose another with --data"
                ) from error
            raise
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
