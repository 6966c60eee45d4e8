"""A line of the log for each finished request, without its contents.

It says who asked, for what, and how it ended. Names of methods and tools that a client made up may hold
anything, so they stand as `OTHER`.
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
"""The attribute of a log record that holds the members of its line."""
HTTP: Final = "http"
"""Stands for the method of an HTTP request that is none of MCP's and asks the domain for nothing."""
WEBSOCKET: Final = "websocket"
"""Stands for the method of a WebSocket handshake that was refused."""
UNREAD: Final = "unread"
"""Stands for the method of a message that is no request of MCP."""

TRACEPARENT: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The header of the HTTP request that this task answers."""

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_OWN: Final = METHODS | {HTTP, WEBSOCKET, UNREAD}


def trace_id_of(meta: object = None) -> str:
    """Return the id of the trace that a request belongs to: 32 hexadecimal digits.

    Args:
        meta: The request's ``_meta``, whose ``traceparent`` says it; else the HTTP header does, else it is
            a new one.
    """
    given = meta.get("traceparent") if isinstance(meta, Mapping) else None
    for parent in (given, TRACEPARENT.get()):
        if isinstance(parent, str) and (found := _TRACEPARENT.fullmatch(parent)) is not None:
            return found[1]
    return secrets.token_hex(16)


class RequestLog:
    """Writes the lines.

    Args:
        tools: The tools that stand under their own names.
    """

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
        """Write the line of one request that is over.

        Args:
            method: Its method, as the client wrote it.
            outcome: How it ended.
            seconds: From its arrival to its end.
            trace_id: The id of its trace.
            tool: The tool that it called, as the client wrote it.
            agent: The id of the agent that asked, where that is known.
            status: The HTTP status that it was answered with, where that says it all.
        """
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
        logger.info("a request is over", extra={EVENT: event})
