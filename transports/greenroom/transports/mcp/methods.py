"""The methods of MCP in one table: parameters and handlers, in both eras.

A request with parameters of the listed shape is answered at once. The SDK checks any other request
(`checks`): a valid request goes to the same handler, and an invalid one gets the SDK's error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from greenroom.transports.mcp import reads, tool_calls
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    RequestError,
)
from greenroom.transports.mcp.frames.versions import (
    VERSION_KEY,
    Completing,
    Era,
    Filling,
    Initialize,
    Listening,
    Located,
    Named,
    Nothing,
    Page,
    check_version,
    envelope_of,
    negotiate_version,
    plain_shape,
)
from greenroom.transports.mcp.handler_context import HandlerContext
from greenroom.transports.mcp.response_encoder import encode, result_line
from greenroom.transports.mcp.tools.tool_errors import rate_limit_refusal, timeout_failure, tool_failure

HANDSHAKE_LIMIT = 64 * 1024  # bytes

_convert = msgspec.convert
_NO_PARAMS: Mapping[str, Any] = {}


class Method(NamedTuple):
    """One method.

    Attributes:
        refuse: Refuses a request of a client without access, whatever its content; returns whether it did.
        is_open: Whether it is answered before a handshake.
    """

    shape: type[msgspec.Struct]
    answer: Callable[[HandlerContext, Client, Call, Any], None]
    eras: tuple[Era, ...] = tuple(Era)
    refuse: Callable[[HandlerContext, Client, Call], bool] | None = None
    is_open: bool = False


class Methods:
    """The methods of one era."""

    def __init__(self, context: HandlerContext, extend: Callable[[Client, Call], bool] | None) -> None:
        self._context = context
        self._extend = extend
        self._table = {
            name: (method, plain_shape(method.shape, context.era))
            for name, method in TABLE.items()
            if context.era in method.eras
        }

    def take(self, client: Client, call: Call) -> None:
        """Answer a request, or answer with its error."""
        frame = call.frame
        try:
            if self._extend is not None and self._extend(client, call):
                return
            method, plain = self._table.get(frame.method, (None, None))
            if method is None:
                self._check(client, call, None)
                return
            if not (client.identity.is_introduced or method.is_open):
                sentence = f"send initialize first: {frame.method} is not answered before it"
                client.fail(call, INVALID_PARAMS, sentence)
                return
            if method.refuse is not None and method.refuse(self._context, client, call):
                return
            if frame.problem:
                client.fail(call, INVALID_PARAMS, frame.problem)
                return
            try:
                params = _convert(frame.params or _NO_PARAMS, plain)
            except msgspec.ValidationError:
                self._check(client, call, method)
            else:
                method.answer(self._context, client, call, params)
        except RequestError as error:
            client.fail(call, error.code, str(error), error.data)

    def _check(self, client: Client, call: Call, method: Method | None) -> None:
        """Check an unusual request with the SDK, and answer it if it is valid."""
        frame, checks = call.frame, client.server.checks
        if self._context.era is Era.MODERN:
            span, call.span = call.span, None  # as in the SDK: without a valid envelope there is no span
            check_version(envelope_of(frame.params)[VERSION_KEY])
            call.span = span
        if checks is None:
            client.postpone(call)
            return
        version, is_served = client.identity.version, method is not None
        params = checks.check_request(frame.method, version, frame.params, is_served=is_served)
        assert method is not None, "what nothing answers does not pass"
        method.answer(self._context, client, call, _convert(params, method.shape))

    def expire(self, client: Client, call: Call) -> None:
        """Answer a call that timed out."""
        if call.frame.method == "tools/call":
            tool_calls.fail_tool(self._context, client, call, timeout_failure(call.timeout))
        else:
            sentence = f"the request was not answered within {call.timeout:g} s; repeat it"
            client.fail(call, INTERNAL_ERROR, sentence)

    def limit(self, client: Client, call: Call, seconds: float) -> None:
        """Answer a call that exceeds the rate limit; the client may repeat it after `seconds`."""
        refusal = rate_limit_refusal(seconds)
        if call.frame.method == "tools/call":
            tool_calls.fail_tool(self._context, client, call, tool_failure(refusal))
        else:
            data = {"code": refusal.code, **refusal.details}
            client.fail(call, INTERNAL_ERROR, refusal.sentence, data)


def _refuse_handshake(_at: HandlerContext, _client: Client, call: Call) -> bool:
    """Refuse a handshake that is too long, because it is stored with the client."""
    if call.frame.size > HANDSHAKE_LIMIT:
        sentence = f"a handshake has at most {HANDSHAKE_LIMIT:,} bytes; this one has {call.frame.size:,}"
        raise RequestError(INVALID_REQUEST, sentence)
    return False


def _initialize(at: HandlerContext, client: Client, call: Call, params: Initialize) -> None:
    who = client.identity
    who.accept_handshake(call.frame.params or {}, negotiate_version(params.protocolVersion))
    client.domain.forget_folders()
    said = {"protocolVersion": who.version, "serverInfo": at.profile.implementation}
    said |= at.profile.described_to(who.scopes, client.offer.unlisted)
    client.answer(call, result_line(call.id, encode(said)))


def _ping(_at: HandlerContext, client: Client, call: Call, _params: Nothing) -> None:
    client.answer(call, result_line(call.id, b"{}"))


def _discover(at: HandlerContext, client: Client, call: Call, _params: Nothing) -> None:
    result = at.listings.discovery(client.offer, client.identity.scopes)
    client.answer(call, result_line(call.id, result))


def _list_tools(at: HandlerContext, client: Client, call: Call, _params: Page) -> None:
    result = at.listings.tools(client.offer, client.identity.scopes)
    client.answer(call, result_line(call.id, result))


def _list_templates(at: HandlerContext, client: Client, call: Call, _params: Page) -> None:
    client.answer(call, result_line(call.id, at.listings.templates(client.identity.scopes)))


_HANDSHAKE, _MODERN = (Era.HANDSHAKE,), (Era.MODERN,)

TABLE: Mapping[str, Method] = {
    "initialize": Method(Initialize, _initialize, _HANDSHAKE, _refuse_handshake, is_open=True),
    "ping": Method(Nothing, _ping, _HANDSHAKE, is_open=True),
    "server/discover": Method(Nothing, _discover, _MODERN),
    "tools/list": Method(Page, _list_tools),
    "tools/call": Method(Named, tool_calls.call_tool, refuse=tool_calls.refuse_tool),
    "resources/list": Method(Page, reads.list_resources),
    "resources/read": Method(Located, reads.read_resource),
    "resources/templates/list": Method(Page, _list_templates),
    "resources/subscribe": Method(Located, reads.subscribe, _HANDSHAKE),
    "resources/unsubscribe": Method(Located, reads.unsubscribe, _HANDSHAKE),
    "subscriptions/listen": Method(Listening, reads.listen, _MODERN),
    "prompts/list": Method(Page, reads.list_prompts, refuse=reads.refuse_prompts),
    "prompts/get": Method(Filling, reads.get_prompt, refuse=reads.refuse_prompts),
    "completion/complete": Method(Completing, reads.complete),
}
"""Every served method. The SDK answers that other methods of the protocol are not found."""
