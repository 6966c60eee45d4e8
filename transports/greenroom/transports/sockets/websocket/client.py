"""A WebSocket transport for the SDK's own client that reconnects when its connection breaks.

It inspects the passing messages (`resume_state`) only as far as reconnecting requires.
"""

from __future__ import annotations

import logging
import random
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING, cast
from urllib.parse import SplitResult, urlsplit

import anyio
import trio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream

from greenroom.transports.base.defaults import PING_SECONDS
from greenroom.transports.sockets.websocket.certificates import any_certificate, fingerprint_of, open_tls
from greenroom.transports.sockets.websocket.resume_state import ResumeState, delay_before

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]

logger = logging.getLogger(__name__)

LARGEST_ANSWER = 256 * 1024 * 1024
CONNECT_TIME = 5.0  # seconds for an address, TLS and the handshake
CLOSE_TIME = 1.0  # seconds for the server to answer a close
LISTEN_GRACE = 1.0  # seconds in which the end of a stream may prove to be the end of the server
_TEMPORARY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
_FAULTS = {1002, 1003, 1007, 1008, 1009}
_SILENT = {1000, 1005, 1006}
_CLIENT_LEFT = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class WebSocketRefusedError(Exception):
    """The server refuses this client: a retry without a change is useless.

    An `OSError` means instead that no server could be reached.

    Attributes:
        status: The HTTP status of the refusal.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(f"{sentence} (HTTP {status})")
        self.status = status


class CertificateChangedError(WebSocketRefusedError):
    """The server shows another certificate than the one with the known fingerprint.

    Attributes:
        found: The fingerprint of the certificate that was shown.
    """

    def __init__(self, place: str, found: str) -> None:
        super().__init__(0, "")
        self.found = found
        sentence = (
            f"{place} shows another certificate than the known one, and nothing was sent to it; if it was "
            "renewed there, take the new one with `greenroom setup --url`, else another machine may be "
            f"between; its SHA-256 is {found}"
        )
        self.args = (sentence,)


@asynccontextmanager
async def websocket_client(
    url: str,
    *,
    agent: str | None = None,
    agent_type: str | None = None,
    projects: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    fingerprint: str | None = None,
    reconnect: bool = True,
) -> AsyncIterator[TransportStreams]:
    """Connect `mcp.Client` to a server's WebSocket: ``Client(websocket_client(url))``. Needs trio.

    The first connection must succeed. When a later one breaks, the client reconnects without limit, with
    exponential back-off and jitter, repeats the handshake, and opens subscriptions and listen streams again,
    with one update for each resource. Unanswered requests are sent again if they only read or carry an
    ``idempotency_key``; all others are answered with error -32000 and ``CONNECTION_LOST`` in its data.
    Requests that are made meanwhile wait.

    Args:
        url: ``ws://`` or ``wss://``.
        agent: The agent id to connect with; by default derived from the client's own name.
        agent_type: The agent's type.
        projects: The projects that the agent is a member of.
        headers: Further headers of the handshake.
        ssl_context: For ``wss://``; by default the system's certificates.
        fingerprint: The SHA-256 of the only certificate that is accepted, as `fingerprint_of` returns it;
            authorities, names and dates then do not count.
        reconnect: Whether to reconnect at all.

    Yields:
        The two message streams that the SDK's client needs from a transport.

    Raises:
        ValueError: The URL is not a WebSocket URL, or it is ``ws://`` with a fingerprint.
        WebSocketRefusedError: The server refused the first connection.
        CertificateChangedError: Its certificate is not the one with the fingerprint; nothing was sent.
        OSError: No server was reached.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"ws", "wss"} or not parts.hostname:
        raise ValueError(f"{url!r} is no WebSocket URL; those begin with ws:// or wss://")
    if parts.scheme == "ws" and fingerprint is not None:
        raise ValueError(f"{url!r} shows no certificate, so a fingerprint needs wss://")
    identity = {"Greenroom-Agent": agent, "Greenroom-Agent-Type": agent_type}
    sent = {name: value for name, value in identity.items() if value is not None} | dict(headers or {})
    if projects:
        sent["Greenroom-Project"] = ", ".join(projects)
    context = None
    if parts.scheme == "wss":
        context = ssl_context or (ssl.create_default_context() if fingerprint is None else any_certificate())
    to_client, from_us = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    to_us, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    link = _Link(parts, sent, context, fingerprint, to_client, from_client, reconnect=reconnect)
    refusal: OSError | WebSocketRefusedError | None = None
    async with from_us, to_us, trio.open_nursery() as nursery:
        try:
            await nursery.start(link.run)
        except (OSError, WebSocketRefusedError) as error:
            refusal = error  # raised outside, where it is not wrapped in a group
        else:
            try:
                yield from_us, to_us
            finally:
                to_us.close()  # before the cancel, which would end the reader of the server's close
                await link.wait_disconnected()
                nursery.cancel_scope.cancel()
    if refusal is not None:
        raise refusal


