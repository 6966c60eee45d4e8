"""The rarer half of the protocol, which the SDK answers: its server with handlers of ours.

Nothing imports this module before a request needs it (`McpServer.sdk`), because the SDK takes
longer to import than all the rest. All methods have a handler here, the frequent ones too: what
is not plain about a request, the SDK says. A test sends the same requests both ways.

The SDK's own loop over a connection is not used: `Client` has told requests apart, keeps them in
order and knows how to call them off. What is used is the SDK's kernel, which validates a request,
runs its handler and shapes the result for the protocol's revision (`ServerRunner`, `serve_one`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from mcp.server.connection import Connection as SdkConnection
from mcp.server.connection import NotifyOnlyOutbound
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, modern_error_data, serve_one
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    EmptyResult,
    GetPromptRequestParams,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    ServerCapabilities,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from greenroom.actors import ListResources, ReadResource
from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.clients.subscriptions import Subscriptions, Wanted
from greenroom.transports.mcp.fast_path import (
    ALL_SCOPES,
    CACHED_LISTINGS,
    JSON,
    cache_policy,
    encode_answer,
    resource_failure,
    resource_list,
    template_list,
    timeout_of,
    tools_cache_policy,
    unknown_tool_message,
)
from greenroom.transports.mcp.folders import learn_folders
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.frames.frames import Frame, RequestError
from greenroom.transports.mcp.frames.versions import MODERN_VERSION, SUBSCRIPTION_ID_KEY, Era
from greenroom.transports.mcp.response_encoder import encode, result_line
from greenroom.transports.mcp.sdk_channel import SdkChannel, ServerRequests
from greenroom.transports.mcp.sdk_prompts import PromptMethods
from greenroom.transports.mcp.server_info import ServerInfo
from greenroom.transports.mcp.tools.answer_times import AnswerTimes
from greenroom.transports.mcp.tools.content_blocks import Content, shown
from greenroom.transports.mcp.tools.offered_tools import ToolOffer
from greenroom.transports.mcp.tools.tools import visible_tools

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[ClientPort, Call]
    Handler = Callable[[Context, Any], Awaitable[Any]]

logger = logging.getLogger(__name__)

_DESCRIBING = frozenset({"initialize", "server/discover"})

# Results without their JSON, which goes past the SDK on `Call.reply`.
_SUCCESS = CallToolResult(content=[TextContent(text="")], structured_content={})
_FAILURE = CallToolResult(content=[TextContent(text="")], is_error=True)


class SdkServer:
    """The SDK's server with all methods of Greenroom.

    Args:
        usual: What clients are offered that chose nothing else.
        profile: What the server says of itself.
        subscriptions: Subscribes clients to resources.
        times: Tells when an answer is made.
        extend: Registers what else the SDK's server answers.

    Attributes:
        server: The SDK's server.
    """

    def __init__(
        self,
        usual: ToolOffer,
        profile: ServerInfo,
        subscriptions: Subscriptions,
        times: AnswerTimes,
        extend: Callable[[Server[ClientPort]], None] | None,
    ) -> None:
        self._usual = usual
        self._profile = profile
        self._subscriptions = subscriptions
        self._times = times
        self.server = _FixedListServer(
            profile,
            profile.name,
            version=profile.version,
            title=profile.title,
            instructions=profile.instructions_for(ALL_SCOPES),
        )
        self.server.middleware.clear()  # tracing spans: `Client` has them made for all requests alike
        self._tool_list = lru_cache(maxsize=CACHED_LISTINGS)(self._tools_for)
        self._template_list = lru_cache(maxsize=CACHED_LISTINGS)(_templates_for)
        prompts = PromptMethods(_asked)
        handlers: tuple[tuple[str, type[RequestParams], Handler], ...] = (
            ("tools/list", PaginatedRequestParams, self._list_tools),
            ("tools/call", CallToolRequestParams, self._call_tool),
            ("resources/templates/list", PaginatedRequestParams, self._list_templates),
            ("resources/list", PaginatedRequestParams, self._list_resources),
            ("resources/read", ReadResourceRequestParams, self._read_resource),
            ("prompts/list", PaginatedRequestParams, prompts.list),
            ("prompts/get", GetPromptRequestParams, prompts.get),
            ("completion/complete", CompleteRequestParams, prompts.complete),
            ("resources/subscribe", SubscribeRequestParams, self._subscribe),
            ("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe),
            ("subscriptions/listen", SubscriptionsListenRequestParams, self._listen),
        )
        for method, params, handler in handlers:
            self.server.add_request_handler(method, params, handler)
        if extend is not None:
            extend(self.server)

    async def session(self, client: ClientPort) -> SdkSession:
        """Return a client's session, which has been told of its handshake."""
        session = SdkSession(self.server, self._profile, client)
        await session.begin()
        return session

    def _tools_for(self, offer: ToolOffer, scopes: frozenset[str]) -> ListToolsResult:
        names = visible_tools(offer.listed, offer.tools, scopes)
        ttl, scope = tools_cache_policy(offer, names, self._usual)
        listed = offer.listing_of(names)
        return ListToolsResult.model_validate({"tools": listed, "ttlMs": ttl, "cacheScope": scope})

    async def _list_tools(self, context: Context, _params: PaginatedRequestParams) -> ListToolsResult:
        client = context.lifespan_context
        return self._tool_list(client.offer, client.identity.scopes)

    async def _list_templates(
        self, context: Context, _params: PaginatedRequestParams
    ) -> ListResourceTemplatesResult:
        return self._template_list(context.lifespan_context.identity.scopes)

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        client, call = context.lifespan_context, _call(context)
        tool = client.offer.tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, unknown_tool_message(params.name, client))
        alias = tool.alias_for(call.frame.arguments)
        try:
            if not tool.is_foreign:  # no frame of one whose handshake is the SDK's went by the fast path
                client.identity.agent.check_scope(tool.asks, call.frame.arguments)
            _check_time(call)
            reply = shown(await client.domain.ask_for_sdk(call, lambda: tool.parse(call.frame.arguments)))
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
            reply = error if alias is None else alias.reworded(error)
        moment = self._times.moment(call.arrived)
        meta = moment.meta(None if alias is None else alias.meta)
        if isinstance(reply, Content):
            return _content_result(reply, meta)
        call.reply, failed = encode_answer(reply, client, moment, tool.name)
        return (_FAILURE if failed else _SUCCESS).model_copy(update={"meta": meta})

    async def _list_resources(self, context: Context, params: PaginatedRequestParams) -> ListResourcesResult:
        reply = await _asked(context, ListResources, cursor=params.cursor)
        moment = self._times.moment(_call(context).arrived)
        page = context.lifespan_context.offer.renamed(reply, moment)
        return ListResourcesResult.model_validate({**resource_list(page), "_meta": moment.meta()})

    async def _read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        call = _call(context)
        reply = shown(await _asked(context, ReadResource, uri=params.uri))
        moment = self._times.moment(call.arrived)
        if isinstance(reply, Content):
            return ReadResourceResult.model_validate({"contents": reply.blocks, "_meta": moment.meta()})
        call.reply = encode(context.lifespan_context.offer.renamed(reply, moment))
        contents = TextResourceContents(uri=params.uri, mime_type=JSON, text="")
        return ReadResourceResult(contents=[contents], _meta=moment.meta())

    async def _subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        call = await _wait_for_turn(context)
        try:
            self._subscriptions.subscribe(context.lifespan_context, params.uri)
        except Exception as error:
            raise _as_mcp_error(error, context) from error
        context.lifespan_context.queue.leave(call)
        return EmptyResult()

    async def _unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        call = await _wait_for_turn(context)
        self._subscriptions.unsubscribe(context.lifespan_context, params.uri)
        context.lifespan_context.queue.leave(call)
        return EmptyResult()

    async def _listen(
        self, context: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        call = await _wait_for_turn(context)
        asked = params.notifications
        wanted = Wanted(asked.resource_subscriptions or [], prompts=bool(asked.prompts_list_changed))
        try:
            await self._subscriptions.listen(context.lifespan_context, call, wanted)
        except Exception as error:
            raise _as_mcp_error(error, context) from error
        assert context.request_id is not None, "requests have ids"
        return SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_KEY: context.request_id})


