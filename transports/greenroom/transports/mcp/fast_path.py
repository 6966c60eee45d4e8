"""The plain and frequent methods: from a frame to an actor and back without the SDK.

Each is a function of the client and its call. It returns whether it took the request. A request
that is not plain, in whatever way, it leaves to the SDK, so nothing here says what is wrong with
a shape.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sized
from functools import lru_cache, partial
from typing import Any

import msgspec
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors import TEMPLATES, GetPrompt, ListPrompts, ListResources, ReadResource, StartSession
from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.auth.key_format import without_keys
from greenroom.actors.core.auth.scopes import resources_of
from greenroom.actors.core.replies.replies import ListReply
from greenroom.runtime import Refusal
from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.clients.roots import Roots, needs_folder, tells_folders
from greenroom.transports.mcp.clients.subscriptions import Subscriptions, Wanted
from greenroom.transports.mcp.folders import learn_folders
from greenroom.transports.mcp.frames.calls import Call, Deadlines
from greenroom.transports.mcp.frames.frames import INTERNAL_ERROR, INVALID_PARAMS, Frame, RequestError
from greenroom.transports.mcp.frames.versions import (
    MODERN_VERSION,
    RESOURCE_NOT_FOUND,
    SUBSCRIPTION_ID_KEY,
    Era,
    is_plain,
)
from greenroom.transports.mcp.named_tools import worded_for
from greenroom.transports.mcp.response_encoder import FRESH, STATIC, ResponseEncoder, encode, result_line
from greenroom.transports.mcp.server_info import ServerInfo
from greenroom.transports.mcp.tools.answer_times import AnswerTimes, Moment
from greenroom.transports.mcp.tools.content_blocks import Content, shown
from greenroom.transports.mcp.tools.offered_tools import ToolOffer
from greenroom.transports.mcp.tools.tool_errors import Failure, timeout_failure, tool_failure
from greenroom.transports.mcp.tools.tools import Tool, visible_tools

Method = Callable[[ClientPort, Call], bool]

DEADLINE_META_KEY = "greenroom/deadline_ms"
JSON = "application/json"
ALL_SCOPES = frozenset({"*"})
"""The scopes of everybody where nobody has a key."""
NAME_SHOWN = 100
CACHED_LISTINGS = 64  # different answers of one listing that are kept
LARGE_ARGUMENTS = 65_536
"""Larger ones, such as a passport, are read in a thread, where a tool is no message to one actor."""
LARGEST_WEIGHT = 4  # what the largest answers weigh (`Tool.weight`)

_ONLY_META = frozenset({"_meta"})
_PAGED = frozenset({"_meta", "cursor"})
_NAMED = frozenset({"_meta", "name"})
_LOCATED = frozenset({"_meta", "uri"})
_LISTENING = frozenset({"_meta", "notifications"})


class FastPath:
    """The methods of one era.

    Args:
        era: Which.
        usual: What clients are offered that chose nothing else.
        profile: What the server says of itself.
        subscriptions: Subscribes clients to resources.
        deadlines: Ends calls whose time is up.
        times: Tells when an answer is made.

    Attributes:
        table: The methods by name.
        answers: How they answer.
    """

    def __init__(
        self,
        era: Era,
        usual: ToolOffer,
        profile: ServerInfo,
        subscriptions: Subscriptions,
        deadlines: Deadlines,
        times: AnswerTimes,
    ) -> None:
        self._era = era
        self._deadlines = deadlines
        self._usual = usual
        self._subscriptions = subscriptions
        self._times = times
        self.answers = ResponseEncoder(era, profile)
        self.table: dict[str, Method] = {
            "tools/list": _fixed(era, _PAGED, self._tool_list()),
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/read": self._read_resource,
            "resources/templates/list": _fixed(era, _PAGED, self._template_list()),
            "prompts/list": self._deny_prompts,
            "prompts/get": self._deny_prompts,
        }
        if era is Era.HANDSHAKE:
            self.table["ping"] = _fixed(era, _ONLY_META, _always(b"{}"))
            self.table["resources/subscribe"] = self._subscribe
            self.table["resources/unsubscribe"] = self._unsubscribe
        else:
            self.table["server/discover"] = _fixed(era, _ONLY_META, self._discovery(profile))
            self.table["subscriptions/listen"] = self._listen

    def _is_plain(self, call: Call, members: frozenset[str]) -> bool:
        params = call.frame.params
        return params is not None and params.keys() <= members and is_plain(self._era, params)

    def _allow_time(self, client: ClientPort, call: Call) -> bool:
        """Give a call its time: the server's, or the client's own if shorter. Return whether it has any."""
        try:
            call.timeout = timeout_of(call)
        except RequestError as error:
            client.fail(call, error.code, str(error))
            return False
        self._deadlines.watch(call)
        return True

    # -- listings: one answer for all who may see the same --------------------------------------

    def _tool_list(self) -> Callable[[ClientPort], bytes]:
        @lru_cache(maxsize=CACHED_LISTINGS)
        def of_names(offer: ToolOffer, names: tuple[str, ...]) -> bytes:
            listed = offer.listing_of(names)
            return self.answers.result({"tools": listed}, tools_cache_policy(offer, names, self._usual))

        @lru_cache(maxsize=CACHED_LISTINGS)
        def of_scopes(offer: ToolOffer, scopes: frozenset[str]) -> bytes:
            return of_names(offer, visible_tools(offer.listed, offer.tools, scopes))

        return lambda client: of_scopes(client.offer, client.identity.scopes)

    def _discovery(self, profile: ServerInfo) -> Callable[[ClientPort], bytes]:
        @lru_cache(maxsize=CACHED_LISTINGS)
        def of_scopes(offer: ToolOffer, scopes: frozenset[str]) -> bytes:
            said = profile.described_to(scopes, offer.unlisted)
            return self.answers.result({"supportedVersions": [MODERN_VERSION], **said}, FRESH)

        return lambda client: of_scopes(client.offer, client.identity.scopes)

    def _template_list(self) -> Callable[[ClientPort], bytes]:
        everything = template_list()

        @lru_cache(maxsize=CACHED_LISTINGS)
        def of_scopes(scopes: frozenset[str]) -> bytes:
            listed = template_list(scopes)
            return self.answers.result({"resourceTemplates": listed}, cache_policy(listed, everything))

        return lambda client: of_scopes(client.identity.scopes)

    # -- tools -----------------------------------------------------------------------------------

    def _call_tool(self, client: ClientPort, call: Call) -> bool:
        frame = call.frame
        tool = None if frame.name is None else client.offer.tools.get(frame.name)
        if tool is not None and not tool.is_foreign:
            denial = client.domain.denial(tool.asks, frame.arguments)
            if denial is not None:
                call.payload = tool
                self._tool_replied(client, call, denial)
                return True
        if frame.name is None or frame.problem or not self._is_plain(call, _NAMED):
            return False
        if tool is None:
            client.fail(call, INVALID_PARAMS, unknown_tool_message(frame.name, client))
        elif tool.by_sdk:
            return False
        elif self._allow_time(client, call):
            call.payload = tool
            client.queue.join(call, partial(self._begin_tool, client), tool.weight)
        return True

    def _begin_tool(self, client: ClientPort, call: Call) -> None:
        if len(call.frame.arguments) > LARGE_ARGUMENTS and issubclass(call.payload.request, Orchestration):
            client.spawn(self._parse_in_thread, client, call)
            return
        try:
            request = call.payload.parse(call.frame.arguments)
        except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
            self._tool_replied(client, call, error)
        else:
            self._ask_tool(client, call, request)

    async def _parse_in_thread(self, client: ClientPort, call: Call) -> None:
        """Read large arguments in a thread, so that others are served meanwhile."""
        request: Any = None
        with call.cancellable():
            try:
                request = await trio.to_thread.run_sync(
                    call.payload.parse, call.frame.arguments, abandon_on_cancel=True
                )
            except Exception as error:  # noqa: BLE001  (as in `_begin_tool`)
                request = error
        if call.settled:
            return
        if isinstance(request, Exception):
            self._tool_replied(client, call, request)
        else:
            self._ask_tool(client, call, request)

    def _ask_tool(self, client: ClientPort, call: Call, request: Any) -> None:
        if type(request) is StartSession and needs_folder(call, client.identity):
            client.spawn(self._ask_in_folder, client, call, request)
        elif getattr(request, "needs_folders", False) and tells_folders(client.identity):
            client.spawn(self._ask_with_folders, client, call, request)
        else:
            client.domain.ask(call, request, partial(self._tool_replied, client))

    async def _ask_in_folder(self, client: ClientPort, call: Call, request: StartSession) -> None:
        """Start a session in the folder that the client works in."""
        with call.cancellable():
            client.roots = client.roots or Roots(client.identity)
            folder = await client.roots.folder(call)
        if not call.settled:
            request = msgspec.structs.replace(request, workspace_path=folder)
            client.domain.ask(call, request, partial(self._tool_replied, client))

    async def _ask_with_folders(self, client: ClientPort, call: Call, request: Any) -> None:
        """Have files read that may be in the folders that the client works in."""
        with call.cancellable():
            await learn_folders(client, call)
        if not call.settled:
            client.domain.ask(call, request, partial(self._tool_replied, client))

    def _tool_replied(self, client: ClientPort, call: Call, reply: Any) -> None:
        alias = call.payload.alias_for(call.frame.arguments)
        meta = None if alias is None else alias.meta
        reply, moment = shown(reply), self._times.moment(call.arrived)
        if isinstance(reply, Content):
            line = self.answers.content_line(call.id, reply, moment, meta)
            client.answer(call, line, "tool_error" if reply.is_error else "ok")
            return
        reply = reply if alias is None else alias.reworded(reply)
        text, failed = encode_answer(reply, client, moment, call.payload.name)
        line = self.answers.tool_line(call.id, text, moment, is_error=failed, meta=meta)
        client.answer(call, line, "tool_error" if failed else "ok")

    def answer_failure(self, client: ClientPort, call: Call, failure: Failure) -> None:
        """Answer a tool call with a failure that is none of the tool's."""
        moment = self._times.moment(call.arrived)
        text = encode(client.offer.renamed(failure, moment))
        meta = meta_of(call.frame, client.offer.tools)
        line = self.answers.tool_line(call.id, text, moment, is_error=True, meta=meta)
        client.answer(call, line, "tool_error")

    # -- prompts ---------------------------------------------------------------------------------

    def _deny_prompts(self, client: ClientPort, call: Call) -> bool:
        """Refuse prompts to a client that may have none; all other answers are the SDK's."""
        denial = client.domain.denial(ListPrompts if call.frame.method == "prompts/list" else GetPrompt)
        if denial is not None:
            client.fail(call, *resource_failure(denial, client.identity.version, client))
        return denial is not None

    # -- resources -------------------------------------------------------------------------------

    def _list_resources(self, client: ClientPort, call: Call) -> bool:
        params = call.frame.params
        if not (params is None and self._era is Era.HANDSHAKE) and not self._is_plain(call, _PAGED):
            return False
        cursor = (params or {}).get("cursor")
        if not _is_cursor(cursor):
            return False
        return self._in_turn(client, call, ListResources(cursor=cursor), partial(self._begin_list, client))

    def _begin_list(self, client: ClientPort, call: Call) -> None:
        client.domain.ask(call, call.payload, partial(self._listed, client))

    def _listed(self, client: ClientPort, call: Call, reply: Any) -> None:
        if isinstance(reply, Exception):
            client.fail(call, *resource_failure(reply, client.identity.version, client))
        else:
            moment = self._times.moment(call.arrived)
            result = resource_list(client.offer.renamed(reply, moment))
            client.answer(call, result_line(call.id, self.answers.result(result, FRESH, moment)))

    def _read_resource(self, client: ClientPort, call: Call) -> bool:
        if not self._is_plain(call, _LOCATED):
            return False
        uri = (call.frame.params or {}).get("uri")
        if not isinstance(uri, str):
            return False
        begin = partial(self._begin_read, client)
        return self._in_turn(client, call, ReadResource(uri=uri), begin, LARGEST_WEIGHT)

    def _begin_read(self, client: ClientPort, call: Call) -> None:
        client.domain.ask(call, call.payload, partial(self._read, client))

    def _read(self, client: ClientPort, call: Call, reply: Any) -> None:
        reply, moment = shown(reply), self._times.moment(call.arrived)
        if isinstance(reply, Exception):
            client.fail(call, *resource_failure(reply, client.identity.version, client))
        elif isinstance(reply, Content):
            client.answer(call, self.answers.contents_line(call.id, reply, moment))
        else:
            text = encode(client.offer.renamed(reply, moment))
            client.answer(call, self.answers.resource_line(call.id, call.payload.uri, text, moment))

    def _in_turn(
        self, client: ClientPort, call: Call, payload: Any, begin: Callable[[Call], None], weight: int = 0
    ) -> bool:
        if self._allow_time(client, call):
            call.payload = payload
            client.queue.join(call, begin, weight)
        return True

    # -- subscriptions ---------------------------------------------------------------------------

    def _subscribe(self, client: ClientPort, call: Call) -> bool:
        return self._located(client, call, partial(self._begin_subscribing, client))

    def _unsubscribe(self, client: ClientPort, call: Call) -> bool:
        return self._located(client, call, partial(self._begin_unsubscribing, client))

    def _located(self, client: ClientPort, call: Call, begin: Callable[[Call], None]) -> bool:
        uri = (call.frame.params or {}).get("uri")
        if not isinstance(uri, str) or not self._is_plain(call, _LOCATED):
            return False
        return self._in_turn(client, call, uri, begin)

    def _begin_subscribing(self, client: ClientPort, call: Call) -> None:
        try:
            self._subscriptions.subscribe(client, call.payload)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
            client.fail(call, *resource_failure(error, client.identity.version, client))
        else:
            client.answer(call, result_line(call.id, b"{}"))

    def _begin_unsubscribing(self, client: ClientPort, call: Call) -> None:
        self._subscriptions.unsubscribe(client, call.payload)
        client.answer(call, result_line(call.id, b"{}"))

    def _listen(self, client: ClientPort, call: Call) -> bool:
        wanted = _wanted(call.frame.params)
        if wanted is None or not self._is_plain(call, _LISTENING):
            return False
        call.payload = wanted
        client.queue.join(call, partial(self._begin_listening, client))
        return True

    def _begin_listening(self, client: ClientPort, call: Call) -> None:
        client.spawn(self._stream, client, call)

    async def _stream(self, client: ClientPort, call: Call) -> None:
        if call.settled:  # taken back before its task began
            return
        try:
            await self._subscriptions.listen(client, call, call.payload)
        except Exception as error:  # noqa: BLE001  (as in `_begin_subscribing`)
            if not call.settled:
                client.fail(call, *resource_failure(error, client.identity.version, client))
        else:
            if not call.settled:
                stream_id = {"_meta": {SUBSCRIPTION_ID_KEY: msgspec.Raw(call.id)}}
                client.answer(call, result_line(call.id, self.answers.result(stream_id)))


