"""Prometheus metrics of a server, derived from the annotated fields of its statistics.

Names follow Prometheus' conventions: base units, and `_total` for counters, which the exposition adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from greenroom.runtime import RuntimeStatistics
from greenroom.transports.base.observability.access import AccessStatistics
from greenroom.transports.base.observability.snapshot import Snapshot


class Metric(NamedTuple):
    """One metric of a server.

    Attributes:
        path: The fields that lead to it from a `Snapshot`.
        reading: How a value that is not a number becomes one; see `greenroom.runtime`'s `gauge`.
    """

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    help: str
    path: tuple[str, ...]
    reading: Mapping[str, Any]

    def read(self, now: Snapshot) -> Any:
        """Return its value in a snapshot: a number, or a histogram's `Distribution`."""
        value: Any = now
        for field in self.path:
            value = getattr(value, field)
            if value is None:
                return self.reading.get("absent", 0)
        if "one" in self.reading:
            return int(value == self.reading["one"])
        if "scale" in self.reading:
            return value * self.reading["scale"]
        return len(value) if isinstance(value, list) else value


def _metrics(statistics: type[Any], path: tuple[str, ...]) -> Iterator[Metric]:
    for field, hint in get_type_hints(statistics, include_extras=True).items():
        here = (*path, field)
        if get_origin(hint) is not Annotated:  # a part of the statistics, or None
            yield from _metrics(next(iter(get_args(hint)), hint), here)
        elif (extra := hint.__metadata__[0].extra) is not None:
            reading = {key: extra[key] for key in extra.keys() - {"kind", "name"}}
            yield Metric(extra["kind"], extra["name"], hint.__metadata__[0].description, here, reading)


METRICS: Final = (
    *_metrics(RuntimeStatistics, ("runtime",)),
    *_metrics(AccessStatistics, ("access",)),
)
"""All metrics; counters count since the start of the server."""
