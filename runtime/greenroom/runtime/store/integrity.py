"""The parent's half of the check: has a child read a file that may be damaged, and judges how that went.

LMDB trusts its file. Tried: most damaged files kill the process that reads them, so this one only
ever opens a file that a child has read to the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from typing import Final

from greenroom.runtime.base.errors import (
    StorageFullError,
    StoreDamagedError,
    StoreError,
    StoreKeyError,
    StoreTooNewError,
)
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import REMEDY
from greenroom.runtime.lmdb.files import DATA_FILE, OWNER_FILE, folder_error
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity_child import DAMAGED, FAILED, FULL, LOCKED, TOO_NEW
from greenroom.runtime.store.page_proofs import Prover

# The interpreter is isolated, so where this package and its libraries lie has to be said.
_CHILD: Final = """
import sys
sys.path.extend(sys.argv[1].split(":"))
from greenroom.runtime.store.integrity_child import main
main(*sys.argv[2:])
"""

_LIBRARIES: Final = ("lmdb", "cryptography", "_cffi_backend")
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table of a file that was found sound.

    Attributes:
        name: The table.
        rows: How many rows it has.
        bytes: Keys and records together, without LMDB's pages around them.
    """

    name: str
    rows: int
    bytes: int


def check_store(owner: FolderLock, encryption: Encryption | None = None) -> bool:
    """Check the store that an owner found before it is opened; return whether all of it is known to be sound.

    It is when it is new, or byte for byte what its last owner left. One that only a process's death
    interrupted is taken as it is, and so is a large one that was left in order: then False is returned. All
    others are read by a child: the structure, which takes about 10 s for 1 GB of small rows, and every record
    if there is a reason to doubt them. Wait in another thread.

    Args:
        owner: Has just entered.
        encryption: Has the key of a store that is encrypted.

    Raises:
        StoreDamagedError: it is damaged or gone; the sentence names the remedy.
        StoreTooNewError: a newer program wrote it.
        StoreKeyError: it is encrypted with another key.
        StoreError: it could not be read.
    """
    path = owner.folder / DATA_FILE
    if owner.lost:
        raise StoreDamagedError(
            f"{path} is missing or empty and was not when the last owner left; bring back a backup with "
            f"`greenroom restore`, or remove {owner.folder / OWNER_FILE} to begin anew"
        )
    try:
        if not path.exists() or not path.stat().st_size:
            return True
        if not owner.unclean and owner.is_unchanged():
            return True
    except OSError as error:
        raise folder_error(error, f"{path} cannot be read") from error
    if owner.doubtful:
        inspect_file(path, records=True, unlock=None if encryption is None else encryption.key())
        return True
    if owner.unclean and not owner.survived:
        inspect_file(path)
    with closing(Prover(path, None)) as prover:
        prover.trees()  # LMDB itself goes by what is there as soon as it opens the file
    return False


def inspect_file(
    path: Path,
    *,
    name: str = "",
    records: bool = False,
    compact: Path | None = None,
    unlock: bytes | None = None,
    priority: int | None = None,
    poll: Callable[[], None] = lambda: None,
) -> tuple[TableReport, ...]:
    """Have a child read the file to the end, and return what is in it (nothing unless records are read).

    Args:
        path: The LMDB file; nobody may write it meanwhile.
        name: What the sentences call it, if not by its path.
        records: Whether every record is read and its checksum checked, too.
        compact: An existing file into which the child writes a compact copy.
        unlock: The key-encryption key, for the records of an encrypted store.
        priority: The child's, from 0 to 19, the lowest; as this process's if not given.
        poll: Called several times a second; what it raises ends the child and leaves from here.

    Raises:
        StoreDamagedError: it is no LMDB file, its structure or a record is wrong, or it killed the child.
        StoreTooNewError: a newer program wrote it.
        StoreKeyError: its records are encrypted with another key.
        StorageFullError: there is no room for the copy.
        StoreError: it could not be read or copied.
    """
    libraries = (place for module in _LIBRARIES for place in _places(module))
    library = ":".join(dict.fromkeys([os.fspath(Path(__file__).parents[3]), *libraries]))
    arguments = [os.fspath(path), "records" if records else "", os.fspath(compact or "")]
    try:
        child = subprocess.Popen(  # noqa: S603 - this very interpreter and a program of ours
            [sys.executable, "-I", "-S", "-c", _CHILD, library, *arguments],
            stdin=subprocess.DEVNULL if unlock is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise StoreError(f"no process could be started to check {path}: {error.strerror}") from error
    with child:
        if priority is not None:
            with suppress(OSError):  # it has ended already
                os.setpriority(os.PRIO_PROCESS, child.pid, priority)
        if child.stdin is not None and unlock is not None:
            with suppress(BrokenPipeError), child.stdin:  # then the child says how it ended
                child.stdin.write(unlock)
            child.stdin = None
        return _judged(_ended(child, poll), name or os.fspath(path))


def _places(module: str) -> list[str]:
    """Return from which folders a module is imported, without importing it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return []
    place = Path(spec.origin).parent
    return [os.fspath(place.parent if spec.submodule_search_locations else place)]


def _ended(child: subprocess.Popen[bytes], poll: Callable[[], None]) -> subprocess.CompletedProcess[bytes]:
    try:
        while True:
            try:
                output, errors = child.communicate(timeout=_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                poll()
            else:
                return subprocess.CompletedProcess(child.args, child.returncode, output, errors)
    except BaseException:
        child.kill()
        raise


def _judged(child: subprocess.CompletedProcess[bytes], name: str) -> tuple[TableReport, ...]:
    if child.returncode < 0:
        death = Signals(-child.returncode).name
        if death in {"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"}:
            raise StoreError(f"the check of {name} was ended by {death}")
        raise StoreDamagedError(f"{name} is damaged: whoever reads it dies of {death}; {REMEDY}")
    if child.returncode:
        reason = child.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreError(f"the check of {name} failed: {reason}")
    outcome = json.loads(child.stdout)
    if DAMAGED in outcome:
        raise StoreDamagedError(f"{name} is damaged: {outcome[DAMAGED]}; {REMEDY}")
    if TOO_NEW in outcome:
        raise StoreTooNewError(outcome[TOO_NEW])
    if LOCKED in outcome:
        raise StoreKeyError(outcome[LOCKED])
    if FULL in outcome:
        raise StorageFullError(outcome[FULL])
    if FAILED in outcome:
        raise StoreError(outcome[FAILED])
    return tuple(
        TableReport(name=table, rows=found["rows"], bytes=found["bytes"])
        for table, found in outcome["tables"].items()
    )
