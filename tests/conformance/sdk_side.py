"""Requests that handlers of the SDK answer, in a server of ours: what talks to its client while it works.

Greenroom has no tool of this kind. What such handlers say and ask goes the way of its own notifications
and requests, so these tools show what the transports do with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import anyio
import msgspec
import trio
from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT

from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.response_encoder import result_line


class SdkSide:
    """An SDK server behind a server of ours, which hands it some requests.

    Args:
        server: The SDK's server.
        takes: Whether a request is one of those.
    """

    def __init__(self, server: Server[Any], takes: Callable[[Call], bool] = lambda _: True) -> None:
        server.middleware = [each for each in server.middleware if "OpenTelemetry" not in type(each).__name__]
        self._server = server
        self._takes = takes

    def take(self, client: Client, call: Call) -> bool:
        """Have a request answered; return whether it is one of those that are."""
        if not self._takes(call):
            return False
        client.server.deadlines.watch(call)
        client.spawn(self._serve, client, call)
        return True

    async def _serve(self, client: Client, call: Call) -> None:
        if call.settled:
            return
        with call.cancellable():
            try:
                result = await self._result(client, call)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
                failure = modern_error_data(error)
                if not call.settled:
                    client.fail(call, failure.code, failure.message, failure.data)
            else:
                if not call.settled:
                    line = result_line(call.id, msgspec.json.encode(result))
                    client.answer(call, line, "tool_error" if result.get("isError") else "ok")

    async def _result(self, client: Client, call: Call) -> dict[str, Any]:
        channel, method, params = Channel(client, call), call.frame.method, call.frame.params
        if method == "tools/call" and params is not None:
            params = {**params, "arguments": msgspec.json.decode(call.frame.arguments)}
        if client.identity.era is Era.HANDSHAKE:
            connection = Connection.for_loop(Channel(client))
            runner = ServerRunner(self._server, connection, client)
            await runner.on_request(channel, "initialize", client.identity.initialize)
            connection.initialized.set()
            return await runner.on_request(channel, method, params)
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        connection = Connection.from_envelope(
            route.protocol_version,
            route.client_info,
            route.client_capabilities,
            outbound=NotifyOnlyOutbound(Channel(client)),
        )
        return await serve_one(
            self._server, channel, method, params, connection=connection, lifespan_state=client
        )


class Channel:
    """The SDK's ``DispatchContext``: what a handler talks to its client through.

    Args:
        client: Whose it is.
        call: The request that is handled; None for what belongs to no request.
    """

    def __init__(self, client: Client, call: Call | None = None) -> None:
        self._client = client
        self._sink = client.sink if call is None else call.sink
        self._call = call
        self.cancel_requested = anyio.Event()

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind="greenroom", can_send_request=self.can_send_request)

    @property
    def _is_open(self) -> bool:
        return self._call is None or not self._call.settled

    @property
    def can_send_request(self) -> bool:
        return self._is_open and self._client.identity.era is Era.HANDSHAKE

    @property
    def request_id(self) -> int | str | None:
        return None if self._call is None else self._call.frame.key

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        return ServerMessageMetadata(request_context=self._call, close_sse_stream=self._close_stream)

    async def _close_stream(self) -> None:
        self._sink.close_stream()

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, _options: CallOptions | None = None
    ) -> None:
        if self._is_open:
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
            line = msgspec.json.encode(message if params is None else {**message, "params": params})
            self._sink.send(line + b"\n")

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        token = progress_token_from_params(None if self._call is None else self._call.frame.params)
        if token is not None:
            said = {"progressToken": token, "progress": progress, "total": total, "message": message}
            known = {key: value for key, value in said.items() if value is not None}
            await self.notify("notifications/progress", known)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        with trio.move_on_after((opts or {}).get("timeout") or inf):
            return _unwrapped(await self._client.domain.server_requests.ask(self._sink, method, params))
        raise MCPError(REQUEST_TIMEOUT, f"the client did not answer {method} in time")


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
