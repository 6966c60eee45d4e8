"""The peer of `durable`: SQLite in WAL mode, one transaction a write, callers in threads."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Literal

from bench.records import Load, Written, key_of, record_of

if TYPE_CHECKING:
    from pathlib import Path

Synchronous = Literal["FULL", "NORMAL"]
INSERT = "INSERT INTO records (key, record) VALUES (?, ?)"


def direct(path: Path, synchronous: Synchronous, load: Load) -> Written:
    """Let each caller's thread write. The lock spares them SQLite's busy waiting, slower and unfair."""
    with closing(_open(path, synchronous)) as connection:
        lock = threading.Lock()

        def write(key: bytes, record: bytes) -> None:
            with lock:
                connection.execute(INSERT, (key, record))

        return _callers(load, lambda: write)


def through_a_thread(path: Path, synchronous: Synchronous, load: Load) -> Written:
    """Let one thread write what callers put into its queue."""
    queue: SimpleQueue[tuple[bytes, bytes, SimpleQueue[None]] | None] = SimpleQueue()

    def writer() -> None:
        with closing(_open(path, synchronous)) as connection:
            while (job := queue.get()) is not None:
                key, record, done = job
                connection.execute(INSERT, (key, record))
                done.put(None)

    def door() -> Callable[[bytes, bytes], None]:
        return partial(_hand_over, queue, SimpleQueue())

    thread = threading.Thread(target=writer)
    thread.start()
    try:
        return _callers(load, door)
    finally:
        queue.put(None)
        thread.join()


def read_all(path: Path) -> dict[bytes, bytes]:
    """Return all records by key."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT key, record FROM records").fetchall())


def _open(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    # Without an isolation level every statement is a transaction of its own.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS records (key BLOB PRIMARY KEY, record BLOB) WITHOUT ROWID")
    return connection


def _hand_over(
    queue: SimpleQueue[tuple[bytes, bytes, SimpleQueue[None]] | None],
    done: SimpleQueue[None],
    key: bytes,
    record: bytes,
) -> None:
    queue.put((key, record, done))
    done.get()


def _callers(load: Load, door: Callable[[], Callable[[bytes, bytes], None]]) -> Written:
    counts = [0] * load.callers
    barrier = threading.Barrier(load.callers + 1)
    end = 0.0

    def caller(number: int) -> None:
        write = door()
        barrier.wait()
        while time.perf_counter() < end:
            key = key_of(number, counts[number])
            write(key, record_of(key))
            counts[number] += 1

    threads = [threading.Thread(target=caller, args=[number]) for number in range(load.callers)]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    end = began + load.seconds
    barrier.wait()
    for thread in threads:
        thread.join()
    return Written(counts, time.perf_counter() - began)
