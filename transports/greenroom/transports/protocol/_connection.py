"""One client's connection: frames in and out, with everything that bounds them.

It stands between the client's frames and the SDK, which sees it as its two message
streams. Invariants:

- `_calls` holds every request that was handed to the SDK and is not settled. A request
  settles exactly once: when its answer is put into the output, or when the SDK says
  that it will not be answered (the client cancelled it).
- A settled call has left its turn, so nobody waits for it any more.
- The SDK's ids are numbers of our own. The client's id is kept as the bytes received
  and put back on the way out, so 7, "7" and a 30-digit number are three ids.
- After the end of input the SDK's read stream ends only when no call is open, because
  the SDK cancels what is open at that moment.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import TYPE_CHECKING

import msgspec
import trio
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import CLIENT_INFO_META_KEY, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from greenroom.transports.protocol._frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    FrameError,
    Oversized,
    RequestKey,
    error_line,
    parse_frame,
    result_line,
)
from greenroom.transports.protocol._streams import FrameSink, FrameSource
from greenroom.transports.protocol._turns import Turn, Turns

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

logger = logging.getLogger(__name__)

WRITE_SIZE = 256 * 1024
FLUSH = 0.1  # seconds

IN_ORDER = frozenset(
    {
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "completion/complete",
    }
)
"""The requests of the domain: they take effect in the order in which they arrived."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection may take.

    Attributes:
        frame: The longest frame, in bytes.
        in_flight: Requests that are read but not answered.
        in_flight_bytes: Bytes of their lines; the one that goes over is still read.
        unsent_bytes: Bytes of answers that the client has not read, before it is made to wait.
        unsent_notices: Bytes of anything that the client has not read, before it gets no notification.
        streams: Requests that stay open, such as listen streams; they are not counted as in flight.
        subscriptions: Resources that it hears of, on all streams together and beside them each.
        large_answers: How many requests with large answers run at once.
        drain: Seconds that open requests and unread answers have after the end of input.
        stop: Seconds that open requests have after a request to stop.
    """

    frame: int = 8 * 1024 * 1024
    in_flight: int = 1024
    in_flight_bytes: int = 32 * 1024 * 1024
    unsent_bytes: int = 4 * 1024 * 1024
    unsent_notices: int = 4 * 1024
    streams: int = 1_000
    subscriptions: int = 10_000
    large_answers: int = 16
    drain: float = 30.0
    stop: float = 0.5


class Call:
    """One request on its way through the SDK.

    Attributes:
        frame: The request as it came.
        arrived: When it was read, in trio's time.
        turn: Its place in the order of arrival; None for requests that have no order.
        reply: JSON that the answer is completed with (`result_line`).
        is_standing: Whether it is, or was, a stream (`Connection.standing`).
    """

    __slots__ = ("arrived", "frame", "is_standing", "reply", "turn")

    def __init__(self, frame: Frame, turn: Turn | None) -> None:
        self.frame = frame
        self.is_standing = False
        self.arrived = trio.current_time()
        self.turn = turn
        self.reply: bytes | None = None


class Connection:
    """The frames of one client between where they come from and the SDK's message streams."""

    def __init__(self, source: FrameSource, sink: FrameSink, limits: Limits) -> None:
        self.limits = limits
        self.client_name: str | None = None
        self._name_fixed = False
        self._source = source
        self._sink = sink
        self._lines: deque[bytes | Oversized] = deque()
        self._ended = False
        self._calls: dict[int, Call] = {}
        self._numbers: dict[RequestKey, int] = {}
        self._last_number = 0
        self._open_bytes = 0
        self._turns = Turns()
        self._large_answers = trio.Semaphore(limits.large_answers)
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._mute = False
        self._standing: dict[Call, trio.CancelScope] = {}
        self._standing_weight = 0
        self._winds_up = False
        self._changed = trio.lowlevel.ParkingLot()
        self._reading = trio.CancelScope()
        self._drain_deadline = inf
        self._draining = trio.CancelScope()

    # -- in: frames to the SDK's messages --------------------------------------------------------

    async def begun(self) -> bool:
        """Wait for the first frame; return whether there is one, or input ended before.

        Until then nothing else is needed for the client, and it costs no more.
        """
        await self._await_line()
        return bool(self._lines)

    async def next_message(self) -> SessionMessage | None:
        """Return the next message for the SDK; None when input is over and every call is settled."""
        while (line := await self._next_line()) is not None:
            try:
                message = self._message(_frame(line))
            except FrameError as error:
                self._put(error_line(error.id, error.code, str(error)))
            else:
                if message is not None:
                    return message
            await trio.lowlevel.checkpoint()  # a chunk may hold thousands of lines that come to nothing
        self._drain_deadline = min(self._drain_deadline, trio.current_time() + self.limits.drain)
        self._winds_up = True
        for scope in self._standing.values():
            scope.cancel()
        await self._drained(lambda: not self._calls)
        return None

    @property
    def idle(self) -> bool:
        """Whether nothing is under way: no request open, no answer on its way out."""
        return not (self._calls or self._lines or self._unsent_bytes)

    def stop(self) -> None:
        """Read no further and give open requests the time of `Limits.stop`."""
        self._ended = True
        self._lines.clear()
        self._drain_deadline = min(self._drain_deadline, trio.current_time() + self.limits.stop)
        self._draining.deadline = min(self._draining.deadline, self._drain_deadline)
        self._reading.cancel()

    async def _next_line(self) -> bytes | Oversized | None:
        await self._await_line()
        return self._lines.popleft() if self._lines else None

    async def _await_line(self) -> None:
        with trio.CancelScope() as self._reading:
            await trio.lowlevel.checkpoint()  # one chunk may hold thousands of lines that are no frames
            await self._until(self._may_read)
            while not self._lines and not self._ended:
                frames = await self._source.receive()
                self._ended = frames is None
                self._lines.extend(frames or ())

    def _may_read(self) -> bool:
        limits = self.limits
        return (self._ended and not self._lines) or (
            len(self._calls) - len(self._standing) < limits.in_flight
            and self._open_bytes < limits.in_flight_bytes
            and self._unsent_bytes <= limits.unsent_bytes
        )

    def _message(self, frame: Frame | None) -> SessionMessage | None:
        if frame is None:
            return None
        if frame.id is None or frame.key is None:
            return self._notification(frame)
        if frame.key in self._numbers:
            # Under that id the client would take this for the answer to its first request.
            sentence = f"the id {frame.id.decode()} belongs to a request that is not answered yet"
            raise FrameError(INVALID_REQUEST, sentence)
        self._learn_name(frame)
        self._last_number = number = self._last_number + 1
        call = Call(frame, self._turns.take() if frame.method in IN_ORDER else None)
        self._numbers[frame.key] = number
        self._calls[number] = call
        self._open_bytes += frame.size

        async def unanswered() -> None:
            self._settle(number)

        return SessionMessage(
            JSONRPCRequest(jsonrpc="2.0", id=number, method=frame.method, params=frame.params),
            ServerMessageMetadata(request_context=call, on_request_unanswered=unanswered),
        )

    def _notification(self, frame: Frame) -> SessionMessage | None:
        params = frame.params
        if frame.method == "notifications/cancelled":
            key = (params or {}).get("requestId")
            number = self._numbers.get(key) if isinstance(key, int | str) and type(key) is not bool else None
            if number is None:
                return None  # answered meanwhile, or never asked
            params = {**(params or {}), "requestId": number}
        return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=frame.method, params=params))

    @contextmanager
    def standing(self, call: Call, *, weight: int) -> Iterator[None]:
        """Keep a request open as a stream; the block ends early when the connection winds up.

        Args:
            call: The request.
            weight: How many resources it hears of.

        Raises:
            MCPError: there are too many streams already, or they hear of too much.
        """
        limits = self.limits
        held = sum(other.frame.size for other in self._standing)
        if (
            len(self._standing) >= limits.streams
            or self._standing_weight + weight > limits.subscriptions
            or held + call.frame.size > limits.in_flight_bytes // 4
        ):
            sentence = (
                f"one connection may have {limits.streams:,} streams of {limits.subscriptions:,} resources"
            )
            raise MCPError(INVALID_REQUEST, sentence)
        call.is_standing = True
        self._standing_weight += weight
        with trio.CancelScope() as scope:
            self._standing[call] = scope
            self._changed.unpark_all()
            if self._winds_up:
                scope.cancel()
            try:
                yield
            finally:
                del self._standing[call]
                self._standing_weight -= weight

    def _learn_name(self, frame: Frame) -> None:
        """Fix the client's name by the first request that gives one, or else the first of the domain."""
        if self._name_fixed:
            return
        params = frame.params or {}
        meta = params.get("_meta")
        info = params.get("clientInfo") if frame.method == "initialize" else None
        if info is None and isinstance(meta, dict):
            info = meta.get(CLIENT_INFO_META_KEY)
        name = info.get("name") if isinstance(info, dict) else None
        self.client_name = name if isinstance(name, str) else None
        self._name_fixed = self.client_name is not None or frame.method in IN_ORDER

    # -- out: the SDK's messages to bytes --------------------------------------------------------

    def send(self, message: SessionMessage) -> None:
        """Put an answer or a notification into the output. Waits for nothing."""
        body = message.message
        if isinstance(body, JSONRPCResponse | JSONRPCError):
            call = self._settle(body.id)
            if call is not None and call.frame.id is not None:
                if call.is_standing and isinstance(body, JSONRPCResponse):
                    meta = body.result.get("_meta", {})
                    body.result["_meta"] = {**meta, SUBSCRIPTION_ID_META_KEY: msgspec.Raw(call.frame.id)}
                self._put(_answer(call.frame.id, body, call.reply))
        else:
            self._put(
                msgspec.json.encode(body.model_dump(mode="json", by_alias=True, exclude_unset=True)) + b"\n"
            )

    def _settle(self, number: RequestKey | None) -> Call | None:
        call = self._calls.pop(number, None) if isinstance(number, int) else None
        if call is not None:
            if call.frame.key is not None:
                del self._numbers[call.frame.key]
            self._open_bytes -= call.frame.size
            if call.turn is not None:
                call.turn.leave()
            self._changed.unpark_all()
        return call

    def notify(self, line: bytes) -> None:
        """Put a notification into the output. Waits for nothing; see `room_for_notice`."""
        self._put(line)

    async def room_for_notice(self) -> None:
        """Wait until the client has read nearly all of the output."""
        await self._until(lambda: self._unsent_bytes <= self.limits.unsent_notices)

    def mute(self) -> None:
        """Let nothing more out, not even what is waiting to be sent."""
        self._mute = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._changed.unpark_all()

    def _put(self, line: bytes) -> None:
        if not self._mute:
            self._unsent.append(line)
            self._unsent_bytes += len(line)
            self._changed.unpark_all()

    async def pump(self) -> None:
        """Write the output to the client, until cancelled.

        Raises:
            trio.BrokenResourceError: the client is gone.
        """
        while True:
            await self._until(lambda: bool(self._unsent))
            batch, size = [], 0
            while self._unsent and size < WRITE_SIZE:
                batch.append(self._unsent.popleft())
                size += len(batch[-1])
            await self._sink.send(batch)
            self._unsent_bytes = max(0, self._unsent_bytes - size)  # `mute` may have forgotten them meanwhile
            self._changed.unpark_all()

    async def flushed(self) -> None:
        """Wait until the client has taken the whole output, within the time left for draining."""
        # What was answered at the very end of the time must not be lost for want of a moment.
        self._drain_deadline = max(self._drain_deadline, trio.current_time() + FLUSH)
        await self._drained(lambda: self._unsent_bytes == 0)

    @asynccontextmanager
    async def room_for_answer(self, *, large: bool) -> AsyncIterator[None]:
        """Wait until the client has read enough of the earlier answers; then hold a place for this one."""
        if not large:
            await self._until(self._has_room)
            yield
            return
        async with self._large_answers:
            await self._until(self._has_room)
            yield

    def _has_room(self) -> bool:
        return self._unsent_bytes <= self.limits.unsent_bytes

    # -- waiting ---------------------------------------------------------------------------------

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.park()

    async def _drained(self, condition: Callable[[], bool]) -> None:
        with trio.CancelScope(deadline=self._drain_deadline) as self._draining:
            await self._until(condition)


