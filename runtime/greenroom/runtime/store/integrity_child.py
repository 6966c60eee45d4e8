"""The child process of the check: read one LMDB file and report its damage.

It runs in its own process (see `integrity`), because a damaged file can crash its reader. It must start
quickly: no package above the store is imported here, nor trio.

First `lmdb.verify` reads the file as bytes. It checks what LMDB's writer relies on: page headers, key order,
counts, and the free pages. `Prover` checks that keys are where they are searched. Only then is the file
opened.
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
    RecordDamagedError,
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

_NAMED = 5  # findings in a sentence
_MOST_DAMAGED: Final = 10_000
"""More damaged records mean another kind of damage."""


def inspect(
    path: Path, *, records: bool, compact: Path | None, unlock: bytes | None = None
) -> dict[str, Any]:
    """Return rows and bytes by table, if records are read, and damaged records."""
    _check_bytes(path)
    environment = lmdb.open(os.fspath(path), subdir=False, readonly=True, lock=False, max_dbs=len(TABLES))
    with environment, environment.begin() as transaction:
        if check_format(transaction, path) is None:
            return {"tables": {}}
        with closing(Prover(path, None)) as prover:
            prover.prove_keys()
        tables = {}
        damaged: list[tuple[str, str, str]] = []
        seal = transaction.get(SEAL_KEY)
        if records:
            codec = _codec(seal, unlock, path)
            tables = {name.decode(): _read(environment, transaction, name, codec, damaged) for name in TABLES}
        if compact is not None:
            # Never created here: the parent may be dead by now, and the file removed.
            with os.fdopen(os.open(compact, os.O_WRONLY | os.O_TRUNC), "wb") as target:
                environment.copyfd(target.fileno(), compact=True, txn=transaction)
    return {"tables": tables, "records": damaged, "is_hidden": seal is not None}


def _check_bytes(path: Path) -> None:
    try:
        problems = lmdb.verify.verify(os.fspath(path), subdir=False)  # type: ignore[no-untyped-call]  # has no types
    except (OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - any error means that the bytes are not sound
        problems = [str(error) or repr(error)]
    if problems:
        raise StoreDamagedError(_summarize(problems))


def _codec(seal: bytes | None, unlock: bytes | None, path: Path) -> RecordCodec:
    if seal is None:
        return PlainCodec()
    from greenroom.runtime.lmdb.record_cipher import SealedCodec, unwrap  # noqa: PLC0415 - see there

    return SealedCodec(unwrap(seal, unlock, os.fspath(path)))


def _read(
    environment: lmdb.Environment,
    transaction: lmdb.Transaction[bytes],
    name: bytes,
    codec: RecordCodec,
    damaged: list[tuple[str, str, str]],
) -> dict[str, int]:
    """Read a whole table; add table, key and place of each damaged record."""
    table = environment.open_db(name, txn=transaction, create=False)
    entries = transaction.stat(table)["entries"]
    unseal = codec.open
    rows = size = 0
    last = b""
    for key, record in transaction.cursor(table):
        rows += 1
        size += len(key) + len(record)
        if key <= last or rows > entries:
            raise StoreDamagedError(f"the keys of the table {name.decode()} are out of order after {last!r}")
        last = key
        try:
            unseal(key, record)
        except RecordDamagedError as error:
            damaged.append((name.decode(), error.key.hex(), "" if error.key == key else key.hex()))
            if len(damaged) > _MOST_DAMAGED:
                raise StoreDamagedError(f"more than {_MOST_DAMAGED:,} records: {error}") from None
    if rows != entries:
        raise StoreDamagedError(f"the table {name.decode()} has {rows} rows and counts {entries}")
    return {"rows": rows, "bytes": size}


def _summarize(problems: list[str]) -> str:
    more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
    return "; ".join(problems[:_NAMED]) + more


def main(path: str, records: str, compact: str) -> None:
    """Inspect and print the outcome as one line of JSON. The arguments come from `integrity`.

    The key, if any, comes over standard input, because arguments are public.
    """
    outcome: dict[str, Any]
    try:
        try:
            outcome = inspect(
                Path(path),
                records=bool(records),
                compact=Path(compact) if compact else None,
                unlock=sys.stdin.buffer.read() or None,
            )
        except (lmdb.Error, OSError) as error:
            raise store_error(error, f"{path} cannot be read or copied") from error
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