def encode_answer(reply: Any, client: ClientPort, moment: Moment, called: str) -> tuple[bytes, bool]:
    """Return a tool call's answer as JSON, and whether it is a failure."""
    if not isinstance(reply, Exception):
        if isinstance(reply, ListReply) and reply.empty_because is not UNSET:
            reply = _with_remedy(reply, client)
        try:
            return encode(client.offer.renamed(reply, moment, called)), False
        except (ValueError, TypeError) as error:
            reply = error
    failure = tool_failure(reply)
    told = worded_for(failure.error, client.offer, client.identity.scopes)
    return encode(client.offer.renamed(msgspec.structs.replace(failure, error=told), moment)), True


def _with_remedy(reply: ListReply, client: ClientPort) -> ListReply:
    """Return an empty answer whose remedy says how to call the tools that it names."""
    because = reply.empty_because
    if isinstance(because, UnsetType) or isinstance(because.remedy, UnsetType):
        return reply
    remedy = worded_for(because.remedy, client.offer, client.identity.scopes)
    return msgspec.structs.replace(reply, empty_because=msgspec.structs.replace(because, remedy=remedy))


def timeout_of(call: Call) -> float:
    """Return how long a call may take.

    Raises:
        RequestError: its client wants a time that is none.
    """
    meta = None if call.frame.params is None else call.frame.params.get("_meta")
    wanted = meta.get(DEADLINE_META_KEY) if isinstance(meta, dict) else None
    if wanted is None:
        return call.timeout
    if not isinstance(wanted, int | float) or type(wanted) is bool or not wanted > 0:
        sentence = f'_meta["{DEADLINE_META_KEY}"] must be a number of milliseconds greater than 0'
        raise RequestError(INVALID_PARAMS, sentence)
    return min(call.timeout * 1000, wanted) / 1000  # an integer may be beyond every float


