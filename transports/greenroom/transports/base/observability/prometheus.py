"""Render a snapshot of a server in Prometheus' text formats.

The import of this module costs about 60 ms, and rendering some milliseconds. So both happen in a thread, and
the import only at the first scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.utils import floatToGoString

from greenroom.actors.app.savings.requests import SavingsCount, SavingsRow
from greenroom.transports.base.observability.export import SAVINGS_METRICS
from greenroom.transports.base.observability.meter import BUCKET_BOUNDS, RequestCounts
from greenroom.transports.base.observability.metrics import METRICS
from greenroom.transports.base.observability.snapshot import ConnectionStatistics, Snapshot

_OF_A_TOOL: Final = ("method", "tool")
_OF_TRANSPORTS: Final = (
    (GaugeMetricFamily, "greenroom_connections", "Connections that are open.", "connections"),
    (GaugeMetricFamily, "greenroom_sessions", "Sessions of the handshake era over HTTP.", "sessions"),
    (CounterMetricFamily, "greenroom_connections_accepted", "Connections that were accepted.", "accepted"),
    (CounterMetricFamily, "greenroom_connections_refused", "Connections that were refused.", "refused"),
    (
        CounterMetricFamily,
        "greenroom_connections_overdue",
        "Connections that were closed for being too slow.",
        "overdue",
    ),
)
"""The metrics of transports: kind, name, meaning, and field of their statistics."""


def render(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """Render a snapshot; return the text and its media type."""
    encode, media_type = choose_encoder(accept)
    # A separate registry: a program that embeds the server exports its own metrics itself.
    registry = CollectorRegistry()
    registry.register(_Collector(snapshot))
    ProcessCollector(registry=registry)
    return encode(registry), media_type


class _Collector:
    """Collect the metrics of one snapshot for a registry."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("greenroom_build", "The program.", {"version": version("greenroom")})
        yield from request_families(self._snapshot.requests)
        yield from connection_families(self._snapshot.connections)
        yield from savings_families(self._snapshot.savings)
        for metric in METRICS:
            value = metric.read(self._snapshot)
            if metric.kind == "counter":
                yield CounterMetricFamily(metric.name, metric.help, value)
            elif metric.kind == "gauge":
                yield GaugeMetricFamily(metric.name, metric.help, value)
            else:
                buckets = _buckets(value.bounds, value.counts)
                yield HistogramMetricFamily(metric.name, metric.help, buckets, value.sum)


def request_families(requests: Iterable[RequestCounts]) -> Iterator[Metric]:
    """Yield the metrics of requests."""
    count = CounterMetricFamily(
        "greenroom_requests",
        "Completed MCP requests. Outcomes: ok, tool_error (the tool failed), error (a JSON-RPC error), "
        "cancelled (withdrawn by the client). Unknown methods and tools are counted as `other`.",
        labels=[*_OF_A_TOOL, "outcome"],
    )
    together: dict[tuple[str, str], tuple[list[int], float]] = {}
    for each in requests:
        count.add_metric([each.method, each.tool, each.outcome], sum(each.buckets))
        classes, seconds = together.get((each.method, each.tool), ([0] * len(each.buckets), 0.0))
        sums = [one + other for one, other in zip(classes, each.buckets, strict=True)]
        together[each.method, each.tool] = sums, seconds + each.seconds
    times = HistogramMetricFamily(
        "greenroom_request_seconds",
        "Time from the arrival of a request to its end, whatever the outcome. "
        "For subscriptions/listen that is how long the stream was open.",
        labels=_OF_A_TOOL,
    )
    for kind, (classes, seconds) in together.items():
        times.add_metric(kind, _buckets(BUCKET_BOUNDS, classes), seconds)
    yield count
    yield times


def savings_families(rows: Iterable[SavingsRow]) -> Iterator[Metric]:
    """Yield the metrics of savings; savings are differences, which may be below zero."""
    of_operation = ["operation", "baseline"]
    calls, would, read = (
        CounterMetricFamily(name, text, labels=of_operation) for name, text in SAVINGS_METRICS.items()
    )
    cache = CounterMetricFamily(
        "greenroom_savings_cache_lookups",
        "Lookups in caches that spare readings, by level: client (what it has read) or memory.",
        labels=["operation", "level", "outcome"],
    )
    by_operation: dict[str, SavingsCount] = {}
    for row in rows:
        labels = [row.operation, row.baseline]
        calls.add_metric(labels, row.count.calls)
        would.add_metric(labels, row.count.baseline)
        read.add_metric(labels, row.count.answered)
        by_operation[row.operation] = by_operation.get(row.operation, SavingsCount()).plus(row.count)
    for operation, count in by_operation.items():
        for level, (hits, misses) in count.caches.items():
            cache.add_metric([operation, level, "hit"], hits)
            cache.add_metric([operation, level, "miss"], misses)
    yield from (calls, would, read, cache)


def connection_families(transports: Mapping[str, ConnectionStatistics]) -> Iterator[Metric]:
    """Yield the metrics of each transport's connections."""
    for kind, name, text, field in _OF_TRANSPORTS:
        family = kind(name, text, labels=["transport"])
        for transport, said in transports.items():
            if (value := getattr(said, field, None)) is not None:  # WebSocket has fewer fields than HTTP
                family.add_metric([transport], value)
        yield family


def _buckets(bounds: Sequence[float], classes: Sequence[int]) -> list[tuple[str, float]]:
    """Return a histogram's buckets, which are cumulative."""
    return list(zip([*map(floatToGoString, bounds), "+Inf"], accumulate(classes), strict=True))
