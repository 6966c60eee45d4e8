"""Temporary files for copies of a store, and the removal of left-over copies.

1. Such a file is named `.greenroom.` and 16 digits; the second half of them derives from the first. Its
   process locks it until the process ends.
2. The next copy in the same folder, and the next owner of the folder, remove unlocked files.
3. A file that has such a name by chance, a link, a folder, or a file of another user stays.
4. For a copy outside of the store's folder, there is a *note* in that folder: a link to the copy. So the next
   owner can remove or name the copy.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.runtime.lmdb.files import DATA_FILE, FILE_MODE, LMDB_LOCK_FILE

NEW_STORE: Final = "encrypting"
"""The subfolder of the store's folder in which the new file of `encrypt` grows."""
_OLDER_NAMES: Final = tuple(DATA_FILE + end for end in (".verifying", ".restoring", ".scrubbing", ".new"))
"""The names that version 0.1.0 and older gave to such files in the store's folder."""
_NAME: Final = re.compile(r"\.greenroom\.([0-9a-f]{8})([0-9a-f]{8})(?:\.at-(\d+))?")
_LOOKING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKING: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def temporary(folder: Path, *, of: Path | None = None) -> Iterator[tuple[Path, int]]:
    """Create an empty file for a copy; remove it at the end unless renamed.

    The descriptor is for writes and holds the file's lock. Files left by killed processes are removed first.
    ``of`` is the folder of the copied store, if it differs.
    """
    _remove_dead(folder)
    with ExitStack() as stack:
        while True:
            salt = secrets.token_hex(4)
            path = folder / f".greenroom.{salt}{_proof(salt)}"
            if of is not None:
                stack.callback(_leave_note(path, of).unlink, missing_ok=True)
            descriptor = os.open(path, _MAKING, FILE_MODE)
            stack.callback(path.unlink, missing_ok=True)
            stack.callback(os.close, descriptor)
            os.fchmod(descriptor, FILE_MODE)
            if _lock(descriptor, path) is not False:
                break
            stack.close()  # another process took the file for a left-over and has just claimed it
        yield path, descriptor


def _proof(salt: str) -> str:
    return hashlib.blake2b(salt.encode(), digest_size=4, person=b"greenroom copy").hexdigest()


def _leave_note(path: Path, store: Path) -> Path:
    """Link from a store's folder to a copy in another folder, if possible."""
    note = store / f"{path.name}.at-{path.parent.stat().st_ino}"
    with suppress(OSError):
        if not path.parent.samefile(store):
            note.symlink_to(path)
    return note


def _lock(descriptor: int, path: Path) -> bool | None:
    """Lock an open file; False if another process holds the lock, None if unsupported."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:
        return None


# -- left-over copies -----------------------------------------------------------------


def remove_left_over(folder: Path, *, older: bool = False) -> None:
    """Remove the copies of a store that killed processes left; the caller owns the folder.

    With ``older``, also remove an unfinished encryption, and copies under the names of earlier versions,
    which are not unique.
    """
    _remove_dead(folder)
    for note, copy in _notes(folder):
        if _is_gone(note, copy) or _remove_if_dead(copy):
            with suppress(OSError):
                note.unlink()
    if older:
        for name in _OLDER_NAMES:
            with suppress(OSError):
                (folder / name).unlink()
        remove_unfinished_encryption(folder)


def remove_unfinished_encryption(folder: Path) -> None:
    """Remove the new file of an interrupted `encrypt`, and its folder if empty."""
    place = folder / NEW_STORE
    if place.is_dir() and not place.is_symlink():
        with suppress(OSError):
            for name in (DATA_FILE, LMDB_LOCK_FILE):
                (place / name).unlink(missing_ok=True)
            place.rmdir()


def left_over(folder: Path) -> list[Path]:
    """Return the copies of a store that killed processes left and its folder shows.

    Nothing changes. Copies in use are not included. A copy in an unreachable folder, such as on a removed
    disk, is included.
    """
    names = (folder / name for name in (*_OLDER_NAMES, NEW_STORE))
    found = [path for path in names if os.path.lexists(path)]
    found += [path for path in _find_named(folder) if _is_dead(path)]
    noted = (copy for note, copy in _notes(folder) if not _is_gone(note, copy))
    return found + [copy for copy in noted if not os.path.lexists(copy) or _is_dead(copy)]


def _remove_dead(folder: Path) -> None:
    for path in _find_named(folder):
        _remove_if_dead(path)


def _find_named(folder: Path) -> list[Path]:
    """Return the files of a folder that are named like copies."""
    return [path for path, ending in _names(folder) if not ending]


def _notes(folder: Path) -> list[tuple[Path, Path]]:
    """Return the notes of copies in other folders, and the copies."""
    found = []
    for note, ending in _names(folder):
        if ending and note.is_symlink():
            copy = note.readlink()
            if copy.name + ending == note.name:
                found.append((note, copy))
    return found


def _names(folder: Path) -> Iterator[tuple[Path, str]]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match is not None and match[2] == _proof(match[1]):
            yield path, path.name[match.end(2) :]


def _is_gone(note: Path, copy: Path) -> bool:
    """Return whether a noted copy is gone while its folder is still the noted one."""
    try:
        is_same = str(copy.parent.stat().st_ino) == note.name.rpartition("-")[2]
    except OSError:
        return False
    return is_same and not os.path.lexists(copy)


def _is_dead(path: Path) -> bool:
    with _claim(path) as is_dead:
        return is_dead


def _remove_if_dead(path: Path) -> bool:
    """Remove a copy unless in use or another user's; return whether it was removed."""
    with _claim(path) as is_dead, suppress(OSError):
        if is_dead:
            path.unlink()
            return True
    return False


@contextmanager
def _claim(path: Path) -> Iterator[bool]:
    """Lock a copy; yield whether it is this user's and no longer in use."""
    try:
        descriptor = os.open(path, _LOOKING)
    except OSError:
        yield False
        return
    try:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        yield is_ours and _lock(descriptor, path) is True
    finally:
        os.close(descriptor)
