"""The MCP server: the state that all clients share, and the connected clients."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

import msgspec
import trio

from greenroom.actors import Agent
from greenroom.actors.core.auth.tool_profiles import SchemaForm
from greenroom.actors.core.defaults import DEBOUNCE_SECONDS
from greenroom.actors.core.presence.requests import ConnectedClient
from greenroom.actors.sessions.storage.migrations import client_tool
from greenroom.transports.base.defaults import REQUEST_SECONDS
from greenroom.transports.base.observability.meter import RequestMeter
from greenroom.transports.base.observability.request_log import UNREAD, RequestLog, trace_id_of
from greenroom.transports.base.observability.tracing import Tracer, find_tracer
from greenroom.transports.mcp.agent_port import AgentPort
from greenroom.transports.mcp.clients.open_requests import Client, MethodsPort
from greenroom.transports.mcp.clients.subscriptions import ListChanges, Subscriptions
from greenroom.transports.mcp.frames.calls import Call, Deadlines
from greenroom.transports.mcp.frames.versions import Era
from greenroom.transports.mcp.handler_context import HandlerContext
from greenroom.transports.mcp.methods import Methods
from greenroom.transports.mcp.server_info import GREENROOM, ServerInfo
from greenroom.transports.mcp.tools.answer_times import AnswerTimes
from greenroom.transports.mcp.tools.offered_tools import ToolOffers
from greenroom.transports.mcp.tools.tool_profiles import DEFAULT
from greenroom.transports.mcp.tools.tools import Tool

_CHECKS = "greenroom.transports.mcp.frames.checks"


RECENT_SECONDS: Final = 300.0
"""Seconds for which a client without a connection counts as connected after its last request."""
MOST_RECENT: Final = 256
LONGEST: Final = 200
"""At most this many characters of a client's own name are shown."""


class _Came(NamedTuple):
    transport: str
    since: float


class ConnectedClients:
    """The clients of one server: clients connected now, and recent clients without a connection."""

    def __init__(self) -> None:
        self._clients: dict[Client, _Came] = {}
        self._recent: dict[tuple[object, ...], tuple[float, ConnectedClient]] = {}

    def add(self, client: Client, transport: str) -> None:
        """Record a client that has connected."""
        self._clients[client] = _Came(transport, trio.current_time())

    def remove(self, client: Client, *, may_come_back: bool) -> None:
        """Record a client that has disconnected; idempotent.

        Args:
            client: The client.
            may_come_back: Whether it made one request, so that its next request looks like a new client.
        """
        came = self._clients.pop(client, None)
        if came is None or not may_come_back:
            return
        now = trio.current_time()
        seen = _view(client, came, now)
        which = seen.name, seen.agent, seen.agent_type, seen.user, seen.key_id, seen.address
        since = self._recent.pop(which, (now, seen))[1].since
        self._recent[which] = now, msgspec.structs.replace(seen, since=since, open_requests=0)
        while len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    def list_clients(self) -> Iterator[ConnectedClient]:
        """Yield each client, clients with a connection first."""
        now = trio.current_time()
        for client, came in self._clients.items():
            yield _view(client, came, now)
        for last, seen in self._recent.values():
            if now - last < RECENT_SECONDS:
                yield seen


def _view(client: Client, came: _Came, now: float) -> ConnectedClient:
    name, agent = client.identity.name, client.identity.known_agent
    principal = agent.principal if isinstance(agent, Agent) else None
    # A client's own name may hold a lone surrogate, which cannot be encoded.
    name_shown = None if name is None else name[:LONGEST].encode("utf-8", "replace").decode()
    return ConnectedClient(
        name=name_shown,
        tool=client_tool(name).tool_id[:LONGEST] if name_shown is not None else None,
        agent=None if principal is None else principal.agent_id,
        agent_type=None if principal is None else principal.agent_type,
        user=None if principal is None else principal.user,
        transport=came.transport,
        since=_at(came.since, now),
        open_requests=client.open_requests,
        last_request=None if client.last_request is None else _at(client.last_request, now),
        key_id=None if principal is None else principal.key_id,
        address=None if principal is None else principal.address,
    )