def _templates_for(scopes: frozenset[str]) -> ListResourceTemplatesResult:
    listed = template_list(scopes)
    ttl, scope = cache_policy(listed, template_list())
    return ListResourceTemplatesResult.model_validate(
        {"resourceTemplates": listed, "ttlMs": ttl, "cacheScope": scope}
    )


async def _asked(context: Context, request_type: type[Any], **fields: Any) -> Any:
    """Ask the domain; a request that cannot be built is answered as one that is refused."""
    client, call = context.lifespan_context, _call(context)
    _check_time(call)
    try:
        request = request_type(**fields)
        if getattr(request, "needs_folders", False):
            await learn_folders(client, call)
        return await client.domain.ask_for_sdk(call, lambda: request)
    except Exception as error:
        raise _as_mcp_error(error, context) from error


async def _wait_for_turn(context: Context) -> Call:
    """Wait for the request's turn; it ends with the request."""
    call = _call(context)
    if call.frame.method != "subscriptions/listen":
        _check_time(call)
    await context.lifespan_context.queue.turn(call)
    return call


def _check_time(call: Call) -> None:
    try:
        timeout_of(call)
    except RequestError as error:
        raise MCPError(error.code, str(error)) from None


def _call(context: Context) -> Call:
    assert context.request is not None, "every request comes through a session"
    return context.request


