"""The same tools served by the official SDK alone, the plain way: what our answers are compared with.

Nothing of `greenroom.transports.mcp` that speaks MCP is used here, only what the domain says: the
tools with their listings and parsers, and the words for failures. So this is a second implementation,
and where the two agree, both follow the SDK.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.metadata import version
from typing import Any

import anyio
import msgspec
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Annotations,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    ServerCapabilities,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
    jsonrpc_message_adapter,
)
from mcp_types import ResourceUpdatedNotification as Updated
from mcp_types import ResourceUpdatedNotificationParams as UpdatedParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from greenroom.actors import (
    TEMPLATES,
    CompletePrompt,
    CompleteResource,
    GetPrompt,
    ListPrompts,
    ListResources,
    NameCompletion,
    ReadResource,
)
from greenroom.actors.app.requests import TOOL_SCOPES as TOOLS
from greenroom.runtime import Refusal, RuntimeClosedError
from greenroom.transports import AgentPort, SubscriberPort, Tool
from greenroom.transports.auth.caller import fit_agent_id
from greenroom.transports.mcp.tools.offered_tools import ToolOffers
from greenroom.transports.mcp.tools.tool_errors import Failure, timeout_failure, tool_failure
from greenroom.transports.mcp.tools.tool_profiles import DEFAULT

REQUEST_TIMEOUT = 30.0  # seconds
DEBOUNCE = 0.1  # seconds
DEADLINE = "greenroom/deadline_ms"
INSTRUCTIONS = (
    "Shared sessions and memory for agents that work together. "
    "Begin your work with start_session: it offers the session of this project that another tool left; "
    "record_context notes what the next one should know. "
    "Create or list sessions, add messages to them, search what others wrote. "
    "Keep your own notes with set_memory and get_memory. "
    "Before a task, recall_context tells what is known; memory_search finds in all that you may see. "
    "What is worth knowing later, store_memory remembers for your user. "
    "Sessions and your memory are resources, too: subscribe to hear of changes."
)
HOURLY = CacheHint(ttl_ms=3_600_000, scope="public")
OF_THE_DOMAIN = frozenset(
    {
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
    }
)
"""Requests that need to know who asks, and so fix the agent's name."""


class Reference:
    """One connection to the SDK's server, with the SDK's own loop between two streams in memory."""

    def __init__(self, sink: MemoryObjectSendStream[SessionMessage | Exception], desk: Desk) -> None:
        self._sink = sink
        self._desk = desk
        self.lines: list[bytes] = []

    async def send(self, line: bytes) -> None:
        """Hand on a line as the SDK's stdio transport does: what it cannot read goes no further."""
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            await self._sink.send(error)
            return
        if getattr(message, "id", None) is not None:  # a notification asks for nothing
            self._desk.learn_name(getattr(message, "method", None), getattr(message, "params", None))
        await self._sink.send(SessionMessage(message, ServerMessageMetadata(request_context=line)))


@asynccontextmanager
async def reference(server: Server[Desk], agent_for: Callable[[str], AgentPort]) -> AsyncIterator[Reference]:
    """Serve one client by the SDK; its answers gather in `Reference.lines`."""
    to_server, source = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    sink, from_server = anyio.create_memory_object_stream[SessionMessage](math.inf)
    async with trio.open_nursery() as nursery:
        desk = Desk(agent_for, nursery)
        client = Reference(to_server, desk)
        nursery.start_soon(_gather, from_server, client.lines)

        async def serve() -> None:
            await serve_dual_era_loop(server, source, sink, lifespan_state=desk)

        nursery.start_soon(serve)
        with to_server:
            yield client
        nursery.cancel_scope.cancel()


async def _gather(source: MemoryObjectReceiveStream[SessionMessage], lines: list[bytes]) -> None:
    """Write messages down as the SDK's stdio transport does."""
    with source:
        async for item in source:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            lines.append(line.encode())


class Desk:
    """The client's door into the domain, and what it hears of."""

    def __init__(self, agent_for: Callable[[str], AgentPort], nursery: trio.Nursery) -> None:
        self._agent_for = agent_for
        self._door: AgentPort | None = None
        self._name: str | None = None
        self._name_is_fixed = False
        self.nursery = nursery
        self.notices: SubscriberPort | None = None

    def learn_name(self, method: str | None, params: dict[str, Any] | None) -> None:
        """Take the client's name from the first request that gives one, or from none that asks the domain."""
        if self._name_is_fixed or method is None:
            return
        meta = (params or {}).get("_meta")
        info = (params or {}).get("clientInfo") if method == "initialize" else None
        if info is None and isinstance(meta, dict):
            info = meta.get(CLIENT_INFO_META_KEY)
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self._name = info["name"]
        self._name_is_fixed = self._name is not None or method in OF_THE_DOMAIN

    @property
    def door(self) -> AgentPort:
        if self._door is None:
            self._door = self._agent_for(fit_agent_id(self._name))
        return self._door


