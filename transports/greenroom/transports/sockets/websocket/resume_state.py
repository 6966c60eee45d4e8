"""The state that a client resumes on a new connection. No I/O.

Messages pass through `outgoing` and `incoming`. After a break, `lost` answers the requests with an unknown
outcome, and `resumption` returns the first messages for the new connection.

Our own requests have string ids with a prefix; their answers are not passed on.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

CONNECTION_LOST = -32000
OWN = "greenroom-resume-"
TRIES = 5
FIRST_DELAY = 0.1  # seconds
LONGEST_DELAY = 10.0  # seconds

LISTEN = "subscriptions/listen"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
REPEATABLE = frozenset(
    {
        "completion/complete",
        "initialize",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        LISTEN,
        "tools/list",
    }
)
"""Requests that may be executed twice; other requests may if they have an idempotency key."""


def delay_before(attempt: int, chance: random.Random) -> float:
    """Return the seconds before the `attempt`-th reconnection, counted from 0."""
    longest = min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(attempt, 20))
    return longest * chance.uniform(0.5, 1.0)


class _Open:
    """A request without an answer.

    Attributes:
        sent: How often it was sent; 0 while it waits for a connection.
        acknowledged: Whether the stream that it opened was confirmed once.
    """

    __slots__ = ("acknowledged", "request", "sent")

    def __init__(self, request: JSONRPCRequest) -> None:
        self.request = request
        self.sent = 0
        self.acknowledged = False


class ResumeState:
    """One client's open requests, handshake and subscriptions."""

    def __init__(self) -> None:
        self._open: dict[RequestId, _Open] = {}
        self._reading_tools: set[str] = set()
        self._initialize: JSONRPCRequest | None = None
        self._shaken = False
        self._initialized: JSONRPCNotification | None = None
        self._subscribed: dict[str, dict[str, Any]] = {}
        self._own: dict[RequestId, JSONRPCRequest] = {}
        self._last_own = 0

    def outgoing(self, message: JSONRPCMessage) -> bool:
        """Record a message of the client; return whether to send it."""
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] = _Open(message)
        elif isinstance(message, JSONRPCNotification):
            if message.method == "notifications/initialized":
                self._initialized = message
            elif message.method == "notifications/cancelled":
                number = (message.params or {}).get("requestId")
                given_up = self._open.pop(number, None) if isinstance(number, int | str) else None
                return given_up is not None and given_up.sent > 0
        return True

    def sending(self, message: JSONRPCMessage) -> None:
        """Record that a message is about to be sent."""
        entry = self._open.get(message.id) if isinstance(message, JSONRPCRequest) else None
        if entry is not None:
            entry.sent += 1

    def incoming(self, message: JSONRPCMessage) -> list[JSONRPCMessage]:
        """Record a message of the server; return the messages for the client."""
        if isinstance(message, JSONRPCNotification):
            return self._notified(message)
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return [message]
        own = self._own.pop(message.id, None)
        if own is not None:
            return self._resumed(own, taken=isinstance(message, JSONRPCResponse))
        entry = self._open.pop(message.id, None)
        if entry is not None and isinstance(message, JSONRPCResponse):
            self._learn(entry.request, message.result)
        return [message]

    def is_listen(self, id: RequestId | None) -> bool:
        """Return whether the open request with this id is a listen stream."""
        entry = None if id is None else self._open.get(id)
        return entry is not None and entry.request.method == LISTEN

    def lost(self, sentence: str, *, fault: bool) -> list[JSONRPCMessage]:
        """Return the answers to requests that are given up because the connection is lost.

        Args:
            sentence: How the connection ended.
            fault: Whether a sent message was the cause; that message must not be sent again.
        """
        self._own.clear()
        given_up: list[JSONRPCMessage] = []
        for number, entry in list(self._open.items()):
            keep = entry.sent == 0 or (entry.sent < TRIES and self._repeatable(entry.request) and not fault)
            if entry.request.method == LISTEN:
                keep = True  # it is a state, not an action
            if not keep:
                del self._open[number]
                given_up.append(_lost_answer(number, sentence))
        return given_up

    def ended(self, sentence: str) -> list[JSONRPCMessage]:
        """Return the answers to all requests, when there will be no further connection."""
        answers: list[JSONRPCMessage] = [_lost_answer(number, sentence) for number in self._open]
        self._open.clear()
        return answers

    def handshake(self) -> JSONRPCRequest | None:
        """Return the handshake to repeat on a new connection, if a handshake was completed."""
        if self._initialize is None or not self._shaken:
            return None
        return self._ours("initialize", self._initialize.params)

    def resumption(self) -> Iterator[JSONRPCMessage]:
        """Yield the first messages for a new connection after the handshake."""
        if self._shaken and self._initialized is not None:
            yield self._initialized
        for params in list(self._subscribed.values()):
            yield self._ours("resources/subscribe", params)
        for entry in list(self._open.values()):
            if entry.sent:
                yield entry.request

    def _ours(self, method: str, params: dict[str, Any] | None) -> JSONRPCRequest:
        self._last_own += 1
        request = JSONRPCRequest(jsonrpc="2.0", id=f"{OWN}{self._last_own}", method=method, params=params)
        self._own[request.id] = request
        return request

    def _resumed(self, own: JSONRPCRequest, *, taken: bool) -> list[JSONRPCMessage]:
        """Record the answer to our own request; return the messages for the client."""
        if own.method != "resources/subscribe":
            return []
        uri = (own.params or {})["uri"]
        if not taken:
            self._subscribed.pop(uri, None)
        return [_updated(uri)] if taken else []

    def _repeatable(self, request: JSONRPCRequest) -> bool:
        if request.method != "tools/call":
            return request.method in REPEATABLE
        params = request.params or {}
        return bool((params.get("arguments") or {}).get("idempotency_key")) or (
            params.get("name") in self._reading_tools
        )

    def _learn(self, request: JSONRPCRequest, result: dict[str, Any]) -> None:
        params = request.params or {}
        uri = str(params.get("uri"))
        match request.method:
            case "initialize":
                self._initialize, self._shaken = request, True
            case "resources/subscribe":
                self._subscribed[uri] = params
            case "resources/unsubscribe":
                self._subscribed.pop(uri, None)
            case "tools/list":
                for tool in result.get("tools") or ():
                    if (tool.get("annotations") or {}).get("readOnlyHint") is True:
                        self._reading_tools.add(tool["name"])
            case _:
                pass

    def _notified(self, message: JSONRPCNotification) -> list[JSONRPCMessage]:
        if message.method != ACKNOWLEDGED:
            return [message]
        params = message.params or {}
        meta = params.get("_meta") or {}
        entry = self._open.get(meta.get(SUBSCRIPTION_ID_META_KEY, ""))
        if entry is None or not entry.acknowledged:
            if entry is not None:
                entry.acknowledged = True
            return [message]
        # After a break: changes in between were not reported.
        uris = (params.get("notifications") or {}).get("resourceSubscriptions") or ()
        return [_updated(uri, {SUBSCRIPTION_ID_META_KEY: entry.request.id}) for uri in uris]


def _updated(uri: str, meta: dict[str, Any] | None = None) -> JSONRPCNotification:
    params: dict[str, Any] = {"uri": uri} if meta is None else {"uri": uri, "_meta": meta}
    return JSONRPCNotification(jsonrpc="2.0", method=UPDATED, params=params)


def _lost_answer(id: RequestId, sentence: str) -> JSONRPCError:
    return JSONRPCError(
        jsonrpc="2.0",
        id=id,
        error=ErrorData(
            code=CONNECTION_LOST,
            message=f"{sentence} before the answer came, so it is not known whether the request was carried "
            "out; a request with an idempotency_key is sent again by itself",
            data={"code": "CONNECTION_LOST"},
        ),
    )
