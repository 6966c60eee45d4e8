"""The owner's side of the spool: what waits is taken into the store, and removed once it is committed.

A process killed between the two finds the event again; its id is known by then, and it is taken once.
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
"""After which what could not be taken is tried again, unless somebody pokes before."""
_LOOK_SECONDS: Final = 0.02
_FOR_GOOD: Final = (SpoolError, Refusal, ActorFailedError)
"""Errors that an event would meet again; others say that the store takes nothing now."""
logger = logging.getLogger(__name__)


async def take_waiting(runtime: SharedRuntime, folder: Path, seconds: float) -> None:
    """Take what waits, for a command that is about to read, or let the owner take it.

    Args:
        runtime: The open runtime.
        folder: The data folder.
        seconds: After which the rest is left to the owner, as is what cannot be taken now.
    """
    try:
        with trio.move_on_after(seconds):
            if runtime.role == "owner":
                await Drain(runtime, folder).take_all()
                return
            # It may just have started, and tells other processes nothing.
            while await read_in_thread(spool.names_in, folder):  # noqa: ASYNC110
                await trio.sleep(_LOOK_SECONDS)
    except (GreenroomError, OSError) as error:
        logger.warning("what hooks left in %s cannot be taken now: %s", folder, error)


class Drain:
    """Takes what waits in the spool of a folder: when it starts to run, and whenever it is poked.

    Args:
        runtime: The open runtime, of the process that owns the folder by the time it runs.
        folder: The data folder.
    """

    def __init__(self, runtime: RuntimeClient, folder: Path) -> None:
        self._runtime = runtime
        self._folder = folder
        self._poked = trio.Event()
        self._idle = trio.Event()

    def poke(self) -> None:
        """Say that something may wait. This returns at once."""
        self._poked.set()
        if self._idle.is_set():
            self._idle = trio.Event()

    async def caught_up(self) -> None:
        """Wait until nothing of what was told before waits, or what does cannot be taken now."""
        await self._idle.wait()

    async def run(self) -> None:
        """Take what waits until it is cancelled. What goes wrong is logged, and tried again later."""
        is_settled = False
        while True:
            self._poked = trio.Event()
            is_done = False
            try:
                if not is_settled:
                    await read_in_thread(spool.settle, self._folder)
                    is_settled = True
                is_done = await self.take_all()
            except (GreenroomError, OSError) as error:
                logger.warning("what hooks left in %s cannot be taken now: %s", self._folder, error)
            if not self._poked.is_set():
                self._idle.set()
            with trio.move_on_after(math.inf if is_done else RETRY_SECONDS):
                await self._poked.wait()

    async def take_all(self) -> bool:
        """Take everything that waits now, oldest first; return whether nothing is left of it.

        Raises:
            GreenroomError: The store takes nothing now.
            OSError: The spool cannot be read.
        """
        names = await read_in_thread(spool.names_in, self._folder)
        return all([await self._is_taken(name) for name in names])

    async def _is_taken(self, name: str) -> bool:
        try:
            entry = await read_in_thread(spool.read_entry, self._folder, name)
            await self._runtime.query(TakeHookEvent(event=entry.event), principal=entry.principal)
        except FileNotFoundError:
            return True
        except (OSError, ActorQuarantinedError) as error:  # another user's may be taken all the same
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
            await read_in_thread(spool.refuse, self._folder, name)
            return True
        await read_in_thread(spool.remove, self._folder, name)
        return True
