"""A snapshot of a whole server: the values that a scrape renders, taken in the event loop.

Taking one is cheap. It is frozen, so that it can be rendered in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from greenroom.transports.observability.access import AccessMeter, AccessStatistics
from greenroom.transports.observability.meter import OUTCOMES, Outcome, RequestCounts, RequestMeter

if TYPE_CHECKING:
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
    """

    requests: list[RequestCounts]
    runtime: RuntimeStatistics
    connections: Mapping[str, ConnectionStatistics]
    access: AccessStatistics


class ObservedServer:
    """A server that can be observed.

    Args:
        meter: Counts its requests.
        runtime: Its open runtime.
        access: Counts who is let in and what is exported, where somebody tells it.

    Attributes:
        runtime: The same.
    """

    def __init__(
        self, meter: RequestMeter, runtime: RuntimeClient, access: AccessMeter | None = None
    ) -> None:
        self._meter = meter
        self._access = access or AccessMeter()
        self.runtime = runtime
        self._transports: dict[str, Callable[[], ConnectionStatistics]] = {}

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
        )

    def connections(self) -> dict[str, ConnectionStatistics]:
        """Return the connection statistics of each transport now, by its name."""
        return {name: statistics() for name, statistics in self._transports.items()}

    def outcomes(self) -> dict[Outcome, int]:
        """Return how many requests have ended in which way."""
        counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        for each in self._meter.snapshot():
            counts[each.outcome] += sum(each.buckets)
        return counts