def _as_mcp_error(error: Exception, context: Context) -> MCPError:
    return MCPError(*resource_failure(error, context.protocol_version, context.lifespan_context))


def _content_result(content: Content, meta: dict[str, Any]) -> CallToolResult:
    return CallToolResult.model_validate(
        {
            "content": content.blocks,
            "structuredContent": content.structured,
            "isError": content.is_error,
            "_meta": meta,
        }
    )


class _FixedListServer(Server[ClientPort]):
    """The SDK's server, which says in the later era, too, which of its lists change.

    The SDK takes it that whoever serves listen streams announces changes of every list.

    Args:
        profile: Says it.
        named: As the SDK's server takes it.
    """

    def __init__(self, profile: ServerInfo, *named: Any, **options: Any) -> None:
        super().__init__(*named, **options)
        self._profile = profile

    def get_capabilities(self, *args: Any, **options: Any) -> ServerCapabilities:
        """Return what the server can do."""
        said = super().get_capabilities(*args, **options)
        for lists in (said.tools, said.resources):
            if lists is not None:
                lists.list_changed = False
        if said.prompts is not None:
            said.prompts.list_changed = self._profile.prompts_change
        return said


class SdkSession:
    """One client in the SDK's terms.

    Args:
        server: The SDK's server.
        profile: What the server says of itself.
        client: The client.
    """

    def __init__(self, server: Server[ClientPort], profile: ServerInfo, client: ClientPort) -> None:
        self._server = server
        self._profile = profile
        self._client = client
        self._questions = ServerRequests()
        self._channel = SdkChannel(client, self._questions)
        self._outbound = NotifyOnlyOutbound(self._channel)
        self._connection = SdkConnection.for_loop(self._channel)
        self._runner = ServerRunner(server, self._connection, client)

    async def begin(self) -> None:
        """Tell the SDK of the handshake that was answered without it; its own answer is not needed."""
        if self._client.identity.initialize is not None:
            await self._runner.on_request(self._channel, "initialize", self._client.identity.initialize)
            self._connection.initialized.set()

    async def serve(self, call: Call) -> None:
        """Have a request answered."""
        client = self._client
        if call.settled and call.frame.method != "initialize":  # taken back before its task began
            return
        with call.cancellable():
            try:
                result = await self._result(SdkChannel(client, self._questions, call), call)
                if call.frame.method in _DESCRIBING:
                    result = _for_client(result, self._profile, client)
                line = result_line(call.id, _encode_result(result, call))
            except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
                failure = self._failure(error)
                if not call.settled:
                    client.fail(call, failure.code, failure.message, failure.data)
            else:
                if call.frame.method == "initialize":
                    client.identity.accept_handshake(call.frame.params or {}, result["protocolVersion"])
                if not call.settled:
                    client.answer(call, line, "tool_error" if result.get("isError") else "ok")

    async def _result(self, channel: SdkChannel, call: Call) -> dict[str, Any]:
        method, params = call.frame.method, call.frame.params
        if method == "tools/call" and params is not None:
            params = {**params, "arguments": _arguments(call)}
        if self._client.identity.era is Era.HANDSHAKE:
            return await self._runner.on_request(channel, method, params)
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            call.span = None  # as with the SDK: what has no valid envelope has no span
            raise MCPError(route.code, route.message, route.data)
        connection = SdkConnection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities, outbound=self._outbound
        )
        return await serve_one(
            self._server, channel, method, params, connection=connection, lifespan_state=self._client
        )

    def _failure(self, error: Exception) -> Any:
        if self._client.identity.era is Era.MODERN:
            return modern_error_data(error)
        failure = handler_exception_to_error_data(error)
        if failure is None:
            logger.error("a request failed", exc_info=error)
            return MCPError(INTERNAL_ERROR, "Internal server error").error
        return failure

    async def take_notification(self, frame: Frame) -> None:
        """Tell the SDK of a notification."""
        runner = self._runner
        if self._client.identity.era is Era.MODERN:
            connection = SdkConnection.from_envelope(MODERN_VERSION, None, None, outbound=self._outbound)
            runner = ServerRunner(self._server, connection, self._client)
        try:
            if frame.method == "notifications/progress":
                await self._questions.take_progress(frame.params or {})
            await runner.on_notify(self._channel, frame.method, frame.params)
        except Exception:
            logger.exception("a notification was lost on the SDK")

    def take_response(self, frame: Frame) -> None:
        """Take the client's response to a request of the server."""
        self._questions.take_response(frame)


