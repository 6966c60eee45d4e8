"""Spans of requests and notifications, equal to the spans of the SDK.

Names, attributes and states are the same as in the SDK's `OpenTelemetryMiddleware`; a test sends the same
messages to both and compares. That middleware is not used, because the SDK answers nothing here.
OpenTelemetry is imported only if a tracer provider is set.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from greenroom.transports.base.observability.meter import Outcome

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer as OpenTelemetryTracer

_API: Final = "opentelemetry.trace"
_NAMED_PROVIDER: Final = "OTEL_PYTHON_TRACER_PROVIDER"


def find_tracer() -> Tracer | None:
    """Return the tracer, or None if no tracer provider is set.

    A provider is set by the program itself, by `opentelemetry-instrument`, or by name in the environment.
    Call this once, at the start.
    """
    if _API not in sys.modules and not os.environ.get(_NAMED_PROVIDER):
        return None  # a provider cannot be set without this import
    from opentelemetry.trace import NoOpTracer, ProxyTracer, get_tracer  # noqa: PLC0415 - only if needed

    tracer = get_tracer("greenroom", version("greenroom"))
    return None if isinstance(tracer, NoOpTracer | ProxyTracer) else Tracer(tracer)


class Tracer:
    """Begins the span of each request."""

    def __init__(self, tracer: OpenTelemetryTracer) -> None:
        self._tracer = tracer

    def begin(
        self,
        method: str,
        protocol: str,
        params: Mapping[str, Any] | None,
        request_id: int | str | None = None,
    ) -> RequestSpan:
        """Begin the span of a request or a notification.

        A trace context in the ``_meta`` of the parameters makes the span a child of the client's span.
        """
        said = params or {}
        attributes = {"mcp.method.name": method, "mcp.protocol.version": protocol}
        if request_id is not None:
            attributes["jsonrpc.request.id"] = str(request_id)
        target = said.get("name")
        if not isinstance(target, str):
            target = None
        if method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
            if target is not None:
                attributes["gen_ai.tool.name"] = target
        elif method == "prompts/get" and target is not None:
            attributes["gen_ai.prompt.name"] = target
        name = f"{method} {target}" if target else method
        return RequestSpan(self._tracer, name, _context(said.get("_meta")), attributes)


class RequestSpan:
    """The span of an unfinished request.

    A span that is not ended leaves no trace, so a request with an invalid envelope needs no clean-up.
    """

    __slots__ = ("_attributes", "_began", "_context", "_error", "_name", "_tracer")

    def __init__(
        self, tracer: OpenTelemetryTracer, name: str, context: Context, attributes: dict[str, str]
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._context = context
        self._attributes = attributes
        self._began = time.time_ns()
        self._error: tuple[str, str] | None = None

    def fail(self, code: int, sentence: str) -> None:
        """Record the JSON-RPC error that answers the request."""
        self._error = str(code), sentence

    def end(self, outcome: Outcome) -> str:
        """End the span, once, and return its trace id."""
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415 - only if needed

        span = self._tracer.start_span(
            self._name, self._context, SpanKind.SERVER, self._attributes, start_time=self._began
        )
        if self._error is not None:
            code, sentence = self._error
            span.set_attributes({"error.type": code, "rpc.response.status_code": code})
            span.set_status(StatusCode.ERROR, sentence)
        elif outcome == "tool_error":
            span.set_attribute("error.type", "tool_error")
            span.set_status(StatusCode.ERROR)
        span.end()
        return f"{span.get_span_context().trace_id:032x}"


def _context(meta: object) -> Context:
    """Return the trace context of the client, from its ``_meta``.

    If that is missing or malformed, return the current context, which may have a span of the HTTP request.
    """
    from opentelemetry.context import get_current  # noqa: PLC0415 - only if needed
    from opentelemetry.propagate import extract  # noqa: PLC0415 - only if needed
    from opentelemetry.trace import get_current_span  # noqa: PLC0415 - only if needed

    if meta and isinstance(meta, dict):
        carrier: Mapping[str, Any] = meta
        # The input is untrusted, and different propagators raise different errors for it.
        with contextlib.suppress(Exception):
            context = extract(carrier)
            if get_current_span(context).get_span_context().is_valid:
                return context
    return get_current()
