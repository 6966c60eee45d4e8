"""The methods of resources, prompts, completion, and subscriptions to resources.

A failure is a protocol error here; its ``data`` is what the answer of a failed tool would hold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from greenroom.actors import (
    CompletePrompt,
    CompleteResource,
    GetPrompt,
    ListPrompts,
    ListResources,
    ReadResource,
)
from greenroom.actors.app.client.prompts import Prompt
from greenroom.runtime import Refusal
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.mcp.clients.open_requests import Client
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import INTERNAL_ERROR, INVALID_PARAMS, RequestError
from greenroom.transports.mcp.frames.versions import (
    MODERN_VERSION,
    RESOURCE_NOT_FOUND,
    SUBSCRIPTION_ID_KEY,
    Completing,
    Filling,
    Listening,
    Located,
    OfTemplate,
    Page,
)
from greenroom.transports.mcp.handler_context import JSON, HandlerContext
from greenroom.transports.mcp.response_encoder import FRESH, encode, result_line
from greenroom.transports.mcp.tools.content_blocks import Content, to_content
from greenroom.transports.mcp.tools.tool_errors import tool_failure

LARGEST_WEIGHT = 4  # the weight of the largest answers (`Tool.weight`)

# -- resources ---------------------------------------------------------------------------------------


def list_resources(at: HandlerContext, client: Client, call: Call, params: Page) -> None:
    """List a page of resources."""

    def result(reply: Any) -> bytes:
        moment = at.times.moment(call.arrived)
        return at.answers.result(_resource_list(client.offer.renamed(reply, moment)), FRESH, moment)

    request = ListResources(cursor=params.cursor)
    _in_turn(at, client, call, lambda: _ask(client, call, request, result))


def _resource_list(page: Any) -> dict[str, Any]:
    listed = []
    for item in page.resources:
        entry: dict[str, Any] = {
            "uri": item.uri,
            "name": item.name,
            "description": item.description,
            "mimeType": JSON,
        }
        if item.title is not None:
            entry["title"] = item.title
        if item.last_modified is not None:
            moment = item.last_modified.isoformat().replace("+00:00", "Z")
            entry["annotations"] = {"lastModified": moment}
        listed.append(entry)
    return _page("resources", listed, page.next_cursor)


def read_resource(at: HandlerContext, client: Client, call: Call, params: Located) -> None:
    """Read a resource."""

    def result(reply: Any) -> bytes:
        reply, moment = to_content(reply), at.times.moment(call.arrived)
        if isinstance(reply, Content):
            contents = reply.blocks
        else:
            text = encode(client.offer.renamed(reply, moment)).decode()
            contents = [{"uri": params.uri, "mimeType": JSON, "text": text}]
        return at.answers.result({"contents": contents}, FRESH, moment)

    _in_turn(
        at, client, call, lambda: _ask(client, call, ReadResource(uri=params.uri), result), LARGEST_WEIGHT
    )


# -- subscriptions -----------------------------------------------------------------------------------


def subscribe(at: HandlerContext, client: Client, call: Call, params: Located) -> None:
    """Subscribe the client to a resource."""

    def begin() -> None:
        try:
            subscriber = at.subscriptions.subscribe(client, params.uri)
        except Exception as error:  # noqa: BLE001  (every error becomes the answer)
            fail(client, call, error)
        else:
            client.spawn(answer, subscriber)

    async def answer(subscriber: SubscriberPort) -> None:
        await subscriber.wait_heard()
        if not call.settled:
            client.answer(call, result_line(call.id, b"{}"))

    _in_turn(at, client, call, begin)


def unsubscribe(at: HandlerContext, client: Client, call: Call, params: Located) -> None:
    """Unsubscribe the client from a resource."""

    def begin() -> None:
        at.subscriptions.unsubscribe(client, params.uri)
        client.answer(call, result_line(call.id, b"{}"))

    _in_turn(at, client, call, begin)


def listen(at: HandlerContext, client: Client, call: Call, params: Listening) -> None:
    """Keep the request open as a stream of changes, once its turn has come."""
    client.queue.join(call, lambda call: client.spawn(_stream, at, client, call, params))


async def _stream(at: HandlerContext, client: Client, call: Call, params: Listening) -> None:
    if call.settled:  # cancelled before its task began
        return
    try:
        await at.subscriptions.listen(client, call, params.notifications)
    except Exception as error:  # noqa: BLE001  (as in `subscribe`)
        if not call.settled:
            fail(client, call, error)
    else:
        if not call.settled:
            stream_id = {"_meta": {SUBSCRIPTION_ID_KEY: msgspec.Raw(call.id)}}
            client.answer(call, result_line(call.id, at.answers.result(stream_id)))


# -- prompts, and completion -------------------------------------------------------------------------


def refuse_prompts(_at: HandlerContext, client: Client, call: Call) -> bool:
    """Refuse prompts to a client without access; return whether it did."""
    denial = client.domain.denial(ListPrompts if call.frame.method == "prompts/list" else GetPrompt)
    if denial is not None:
        fail(client, call, denial)
    return denial is not None


def list_prompts(at: HandlerContext, client: Client, call: Call, params: Page) -> None:
    """List a page of prompts."""
    request = partial(ListPrompts, cursor=params.cursor, older=client.offer.older_prompts)

    def result(page: Any) -> bytes:
        listed = list(map(_listed_prompt, page.prompts))
        return at.answers.result(_page("prompts", listed, page.next_cursor), FRESH)

    _at_once(at, client, call, request, result)


def _listed_prompt(prompt: Prompt) -> dict[str, Any]:
    return {
        "name": prompt.name,
        "title": prompt.title,
        "description": prompt.description,
        "arguments": [
            {"name": each.name, "description": each.description, "required": each.required}
            for each in prompt.arguments
        ],
    }


def _page(name: str, listed: list[Any], next_cursor: str | None) -> dict[str, Any]:
    return {name: listed} if next_cursor is None else {name: listed, "nextCursor": next_cursor}


def get_prompt(at: HandlerContext, client: Client, call: Call, params: Filling) -> None:
    """Fill a prompt."""

    def result(filled: Any) -> bytes:
        if isinstance(filled, Content):
            blocks = [{"role": "user", "content": block} for block in filled.blocks]
            return at.answers.result({"messages": blocks})
        message = {"role": "user", "content": {"type": "text", "text": filled.text}}
        return at.answers.result({"description": filled.description, "messages": [message]})

    request = partial(GetPrompt, name=params.name, arguments=params.arguments or {})
    _at_once(at, client, call, request, result)


def complete(at: HandlerContext, client: Client, call: Call, params: Completing) -> None:
    """Complete an argument of a prompt, or a variable of a resource template."""
    ref, argument = params.ref, params.argument
    known = {} if params.context is None else params.context.arguments or {}
    told: dict[str, Any] = {"argument": argument.name, "value": argument.value}
    request: Callable[[], Any]
    if isinstance(ref, OfTemplate):
        request = partial(CompleteResource, template=ref.uri, known=known, **told)
    else:
        request = partial(CompletePrompt, prompt=ref.name, arguments=known, **told)

    def result(found: Any) -> bytes:
        completion = {"values": found.values, "hasMore": found.has_more}
        if not found.has_more:
            completion["total"] = len(found.values)
        return at.answers.result({"completion": completion})

    _at_once(at, client, call, request, result)


# -- sending ---------------------------------------------------------------------------------------


def _in_turn(
    at: HandlerContext, client: Client, call: Call, begin: Callable[[], None], weight: int = 0
) -> None:
    """Begin when the request's turn has come."""
    at.deadlines.watch(call)
    client.queue.join(call, lambda _call: begin(), weight)


