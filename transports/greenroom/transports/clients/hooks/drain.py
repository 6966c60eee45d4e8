"""The owner's side of the spool: it stores events, then removes their files.

If the process is killed between the two, the event is found again and skipped, because the store has its id.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Final

import trio

from greenroom.actors import TakeHookEvent
from greenroom.actors.core.base.threads import read_in_thread
from greenroom.runtime import (
    ActorFailedError,
    ActorQuarantinedError,
    GreenroomError,
    Refusal,
    RuntimeClient,
    SharedRuntime,
)
from greenroom.transports.clients.hooks import spool
from greenroom.transports.clients.hooks.spool import SpoolError

RETRY_SECONDS: Final = 60.0
"""Seconds until events that could not be stored are retried, unless `Drain.poke` comes first."""
_LOOK_SECONDS: Final = 0.02
_FOR_GOOD: Final = (SpoolError, Refusal, ActorFailedError)
"""Errors that an event would cause again; after other errors the store accepts no event now."""
logger = logging.getLogger(__name__)


async def drain_spool(runtime: SharedRuntime, folder: Path, seconds: float) -> None:
    """Store waiting events before a command reads, or wait until the owner has stored them."""
    try:
        with trio.move_on_after(seconds):
            if runtime.role == "owner":
                await Drain(runtime, folder).take_all()
                return
            # The owner may just have started, and does not report its progress to other processes.
            while await read_in_thread(spool.names_in, folder):  # noqa: ASYNC110
                await trio.sleep(_LOOK_SECONDS)
    except (GreenroomError, OSError) as error:
        logger.warning("what hooks left in %s cannot be taken now: %s", folder, error)


class Drain:
    """Stores the events of a folder's spool: at its start, and after each `poke`."""

    def __init__(self, runtime: RuntimeClient, folder: Path) -> None:
        self._runtime = runtime
        self.folder = folder
        self._poked = trio.Event()
        self._idle = trio.Event()

    def poke(self) -> None:
        """Note that an event may be waiting, and return at once."""
        self._poked.set()
        if self._idle.is_set():
            self._idle = trio.Event()

    async def wait_until_idle(self) -> None:
        """Wait until all earlier events are stored, or cannot be stored now."""
        await self._idle.wait()

    async def run(self) -> None:
        """Store events until cancelled. Errors are logged; the events are retried later."""
        is_completed = False
        while True:
            self._poked = trio.Event()
            is_done = False
            try:
                if not is_completed:
                    await read_in_thread(spool.complete_pending, self.folder)
                    is_completed = True
                is_done = await self.take_all()
            except (GreenroomError, OSError) as error:
                logger.warning("what hooks left in %s cannot be taken now: %s", self.folder, error)
            if not self._poked.is_set():
                self._idle.set()
            with trio.move_on_after(math.inf if is_done else RETRY_SECONDS):
                await self._poked.wait()

    async def take_all(self) -> bool:
        """Store all waiting events, oldest first; return whether none is left.

        Raises:
            GreenroomError: The store accepts no events now.
            OSError: The spool cannot be read.
        """
        names = await read_in_thread(spool.names_in, self.folder)
        return all([await self._take(name) for name in names])

    async def _take(self, name: str) -> bool:
        try:
            entry = await read_in_thread(spool.read_entry, self.folder, name)
            await self._runtime.query(TakeHookEvent(event=entry.event), principal=entry.principal)
        except FileNotFoundError:
            return True
        except (OSError, ActorQuarantinedError) as error:  # other users' events may still work
            logger.warning("the event %s of a hook cannot be taken now: %s", name, error)
            return False
        except Exception as error:
            is_known = isinstance(error, GreenroomError)
            if is_known and not isinstance(error, _FOR_GOOD):
                raise
            why = error.code if isinstance(error, Refusal) else type(error).__name__  # its sentence may quote
            logger.warning(
                "the event %s of a hook is put aside: %s", name, why, exc_info=None if is_known else error
            )
            await read_in_thread(spool.refuse, self.folder, name)
            return True
        await read_in_thread(spool.remove, self.folder, name)
        return True
