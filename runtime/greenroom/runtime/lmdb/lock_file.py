"""The lock file of a folder: one process owns it, through one `FolderLock`.

The lock is a record lock on a file of its own (`record_lock`). Rules that keep it:
1. Nothing else in Greenroom opens that file while its process owns the folder, for where the lock is `lockf`
   any close of the file would drop it. Hence the table of folders owned by this process, which is asked first
   (`lockf` does not exclude its own process).
2. The file is never unlinked, so that everybody locks the same one.
3. A forked child has neither the lock nor any business with the file: it closes its descriptor at once, since
   an open file's lock lasts as long as any process has it open.
4. It always holds one line of the same length, rewritten in place, so that a full disk can be owned, too:

    while owned       <pid, padded> <nonce> <nothing yet>
    with the store    <pid, padded> <nonce> <which system, since which start of it, which files>
    left in order     0             <what the data file looked like> <its checksum, if small and sound>
    anything else     the file was changed or brought here

   The kernel names no process for an open file's lock. So half of the nonce is random and half a hash of
   that and of the process that wrote it: a line that another wrote than the process it names proves nothing.
   A line of an owned folder ends with "doubt" where the store may be damaged.

5. A process that dies loses nothing that it gave to the kernel, and LMDB gives the kernel whole pages in
   an order that leaves the store sound at any moment. So a store whose last owner died needs a check only
   when the system itself may have ended since: when the line does not name this very start of this very
   system, or other files than those that lie here.
6. A process that dies of a fault of its own (SIGSEGV, SIGBUS, SIGABRT and the like) may have died of a
   damaged file. Python's faulthandler then writes what happened over the line, for it has this descriptor,
   whose position is always 0. A program that has enabled faulthandler itself keeps it: no such note then.
"""

from __future__ import annotations

import errno
import faulthandler
import hashlib
import logging
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, Self

from greenroom.runtime.base.errors import StoreDamagedError, StoreError, StoreFailedError, StoreOwnedError
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
from greenroom.runtime.lmdb.record_lock import lock_file, lock_holder

logger = logging.getLogger(__name__)

_WIDTH: Final = 20
_NONCE: Final = 16
_NOTHING_YET: Final = b" " * 16
WORD: Final = slice(_WIDTH + 1, _WIDTH + 33)
_CIRCUMSTANCES: Final = slice(_WIDTH + 1 + _NONCE, _WIDTH + 33)
END: Final = slice(_WIDTH + 34, _WIDTH + 42)
FAULT: Final = b"Fatal Python error: "

DIGEST_BYTES: Final = 256 << 20
"""Up to this size a file's checksum is taken at each end and compared at each start.

That is 0.1 s for a file in memory, of the second in which a server is to have ended after a signal.
"""


def _line(pid: int, word: str, end: str = "") -> bytes:
    return f"{pid:<{_WIDTH}} {word:<32} {end:<8}\n".encode()


