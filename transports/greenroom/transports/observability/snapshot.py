"""One snapshot at a whole server: the values that a scrape renders, taken in the event loop.

Taking a snapshot is cheap. What it takes is frozen, so that it can be rendered in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from greenroom.transports.observability.meter import OUTCOMES

if TYPE_CHECKING:
    from greenroom.runtime import RuntimeClient
    from greenroom.runtime import RuntimeStatistics as RuntimeStatistics
    from greenroom.transports.observability.meter import Outcome, RequestCounts, RequestMeter


class ConnectionStatistics(Protocol):
    """What a transport says of those who connected to it."""

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
        requests: What became of its requests.
        runtime: What the parts of the runtime say of themselves.
        connections: What each transport says of its clients, by the transport's name.
    """

    requests: list[RequestCounts]
    runtime: RuntimeStatistics
    connections: Mapping[str, ConnectionStatistics]


class ObservedServer:
    """A server that can be looked at.

    Args:
        meter: Counts its requests.
        runtime: Its open runtime.

    Attributes:
        runtime: The same.
    """

    def __init__(self, meter: RequestMeter, runtime: RuntimeClient) -> None:
        self._meter = meter
        self.runtime = runtime
        self._transports: dict[str, Callable[[], ConnectionStatistics]] = {}

    def add_transport(self, transport: str, statistics: Callable[[], ConnectionStatistics]) -> None:
        """Look at a transport, too, which tells its statistics when it is asked."""
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
        )

    def connections(self) -> dict[str, ConnectionStatistics]:
        """Return what each transport says of its clients now, by the transport's name."""
        return {name: statistics() for name, statistics in self._transports.items()}

    def outcomes(self) -> dict[Outcome, int]:
        """Return how many requests have ended in which way."""
        counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        for each in self._meter.snapshot():
            counts[each.outcome] += sum(each.buckets)
        return counts
