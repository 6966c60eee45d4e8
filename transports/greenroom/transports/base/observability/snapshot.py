"""A snapshot of a server's metrics, taken in the event loop.

It is cheap and immutable, so that another thread can render it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from greenroom.actors import GetEmbedding, Imitations
from greenroom.runtime.base.system import program_version
from greenroom.transports.base.observability.access import AccessMeter, AccessStatistics
from greenroom.transports.base.observability.meter import OUTCOMES, Outcome, RequestCounts, RequestMeter
from greenroom.transports.base.observability.presence import Presence, RequestHistory

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
        """The number of open connections."""

    @property
    def accepted(self) -> int:
        """The number of connections accepted since the start."""

    @property
    def refused(self) -> int:
        """The number of connections refused since the start."""


class Snapshot(NamedTuple):
    """The state of a server at one moment.

    Attributes:
        savings: The savings that this process counted since its start.
    """

    requests: list[RequestCounts]
    runtime: RuntimeStatistics
    connections: Mapping[str, ConnectionStatistics]
    access: AccessStatistics
    savings: Sequence[SavingsRow] = ()


def _uptime() -> float:
    """Return CLOCK_BOOTTIME in seconds: monotonic, including suspend."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ObservedServer:
    """A server that can be observed.

    Args:
        is_stopping: Returns whether the server accepts no further request.
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
        self.reporter = Presence(
            runtime,
            RequestHistory(meter, time.time),
            lambda: {name: said.connections for name, said in self.connections().items()},
        )

    def add_transport(self, transport: str, statistics: Callable[[], ConnectionStatistics]) -> None:
        """Add a transport; the function returns its statistics."""
        self._transports[transport] = statistics

    def snapshot(self) -> Snapshot:
        """Return the current figures.

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
        """Whether the server accepts no further request."""
        return self._is_stopping()

    def presence(self) -> ProcessPresence:
        """Return the presence report of this process; raises what `snapshot` raises."""
        return self.reporter.report()

    def end_browser(self, browser: str) -> bool:
        """Log a browser out; return whether it was logged in here."""
        return self.reporter.end_browser(browser)

    async def figures(self, *, often: bool = False) -> dict[str, Any]:
        """Return the figures of `greenroom stats --json` for a running server, as JSON values.

        Args:
            often: Omit namespaces that imitate a person's: the check for them reads every namespace.
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

    def connections(self) -> dict[str, ConnectionStatistics]:
        """Return the current connection statistics of each transport, by name."""
        return {name: statistics() for name, statistics in self._transports.items()}

    def outcomes(self) -> dict[Outcome, int]:
        """Return how many requests had each outcome."""
        counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        for each in self._meter.snapshot():
            counts[each.outcome] += sum(each.buckets)
        return counts
