"""The child's half of the check: reads one LMDB file that may be damaged, says what it found, and ends.

Runs in a process of its own (see `integrity`), because a damaged file can kill the process that
reads it. It must start quickly: no room above the store is imported here, nor trio.

First the file is read as bytes by `lmdb.verify`, which checks what LMDB's writer relies on: page
headers, key order, counts, and that the free pages are those that nothing uses. It does not check that
keys are where they are looked for, which `Prover` does. Only then is the file opened.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import lmdb
import lmdb.verify

from greenroom.runtime.base.errors import (
    StorageFullError,
    StoreDamagedError,
    StoreError,
    StoreKeyError,
    StoreTooNewError,
)
from greenroom.runtime.lmdb.codec import PlainCodec, RecordCodec
from greenroom.runtime.lmdb.environment import SEAL_KEY, TABLES, check_format, store_error
from greenroom.runtime.store.page_proofs import Prover

DAMAGED: Final = "damaged"
TOO_NEW: Final = "too new"
FULL: Final = "full"
LOCKED: Final = "locked"
FAILED: Final = "failed"

_NAMED = 5  # how many findings a sentence names


def inspect(
    path: Path, *, records: bool, compact: Path | None, unlock: bytes | None = None
) -> dict[str, Any]:
    """Return the rows and their bytes by table; nothing if the records are not read.

    Args:
        path: The LMDB file; nobody else may write it meanwhile.
        records: Whether every record is read and its checksum checked, too.
        compact: An existing file into which a compact copy is written, without what was deleted.
        unlock: The key-encryption key, without which no record of an encrypted store can be read.

    Raises:
        StoreDamagedError, StoreTooNewError, StorageFullError, StoreKeyError, StoreError: as each says.
    """
    _check_bytes(path)
    environment = lmdb.open(os.fspath(path), subdir=False, readonly=True, lock=False, max_dbs=len(TABLES))
    with environment, environment.begin() as transaction:
        if check_format(transaction, path) is None:
            return {}
        with closing(Prover(path, None)) as prover:
            prover.prove_keys()
        tables = {}
        if records:
            codec = _codec(transaction.get(SEAL_KEY), unlock, path)
            tables = {name.decode(): _read(environment, transaction, name, codec) for name in TABLES}
        if compact is not None:
            with compact.open("wb") as target:
                environment.copyfd(target.fileno(), compact=True, txn=transaction)
    return tables


def _check_bytes(path: Path) -> None:
    try:
        problems = lmdb.verify.verify(os.fspath(path), subdir=False)  # type: ignore[no-untyped-call]  # has no types
    except (OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever the bytes made it stumble over, they are not sound
        problems = [str(error) or repr(error)]
    if problems:
        raise StoreDamagedError(_listed(problems))


def _codec(seal: bytes | None, unlock: bytes | None, path: Path) -> RecordCodec:
    if seal is None:
        return PlainCodec()
    from greenroom.runtime.lmdb.record_cipher import SealedCodec, unwrap  # noqa: PLC0415 - see there

    return SealedCodec(unwrap(seal, unlock, os.fspath(path)))


def _read(
    environment: lmdb.Environment, transaction: lmdb.Transaction[bytes], name: bytes, codec: RecordCodec
) -> dict[str, int]:
    table = environment.open_db(name, txn=transaction, create=False)
    entries = transaction.stat(table)["entries"]
    unseal = codec.open
    rows = size = 0
    last = b""
    bad = []
    for key, record in transaction.cursor(table):
        rows += 1
        size += len(key) + len(record)
        if key <= last or rows > entries:
            raise StoreDamagedError(f"the keys of the table {name.decode()} are out of order after {last!r}")
        last = key
        try:
            unseal(key, record)
        except StoreDamagedError as error:
            bad.append(f"{name.decode()}: {error}")
    if bad:
        raise StoreDamagedError(_listed(bad))
    if rows != entries:
        raise StoreDamagedError(f"the table {name.decode()} has {rows} rows and counts {entries}")
    return {"rows": rows, "bytes": size}


def _listed(problems: list[str]) -> str:
    more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
    return "; ".join(problems[:_NAMED]) + more


def main(path: str, records: str, compact: str) -> None:
    """Inspect and print the outcome as one line of JSON. The arguments come from `integrity`.

    The key, if there is one, comes over standard input: arguments are for everybody to see.
    """
    outcome: dict[str, Any]
    try:
        try:
            tables = inspect(
                Path(path),
                records=bool(records),
                compact=Path(compact) if compact else None,
                unlock=sys.stdin.buffer.read() or None,
            )
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{path} cannot be read or copied") from error
        outcome = {"tables": tables}
    except StoreDamagedError as error:
        outcome = {DAMAGED: str(error)}
    except StoreTooNewError as error:
        outcome = {TOO_NEW: str(error)}
    except StorageFullError as error:
        outcome = {FULL: str(error)}
    except StoreKeyError as error:
        outcome = {LOCKED: str(error)}
    except StoreError as error:
        outcome = {FAILED: str(error)}
    sys.stdout.write(json.dumps(outcome))
