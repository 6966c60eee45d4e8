"""The parent process of the check: a child reads the file, which may be damaged.

LMDB trusts its file, and most damaged files crash the process that reads them. So this process only opens a
file that a child has read to the end.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from typing import Final

from greenroom.runtime.base.errors import StoreDamagedError, StoreError
from greenroom.runtime.lmdb.encryption import Encryption
from greenroom.runtime.lmdb.environment import REMEDY
from greenroom.runtime.lmdb.files import DATA_FILE, OWNER_FILE, folder_error
from greenroom.runtime.lmdb.lock_file import FolderLock
from greenroom.runtime.store.integrity_child import OUTCOMES
from greenroom.runtime.store.page_proofs import Prover
from greenroom.runtime.store.record_damage import SOUND, DamagedRecord, StoreCheck, list_names

logger = logging.getLogger(__name__)

# The interpreter is isolated, so it needs the paths of this package and its libraries.
_CHILD: Final = """
import sys
sys.path.extend(sys.argv[1].split(":"))
from greenroom.runtime.store.integrity_child import main
main(*sys.argv[2:])
"""

_LIBRARIES: Final = ("lmdb", "cryptography", "_cffi_backend")
_POLL_SECONDS: Final = 0.1
_NAMED: Final = 50
"""A sentence names at most this many damaged records."""


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table of a sound file; its bytes are the bytes of keys and records."""

    name: str
    rows: int
    bytes: int


def check_store(owner: FolderLock, encryption: Encryption | None = None) -> StoreCheck:
    """Check a store before it is opened; a child checks while another thread waits.

    A new store is sound, and so is a store whose bytes are as its last owner left them. A store is accepted
    without a full check if only a process died, or if it is large and was left in order. In all other cases a
    child reads the structure, which takes about 10 s for 1 GB of small rows, and every record if the records
    are in doubt.

    Raises:
        StoreDamagedError: not only records are damaged, or the store is gone; the sentence names the remedy.
        StoreError: see its subclasses.
    """
    path = owner.folder / DATA_FILE
    if owner.lost:
        raise StoreDamagedError(
            f"{path} is missing or empty and was not when the last owner left; bring back a backup with "
            f"`greenroom restore FILE`, or remove {owner.folder / OWNER_FILE} to begin anew"
        )
    try:
        if not path.exists() or not path.stat().st_size:
            return SOUND
        if owner.is_unchanged():
            return SOUND
    except OSError as error:
        raise folder_error(error, f"{path} cannot be read") from error
    if owner.doubtful or owner.has_changed:
        unlock = None if encryption is None else encryption.key()
        damaged: list[DamagedRecord] = []
        inspect_file(path, records=True, unlock=unlock, on_damage=damaged.append)
        if owner.has_changed and not damaged:
            logger.warning("%s changed by itself where nothing is stored, and is sound; check its disk", path)
        return StoreCheck(is_whole=True, damaged=tuple(damaged))
    if owner.unclean and not owner.survived:
        inspect_file(path)
    with closing(Prover(path, None)) as prover:
        prover.trees()  # LMDB relies on these as soon as it opens the file
    return StoreCheck(is_whole=False)


def inspect_file(
    path: Path,
    *,
    name: str = "",
    records: bool = False,
    compact: Path | None = None,
    unlock: bytes | None = None,
    priority: int | None = None,
    poll: Callable[[], None] = lambda: None,
    on_damage: Callable[[DamagedRecord], None] | None = None,
) -> tuple[TableReport, ...]:
    """Read a file to the end in a child; with ``records`` return its tables.

    Args:
        path: The LMDB file; no process may write to it during the check.
        name: The name of the file in error sentences, instead of its path.
        records: Whether to read every record and check its checksum, too.
        compact: An existing file, into which the child writes a compact copy.
        unlock: The key-encryption key, for the records of an encrypted store.
        priority: The child's priority, from 0 to 19, the lowest; by default this process's.
        poll: Called several times a second; its exception ends the child and is raised here.
        on_damage: Called with each damaged record of an otherwise sound file.

    Raises:
        StoreDamagedError: the file is no LMDB file, has a damaged structure, or crashed the child; or records
            are damaged and `on_damage` is not given.
        StoreError: see its subclasses.
    """
    libraries = (place for module in _LIBRARIES for place in _places(module))
    library = ":".join(dict.fromkeys([os.fspath(Path(__file__).parents[3]), *libraries]))
    arguments = [os.fspath(path), "records" if records else "", os.fspath(compact or "")]
    try:
        child = subprocess.Popen(  # noqa: S603 - this interpreter and our own program
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
            with suppress(BrokenPipeError), child.stdin:  # then the exit of the child tells why
                child.stdin.write(unlock)
            child.stdin = None
        return _judge(_wait_for(child, poll), name or os.fspath(path), on_damage)


def _places(module: str) -> list[str]:
    """Return the folders from which a module would be imported."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return []
    place = Path(spec.origin).parent
    return [os.fspath(place.parent if spec.submodule_search_locations else place)]


def _wait_for(child: subprocess.Popen[bytes], poll: Callable[[], None]) -> subprocess.CompletedProcess[bytes]:
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


def _judge(
    child: subprocess.CompletedProcess[bytes],
    name: str,
    on_damage: Callable[[DamagedRecord], None] | None,
) -> tuple[TableReport, ...]:
    if child.returncode < 0:
        death = Signals(-child.returncode).name
        if death in {"SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"}:
            raise StoreError(f"the check of {name} was ended by {death}")
        raise StoreDamagedError(f"{name} is damaged: its reader dies of {death}; {REMEDY}")
    if child.returncode:
        reason = child.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreError(f"the check of {name} failed: {reason}")
    outcome = json.loads(child.stdout)
    for kind, error in OUTCOMES.items():
        if kind in outcome:
            sentence = outcome[kind]
            raise error(
                f"{name} is damaged: {sentence}; {REMEDY}" if error is StoreDamagedError else sentence
            )
    damaged = [
        DamagedRecord(table, bytes.fromhex(key), outcome["is_hidden"], bytes.fromhex(lies_at))
        for table, key, lies_at in outcome.get("records", ())
    ]
    for record in damaged:
        if on_damage is None:
            raise damaged_records(name, damaged)
        on_damage(record)
    return tuple(
        TableReport(name=table, rows=found["rows"], bytes=found["bytes"])
        for table, found in outcome["tables"].items()
    )


def damaged_records(name: str, damaged: Sequence[DamagedRecord]) -> StoreDamagedError:
    """Return the error for a file in which only records are damaged."""
    many = "one record of it is" if len(damaged) == 1 else f"{len(damaged):,} records of it are"
    names = "; ".join(list_names(damaged, _NAMED))
    return StoreDamagedError(f"{name} is damaged: {many} not what was stored: {names}; {REMEDY}")
