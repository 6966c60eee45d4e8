"""The channel from a handler of the SDK back to its client: notifications, requests and their responses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import anyio
import trio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT

from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import Frame
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.response_encoder import encode
from greenroom.transports.mcp.response_sink import ResponseSink

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT


class ServerRequests:
    """Requests of the server that one client has not answered."""

    def __init__(self) -> None:
        self._pending: dict[int, ServerRequest] = {}
        self._numbers = itertools.count(1)

    @contextmanager
    def ask(self, on_progress: ProgressFnT | None) -> Iterator[ServerRequest]:
        """Wait for the answer to a new request while the block runs."""
        question = ServerRequest(next(self._numbers), on_progress)
        self._pending[question.number] = question
        try:
            yield question
        finally:
            del self._pending[question.number]

    def take_response(self, frame: Frame) -> None:
        """Take the client's response."""
        question = self._pending.get(frame.key) if isinstance(frame.key, int) else None
        if question is not None and question.response is None:
            question.response = frame.params or {}
            question.answered.set()

    async def take_progress(self, params: Mapping[str, Any]) -> None:
        """Take a notification of how far the client is with its answer."""
        token, progress = params.get("progressToken"), params.get("progress")
        question = self._pending.get(token) if type(token) is int else None
        if question is None or question.on_progress is None:
            return
        if not isinstance(progress, int | float) or type(progress) is bool:
            return
        total, message = params.get("total"), params.get("message")
        await question.on_progress(
            float(progress),
            float(total) if isinstance(total, int | float) else None,
            message if isinstance(message, str) else None,
        )


class ServerRequest:
    """A request of the server.

    Args:
        number: Its id.
        on_progress: Told how far the client is with it.

    Attributes:
        response: The client's response, which `answered` announces.
    """

    def __init__(self, number: int, on_progress: ProgressFnT | None) -> None:
        self.number = number
        self.on_progress = on_progress
        self.answered = trio.Event()
        self.response: Mapping[str, Any] | None = None


class SdkChannel:
    """The SDK's ``DispatchContext``: what a handler talks to its client through.

    Args:
        client: Whose it is.
        questions: What it was asked already.
        call: The request that is handled; None for what belongs to no request.
    """

    def __init__(self, client: ClientPort, questions: ServerRequests, call: Call | None = None) -> None:
        self._client = client
        self._questions = questions
        self._sink: ResponseSink = client.sink if call is None else call.sink
        self._call = call
        self.cancel_requested = anyio.Event()

    @property
    def transport(self) -> TransportContext:
        """What carries the message."""
        return TransportContext(kind="greenroom", can_send_request=self.can_send_request)

    @property
    def is_open(self) -> bool:
        """Whether anything may still be said: after its answer nothing more is about a request."""
        return self._call is None or not self._call.settled

    @property
    def can_send_request(self) -> bool:
        """Whether the client may be asked something."""
        return self.is_open and self._client.identity.era is Era.HANDSHAKE

    @property
    def request_id(self) -> int | str | None:
        """The id of the request that is handled."""
        return None if self._call is None else self._call.frame.key

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        """What reaches handlers beside the message: the call, and how to let its stream go."""
        return ServerMessageMetadata(request_context=self._call, close_sse_stream=self._close_stream)

    async def _close_stream(self) -> None:
        self._sink.close_stream()

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, _options: CallOptions | None = None
    ) -> None:
        """Send a notification."""
        if self.is_open:
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
            self._send(message if params is None else {**message, "params": params})

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the request is, if its client wants to know."""
        token = progress_token_from_params(None if self._call is None else self._call.frame.params)
        if token is not None:
            said = {"progressToken": token, "progress": progress, "total": total, "message": message}
            known = {key: value for key, value in said.items() if value is not None}
            await self.notify("notifications/progress", known)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Ask the client something and return its result.

        Raises:
            MCPError: it answered with an error, or not in time.
            NoBackChannelError: it may not be asked.
        """
        if not self.can_send_request:
            raise NoBackChannelError(method)
        options = opts or {}
        with self._questions.ask(options.get("on_progress")) as question:
            full = dict(params or {})
            if question.on_progress is not None:
                full["_meta"] = {**(full.get("_meta") or {}), "progressToken": question.number}
            message = {"jsonrpc": "2.0", "id": question.number, "method": method}
            self._send({**message, "params": full} if full or params is not None else message)
            try:
                with trio.move_on_after(options.get("timeout") or inf):
                    await question.answered.wait()
            except trio.Cancelled:
                self._send_cancelled(question, "caller cancelled")
                raise
        if question.response is None:
            self._send_cancelled(question, "timed out")
            raise MCPError(REQUEST_TIMEOUT, f"the client did not answer {method} in time")
        return _unwrapped(question.response)

    def _send_cancelled(self, question: ServerRequest, reason: str) -> None:
        """Let the client know that nobody waits for its answer any more."""
        params = {"requestId": question.number, "reason": reason}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        sink = self._sink if self.is_open else self._client.sink
        sink.send(encode(message) + b"\n")

    def _send(self, message: Mapping[str, Any]) -> None:
        self._sink.send(encode(message) + b"\n")


def _unwrapped(response: Mapping[str, Any]) -> dict[str, Any]:
    error = response.get("error")
    if isinstance(error, dict):
        code, sentence = error.get("code"), error.get("message")
        known = code if isinstance(code, int) else INTERNAL_ERROR
        raise MCPError(known, str(sentence), error.get("data"))
    result = response.get("result")
    if not isinstance(result, dict):
        raise MCPError(CONNECTION_CLOSED, "the client's response has no result")
    return result