def answer_overdue(client: ClientPort, call: Call, path: FastPath) -> None:
    """Answer a call whose time is up."""
    if call.frame.method == "tools/call":
        path.answer_failure(client, call, timeout_failure(call.timeout))
    else:
        sentence = f"the request was not answered within {call.timeout:g} s; repeat it"
        client.fail(call, INTERNAL_ERROR, sentence)


def answer_limited(client: ClientPort, call: Call, path: FastPath, seconds: float) -> None:
    """Answer a call that came too soon after others; the client may repeat it in so many seconds."""
    refusal = rate_limit_refusal(seconds)
    if call.frame.method == "tools/call":
        path.answer_failure(client, call, tool_failure(refusal))
    else:
        data = {"code": refusal.code, **refusal.details}
        client.fail(call, INTERNAL_ERROR, refusal.sentence, data)


def rate_limit_refusal(seconds: float) -> Refusal:
    """More requests came by one key than it may send in a time; repeat after `retry_after_ms`."""
    milliseconds = math.ceil(seconds * 1_000)
    sentence = f"too many requests by this key; nothing was done; repeat this in {milliseconds} ms"
    return Refusal("RATE_LIMITED", sentence, retry_after_ms=milliseconds)


def resource_failure(
    error: Exception, version: str, client: ClientPort
) -> tuple[int, str, dict[str, Any] | None]:
    """Return the code, the sentence and the data with which the protocol answers a failure."""
    if isinstance(error, RequestError):
        return error.code, str(error), None
    failure = tool_failure(error)
    code = INTERNAL_ERROR
    if isinstance(error, Refusal):
        old = error.code == "RESOURCE_NOT_FOUND" and version != MODERN_VERSION
        code = RESOURCE_NOT_FOUND if old else INVALID_PARAMS
    sentence = worded_for(failure.error, client.offer, client.identity.scopes)
    return code, sentence, {"code": failure.code, **failure.details}


