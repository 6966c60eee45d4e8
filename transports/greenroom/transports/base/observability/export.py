"""Export spans, and savings as metrics, as OpenTelemetry's environment variables configure it.

OpenTelemetry's own variables suffice, so there is no setting of ours. A program that embeds the server
sets its own providers and does not need this.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from greenroom.actors.core.base.optional_packages import install_command

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

    from greenroom.actors.app.savings.requests import SavingsCount, SavingsRow

FLUSH_SECONDS: Final = 0.4
"""Time for the last spans or metrics: an unreachable collector must not keep the server from ending."""
INSTALL: Final = install_command("tracing")
SAVINGS_METRICS: Final = {
    "greenroom_savings_calls": "Answers of operations that spare readings.",
    "greenroom_savings_baseline_tokens": "Tokens that would have been read without them, by the baseline.",
    "greenroom_savings_answer_tokens": "Tokens of these answers.",
}
"""The metrics of savings by operation and baseline, under the same names for Prometheus."""
_FIELDS: Final[Sequence[Callable[[SavingsCount], int]]] = (
    lambda count: count.calls,
    lambda count: count.baseline,
    lambda count: count.answered,
)
"""The values of these metrics, in their order."""
_DISABLED: Final = "OTEL_SDK_DISABLED"

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def export_spans(environment: Mapping[str, str]) -> Iterator[None]:
    """Export spans while the block runs, if the environment configures an exporter."""
    with _exporting("TRACES", "spans", environment, _trace):
        yield


@contextlib.contextmanager
def export_metrics(
    environment: Mapping[str, str], statistics: Callable[[], Sequence[SavingsRow]]
) -> Iterator[None]:
    """Export savings while the block runs; ``statistics`` is called in any thread."""
    with _exporting("METRICS", "metrics", environment, partial(_measure, statistics)):
        yield


@contextlib.contextmanager
def _exporting(
    signal: str, what: str, environment: Mapping[str, str], start: Callable[[list[str]], Any]
) -> Iterator[None]:
    """Export one signal while the block runs, if the environment configures an exporter for it.

    The export is only an aid: a fault in it is logged as a warning, and the server starts without it.
    """
    variable = f"OTEL_{signal}_EXPORTER"
    provider = None
    if names := _chosen_exporters(environment, signal):
        try:
            provider = start(names)
        except ImportError as error:
            logger.warning("%s is set, but %s need more packages (%s): %s", variable, what, INSTALL, error)
        except Exception as error:  # noqa: BLE001 - an exporter may reject its settings with any error
            logger.warning("%s is set, but no %s are exported: %s", variable, what, error)
    try:
        yield
    finally:
        if provider is not None:
            last = threading.Thread(target=provider.shutdown, daemon=True)
            last.start()
            last.join(FLUSH_SECONDS)


def _chosen_exporters(environment: Mapping[str, str], signal: str) -> list[str]:
    """Return the entry points of a signal's exporters; `otlp` stands for one of two exporters."""
    if environment.get(_DISABLED, "").strip().lower() == "true":
        return []
    protocols = (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next(filter(None, map(environment.get, protocols)), "http/protobuf")
    otlp = "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"
    names = (name.strip() for name in environment.get(f"OTEL_{signal}_EXPORTER", "").split(","))
    return [otlp if name == "otlp" else name for name in names if name not in {"", "none"}]


def _trace(names: list[str]) -> Any:
    """Set the process's tracer provider with these exporters; return None if it has one already."""
    from opentelemetry import trace  # noqa: PLC0415 - 30 ms, and 60 for the SDK; most do not want them

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - see above

    exporters = [_made_exporter("opentelemetry_traces_exporter", name) for name in names]
    provider = TracerProvider(resource=_service(), shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def _measure(statistics: Callable[[], Sequence[SavingsRow]], names: list[str]) -> Any:
    """Set the process's meter provider with these exporters; return None if it has one already."""
    from opentelemetry import metrics  # noqa: PLC0415 - 90 ms with the SDK
    from opentelemetry.metrics import Observation  # noqa: PLC0415 - see above
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - see above

    if isinstance(metrics.get_meter_provider(), MeterProvider):
        return None
    readers = [
        PeriodicExportingMetricReader(_made_exporter("opentelemetry_metrics_exporter", name))
        for name in names
    ]
    provider = MeterProvider(metric_readers=readers, resource=_service(), shutdown_on_exit=False)
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


def _service() -> Any:
    """Return OpenTelemetry's resource for exported figures; its variables may name it."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415 - see `_trace`

    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "greenroom"}))
    return resource


def _made_exporter(group: str, name: str) -> Any:
    """Make the exporter that a package announces.

    Raises:
        ImportError: No installed package provides it.
    """
    for found in entry_points(group=group, name=name):
        make = found.load()
        # Standard output belongs to the MCP client.
        return make(out=sys.stderr) if name == "console" else make()
    raise ImportError(f"no installed package has the exporter {name}")