def _for_client(result: dict[str, Any], profile: ServerInfo, client: ClientPort) -> dict[str, Any]:
    """Return what the SDK says of the server as far as it is this client's affair."""
    said = profile.described_to(client.identity.scopes, client.offer.unlisted)
    capabilities = {
        name: value
        for name, value in result["capabilities"].items()
        if name in said["capabilities"] or name not in profile.capabilities
    }
    kept = {name: value for name, value in result.items() if name != "instructions"}
    return {**kept, **said, "capabilities": capabilities}


def _arguments(call: Call) -> Any:
    """Return a call's arguments decoded; what cannot be is judged by the tool, which reads the bytes."""
    try:
        return msgspec.json.decode(call.frame.arguments)
    except (ValueError, RecursionError):
        return {}


def _encode_result(result: dict[str, Any], call: Call) -> bytes:
    """Return the JSON of a result, with what went past the SDK: a reply's JSON, a stream's id."""
    if call.frame.method == "subscriptions/listen":
        result["_meta"][SUBSCRIPTION_ID_KEY] = msgspec.Raw(call.id)
    reply = call.reply
    if reply is not None:
        content = result["content"] if "content" in result else result["contents"]
        content[0]["text"] = reply.decode()
        if "structuredContent" in result:
            result["structuredContent"] = msgspec.Raw(reply)
    return encode(result)