Context = ServerRequestContext[Desk, bytes]
Handler = Callable[[Context, Any], Awaitable[Any]]


class _Server(Server[Desk]):
    def get_capabilities(self, *args: Any, **options: Any) -> ServerCapabilities:
        """Say also beside listen streams that no list ever changes."""
        said = super().get_capabilities(*args, **options)
        assert said.tools is not None
        assert said.resources is not None
        assert said.prompts is not None
        said.tools.list_changed = said.resources.list_changed = said.prompts.list_changed = False
        return said


def reference_server(tools: Mapping[str, Tool]) -> Server[Desk]:
    """Return the SDK's server of these tools, for any number of clients."""
    server = _Server(
        "greenroom",
        version=version("greenroom"),
        title="Greenroom",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": HOURLY, "resources/templates/list": HOURLY},
    )
    listing = ListToolsResult.model_validate({"tools": [tools[name].listing() for name in _listed(tools)]})

    async def list_tools(_context: Context, _params: PaginatedRequestParams) -> ListToolsResult:
        return listing

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        return await _call(tools, context, params)

    handlers: tuple[tuple[str, type[RequestParams], Handler], ...] = (
        ("tools/list", PaginatedRequestParams, list_tools),
        ("tools/call", CallToolRequestParams, call_tool),
        ("resources/templates/list", PaginatedRequestParams, _list_templates),
        ("resources/list", PaginatedRequestParams, _timely(_list_resources)),
        ("resources/read", ReadResourceRequestParams, _timely(_read_resource)),
        ("prompts/list", PaginatedRequestParams, _timely(_list_prompts)),
        ("prompts/get", GetPromptRequestParams, _timely(_get_prompt)),
        ("completion/complete", CompleteRequestParams, _timely(_complete)),
        ("resources/subscribe", SubscribeRequestParams, _timely(_subscribe)),
        ("resources/unsubscribe", UnsubscribeRequestParams, _timely(_unsubscribe)),
        ("subscriptions/listen", SubscriptionsListenRequestParams, _listen),
    )
    for method, params, handler in handlers:
        server.add_request_handler(method, params, handler)
    return server


# -- tools -------------------------------------------------------------------------------------------


def _listed(tools: Mapping[str, Tool]) -> list[str]:
    """Return the names that are listed; administration only to those who hold its scope by name."""
    return [
        name
        for name, tool in tools.items()
        if tool.alias is None and (TOOLS.get(name) not in {"admin", "audit:read"})
    ]


_NEVER: Any = None  # no older name here is of a time


async def _call(tools: Mapping[str, Tool], context: Context, params: CallToolRequestParams) -> CallToolResult:
    tool = tools.get(params.name)
    if tool is None:
        near = " or ".join(difflib.get_close_matches(params.name[:100], _listed(tools), n=3))
        hint = f"; did you mean {near}?" if near else ""
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:100]}{hint}")
    seconds = _seconds(context)
    arguments = b"{}" if params.arguments is None else _arguments(context)
    older = tool.alias_for(arguments)
    meta = None if older is None else older.meta
    with trio.move_on_after(seconds):
        try:
            request = tool.parse(arguments)
            answer = await context.lifespan_context.door.ask(request, checked=True)
            reply = msgspec.json.encode(ToolOffers(tools, DEFAULT).usual.renamed(answer, _NEVER, tool.name))
        except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
            return _failed(tool_failure(error if older is None else older.reword(error)), meta)
        return CallToolResult(
            content=[TextContent(text=reply.decode())],
            structured_content=json.loads(reply),
            is_error=False,
            _meta=meta,
        )
    return _failed(timeout_failure(seconds), meta)


def _arguments(context: Context) -> bytes:
    """Return the arguments as they stand in the line: a failure quotes them."""
    assert context.request is not None, "every message comes with its line"
    params = msgspec.json.decode(context.request, type=dict[str, msgspec.Raw])["params"]
    return bytes(msgspec.json.decode(params, type=dict[str, msgspec.Raw])["arguments"])


def _failed(failure: Failure, meta: dict[str, Any] | None) -> CallToolResult:
    text = msgspec.json.encode(failure).decode()
    return CallToolResult(content=[TextContent(text=text)], is_error=True, _meta=meta)


def _seconds(context: Context) -> float:
    wanted = ((context.params or {}).get("_meta") or {}).get(DEADLINE)
    if wanted is None:
        return REQUEST_TIMEOUT
    if not isinstance(wanted, int | float) or type(wanted) is bool or not wanted > 0:
        sentence = f'_meta["{DEADLINE}"] must be a number of milliseconds greater than 0'
        raise MCPError(INVALID_PARAMS, sentence)
    return min(REQUEST_TIMEOUT * 1_000, wanted) / 1_000