def _frame(line: bytes | Oversized) -> Frame | None:
    if isinstance(line, Oversized):
        raise FrameError(INVALID_REQUEST, f"the frame has {line.size} bytes; the limit is {line.limit}")
    return parse_frame(line)


def _answer(id: bytes, body: JSONRPCResponse | JSONRPCError, reply: bytes | None) -> bytes:
    try:
        if isinstance(body, JSONRPCError):
            return error_line(id, body.error.code, body.error.message, body.error.data)
        return result_line(id, body.result, reply)
    except (ValueError, TypeError):
        logger.exception("an answer cannot be written as JSON")
        return error_line(id, INTERNAL_ERROR, "the answer cannot be written as JSON")


class _MessageStream:
    """What both of the SDK's stream protocols ask for besides the messages."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def aclose(self) -> None:
        """Do nothing: source and sink belong to whoever opened them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return None


class Inbound(_MessageStream):
    """The stream that the SDK reads messages from."""

    async def receive(self) -> SessionMessage:
        """Return the next message."""
        return await anext(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        message = await self._connection.next_message()
        if message is None:
            raise StopAsyncIteration
        return message


class Outbound(_MessageStream):
    """The stream that the SDK writes messages to."""

    async def send(self, item: SessionMessage, /) -> None:
        """Put a message into the connection's output."""
        self._connection.send(item)
