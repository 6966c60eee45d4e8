"""The scrub: check a whole open store while it is served.

To check a large store before opening it would make clients wait, also at each takeover. So a store stays
*unchecked* until a child process has read a whole copy: the structure and every record. Damaged records are
recorded, and the rest is served: see `store.record_damage`. A damaged structure ends the runtime. Disks
decay, so the scrub is repeated each day.

1. Only the owner of the folder scrubs: it alone has a `Runtime`.
2. The copy needs as much room in the folder as the store's file, beside `min_free`. Without this room, the
   log reports that, and the scrub retries an hour later.
3. The copy is written at `COPY_RATE`, so that commits have the disk for most of the time. During the copy
   freed pages are not reused, so the file may grow by the bytes that are written.
4. The child that reads it has the lowest priority.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final

import trio

from greenroom.runtime.base.errors import StoreDamagedError, StoreError
from greenroom.runtime.lmdb.files import DATA_FILE, folder_error
from greenroom.runtime.maintenance.backup import room_for_copy
from greenroom.runtime.maintenance.temporary_copies import temporary
from greenroom.runtime.store.integrity import inspect_file
from greenroom.runtime.store.record_damage import DamagedRecord, StoreCheck
from greenroom.runtime.store.store import Store

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 10.0
"""The delay after the opening, which leaves the machine to the first requests."""
AGAIN_SECONDS: Final = 86_400.0
RETRY_SECONDS: Final = 3_600.0
COPY_RATE: Final = 64 << 20
"""The speed of the copy, in bytes a second."""
_PIECE: Final = 1 << 20
LOWEST_PRIORITY: Final = 19


async def scrub(store: Store) -> None:
    """Check the store once a day, forever; raise damage beyond single records."""
    await trio.sleep(AGAIN_SECONDS if store.is_checked else FIRST_SECONDS)
    while True:
        since = store.damage.step
        try:
            check = await trio.to_thread.run_sync(_scrub_once, store, trio.from_thread.check_cancelled)
        except StoreDamagedError:
            raise
        except StoreError as error:
            logger.warning("the store could not be scrubbed: %s", error)
            await trio.sleep(RETRY_SECONDS)
        else:
            store.take_check(check, since)
            await trio.sleep(AGAIN_SECONDS)


def _scrub_once(store: Store, poll: Callable[[], None]) -> StoreCheck:
    room_for_copy(store)
    damaged: list[DamagedRecord] = []
    try:
        with temporary(store.folder) as (path, descriptor):
            _copy_slowly(store, descriptor, poll)
            inspect_file(
                path,
                name=os.fspath(store.folder / DATA_FILE),
                records=True,
                unlock=store.unlock,
                priority=LOWEST_PRIORITY,
                poll=poll,
                on_damage=damaged.append,
            )
    except OSError as error:
        raise folder_error(error, f"no copy of the store can be written to {store.folder}") from error
    return StoreCheck(is_whole=True, damaged=tuple(damaged))


def _copy_slowly(store: Store, target: int, poll: Callable[[], None]) -> None:
    """Copy the store's file at `COPY_RATE`."""
    reading, writing = os.pipe()
    failures: list[StoreError] = []

    def copy() -> None:
        try:
            store.copy_to(writing)
        except StoreError as error:
            failures.append(error)
        finally:
            os.close(writing)

    copier = threading.Thread(target=copy, name="greenroom-scrub")
    copier.start()
    try:
        began, done = time.monotonic(), 0
        with os.fdopen(reading, "rb", buffering=_PIECE) as source, os.fdopen(os.dup(target), "wb") as copied:
            while piece := source.read(_PIECE):
                copied.write(piece)
                done += len(piece)
                poll()
                time.sleep(max(0.0, began + done / COPY_RATE - time.monotonic()))
    finally:
        copier.join()  # without a reader it ends at once
    for failure in failures:
        raise failure
