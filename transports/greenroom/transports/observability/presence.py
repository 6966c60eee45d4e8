"""What a process tells the owner of the folder of itself, for people: who is connected, how much is asked."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Final

import trio

from greenroom.actors.presence.actor import PRESENCE, TELL_SECONDS
from greenroom.actors.schemas.presence import ConnectedClient, LeavePresence, ProcessPresence, TellPresence
from greenroom.runtime import GreenroomError, RuntimeClient
from greenroom.runtime.sharing.frames import program_version
from greenroom.transports.observability.history import RequestHistory

MOST_CLIENTS: Final = 1_000
LEAVE_SECONDS: Final = 0.1
"""How long the owner may take to hear that this process ends: it forgets it soon in any case."""
logger = logging.getLogger(__name__)

Clients = Callable[[], Iterable[ConnectedClient]]


class Presence:
    """What is told of this process.

    Args:
        runtime: Its open runtime.
        history: What is asked of it.
        connections: Returns the open connections of each transport.

    Attributes:
        hooks_waiting: Events of hooks that wait to be taken, as somebody looked last.
        hooks_refused: Those that could not be read.
    """

    def __init__(
        self,
        runtime: RuntimeClient,
        history: RequestHistory,
        connections: Callable[[], dict[str, int]] = dict,
    ) -> None:
        self._id = secrets.token_hex(8)
        self._since = datetime.now(UTC)
        self._runtime = runtime
        self._history = history
        self._connections = connections
        self._clients: list[Clients] = []
        self._end_browser: Callable[[str], bool] = lambda _browser: False
        self.hooks_waiting = self.hooks_refused = 0

    def add_clients(self, clients: Clients, end_browser: Callable[[str], bool] | None = None) -> None:
        """Tell of clients as well.

        Args:
            clients: Returns those that are connected.
            end_browser: Logs one of them out, if they are browsers; returns whether there was such a one.
        """
        self._clients.append(clients)
        if end_browser is not None:
            self._end_browser = end_browser

    def end_browser(self, browser: str) -> bool:
        """Log a browser out; return whether it had logged in here."""
        return self._end_browser(browser)

    def told(self) -> ProcessPresence:
        """Return what is told now.

        Raises:
            StoreError: no owner has been reached yet.
        """
        relay = self._runtime.statistics().relay
        is_owner = relay is None or relay.role == "owner"
        everybody = [each for clients in self._clients for each in clients()]
        return ProcessPresence(
            id=self._id,
            pid=os.getpid(),
            version=program_version(),
            role="owner" if is_owner else "attached",
            since=self._since,
            clients=list(islice(everybody, MOST_CLIENTS)),
            clients_left_out=max(0, len(everybody) - MOST_CLIENTS),
            connections=self._connections(),
            traffic=self._history.traffic(),
            hooks_waiting=self.hooks_waiting if is_owner else 0,
            hooks_refused=self.hooks_refused if is_owner else 0,
        )

    async def run(self, hooks: Callable[[], Awaitable[tuple[int, int]]] | None = None) -> None:
        """Tell the owner from time to time, until it is cancelled; then that this process ends.

        Args:
            hooks: Returns how many events of hooks wait, and how many could not be read.
        """
        try:
            while True:
                try:
                    if hooks is not None:
                        self.hooks_waiting, self.hooks_refused = await hooks()
                    for browser in await self._runtime.ask(PRESENCE, TellPresence(process=self.told())):
                        self._end_browser(browser)
                except (
                    GreenroomError,
                    OSError,
                ) as error:  # a takeover, or an older owner
                    logger.debug("this process cannot tell of itself now: %s", error)
                await trio.sleep(TELL_SECONDS)
        finally:
            with trio.move_on_after(LEAVE_SECONDS, shield=True):
                try:
                    await self._runtime.ask(PRESENCE, LeavePresence(process=self._id))
                except GreenroomError as error:
                    logger.debug("this process cannot tell that it ends: %s", error)
