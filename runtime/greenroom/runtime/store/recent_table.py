"""Read the recent rows of an owner that did not end in order."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from greenroom.runtime.base.errors import RecordDamagedError, StoreDamagedError
from greenroom.runtime.lmdb.codec import RecordCodec
from greenroom.runtime.lmdb.environment import REMEDY, TABLES
from greenroom.runtime.lmdb.recent import RecentRows, unpack
from greenroom.runtime.lmdb.write_batch import Changes
from greenroom.runtime.store.page_proofs import Prover


def read_recent(path: Path, codec: RecordCodec) -> tuple[RecentRows, int]:
    """Return the recent rows of a store's file, and the number of the last one.

    Raises:
        StoreDamagedError: One of them cannot be read, and is not mended.
    """
    changes: list[Changes] = [{} for _ in TABLES]
    last = count = 0
    with closing(Prover(path, codec)) as prover:
        tree = prover.recent(prover.names(max(prover.heads())))
        for row in tree.forward(b""):
            last, count = int.from_bytes(row.key), count + 1
            try:
                payload: bytes | None = prover.open(row.key, row.value)
            except RecordDamagedError:
                payload = codec.mend(row.key, prover.value(row.value))
            found = None if payload is None else unpack(payload)
            if found is None:
                raise _damaged(path)
            table, key, record = found
            changes[table][key] = None if record is None else codec.open(key, record)
    if count != tree.rows:  # an older version of a page
        raise _damaged(path)
    return RecentRows(changes), last


def has_recent(path: Path) -> bool:
    """Return whether a store's file has recent rows."""
    with closing(Prover(path, None)) as prover:
        return prover.recent(prover.names(max(prover.heads()))).rows > 0


def _damaged(path: Path) -> StoreDamagedError:
    return StoreDamagedError(
        f"{path} is damaged: a change of the last seconds before its last owner ended cannot be read; "
        f"{REMEDY}"
    )