def _proof(pid: int, salt: str) -> str:
    """Return the half of a nonce that shows which process wrote it; empty if there is no such process."""
    process = process_identity(pid)
    return process and hashlib.blake2b(f"{salt} {process}".encode(), digest_size=_NONCE // 4).hexdigest()


def _new_nonce(pid: int) -> str:
    salt = secrets.token_hex(_NONCE // 4)
    return salt + (_proof(pid, salt) or secrets.token_hex(_NONCE // 4))


def owner_named_in(line: bytes) -> int:
    """Return the process that a lock file's line names, if it lives and wrote the line itself; else 0."""
    pid, nonce = line[:_WIDTH].strip(), line[WORD][:_NONCE].decode(errors="replace")
    if not pid.isdigit():
        return 0
    proof = _proof(int(pid), nonce[: _NONCE // 2])
    return int(pid) if proof and nonce[_NONCE // 2 :] == proof else 0


def _circumstances(descriptor: int, folder: Path) -> bytes:
    """Return 16 characters that stand for this start of this system and for the files of the folder."""
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
    """Whether these are the files it was written beside, in this run of the system; None if it is silent."""
    noted = line[_CIRCUMSTANCES]
    return None if noted == _NOTHING_YET else noted == _circumstances(descriptor, folder)


DOUBT: Final = "doubt"
NO_STORE: Final = "no store"


def look_of(folder: Path) -> str:
    """Return 32 characters that change when anything but an owner writes, replaces or cuts the data file."""
    try:
        status = (folder / DATA_FILE).stat()
    except FileNotFoundError:
        return NO_STORE
    seen = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    return hashlib.blake2b(seen.encode(), digest_size=16).hexdigest()


class FolderLock:
    """Holds the owner lock of a folder while the context is open. Enter it before opening a `Store`.

    Args:
        folder: The folder of the store.
        create: Whether a missing or empty folder is made into one; otherwise it is refused.

    Attributes:
        folder: Its real path, once entered.
        unclean: Whether there is a store that its last owner left without `mark_clean`, or that was changed
            since; then its structure needs a check.
        survived: Whether that owner was a process that died under a system that has not ended since: then
            the structure is as sound as it was.
        doubtful: Whether that owner died of a fault of its own or found damage: then all of the store is to
            be read before it is opened.
        lost: Whether there was a store when the last owner left, and now its file is missing or empty.

    Raises:
        StoreOwnedError: (on entering) another process, or another `FolderLock` of this one, has it.
        StoreError: (on entering) the folder cannot hold a store, or its file system has no locks.
    """

    # Device and inode of a folder -> what holds it in this process.
    _held: ClassVar[dict[tuple[int, int], FolderLock]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()
    _opened: ClassVar[list[FolderLock]] = []
    notes_faults: ClassVar[bool] = False
    """Whether a fault of this process is noted, by one of its owners."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.folder = folder
        self.unclean = False
        self.survived = False
        self.doubtful = False
        self.lost = False
        self._create = create
        self._pid = 0
        self._descriptor = -1
        self._identity = (0, 0)
        self._content = b""
        self._left = b""
        self._marked_clean = False
        self._is_checked = False
        self._is_spoilt = False
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
        self._left = left = os.pread(self._descriptor, len(_line(0, "")) + 1, 0)
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
                self._opened[0]._note_faults()  # noqa: SLF001  another store of this process goes on
        if (self._marked_clean or self.lost or self._is_spoilt) and self.is_held():
            with suppress(OSError):  # then the next start checks, which does no harm
                os.pwrite(self._descriptor, self._final_line() if self._marked_clean else self._left, 0)
        with self._guard:
            self._held.pop(self._identity, None)
            os.close(self._descriptor)
        self._descriptor = -1

    def _final_line(self) -> bytes:
        data = self.folder / DATA_FILE
        takes_checksum = self._is_checked and data.exists() and data.stat().st_size <= DIGEST_BYTES
        return _line(0, look_of(self.folder), checksum(data) if takes_checksum else "")

    def is_unchanged(self) -> bool:
        """Say whether the data file, byte for byte, is the one that the last owner left; False if unknown.

        Reads a file of up to `DIGEST_BYTES`.

        Raises:
            StoreDamagedError: it is not, and nobody has written to it since.
            OSError: it cannot be read.
        """
        data = self.folder / DATA_FILE
        left = self._left[END].decode(errors="replace").strip()
        if self.unclean or not left or data.stat().st_size > DIGEST_BYTES:
            return False
        found = checksum(data)
        self._is_spoilt = found != left
        if self._is_spoilt:
            raise StoreDamagedError(
                f"{data} is damaged: nobody has written to it since its last owner left, and it is not what "
                f"that one left (its CRC-32 was {left} and is {found}); {REMEDY}"
            )
        return True

    def is_held(self) -> bool:
        """Say whether the lock file is the one that was locked and still names this owner.

        If not, somebody has removed or rewritten it and may believe to be the owner: exit.
        """
        return self._pid == os.getpid() and self._descriptor >= 0 and not self._loss()

    def check_held(self) -> None:
        """Make sure that this is still the owner.

        Raises:
            StoreFailedError: it is not, or another process may believe to be.
        """
        if loss := self._loss():
            raise StoreFailedError(f"{loss}; this process must not write any more")

    def _loss(self) -> str:
        try:
            mine = os.fstat(self._descriptor)
            content = os.pread(self._descriptor, len(self._content) + 1, 0)
            if not os.path.samestat(mine, (self.folder / OWNER_FILE).stat()):
                return f"another process took {self.folder} over"
        except OSError as error:
            return f"the lock file of {self.folder} is not there any more ({error.strerror})"
        return "" if content == self._content else f"the lock file of {self.folder} was written by another"

    def mark_open(self) -> None:
        """Note that the store is open: from now on the death of this process alone asks for no check.

        Unless it dies of a fault of its own. That is noted as long as nobody else uses `faulthandler`, and
        for the one that was opened first where a process has several stores open.
        """
        circumstances = _circumstances(self._descriptor, self.folder).decode()
        with suppress(OSError):  # then the next start checks, which does no harm
            self._write(_line(self._pid, self._content[WORD][:_NONCE].decode() + circumstances))
        self._opened.append(self)
        if not faulthandler.is_enabled():
            self._note_faults()

    def _note_faults(self) -> None:
        faulthandler.enable(self._descriptor, all_threads=False)
        FolderLock.notes_faults = self._has_faulthandler = True

    def mark_doubtful(self) -> None:
        """Note that the store is damaged: the next owner is to read all of it before it opens it."""
        with suppress(OSError):  # then the next owner finds out as this one did
            self._write(_line(self._pid, self._content[WORD].decode(), DOUBT))

    def mark_clean(self, *, is_checked: bool = True) -> None:
        """Note that the store was closed in order: leaving the context spares the next start the check.

        Args:
            is_checked: Whether all of it is known to be sound; the next start will take it for that if the
                file's checksum is still the same.
        """
        self._marked_clean = True
        self._is_checked = is_checked

    @classmethod
    def _give_up_in_child(cls) -> None:
        """Keep a forked child from holding the lock of an owner and from writing over its line."""
        if cls.notes_faults:
            faulthandler.disable()
        for lock in cls._held.values():
            os.close(lock._descriptor)  # noqa: SLF001  one of this class
            lock._descriptor = -1  # noqa: SLF001  likewise
        cls._held.clear()
        cls._opened.clear()
        cls._guard.release()


os.register_at_fork(
    before=FolderLock._guard.acquire,  # noqa: SLF001  so that no lock is half taken in a child
    after_in_parent=FolderLock._guard.release,  # noqa: SLF001  likewise
    after_in_child=FolderLock._give_up_in_child,  # noqa: SLF001  likewise
)


def ownership_error(folder: Path) -> StoreOwnedError | None:
    """Return what an `FolderLock` of the folder would be refused with now; None if it would not be.

    Nothing in the folder changes, but that the file to lock is made.

    Raises:
        StoreError: its file system has no locks.
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
    """Return the process that holds the lock of an owner file; None if there is none, 0 if it is not known.

    Raises:
        OSError: the file system has no locks.
    """
    holder = lock_holder(descriptor)
    return owner_named_in(os.pread(descriptor, END.start, 0)) if holder == 0 else holder


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
            pass  # removed by hand between the two lines above: lock the one that everybody will see
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