def _at(moment: float, now: float) -> datetime:
    """Return a moment of trio's clock as a time."""
    return datetime.fromtimestamp(time.time() - (now - moment), UTC)


class McpServer:
    """The tools of Greenroom, served to one client or many.

    Args:
        tools: The tools by name.
        agent_for: Returns a client's agent for a valid agent id (`fit_agent_id`).
        profile: The server's description.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one notification.
        profiles: The tool profiles for clients for which neither they nor their keys chose profiles.
        schemas: The form of the parameters' schemas if neither they nor their keys chose it.
        lists: The changes of the list of prompts, if it can change.
        extend: Answers requests before the table of methods does; returns whether it took the request.
        now: Returns the wall clock in nanoseconds since 1970 UTC, for the times in answers.
        tracer: Makes the spans of requests, instead of the tracer of OpenTelemetry's settings.
        run_ready: Processes posted messages at once (`Runtime.run_ready`).
        hold_dispatch: Returns a context for blocks that end with ``run_ready`` (`Runtime.hold_dispatch`).
        logs_requests: Whether each completed request has a log line.

    Attributes:
        offers: What clients are offered, by their choice of tools.
        checks: The SDK's checks of requests (the module `checks`); None until a request needs them.
        successors: The current name for each older tool name; calls are counted under the current name.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        agent_for: Callable[[str], AgentPort],
        *,
        profile: ServerInfo = GREENROOM,
        request_timeout: float = REQUEST_SECONDS,
        debounce: float = DEBOUNCE_SECONDS,
        profiles: tuple[str, ...] = DEFAULT,
        schemas: SchemaForm = "plain",
        lists: ListChanges | None = None,
        extend: Callable[[Client, Call], bool] | None = None,
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
        self.deadlines = Deadlines(request_timeout, lambda call: call.expire(call))
        self.run_ready = run_ready
        self.hold_dispatch = hold_dispatch
        self.meter = RequestMeter(name for name, tool in tools.items() if tool.alias is None)
        self.connected = ConnectedClients()
        self.successors: Mapping[str | None, str] = {
            name: tool.alias.successor for name, tool in tools.items() if tool.alias is not None
        }
        self.tracer = find_tracer() if tracer is None else tracer
        self.log = RequestLog(tools) if logs_requests else None
        self.agent_for = agent_for
        subscriptions, times = Subscriptions(debounce, lists), AnswerTimes(now)
        shared = subscriptions, self.deadlines, times
        self.methods: Mapping[Era, MethodsPort] = {
            era: Methods(HandlerContext(era, self.offers.usual, profile, *shared), extend) for era in Era
        }
        self.checks: ModuleType | None = None
        self._importing = trio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all clients' shared tasks while the block runs; do not wrap its errors."""
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

    def add(self, client: Client, transport: str) -> None:
        """Record a client that has connected."""
        self.connected.add(client, transport)
        if self.lists is not None:
            self.lists.add(client)

    def remove(self, client: Client, *, may_come_back: bool) -> None:
        """Record a client that has disconnected; idempotent."""
        if self.lists is not None:
            self.lists.discard(client)
        self.connected.remove(client, may_come_back=may_come_back)

    def record_unread(self, agent_id: str | None = None) -> None:
        """Record a message that is not a valid request, or came too late."""
        if self.log is not None:
            self.log.record(UNREAD, "error", 0.0, trace_id_of(), agent=agent_id)

    async def import_checks(self) -> None:
        """Import the SDK's checks of requests, unless they are imported already.

        Other clients are served meanwhile: the import runs in a thread, which holds the interpreter for at
        most 5 ms at a time.
        """
        async with self._importing:
            if self.checks is None:
                if _CHECKS not in sys.modules:
                    await trio.to_thread.run_sync(import_module, _CHECKS)
                self.checks = import_module(_CHECKS)
