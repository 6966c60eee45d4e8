"""Export spans as OpenTelemetry's environment variables configure it.

OpenTelemetry's own variables suffice, so there is no setting of ours. A program that embeds the server
sets its own tracer provider and does not need this.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Final

from greenroom.actors.core.base.optional_packages import install_command

FLUSH_SECONDS: Final = 0.4
"""Time for the last spans: an unreachable collector must not keep the server from ending."""

_EXPORTERS: Final = "OTEL_TRACES_EXPORTER"
_DISABLED: Final = "OTEL_SDK_DISABLED"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
INSTALL: Final = install_command("tracing")

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def export_spans(environment: Mapping[str, str]) -> Iterator[None]:
    """Export spans while the block runs, if the environment configures an exporter.

    Tracing is an aid: a fault in it is logged as a warning, and the server starts without it.
    """
    names = chosen_exporters(environment, _EXPORTERS, _PROTOCOLS)
    if not names:
        yield
        return
    try:
        provider = _start(names)
    except ImportError as error:
        logger.warning("%s is set, but spans need more packages (%s): %s", _EXPORTERS, INSTALL, error)
        provider = None
    except Exception as error:  # noqa: BLE001 - whatever an exporter does not like of its settings
        logger.warning("%s is set, but no spans are exported: %s", _EXPORTERS, error)
        provider = None
    try:
        yield
    finally:
        if provider is not None:
            last = threading.Thread(target=provider.shutdown, daemon=True)
            last.start()
            last.join(FLUSH_SECONDS)


def chosen_exporters(environment: Mapping[str, str], variable: str, protocols: Sequence[str]) -> list[str]:
    """Return the exporters that a variable names, as entry points; none if OpenTelemetry is disabled."""
    if environment.get(_DISABLED, "").strip().lower() == "true":
        return []
    names = (name.strip() for name in environment.get(variable, "").split(","))
    return [_full_name(name, environment, protocols) for name in names if name not in {"", "none"}]


def service() -> Any:
    """Return the resource of exported figures; OpenTelemetry's variables may name it."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415 - see `_start`

    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "greenroom"}))
    return resource


def _full_name(name: str, environment: Mapping[str, str], protocols: Sequence[str]) -> str:
    """Return the entry point name of an exporter: `otlp` stands for one of two."""
    if name != "otlp":
        return name
    protocol = next(filter(None, map(environment.get, protocols)), "http/protobuf")
    return "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"


def _start(names: list[str]) -> Any:
    """Set the process's tracer provider with these exporters; return None if it has one already."""
    from opentelemetry import trace  # noqa: PLC0415 - 30 ms, and 60 for the SDK; most do not want them

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - see above

    exporters = [made_exporter("opentelemetry_traces_exporter", name) for name in names]
    provider = TracerProvider(resource=service(), shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def made_exporter(group: str, name: str) -> Any:
    """Make the exporter that a package announces.

    Raises:
        ImportError: No installed package provides it.
    """
    for found in entry_points(group=group, name=name):
        make = found.load()
        # Standard output belongs to the MCP client.
        return make(out=sys.stderr) if name == "console" else make()
    raise ImportError(f"no installed package has the exporter {name}")
