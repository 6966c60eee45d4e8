"""LMDB alone: one transaction a write, which waits for the disk."""

from __future__ import annotations

import os
import time
from contextlib import closing

import lmdb

from bench.harness import Plan, check
from bench.records import Load, Written, key_of, record_of

_ROOM = 1 << 30


def through_lmdb(load: Load, plan: Plan) -> float:
    """Return how many writes a second of one caller were acknowledged."""
    with plan.folder() as folder:
        path = os.fspath(folder / "peer.mdb")
        count = 0
        with closing(lmdb.open(path, subdir=False, map_size=_ROOM)) as environment:
            began = time.perf_counter()
            while time.perf_counter() < began + load.seconds:
                key = key_of(0, count)
                with environment.begin(write=True) as transaction:
                    transaction.put(key, record_of(key))
                count += 1
            written = Written([count], time.perf_counter() - began)
        with (
            closing(lmdb.open(path, subdir=False, map_size=_ROOM)) as environment,
            environment.begin() as transaction,
        ):
            found = dict(transaction.cursor())
        check(found == written.records(), "LMDB lost or made up writes")
    return written.rate()
