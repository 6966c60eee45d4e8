"""A process's presence report to the owner of the folder: connections, an hour of traffic."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from greenroom.actors.core.presence.heartbeat import is_owner, send_heartbeats
from greenroom.actors.core.presence.requests import (
    ConnectedClient,
    MinuteTraffic,
    OperationTraffic,
    ProcessPresence,
    Traffic,
)
from greenroom.runtime import RuntimeClient
from greenroom.runtime.base.system import program_version
from greenroom.transports.base.observability.meter import (
    API,
    BUCKET_BOUNDS,
    OTHER,
    RequestCounts,
    RequestMeter,
)

MOST_CLIENTS: Final = 1_000
MINUTES: Final = 60
_CLASSES: Final = len(BUCKET_BOUNDS) + 1
_FAILED: Final = frozenset({"error", "tool_error"})

Clients = Callable[[], Iterable[ConnectedClient]]


class RequestHistory:
    """The counts of a meter for each minute of the last hour.

    A count belongs to the minute of the `look` that saw it first, so `look` must be called often.

    Args:
        now: Returns the wall clock in seconds since 1970 UTC.
    """

    def __init__(self, meter: RequestMeter, now: Callable[[], float]) -> None:
        self._meter = meter
        self._now = now
        self._before: dict[str, list[int]] = self._totals()
        self._minutes: dict[int, dict[str, list[int]]] = {}

    def look(self) -> None:
        """Record the counts since the last look."""
        minute = int(self._now() // 60)
        totals = self._totals()
        for name, total in totals.items():
            known = self._before.get(name, [0] * (_CLASSES + 1))
            if total != known:
                new = self._minutes.setdefault(minute, {}).setdefault(name, [0] * (_CLASSES + 1))
                for place, count in enumerate(total):
                    new[place] += count - known[place]
        self._before = totals
        for old in [each for each in self._minutes if not minute - MINUTES < each <= minute]:
            del self._minutes[old]

    def traffic(self) -> Traffic:
        """Return the traffic of the last hour, until now."""
        self.look()
        operations: dict[str, list[int]] = {}
        minutes = []
        for minute, kinds in sorted(self._minutes.items()):
            sums = [0] * (_CLASSES + 1)
            for name, counts in kinds.items():
                of_kind = operations.setdefault(name, [0] * (_CLASSES + 1))
                for place, count in enumerate(counts):
                    sums[place] += count
                    of_kind[place] += count
            minutes.append(MinuteTraffic(minute, tuple(sums[:-1]), sums[-1]))
        return Traffic(
            bounds=BUCKET_BOUNDS,
            minutes=minutes,
            operations=[
                OperationTraffic(name, tuple(counts[:-1]), counts[-1]) for name, counts in operations.items()
            ],
        )

    def _totals(self) -> dict[str, list[int]]:
        """Return the totals of each kind since the start: its time classes, then its failures."""
        totals: dict[str, list[int]] = {}
        for row in self._meter.snapshot(with_idle=False):
            name = _named(row)
            sums = totals.setdefault(name, [0] * (_CLASSES + 1))
            for place, count in enumerate(row.buckets):
                sums[place] += count
            if row.outcome in _FAILED:
                sums[-1] += sum(row.buckets)
        return totals


def _named(row: RequestCounts) -> str:
    """Return the display name of a kind of request: its tool, else its method."""
    if row.tool in {"", OTHER}:
        return "pages of the console" if row.method == API else row.method
    return row.tool


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
            clients: Returns the connected clients.
            end_browser: Logs out a client that is a browser; returns whether it was logged in.
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
