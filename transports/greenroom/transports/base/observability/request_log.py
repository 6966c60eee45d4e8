"""Log one line for each completed request, without its contents.

A line names the caller, the operation and the outcome. Methods and tools that the server does not know
may hold anything, so they appear as `OTHER`.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Literal

from greenroom.transports.base.observability.meter import METHODS, OTHER, Outcome

logger = logging.getLogger("greenroom.requests")

EVENT: Final = "event"
"""The attribute of a log record that holds the fields of its line."""
HTTP: Final = "http"
"""The method name for an HTTP request that is neither MCP nor an operation."""
WEBSOCKET: Final = "websocket"
"""The method name for a refused WebSocket handshake."""
UNREAD: Final = "unread"
"""The method name for a message that is not an MCP request."""

TRACEPARENT: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The ``traceparent`` header of the HTTP request that this task answers."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_OWN: Final = METHODS | {HTTP, WEBSOCKET, UNREAD}


def trace_id_of(meta: object = None) -> str:
    """Return the trace id of a request: 32 hexadecimal digits.

    Args:
        meta: The request's ``_meta``; its ``traceparent`` wins over the HTTP header. If both are missing, the
            id is new.
    """
    given = meta.get("traceparent") if isinstance(meta, Mapping) else None
    for parent in (given, TRACEPARENT.get()):
        if isinstance(parent, str) and (found := _TRACEPARENT.fullmatch(parent)) is not None:
            return found[1]
    return secrets.token_hex(16)


class RequestLog:
    """Writes the lines."""

    def __init__(self, tools: Iterable[str]) -> None:
        self._tools = frozenset(tools)

    def record(
        self,
        method: str,
        outcome: Outcome | Literal["refused"],
        seconds: float,
        trace_id: str,
        *,
        tool: str | None = None,
        agent: str | None = None,
        status: int | None = None,
    ) -> None:
        """Write the line of one completed request."""
        event: dict[str, Any] = {
            "event": "request",
            "trace_id": trace_id,
            "method": method if method in _OWN else OTHER,
            "tool": tool if tool is None or tool in self._tools else OTHER,
            "agent": agent,
            "ms": round(seconds * 1_000, 3),
            "outcome": outcome,
        }
        if status is not None:
            event["status"] = status
        logger.info("a request has completed", extra={EVENT: event})
