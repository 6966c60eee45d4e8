"""Tool calls: from raw arguments to a request, and from reply to answer."""

from __future__ import annotations

import difflib
from functools import partial
from typing import Any

import msgspec
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.core.auth.key_format import mask_keys
from greenroom.actors.core.replies.replies import ListReply
from greenroom.runtime import Procedure
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import INVALID_PARAMS, RequestError
from greenroom.transports.mcp.frames.versions import Named
from greenroom.transports.mcp.handler_context import HandlerContext
from greenroom.transports.mcp.response_encoder import encode
from greenroom.transports.mcp.tools.answer_times import Moment
from greenroom.transports.mcp.tools.content_blocks import NO_JSON, to_content
from greenroom.transports.mcp.tools.tool_errors import Failure, tool_failure
from greenroom.transports.mcp.tools.tools import visible_tools

NAME_SHOWN = 100
LARGE_ARGUMENTS = 65_536
"""The size from which arguments, such as a passport, are parsed in a thread."""


def refuse_tool(at: HandlerContext, client: Client, call: Call) -> bool:
    """Refuse a tool that the client may not call; return whether it did."""
    frame = call.frame
    tool = call.payload = None if frame.name is None else client.offer.tools.get(frame.name)
    if tool is None or tool.asks is None:
        return False
    denial = client.domain.denial(tool.asks, frame.arguments)
    if denial is not None:
        _reply(at, client, call, denial)
    return denial is not None


def call_tool(at: HandlerContext, client: Client, call: Call, params: Named) -> None:
    """Call a tool when its turn has come; `refuse_tool` has found it."""
    if call.payload is None:
        raise RequestError(INVALID_PARAMS, _unknown_tool(params.name, client))
    at.deadlines.watch(call)
    client.queue.join(call, partial(_begin, at, client), call.payload.weight)


def _begin(at: HandlerContext, client: Client, call: Call) -> None:
    if len(call.frame.arguments) > LARGE_ARGUMENTS and issubclass(call.payload.request, Procedure):
        client.spawn(_parse_in_thread, at, client, call)
        return
    try:
        request = call.payload.parse(call.frame.arguments)
    except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
        _reply(at, client, call, error)
    else:
        client.domain.ask(call, request, partial(_reply, at, client))


async def _parse_in_thread(at: HandlerContext, client: Client, call: Call) -> None:
    """Parse large arguments in a thread, so that other clients are served meanwhile."""
    request: Any = None
    with call.cancellable():
        try:
            request = await trio.to_thread.run_sync(
                call.payload.parse, call.frame.arguments, abandon_on_cancel=True
            )
        except Exception as error:  # noqa: BLE001  (as in `_begin`)
            request = error
    if call.settled:
        return
    if isinstance(request, Exception):
        _reply(at, client, call, request)
    else:
        client.domain.ask(call, request, partial(_reply, at, client))


def _reply(at: HandlerContext, client: Client, call: Call, reply: Any) -> None:
    alias = call.payload.alias_for(call.frame.arguments)
    meta = None if alias is None else alias.meta
    moment = at.times.moment(call.arrived)
    if isinstance(reply, NO_JSON):
        reply = to_content(reply)
        line = at.answers.content_line(call.id, reply, moment, meta)
        client.answer(call, line, "tool_error" if reply.is_error else "ok")
        return
    reply = reply if alias is None else alias.reword(reply)
    text, failed = _encode_reply(reply, client, moment, call.payload.name)
    line = at.answers.tool_line(call.id, text, moment, is_error=failed, meta=meta)
    client.answer(call, line, "tool_error" if failed else "ok")


def fail_tool(at: HandlerContext, client: Client, call: Call, failure: Failure) -> None:
    """Answer a tool call with a failure outside of the tool."""
    frame, moment = call.frame, at.times.moment(call.arrived)
    text = encode(client.offer.renamed(failure, moment))
    tool = client.offer.tools.get(frame.name or "")
    alias = None if tool is None else tool.alias_for(frame.arguments)
    meta = None if alias is None else alias.meta
    line = at.answers.tool_line(call.id, text, moment, is_error=True, meta=meta)
    client.answer(call, line, "tool_error")


def _encode_reply(reply: Any, client: Client, moment: Moment, called: str) -> tuple[bytes, bool]:
    """Return a tool call's answer as JSON, and whether it is a failure."""
    if not isinstance(reply, Exception):
        if isinstance(reply, ListReply) and reply.empty_because is not UNSET:
            reply = _with_remedy(reply, client)
        try:
            if called in client.offer.renaming:
                reply = client.offer.renamed(reply, moment, called)
            return encode(reply), False
        except (ValueError, TypeError) as error:
            reply = error
    failure = tool_failure(reply)
    told = client.offer.worded(failure.error, client.identity.scopes)
    return encode(client.offer.renamed(msgspec.structs.replace(failure, error=told), moment)), True


def _with_remedy(reply: ListReply, client: Client) -> ListReply:
    """Return an empty answer with a remedy that says how to call its tools."""
    because = reply.empty_because
    if isinstance(because, UnsetType) or isinstance(because.remedy, UnsetType):
        return reply
    remedy = client.offer.worded(because.remedy, client.identity.scopes)
    return msgspec.structs.replace(reply, empty_because=msgspec.structs.replace(because, remedy=remedy))


def _unknown_tool(name: str, client: Client) -> str:
    known = visible_tools(client.offer.known, client.offer.tools, client.identity.scopes)
    near = difflib.get_close_matches(name[:NAME_SHOWN], known, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown tool: {mask_keys(name)[:NAME_SHOWN]}{hint}"