class _Link:
    """The successive connections of one client."""

    def __init__(
        self,
        url: SplitResult,
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None,
        fingerprint: str | None,
        inbound: MemoryObjectSendStream[SessionMessage | Exception],
        outbound: MemoryObjectReceiveStream[SessionMessage],
        *,
        reconnect: bool,
    ) -> None:
        self._url = url
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._tls = tls
        self._fingerprint = fingerprint
        self._inbound = inbound
        self._outbound = outbound
        self._reconnect = reconnect
        self._ledger = ResumeState()
        self._undelivered: deque[JSONRPCMessage] = deque()
        self._delivering = trio.Lock()
        self._attempt = 0
        self._over = False
        self._apart = trio.Event()
        self._apart.set()
        self._random = random.Random()  # noqa: S311  (jitter)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Keep the client connected until it leaves or is refused, or until cancelled."""
        with self._inbound, self._outbound, suppress(*_CLIENT_LEFT):
            sentence, fault = await self._connection(task_status.started)
            while not self._over and self._reconnect:
                await self._deliver(self._ledger.lost(sentence, fault=fault))
                pause = delay_before(self._attempt, self._random)
                self._attempt += 1
                logger.info("%s; connecting again in %.2f s", sentence, pause)
                await trio.sleep(pause)
                try:
                    sentence, fault = await self._connection()
                except OSError as error:
                    sentence, fault = f"no server was reached ({error})", False
                except WebSocketRefusedError as error:
                    sentence, fault = f"the server refused the connection ({error})", False
                    if error.status not in _TEMPORARY and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                        logger.error("%s; it will not be tried again", sentence)  # noqa: TRY400
                        break
            self._take_waiting()
            await self._deliver(self._ledger.ended(sentence))

    def _take_waiting(self) -> None:
        """Record the messages that wait to be sent: requests among them get an answer."""
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                self._ledger.sending(self._outbound.receive_nowait().message)

    async def wait_disconnected(self) -> None:
        """Wait briefly until no connection is left that would end when the client leaves."""
        with trio.move_on_after(CLOSE_TIME, shield=True):
            await self._apart.wait()

    async def _connection(self, started: Callable[[], None] | None = None) -> tuple[str, bool]:
        """Serve the client over one connection; return how it ended, and whether we caused it.

        Raises:
            OSError: No server was reached.
            WebSocketRefusedError: The server refused.
        """
        host, port = self._url.hostname, self._url.port or (443 if self._tls else 80)
        assert host is not None, "it was checked"
        named = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        ended: tuple[str, bool] | None = None
        refused: WebSocketRefusedError | None = None
        try:
            with trio.move_on_after(CONNECT_TIME) as connecting:
                stream = await self._stream(host, port)
                try:
                    async with trio.open_nursery(strict_exception_groups=True) as nursery:
                        watched = _ObservedStream(stream, connecting.cancel)
                        websocket = await self._handshake(nursery, cast("Stream", watched), named)
                        watched.ended = lambda: None
                        connecting.deadline = trio.current_time() + CONNECT_TIME
                        if started is not None:
                            started()
                        self._apart = trio.Event()
                        try:
                            ended = await self._converse(websocket, connecting)
                        finally:
                            with trio.move_on_after(CLOSE_TIME, shield=True):
                                await websocket.aclose()
                            self._apart.set()
                        nursery.cancel_scope.cancel()
                finally:
                    await trio.aclose_forcefully(stream)
        except* ConnectionRejected as group:
            refused = _refusal(group)
        if refused is not None:
            raise refused  # not in the clause above, which CPython before 3.11.4 wraps in a group
        if ended is None:
            raise ConnectionError(f"{named} hung up, or did not answer within {CONNECT_TIME:g} s")
        return ended

    async def _stream(self, host: str, port: int) -> Stream:
        if self._tls is None:
            return await trio.open_tcp_stream(host, port)
        stream = await open_tls(host, port, self._tls)
        found = fingerprint_of(stream)
        if self._fingerprint not in {None, found}:
            await trio.aclose_forcefully(stream)
            raise CertificateChangedError(f"{host}:{port}", found)
        return stream

    async def _handshake(self, nursery: trio.Nursery, stream: Stream, named: str) -> WebSocketConnection:
        return await wrap_client_stream(
            nursery,
            stream,
            named,
            (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else ""),
            subprotocols=["mcp"],
            extra_headers=list(self._headers),
            max_message_size=LARGEST_ANSWER,
            receive_buffer_size=64 * 1024,
        )

    async def _converse(
        self, websocket: WebSocketConnection, connecting: trio.CancelScope
    ) -> tuple[str, bool]:
        try:
            async with trio.open_nursery(strict_exception_groups=True) as nursery:
                await self._shake_hands(websocket)
                connecting.deadline = inf
                nursery.start_soon(self._write, websocket)
                nursery.start_soon(self._keep_alive, websocket)
                while True:
                    await self._take(await websocket.get_message(), nursery)
        except* ConnectionClosed:
            pass
        except* _CLIENT_LEFT:
            self._over = True
        reason = websocket.closed
        if reason is None or reason.code in _SILENT:
            return "the connection was lost", False
        detail = f": {reason.reason}" if reason.reason else ""
        return f"the server closed the connection ({reason.code}{detail})", reason.code in _FAULTS

    async def _shake_hands(self, websocket: WebSocketConnection) -> None:
        """Repeat the handshake on a new connection, if there was a handshake."""
        request = self._ledger.handshake()
        if request is None:
            return
        await websocket.send_message(encode_message(request))
        answer: JSONRPCMessage | Exception | None = None
        while getattr(answer, "id", None) != request.id:
            answer = _decoded(await websocket.get_message())
        if isinstance(answer, JSONRPCError):
            logger.warning("the server refused the handshake: %s", answer.error.message)
            raise ConnectionClosed(None)

    async def _take(self, text: str | bytes, nursery: trio.Nursery) -> None:
        self._attempt = 0
        message = _decoded(text)
        if isinstance(message, Exception):
            await self._inbound.send(message)
        elif self._reconnect and isinstance(message, JSONRPCResponse) and self._ledger.is_listen(message.id):
            # A stopping server ends its streams first; in that case the client need not see it.
            nursery.start_soon(self._deliver_later, message)
        else:
            await self._deliver(self._ledger.incoming(message))

    async def _deliver_later(self, message: JSONRPCResponse) -> None:
        await trio.sleep(LISTEN_GRACE)
        await self._deliver(self._ledger.incoming(message))

    async def _deliver(self, messages: Sequence[JSONRPCMessage]) -> None:
        """Deliver messages to the client, first those that a broken connection interrupted."""
        self._undelivered.extend(messages)
        async with self._delivering:
            while self._undelivered:
                await self._inbound.send(SessionMessage(self._undelivered[0]))
                self._undelivered.popleft()

    async def _write(self, websocket: WebSocketConnection) -> None:
        for message in self._ledger.resumption():
            self._ledger.sending(message)
            await websocket.send_message(encode_message(message))
        while True:
            message = (await self._outbound.receive()).message
            # No checkpoint from here to the send: a received message is sent or accounted for.
            if self._ledger.outgoing(message):
                self._ledger.sending(message)
                await websocket.send_message(encode_message(message))

    async def _keep_alive(self, websocket: WebSocketConnection) -> None:
        while True:
            await trio.sleep(PING_SECONDS)
            with trio.move_on_after(PING_SECONDS) as waiting:
                await websocket.ping()
            if waiting.cancelled_caught:
                raise ConnectionClosed(websocket.closed)


class _ObservedStream(trio.abc.Stream):
    """A stream that reports its end, which trio-websocket misses during a handshake."""

    def __init__(self, stream: Stream, ended: Callable[[], None]) -> None:
        self.ended = ended
        self._stream = stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = b""
        try:
            data = bytes(await self._stream.receive_some(max_bytes))
            return data
        finally:
            if not data:
                self.ended()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


def encode_message(message: JSONRPCMessage) -> str:
    """Encode a message as JSON on one line."""
    return message.model_dump_json(by_alias=True, exclude_unset=True)


def _decoded(text: str | bytes) -> JSONRPCMessage | Exception:
    """Decode a message; return an error, as a value, for an invalid one."""
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError as error:
        logger.warning("the server sent an invalid message: %s", error)
        return error


def _refusal(group: BaseExceptionGroup[ConnectionRejected]) -> WebSocketRefusedError:
    rejected = _leaf(group)
    assert isinstance(rejected, ConnectionRejected), "the group holds nothing else"
    body = (rejected.body or b"").decode("utf-8", "replace").strip()[:1_000]
    return WebSocketRefusedError(rejected.status_code, body or "the server refused the connection")


def _leaf(error: BaseException) -> BaseException:
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
