"""What a process tells the owner of the folder of itself, for people: who is connected, how much is asked."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from greenroom.actors.core.presence.heartbeat import is_owner, tell_of_process
from greenroom.actors.core.presence.requests import ConnectedClient, ProcessPresence
from greenroom.runtime import RuntimeClient
from greenroom.runtime.base.version import program_version
from greenroom.transports.base.observability.history import RequestHistory

MOST_CLIENTS: Final = 1_000

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
        owns = is_owner(self._runtime)
        everybody = [each for clients in self._clients for each in clients()]
        return ProcessPresence(
            id=self._id,
            pid=os.getpid(),
            version=program_version(),
            role="owner" if owns else "attached",
            since=self._since,
            clients=list(islice(everybody, MOST_CLIENTS)),
            clients_left_out=max(0, len(everybody) - MOST_CLIENTS),
            connections=self._connections(),
            traffic=self._history.traffic(),
            hooks_waiting=self.hooks_waiting if owns else 0,
            hooks_refused=self.hooks_refused if owns else 0,
        )

    async def run(self, hooks: Callable[[], Awaitable[tuple[int, int]]] | None = None) -> None:
        """Tell the owner from time to time, until it is cancelled; then that this process ends.

        Args:
            hooks: Returns how many events of hooks wait, and how many could not be read.
        """

        async def told() -> ProcessPresence:
            if hooks is not None:
                self.hooks_waiting, self.hooks_refused = await hooks()
            return self.told()

        await tell_of_process(self._runtime, self._id, told, self._end_browser)
