"""One look at a whole server: the values that a scrape renders, taken in the event loop.

Taking a look is cheap. What it takes is frozen, so that it can be rendered in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from greenroom.runtime import Runtime
    from greenroom.runtime import RuntimeStatistics as RuntimeStatistics
    from greenroom.transports.observability._meter import RequestMeter, Requests


class Connections(Protocol):
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


class Look(NamedTuple):
    """A server at one moment.

    Attributes:
        requests: What became of its requests.
        runtime: What the parts of the runtime say of themselves.
        connections: What each transport says of its clients, by the transport's name.
    """

    requests: list[Requests]
    runtime: RuntimeStatistics
    connections: Mapping[str, Connections]


class Watched:
    """A server that can be looked at.

    Args:
        meter: Counts its requests.
        runtime: Its open runtime.
        transports: Each transport's statistics, by the transport's name.
    """

    def __init__(
        self, meter: RequestMeter, runtime: Runtime, transports: Mapping[str, Callable[[], Connections]]
    ) -> None:
        self._meter = meter
        self._runtime = runtime
        self._transports = transports

    def look(self) -> Look:
        """Return the figures of this moment.

        Raises:
            StoreError: The store is closed or cannot be read.
        """
        return Look(
            self._meter.snapshot(),
            self._runtime.statistics(),
            {name: statistics() for name, statistics in self._transports.items()},
        )