def meta_of(frame: Frame, tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    """Return what the answer to a tool call says besides: what the name that was called stands for."""
    tool = tools.get(frame.name or "")
    alias = None if tool is None else tool.alias_for(frame.arguments)
    return None if alias is None else alias.meta


def unknown_tool_message(name: str, client: ClientPort) -> str:
    """Return the sentence for a tool that is not there, with those of nearly that name."""
    known = visible_tools(client.offer.known, client.offer.tools, client.identity.scopes)
    near = difflib.get_close_matches(name[:NAME_SHOWN], known, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown tool: {without_keys(name)[:NAME_SHOWN]}{hint}"


def cache_policy(listed: Sized, usual: Sized) -> tuple[int, str]:
    """Return how long and by whom a listing may be kept: one that is not the usual one by nobody else."""
    return STATIC if len(listed) == len(usual) else FRESH


def tools_cache_policy(offer: ToolOffer, names: tuple[str, ...], usual: ToolOffer) -> tuple[int, str]:
    """Return how long and by whom a listing of tools may be kept: a chosen one by nobody else, either."""
    if offer is not usual:
        return FRESH
    return cache_policy(names, visible_tools(usual.listed, usual.tools, ALL_SCOPES))


def template_list(scopes: frozenset[str] = ALL_SCOPES) -> list[dict[str, Any]]:
    """Return the resource templates as they are listed to a holder of ``scopes``."""
    kinds = resources_of(scopes)
    return [
        {
            "uriTemplate": template.uri_template,
            "name": template.name,
            "title": template.title,
            "description": template.description,
            "mimeType": JSON,
        }
        for template in TEMPLATES
        if template.kind in kinds
    ]


def resource_list(page: Any) -> dict[str, Any]:
    """Return a page of resources as the protocol lists them."""
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
    result: dict[str, Any] = {"resources": listed}
    if page.next_cursor is not None:
        result["nextCursor"] = page.next_cursor
    return result


def _wanted(params: dict[str, Any] | None) -> Wanted | None:
    """Return what a listen request wants to hear of; None when something about it is odd."""
    wanted = (params or {}).get("notifications")
    if not isinstance(wanted, dict):
        return None
    uris: Any = None
    for key, value in wanted.items():
        if key == "resourceSubscriptions":
            uris = value
        elif type(value) not in {bool, type(None)}:
            return None
    if uris is None:
        uris = []
    if not isinstance(uris, list) or not all(type(uri) is str for uri in uris):
        return None
    return Wanted(uris, prompts=wanted.get("promptsListChanged") is True)


def _is_cursor(value: Any) -> bool:
    return value is None or type(value) is str


def _always(result: bytes) -> Callable[[ClientPort], bytes]:
    return lambda _client: result


def _fixed(era: Era, members: frozenset[str], result: Callable[[ClientPort], bytes]) -> Method:
    """Return the method whose answer is a matter of who the client is alone."""

    def answer(client: ClientPort, call: Call) -> bool:
        params = call.frame.params
        if params is None:
            if era is Era.MODERN:
                return False
        elif not (params.keys() <= members and is_plain(era, params)) or type(params.get("cursor")) not in {
            str,
            type(None),
        }:
            return False
        client.answer(call, result_line(call.id, result(client)))
        return True

    return answer