def _at_once(
    at: HandlerContext, client: Client, call: Call, request: Callable[[], Any], result: Callable[[Any], bytes]
) -> None:
    """Send a request that has no order; answer an invalid request like a refused request."""
    at.deadlines.watch(call)
    try:
        made = request()
    except Exception as error:  # noqa: BLE001  (as in `subscribe`)
        fail(client, call, error)
    else:
        _ask(client, call, made, result)


def _ask(client: Client, call: Call, request: Any, result: Callable[[Any], bytes]) -> None:
    def finish(call: Call, reply: Any) -> None:
        if isinstance(reply, Exception):
            fail(client, call, reply)
        else:
            client.answer(call, result_line(call.id, result(reply)))

    client.domain.ask(call, request, finish)


def fail(client: Client, call: Call, error: Exception) -> None:
    """Answer with a failure as a protocol error."""
    if isinstance(error, RequestError):
        client.fail(call, error.code, str(error), error.data)
        return
    failure = tool_failure(error)
    code = INTERNAL_ERROR
    if isinstance(error, Refusal):
        old = error.code == "RESOURCE_NOT_FOUND" and client.identity.version != MODERN_VERSION
        code = RESOURCE_NOT_FOUND if old else INVALID_PARAMS
    sentence = client.offer.worded(failure.error, client.identity.scopes)
    client.fail(call, code, sentence, {"code": failure.code, **failure.details})
