"""The MCP server: the state that all clients share."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

import trio

from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.transports.base.observability.meter import Outcome, RequestMeter
from greenroom.transports.base.observability.request_log import UNREAD, RequestLog, trace_id_of
from greenroom.transports.base.observability.tracing import Tracer, find_tracer
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.client_port import ClientPort
from greenroom.transports.mcp.clients.connected import ConnectedClients
from greenroom.transports.mcp.clients.subscriptions import Subscriptions
from greenroom.transports.mcp.fast_path import FastPath, answer_limited, answer_overdue
from greenroom.transports.mcp.frames.calls import Call, Deadlines
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.list_changes import ListChanges
from greenroom.transports.mcp.response_encoder import encode
from greenroom.transports.mcp.server_info import GREENROOM, ServerInfo
from greenroom.transports.mcp.tools.answer_times import AnswerTimes
from greenroom.transports.mcp.tools.offered_tools import ToolOffer, ToolOffers
from greenroom.transports.mcp.tools.tool_profiles import DEFAULT
from greenroom.transports.mcp.tools.tools import Tool

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from greenroom.transports.mcp.sdk_server import SdkServer

REQUEST_TIMEOUT = 30.0
DEBOUNCE = 0.1
_SDK = "greenroom.transports.mcp.sdk_server"


class McpServer:
    """The tools of Greenroom, served to one client at a time or to many.

    Args:
        tools: The tools by name.
        agent_for: Returns the agent of a client, given its name made to fit (`fit_agent_id`).
        profile: What the server says of itself.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one notification.
        profiles: The tool profiles of clients that chose none, neither themselves nor by their keys.
        schemas: The form of parameters' schemas of clients that chose none, likewise.
        lists: The changes of the list of prompts, where that changes.
        extend: Registers what else the SDK's server answers.
        now: Returns the wall clock in nanoseconds since 1970 UTC, for the times that answers say.
        tracer: Makes the spans of requests, in the place of the one that OpenTelemetry's settings ask for.
        run_ready: Has the domain do at once what was posted to it (`Runtime.run_ready`).
        hold_dispatch: A block that is ended with that (`Runtime.hold_dispatch`).
        logs_requests: Whether each request that is over has a line in the log.

    Attributes:
        offers: What clients are offered, by how they want tools listed.
        agent_for: Returns the agent of a client whose transport does not know who it is.
        lists: The changes of the list of prompts; None where that does not change.
        methods: The methods that need no SDK, by era and name.
        run_ready: Has the domain do at once what was posted to it.
        hold_dispatch: A block within which that is posted.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one notification.
        meter: Counts the requests that are over.
        connected: The clients that are connected.
        tracer: Makes their spans; None where nobody takes them.
        log: Writes their lines of the log; None where nobody wants them.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        agent_for: Callable[[str], AgentPort],
        *,
        profile: ServerInfo = GREENROOM,
        request_timeout: float = REQUEST_TIMEOUT,
        debounce: float = DEBOUNCE,
        profiles: tuple[str, ...] = DEFAULT,
        schemas: SchemaForm = "plain",
        lists: ListChanges | None = None,
        extend: Callable[[Server[ClientPort]], None] | None = None,
        now: Callable[[], int] = time.time_ns,
        tracer: Tracer | None = None,
        run_ready: Callable[[], None] = lambda: None,
        hold_dispatch: Callable[[], AbstractContextManager[None]] = nullcontext,
        logs_requests: bool = False,
    ) -> None:
        self.tools = tools
        self.offers = ToolOffers(tools, profiles, schemas)
        self.profile = profile = profile if lists is None else profile.with_changing_prompts()
        self.lists = lists
        self.request_timeout = request_timeout
        self.debounce = debounce
        self.deadlines = Deadlines(request_timeout, self._overdue)
        self._extend = extend
        self._subscriptions = subscriptions = Subscriptions(debounce, lists)
        self.run_ready = run_ready
        self.hold_dispatch = hold_dispatch
        self.meter = RequestMeter(name for name, tool in tools.items() if tool.alias is None)
        self.connected = ConnectedClients()
        self._aliases = {name: tool.alias.successor for name, tool in tools.items() if tool.alias is not None}
        self.tracer = find_tracer() if tracer is None else tracer
        self.log = RequestLog(tools) if logs_requests else None
        self.agent_for = agent_for
        self._times = AnswerTimes(now)
        self._fast_paths = {
            era: FastPath(era, self.offers.usual, profile, subscriptions, self.deadlines, self._times)
            for era in Era
        }
        self.methods = {era: methods.table for era, methods in self._fast_paths.items()}
        self._sdk: SdkServer | None = None
        self._importing = trio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what all clients share while the block runs; an error of the block leaves in no group."""
        error: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.deadlines.run)
            try:
                yield
            except BaseException as raised:  # noqa: BLE001  (raised again below, outside the nursery)
                error = raised
            nursery.cancel_scope.cancel()
        if error is not None:
            raise error

    # -- what clients use ------------------------------------------------------------------------

    def initialize_result(self, version: str, scopes: frozenset[str], offer: ToolOffer) -> bytes:
        """Return the JSON that answers the ``initialize`` of a holder of ``scopes`` with this offer."""
        profile = self.profile
        said = {"protocolVersion": version, "serverInfo": profile.implementation}
        return encode(said | profile.described_to(scopes, offer.unlisted))

    def record_settled(self, call: Call, outcome: Outcome) -> None:
        """Record the end of a request."""
        self.deadlines.forget(call)
        frame = call.frame
        tool = self._aliases.get(frame.name, frame.name) if frame.name is not None else None
        seconds = trio.current_time() - call.arrived
        self.meter.record(frame.method, tool, outcome, seconds)
        trace_id = call.trace_id if call.span is None else call.span.end(outcome)
        if self.log is not None:
            agent = call.client.agent_id
            self.log.record(frame.method, outcome, seconds, trace_id, tool=frame.name, agent=agent)

    def record_unread(self, agent_id: str | None = None) -> None:
        """Record a message that is no request, or one that comes too late to be."""
        if self.log is not None:
            self.log.record(UNREAD, "error", 0.0, trace_id_of(), agent=agent_id)

    def _overdue(self, call: Call) -> None:
        call.client.expire(call)

    def answer_overdue(self, client: ClientPort, call: Call) -> None:
        """Answer a call whose time is up."""
        assert client.identity.era is not None, "who called has an era"
        answer_overdue(client, call, self._fast_paths[client.identity.era])

    def answer_limited(self, client: ClientPort, call: Call, seconds: float) -> None:
        """Answer a call that came too soon after others."""
        assert client.identity.era is not None, "who called has an era"
        answer_limited(client, call, self._fast_paths[client.identity.era], seconds)

    async def sdk(self) -> SdkServer:
        """Return the SDK's server, importing it where nobody needed it before.

        Others are served meanwhile: the import runs in a thread, which has the interpreter to itself
        for no longer than 5 ms at a time.
        """
        async with self._importing:
            if self._sdk is None:
                if _SDK not in sys.modules:
                    await trio.to_thread.run_sync(import_module, _SDK)
                self._sdk = import_module(_SDK).SdkServer(
                    self.offers.usual, self.profile, self._subscriptions, self._times, self._extend
                )
            return self._sdk
