"""One HTTP request and its response over ASGI, in the server's task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from math import inf
from typing import Any, Final, Literal, Protocol, TypeVar

import outcome
import trio

from greenroom.transports.base.errors import HttpRefusedError
from greenroom.transports.base.net.bodies import BodyBudget, ReassemblyBuffer
from greenroom.transports.mcp.frames.frames import INVALID_REQUEST
from greenroom.transports.sockets.http.event_log import PING
from greenroom.transports.sockets.http.request_head import RequestHead
from greenroom.transports.sockets.http.responses import (
    CLOSE,
    EVENTS,
    Header,
    Response,
    RpcRefusedError,
    rpc_refusals,
)
from greenroom.transports.sockets.http.timed_connection import TimedConnection

T = TypeVar("T")

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

PING_INTERVAL: Final = 15.0
"""Seconds of silence on a stream before a comment shows that it is alive."""

BODY_TIME: Final = 30.0
"""Seconds that a client has for sending a request's body."""

DISCARD_TIME: Final = 2.0
DISCARD_SIZE: Final = 32 * 1024 * 1024


class ClientGoneError(Exception):
    """The client disconnected before its request was complete."""


class ForeignConnection:
    """A connection of a foreign server."""

    gone = False

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def accept(self, _holder: str | None) -> None:
        """Do nothing: the server decides."""

    def hold(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing: the server decides."""


Connection = TimedConnection | ForeignConnection
"""The connection below: of our own server, or of a foreign server, which makes its own decisions."""


class PendingResponse(Protocol):
    """A response in progress: a line of JSON, or a stream of events.

    Attributes:
        line: The whole answer, if it is not a stream.
        patience: Seconds of silence after which it should become a stream; infinity for never.
        headers: Further headers of a stream.
    """

    line: bytes | None
    patience: float
    headers: Sequence[Header]

    @property
    def streams(self) -> bool:
        """Whether it is a stream."""

    def begin(self) -> None:
        """Become a stream."""

    def opening(self) -> bytes:
        """Return the first bytes of the stream."""

    def take(self) -> bytes:
        """Return the new events, encoded."""

    def mark_sent(self) -> None:
        """Record that the client has taken the events."""

    @property
    def over(self) -> bool:
        """Whether the stream ends after its new events."""


class StatusNoted:
    """A `Send` that records the status of the response."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def __call__(self, message: dict[str, Any]) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
        await self._send(message)

    @property
    def outcome(self) -> Literal["ok", "refused", "cancelled"]:
        """The outcome of the request, as logged."""
        if self.status is None:
            return "cancelled"
        return "ok" if self.status < HTTPStatus.BAD_REQUEST else "refused"


class Exchange:
    """One request of a client.

    Attributes:
        extra: Headers of every response to it.
        held: The budget of its body; set when the request is accepted.
        is_recorded: Whether its log line is written.
    """

    __slots__ = (
        *("_connection", "_gathered", "_receive", "_scope", "_send", "_woken"),
        *("extra", "gone", "head", "held", "is_recorded", "whole"),
    )

    def __init__(self, head: RequestHead, connection: Connection, receive: Receive, send: Send) -> None:
        self.head = head
        self.extra: Sequence[Header] = ()
        self.gone = False
        self.whole = False
        self.held: BodyBudget | None = None
        self.is_recorded = False
        self._gathered = ReassemblyBuffer()
        self._connection = connection
        self._receive = receive
        self._send = send
        self._scope: trio.CancelScope | None = None
        self._woken = False

    # -- in --------------------------------------------------------------------------------------

    async def body(self, limit: int) -> bytes:
        """Read the request's body.

        Raises:
            HttpRefusedError: The body is larger, arrives too late, or exceeds the budget of bodies in flight.
            ClientGoneError: The client disconnected.
        """
        length = self.head.length()
        if length is not None and length > limit:
            raise _too_large(limit)
        with trio.move_on_after(BODY_TIME):
            data = await self._kept_part()
            if self.whole or len(data) == length:
                self.whole = True
                return data
            self._gathered.add(data)
            while len(self._gathered) <= limit:
                self._gathered.add(await self._kept_part())
                if self.whole:
                    return self._gathered.take()
            raise _too_large(limit)
        sentence = f"the body of the request did not come within {BODY_TIME:g} s"
        raise RpcRefusedError(HTTPStatus.REQUEST_TIMEOUT, INVALID_REQUEST, sentence)

    async def _kept_part(self) -> bytes:
        data = await self._part()
        if self.held is not None:
            with rpc_refusals():
                self.held.reserve(len(data))
        return data

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.gone = True
            raise ClientGoneError
        self.whole = not message.get("more_body", False)
        return bytes(message.get("body", b""))

    def drop(self) -> None:
        """Drop the body, and release its budget."""
        self._gathered.clear()
        if self.held is not None:
            self.held.release()

    async def discard(self) -> None:
        """Read the rest of the body briefly, so that the client reads the response."""
        size = 0
        with trio.move_on_after(DISCARD_TIME):
            while not self.whole and size < DISCARD_SIZE:
                size += len(await self._part())

    async def _discard_all(self) -> None:
        """Read until the client has disconnected: an unread body would keep the server from ending."""
        while not self.gone:
            self.gone = (await self._receive())["type"] == "http.disconnect"

    async def while_there(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return a function's result, or raise its error, unless the client disconnects first.

        Raises:
            ClientGoneError: It disconnected; the function was cancelled.
        """
        found: outcome.Outcome[T] | None = None
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await self._discard_all()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            found = await outcome.acapture(work)
            nursery.cancel_scope.cancel()
        if self.gone or found is None:
            raise ClientGoneError
        return found.unwrap()

    # -- out -------------------------------------------------------------------------------------

    async def reply(self, reply: Response) -> None:
        """Send a complete response."""
        if not self.whole:
            await self.discard()
        if self.whole:
            await self._send_reply(reply)
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._discard_all)
            await self._send_reply(reply._replace(headers=[*reply.headers, CLOSE]))
            nursery.cancel_scope.cancel()

    async def _send_reply(self, reply: Response) -> None:
        headers = [*reply.headers, *self.extra]
        if reply.status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
            headers.append((b"content-length", b"%d" % len(reply.body)))
        self._connection.hold()
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": reply.body})

    async def send_part(self, data: bytes, headers: Sequence[Header] | None = None) -> None:
        """Send a part once the client took the parts before; an empty part is last.

        Raises:
            ClientGoneError: The client disconnected.
        """
        if headers is not None:
            self._connection.hold()
            head = {"type": "http.response.start", "status": 200, "headers": [*headers, *self.extra]}
            await self._send(head)
        await self._send({"type": "http.response.body", "body": data, "more_body": bool(data)})
        if self._connection.gone:
            raise ClientGoneError

    async def settle(self, answer: PendingResponse, whole: Callable[[bytes], Response]) -> bool:
        """Send a response as it is made; return whether the client stayed to the end."""
        while answer.line is None and not answer.streams:
            if answer.over:
                return False  # the client is gone
            if not await self._wait(answer.patience):
                if self.gone:
                    return False
                answer.begin()
        if answer.streams:
            return await self._stream(answer)
        assert answer.line is not None, "it is one or the other"
        await self._send_reply(whole(answer.line))
        answer.mark_sent()
        return True

    async def _stream(self, answer: PendingResponse) -> bool:
        self._connection.hold()
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": [*EVENTS, *answer.headers, *self.extra]}
        )
        data = answer.opening() + answer.take() or PING  # the head is sent with the first bytes
        while True:
            if data:
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
                answer.mark_sent()
                if self._connection.gone:
                    return False
                data = answer.take()
            elif answer.over:
                break
            elif await self._wait(PING_INTERVAL):
                data = answer.take()
            elif self.gone:
                return False
            else:
                data = answer.take() or PING
        await self._send({"type": "http.response.body", "body": b""})
        return True

    def wake(self) -> None:
        """Wake the exchange: the response has something new."""
        self._woken = True
        if self._scope is not None:
            self._scope.cancel()

    @property
    def address(self) -> str | None:
        """The client's address, if known."""
        return self._connection.address

    def accept(self, holder: str | None) -> None:
        """Record that the request was accepted, with the owner of its key."""
        self._connection.accept(holder)

    def abort(self) -> None:
        """Disconnect a client that does not read, or that must get no more."""
        self._connection.abort()

    async def _wait(self, seconds: float) -> bool:
        """Wait until woken; return False after the timeout or a disconnect."""
        if not self._woken:
            deadline = trio.current_time() + seconds if seconds < inf else inf
            with trio.CancelScope(deadline=deadline) as self._scope:
                while not self.gone:
                    self.gone = (await self._receive())["type"] == "http.disconnect"
            self._scope = None
        woken, self._woken = self._woken, False
        return woken and not self.gone


def _too_large(limit: int) -> HttpRefusedError:
    return HttpRefusedError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Request body too large: the limit is {limit} bytes"
    )
