"""Spans for the requests that do not reach the SDK, made as the SDK makes its own.

The names, attributes and states are those of the SDK's `OpenTelemetryMiddleware`; a test sends
the same requests to both and compares. A request that the SDK serves gets its span from that
middleware, so none gets two.

Nothing of OpenTelemetry is imported unless somebody set a tracer provider.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer as OpenTelemetryTracer

    from greenroom.transports.observability._meter import Outcome

_API: Final = "opentelemetry.trace"
_NAMED_PROVIDER: Final = "OTEL_PYTHON_TRACER_PROVIDER"


def find_tracer() -> Tracer | None:
    """Return what makes the spans, or None where nobody would take them.

    Somebody takes them where the process has a tracer provider: set by the program itself, by
    `opentelemetry-instrument`, or by name in the environment. To be asked once, at the start.
    """
    if _API not in sys.modules and not os.environ.get(_NAMED_PROVIDER):
        return None  # nobody can have set one without importing this
    from opentelemetry.trace import NoOpTracer, ProxyTracer, get_tracer  # noqa: PLC0415 - only if needed

    tracer = get_tracer("greenroom", version("greenroom"))
    return None if isinstance(tracer, NoOpTracer | ProxyTracer) else Tracer(tracer)


class Tracer:
    """Begins the span of each request.

    Args:
        tracer: Makes the spans and hands them on.
    """

    def __init__(self, tracer: OpenTelemetryTracer) -> None:
        self._tracer = tracer

    def begin(
        self,
        method: str,
        protocol: str,
        *,
        request_id: bytes | None = None,
        meta: object = None,
        target: str | None = None,
    ) -> RequestSpan:
        """Begin the span of a request or a notification.

        Args:
            method: Its method.
            protocol: The protocol's revision in which it came.
            request_id: Its id as JSON; None for a notification.
            meta: Its ``_meta``, whose trace context makes the span a child of the client's.
            target: Its parameter ``name``, if it has one: the tool's or the prompt's.
        """
        attributes = {"mcp.method.name": method, "mcp.protocol.version": protocol}
        if request_id is not None:
            attributes["jsonrpc.request.id"] = str(msgspec.json.decode(request_id))
        if method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
            if target is not None:
                attributes["gen_ai.tool.name"] = target
        elif method == "prompts/get" and target is not None:
            attributes["gen_ai.prompt.name"] = target
        name = f"{method} {target}" if target else method
        return RequestSpan(self._tracer, name, _context(meta), attributes)


class RequestSpan:
    """The span of a request that is being answered.

    What was not ended leaves no trace, so a request that turns out to be the SDK's needs no undoing.
    """

    __slots__ = ("_attributes", "_began", "_context", "_name", "_tracer")

    def __init__(
        self, tracer: OpenTelemetryTracer, name: str, context: Context, attributes: dict[str, str]
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._context = context
        self._attributes = attributes
        self._began = time.time_ns()

    def end(self, outcome: Outcome, code: int = 0, sentence: str = "") -> None:
        """End it; to be called once.

        Args:
            outcome: How the request ended.
            code: The JSON-RPC error's code, where the outcome is "error".
            sentence: The same error's message.
        """
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415 - only if needed

        span = self._tracer.start_span(
            self._name, self._context, SpanKind.SERVER, self._attributes, start_time=self._began
        )
        if outcome == "error":
            span.set_attributes({"error.type": str(code), "rpc.response.status_code": str(code)})
            span.set_status(StatusCode.ERROR, sentence)
        elif outcome == "tool_error":
            span.set_attribute("error.type", "tool_error")
            span.set_status(StatusCode.ERROR)
        span.end()


def _context(meta: object) -> Context:
    """Return the context in which the client sent its request, as its ``_meta`` tells it.

    Where that is missing or makes no sense it is the current one, which may belong to a span,
    too, such as that of the HTTP request.
    """
    from opentelemetry.context import get_current  # noqa: PLC0415 - only if needed
    from opentelemetry.propagate import extract  # noqa: PLC0415 - only if needed
    from opentelemetry.trace import get_current_span  # noqa: PLC0415 - only if needed

    if meta and isinstance(meta, dict):
        carrier: Mapping[str, Any] = meta
        # It is the client's word, and propagators differ in what they raise for nonsense.
        with contextlib.suppress(Exception):
            context = extract(carrier)
            if get_current_span(context).get_span_context().is_valid:
                return context
    return get_current()
