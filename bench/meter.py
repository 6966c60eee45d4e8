"""What a process writes to the disk, what actors stage, and when a store is at rest.

`write_bytes` of Linux counts whole folios of the page cache, up to 1 MiB for a page of 4 KiB. So `wchar` is
counted, the bytes that were handed over to be written, and a page more for each commit: with a part of one of
its first two pages LMDB ends it. Or all sectors that the disk wrote, which other programs write, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from greenroom.runtime import Store, WriteBatch

CAN_MEASURE: Final = sys.platform == "linux"
PAGE: Final = 4_096
_SECTOR: Final = 512
_REST_BYTES: Final = 256 << 10
"""So much may be written while a store is at rest: leases are renewed."""
_LOOK_SECONDS: Final = 0.25
_PATIENCE: Final = 3_600.0


def handed_over(pid: int | str, *, main_thread: bool = True) -> int:
    """Return how many bytes a process has written, also one that has ended and nobody has waited for.

    Args:
        pid: The process.
        main_thread: Whether its first thread counts, which writes into pipes, and commits nothing.
    """
    place = Path(f"/proc/{pid}")
    written = _wchar(place / "io")
    first = str(os.getpid()) if pid == "self" else str(pid)
    return written if main_thread else written - _wchar(place / "task" / first / "io")


def _wchar(path: Path) -> int:
    fields = dict(line.split(": ") for line in path.read_text().splitlines())
    return int(fields["wchar"])


def disk_written(folder: Path) -> int:
    """Return how many bytes the disk under a folder has written since the system's start."""
    os.sync()
    device = folder.stat().st_dev
    statistics = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
    return int(statistics[6]) * _SECTOR


async def rest(written: Callable[[], int], seconds: float) -> None:
    """Wait until next to nothing was written for so long."""
    with trio.fail_after(_PATIENCE):
        last, since = written(), trio.current_time()
        while trio.current_time() < since + seconds:
            await trio.sleep(_LOOK_SECONDS)
            if written() > last + _REST_BYTES:
                last, since = written(), trio.current_time()


class Commits:
    """What this process commits.

    Attributes:
        count: The commits.
        rows: What actors staged in them, journals included, without the heads that the store adds.
    """

    def __init__(self) -> None:
        self.count = self.rows = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count within the block."""
        original = Store.commit

        def commit(store: Store, units: Sequence[WriteBatch]) -> None:
            self.count += 1
            self.rows += sum(sum(map(len, unit.changes)) + len(unit.entries) for unit in units)
            original(store, units)

        Store.commit = commit  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            Store.commit = original  # type: ignore[method-assign]
