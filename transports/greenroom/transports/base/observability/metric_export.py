"""Export savings as OpenTelemetry metrics, as its environment variables configure it.

As for spans, OpenTelemetry's own variables suffice, and a program that embeds the server sets its own
meter provider.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from greenroom.transports.base.observability.export import (
    FLUSH_SECONDS,
    INSTALL,
    chosen_exporters,
    made_exporter,
    service,
)
from greenroom.transports.base.observability.metrics import SAVINGS_METRICS

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

    from greenroom.actors.app.savings.requests import SavingsCount, SavingsRow

_EXPORTERS: Final = "OTEL_METRICS_EXPORTER"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_FIELDS: Final[Sequence[Callable[[SavingsCount], int]]] = (
    lambda count: count.calls,
    lambda count: count.baseline,
    lambda count: count.answered,
)
"""The values of the metrics of `SAVINGS_METRICS`, in their order."""

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def export_metrics(
    environment: Mapping[str, str], statistics: Callable[[], Sequence[SavingsRow]]
) -> Iterator[None]:
    """Export savings while the block runs, if the environment configures an exporter."""
    names = chosen_exporters(environment, _EXPORTERS, _PROTOCOLS)
    provider = None
    if names:
        try:
            provider = _start(names, statistics)
        except ImportError as error:
            logger.warning("%s is set, but metrics need more packages (%s): %s", _EXPORTERS, INSTALL, error)
        except Exception as error:  # noqa: BLE001 - whatever an exporter does not like of its settings
            logger.warning("%s is set, but no metrics are exported: %s", _EXPORTERS, error)
    try:
        yield
    finally:
        if provider is not None:
            last = threading.Thread(target=provider.shutdown, daemon=True)
            last.start()
            last.join(FLUSH_SECONDS)


def _start(names: Sequence[str], statistics: Callable[[], Sequence[SavingsRow]]) -> Any:
    """Set the process's meter provider with these exporters; return None if it has one already."""
    from opentelemetry import metrics  # noqa: PLC0415 - 90 ms with the SDK; most do not want them
    from opentelemetry.metrics import Observation  # noqa: PLC0415 - see above
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - see above

    if isinstance(metrics.get_meter_provider(), MeterProvider):
        return None
    readers = [
        PeriodicExportingMetricReader(made_exporter("opentelemetry_metrics_exporter", name)) for name in names
    ]
    provider = MeterProvider(metric_readers=readers, resource=service(), shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    meter = provider.get_meter("greenroom")

    def observed(read: Callable[[SavingsCount], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: [
            Observation(read(row.count), {"operation": row.operation, "baseline": row.baseline})
            for row in statistics()
        ]

    for (name, text), read in zip(SAVINGS_METRICS.items(), _FIELDS, strict=True):
        meter.create_observable_counter(name.replace("_", "."), [observed(read)], description=text)
    return provider