def _timely(handler: Handler) -> Handler:
    async def timed(context: Context, params: Any) -> Any:
        seconds = _seconds(context)
        with trio.move_on_after(seconds):
            return await handler(context, params)
        raise MCPError(INTERNAL_ERROR, f"the request was not answered within {seconds:g} s; repeat it")

    return timed


# -- resources ---------------------------------------------------------------------------------------


async def _list_templates(_context: Context, _params: PaginatedRequestParams) -> ListResourceTemplatesResult:
    templates = [ResourceTemplate(mime_type="application/json", **each._asdict()) for each in TEMPLATES]
    return ListResourceTemplatesResult(resource_templates=templates)


async def _list_resources(context: Context, params: PaginatedRequestParams) -> ListResourcesResult:
    with _worded(context):
        page = await context.lifespan_context.door.ask(ListResources(cursor=params.cursor))
    found = []
    for item in page.resources:
        changed = item.last_modified
        when = None if changed is None else changed.isoformat().replace("+00:00", "Z")
        annotations = None if when is None else Annotations(last_modified=when)
        found.append(
            Resource(
                uri=item.uri,
                name=item.name,
                title=item.title,
                description=item.description,
                mime_type="application/json",
                annotations=annotations,
            )
        )
    return ListResourcesResult(resources=found, next_cursor=page.next_cursor)


async def _read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    with _worded(context):
        read = await context.lifespan_context.door.ask(ReadResource(uri=params.uri))
    text = msgspec.json.encode(read).decode()
    contents = TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
    return ReadResourceResult(contents=[contents])


async def _complete(context: Context, params: CompleteRequestParams) -> CompleteResult:
    known = (params.context.arguments if params.context else None) or {}
    name, value = params.argument.name, params.argument.value
    request: CompleteResource | CompletePrompt
    if isinstance(params.ref, ResourceTemplateReference):
        request = CompleteResource(template=params.ref.uri, argument=name, value=value, known=known)
    else:
        request = CompletePrompt(prompt=params.ref.name, argument=name, value=value, arguments=known)
    with _worded(context):
        found: NameCompletion = await context.lifespan_context.door.ask(request)
    total = None if found.has_more else len(found.values)
    return CompleteResult(completion=Completion(values=found.values, has_more=found.has_more, total=total))


# -- prompts -----------------------------------------------------------------------------------------


async def _list_prompts(context: Context, params: PaginatedRequestParams) -> ListPromptsResult:
    with _worded(context):
        page = await context.lifespan_context.door.ask(ListPrompts(cursor=params.cursor))
    prompts = [
        Prompt(
            name=each.name,
            title=each.title,
            description=each.description,
            arguments=[
                PromptArgument(name=given.name, description=given.description, required=given.required)
                for given in each.arguments
            ],
        )
        for each in page.prompts
    ]
    return ListPromptsResult(prompts=prompts, next_cursor=page.next_cursor)


async def _get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
    with _worded(context):
        asked = GetPrompt(name=params.name, arguments=params.arguments or {})
        filled = await context.lifespan_context.door.ask(asked)
    message = PromptMessage(role="user", content=TextContent(text=filled.text))
    return GetPromptResult(description=filled.description, messages=[message])


@contextmanager
def _worded(context: Context) -> Iterator[None]:
    """Turn a failure into the protocol's error; its data is what a tool's failure would say."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
        told = tool_failure(error)
        code = INVALID_PARAMS if isinstance(error, Refusal) else INTERNAL_ERROR
        if told.code == "RESOURCE_NOT_FOUND" and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            code = -32002
        raise MCPError(code, told.error, {"code": told.code, **told.details}) from None


# -- subscriptions -----------------------------------------------------------------------------------


async def _subscribe(context: Context, params: SubscribeRequestParams) -> EmptyResult:
    desk = context.lifespan_context
    if desk.notices is None:
        notices = desk.notices = desk.door.subscriber(DEBOUNCE)

        async def tell() -> None:
            with notices, suppress(RuntimeClosedError):
                while True:
                    await context.session.send_resource_updated(await notices.next())

        desk.nursery.start_soon(tell)
    with _worded(context):
        desk.notices.add(params.uri)
    return EmptyResult()


async def _unsubscribe(context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
    if (notices := context.lifespan_context.notices) is not None:
        notices.remove(params.uri)
    return EmptyResult()


async def _listen(context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
    uris = params.notifications.resource_subscriptions or []
    meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: context.request_id}
    honoured = SubscriptionFilter(resource_subscriptions=uris or None)
    with context.lifespan_context.door.subscriber(DEBOUNCE) as notices:
        with _worded(context):
            for uri in uris:
                notices.add(uri)
        await context.session.send_notification(
            SubscriptionsAcknowledgedNotification(
                params=SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
            ),
            related_request_id=context.request_id,
        )
        with suppress(RuntimeClosedError):
            while True:
                told = Updated(params=UpdatedParams(uri=await notices.next(), _meta=meta))
                await context.session.send_notification(told, related_request_id=context.request_id)
    return SubscriptionsListenResult(_meta=meta)
