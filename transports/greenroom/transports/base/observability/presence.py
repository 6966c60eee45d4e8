"""The presence report of a process to the owner of the folder: connections and traffic."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from greenroom.actors.core.presence.heartbeat import is_owner, send_heartbeats
from greenroom.actors.core.presence.requests import ConnectedClient, ProcessPresence
from greenroom.runtime import RuntimeClient
from greenroom.runtime.base.version import program_version
from greenroom.transports.base.observability.history import RequestHistory

MOST_CLIENTS: Final = 1_000

Clients = Callable[[], Iterable[ConnectedClient]]


class Presence:
    """The presence report of this process.

    Attributes:
        hooks_waiting: Hook events that wait in the spool, as of the last look.
        hooks_refused: Hook events that could not be read.
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
        """Include clients in the report.

        Args:
            clients: Returns those that are connected.
            end_browser: Logs one of them out, if they are browsers; returns whether it was logged in.
        """
        self._clients.append(clients)
        if end_browser is not None:
            self._end_browser = end_browser

    def end_browser(self, browser: str) -> bool:
        """Log a browser out; return whether it was logged in here."""
        return self._end_browser(browser)

    def report(self) -> ProcessPresence:
        """Return the current report.

        Raises:
            StoreError: No owner has been reached yet.
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
        """Report to the owner at intervals until cancelled, then report the end of this process.

        Args:
            hooks: Returns how many hook events wait, and how many could not be read.
        """

        async def report() -> ProcessPresence:
            if hooks is not None:
                self.hooks_waiting, self.hooks_refused = await hooks()
            return self.report()

        await send_heartbeats(self._runtime, self._id, report, self._end_browser)
