"""The child process of the check: read one LMDB file and report its damage.

It runs in its own process (see `integrity`), because a damaged file can crash its reader. It must start
quickly, so it imports neither trio nor any package above the store.

First `lmdb.verify` reads the file as bytes. It checks what LMDB's writer relies on: page headers, key order,
counts, and the free pages. `Prover` checks that each key is where a search looks for it. The file is opened
only after that.
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

from greenroom.runtime.base import errors
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.encryption import unseal
from greenroom.runtime.lmdb.environment import RECENT_TABLE, SEAL_KEY, TABLES, check_format, store_error
from greenroom.runtime.store.page_proofs import Prover

OUTCOMES: Final[dict[str, type[errors.StoreError]]] = {
    "damaged": errors.StoreDamagedError,
    "too new": errors.StoreTooNewError,
    "full": errors.StorageFullError,
    "locked": errors.StoreKeyError,
    "failed": errors.StoreError,
}
"""The errors that the child reports by name, the base class last."""

_NAMED = 5  # findings in a sentence
_MOST_DAMAGED: Final = 10_000
"""More damaged records mean another kind of damage."""


def inspect(
    path: Path, *, records: bool, compact: Path | None, unlock: bytes | None = None
) -> dict[str, Any]:
    """Return the damaged records and, if records are read, rows and bytes by table."""
    _check_bytes(path)
    environment = lmdb.open(os.fspath(path), subdir=False, readonly=True, lock=False, max_dbs=len(TABLES) + 1)
    with environment, environment.begin() as transaction:
        if check_format(transaction, path) is None:
            return {"tables": {}}
        with closing(Prover(path, None)) as prover:
            prover.prove_keys()
        tables = {}
        damaged: list[tuple[str, str, str]] = []
        seal = transaction.get(SEAL_KEY)
        if records:
            codec = unseal(seal, unlock, os.fspath(path)).codec
            tables = {name.decode(): _read(environment, transaction, name, codec, damaged) for name in TABLES}
            if transaction.get(RECENT_TABLE) is not None:  # stores before format 4 have none
                _read(environment, transaction, RECENT_TABLE, codec, damaged)
        if compact is not None:
            # This must not create the file: the parent may be dead by now, and have removed it.
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
        more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
        raise errors.StoreDamagedError("; ".join(problems[:_NAMED]) + more)


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
    open_record = codec.open
    rows = size = 0
    last = b""
    for key, record in transaction.cursor(table):
        rows += 1
        size += len(key) + len(record)
        if key <= last or rows > entries:
            raise errors.StoreDamagedError(
                f"the keys of the table {name.decode()} are out of order after {last!r}"
            )
        last = key
        try:
            open_record(key, record)
        except errors.RecordDamagedError as error:
            damaged.append((name.decode(), error.key.hex(), "" if error.key == key else key.hex()))
            if len(damaged) > _MOST_DAMAGED:
                raise errors.StoreDamagedError(f"more than {_MOST_DAMAGED:,} records: {error}") from None
    if rows != entries:
        raise errors.StoreDamagedError(f"the table {name.decode()} has {rows} rows and counts {entries}")
    return {"rows": rows, "bytes": size}


def main(path: str, records: str, compact: str) -> None:
    """Inspect and print the outcome as one line of JSON. The arguments come from `integrity`.

    The key, if any, comes from standard input, because arguments are public.
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
    except errors.StoreError as error:
        name = next(name for name, kind in OUTCOMES.items() if isinstance(error, kind))
        outcome = {name: str(error)}
    sys.stdout.write(json.dumps(outcome))
