"""A snapshot of a whole server: the values that a scrape renders, taken in the event loop.

Taking one is cheap. It is frozen, so that it can be rendered in another thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from greenroom.actors import GetEmbedding, Imitations
from greenroom.runtime.base.version import program_version
from greenroom.transports.base.observability.access import AccessMeter, AccessStatistics
from greenroom.transports.base.observability.history import RequestHistory
from greenroom.transports.base.observability.meter import OUTCOMES, Outcome, RequestCounts, RequestMeter
from greenroom.transports.base.observability.presence import Presence

if TYPE_CHECKING:
    from greenroom.actors import Ledger
    from greenroom.actors.app.savings.requests import SavingsRow
    from greenroom.actors.core.presence.requests import ProcessPresence
    from greenroom.runtime import RuntimeClient
    from greenroom.runtime import RuntimeStatistics as RuntimeStatistics


class ConnectionStatistics(Protocol):
    """The connection statistics of one transport."""

    @property
    def connections(self) -> int:
        """Clients that are connected now."""

    @property
    def accepted(self) -> int:
        """Clients accepted since the start."""

    @property
    def refused(self) -> int:
        """Clients refused since the start."""


class Snapshot(NamedTuple):
    """A server at one moment.

    Attributes:
        requests: The counts of its requests.
        runtime: The statistics of its runtime.
        connections: The connection statistics of each transport, by its name.
        access: Who was let in, and what was exported.
        savings: What this process counted since it was started.
    """

    requests: list[RequestCounts]
    runtime: RuntimeStatistics
    connections: Mapping[str, ConnectionStatistics]
    access: AccessStatistics
    savings: Sequence[SavingsRow] = ()


def _uptime() -> float:
    """Return seconds that nobody sets and that go on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ObservedServer:
    """A server that can be observed.

    Args:
        meter: Counts its requests.
        runtime: Its open runtime.
        access: Counts who is let in and what is exported, where somebody tells it.
        savings: Counts what is saved; None where nobody does.
        is_stopping: Returns whether it takes no further request.

    Attributes:
        runtime: The same.
        savings: The same.
        told: What the owner of the folder is told of this process.
    """

    def __init__(
        self,
        meter: RequestMeter,
        runtime: RuntimeClient,
        access: AccessMeter | None = None,
        savings: Ledger | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._started_at, self._uptime = time.time(), _uptime()
        self.savings = savings
        self._is_stopping = is_stopping
        self._meter = meter
        self._access = access or AccessMeter()
        self.runtime = runtime
        self._transports: dict[str, Callable[[], ConnectionStatistics]] = {}
        self.told = Presence(runtime, RequestHistory(meter, time.time), self._open_connections)

    def add_transport(self, transport: str, statistics: Callable[[], ConnectionStatistics]) -> None:
        """Observe a transport as well, which returns its statistics when it is called."""
        self._transports[transport] = statistics

    def snapshot(self) -> Snapshot:
        """Return the figures of this moment.

        Raises:
            StoreError: The store is closed or cannot be read.
        """
        return Snapshot(
            self._meter.snapshot(),
            self.runtime.statistics(),
            self.connections(),
            self._access.statistics(),
            [] if self.savings is None else self.savings.statistics(),
        )

    @property
    def is_stopping(self) -> bool:
        """Whether it takes no further request."""
        return self._is_stopping()

    def presence(self) -> ProcessPresence:
        """Return what people are told of this process; raises as `snapshot`."""
        return self.told.told()

    def end_browser(self, browser: str) -> bool:
        """Log a browser out; return whether it had logged in here."""
        return self.told.end_browser(browser)

    async def figures(self, *, often: bool = False) -> dict[str, Any]:
        """Return what `greenroom stats --json` says of a running server, as JSON's values.

        Args:
            often: Without the namespaces that read like somebody's, for which every namespace is looked at.
        """
        snapshot = self.snapshot()
        figures: dict[str, Any] = {
            "running": True,
            "version": program_version(),
            "clock": {"started_at": self._started_at, "up_seconds": _uptime() - self._uptime},
            **msgspec.to_builtins(snapshot.runtime),
            "embedding": msgspec.to_builtins(await self.runtime.query(GetEmbedding())),
            "requests": self.outcomes(),
            **msgspec.to_builtins(snapshot.connections),
        }
        if not often:
            figures["imitations"] = await self.runtime.query(Imitations())
        return figures

    def _open_connections(self) -> dict[str, int]:
        return {name: said.connections for name, said in self.connections().items()}

    def connections(self) -> dict[str, ConnectionStatistics]:
        """Return the connection statistics of each transport now, by its name."""
        return {name: statistics() for name, statistics in self._transports.items()}

    def outcomes(self) -> dict[Outcome, int]:
        """Return how many requests have ended in which way."""
        counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        for each in self._meter.snapshot():
            counts[each.outcome] += sum(each.buckets)
        return counts
