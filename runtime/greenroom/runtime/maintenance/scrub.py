"""The scrub: all of an open store is read behind what is served, and damage ends the serving.

Not everything can be read before a store is opened: a large one would keep its clients waiting, and so would
each takeover. What was not is *unchecked* until a child process has read a copy to the end, the structure and
every record. A disk may forget what it had a day ago, so that is done again each day.

1. Only the process that owns the folder does it, for it alone has a `Runtime`.
2. The copy takes as much room in the folder as the store's file, beside what is kept free. Without that room
   the store stays as it is, the log says so, and an hour later it is tried again.
3. The copy is written at `COPY_RATE`, so that commits have the disk to themselves for most of the time. As
   long as it takes, pages that are freed are not used again: the file may grow by what is written meanwhile.
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
from greenroom.runtime.maintenance.backup import room_for_copy, temporary
from greenroom.runtime.store.integrity import inspect_file
from greenroom.runtime.store.store import Store

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 10.0
"""After the opening of a store that is unchecked: its clients' first requests have the machine until then."""
AGAIN_SECONDS: Final = 86_400.0
RETRY_SECONDS: Final = 3_600.0
COPY_RATE: Final = 64 << 20
"""Bytes a second."""
_PIECE: Final = 1 << 20
_COPY: Final = DATA_FILE + ".scrubbing"
LOWEST_PRIORITY: Final = 19


async def scrub(store: Store) -> None:
    """Have the store read now and then, for ever.

    Raises:
        StoreDamagedError: it is damaged.
    """
    await trio.sleep(AGAIN_SECONDS if store.is_checked else FIRST_SECONDS)
    while True:
        try:
            await trio.to_thread.run_sync(_scrub_once, store, trio.from_thread.check_cancelled)
        except StoreDamagedError:
            raise
        except StoreError as error:
            logger.warning("the store could not be scrubbed: %s", error)
            await trio.sleep(RETRY_SECONDS)
        else:
            store.is_checked = True
            await trio.sleep(AGAIN_SECONDS)


def _scrub_once(store: Store, poll: Callable[[], None]) -> None:
    room_for_copy(store)
    path = store.folder / _COPY
    try:
        with temporary(path) as descriptor:
            _copy_slowly(store, descriptor, poll)
            inspect_file(
                path,
                name=os.fspath(store.folder / DATA_FILE),
                records=True,
                unlock=store.unlock,
                priority=LOWEST_PRIORITY,
                poll=poll,
            )
    except OSError as error:
        raise folder_error(error, f"{path} cannot be written") from error


def _copy_slowly(store: Store, target: int, poll: Callable[[], None]) -> None:
    """Copy the store's file as of now, at a rate."""
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
