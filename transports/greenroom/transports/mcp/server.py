"""MCP for any number of clients: what all of them share."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import trio

from greenroom.actors import Errand
from greenroom.runtime import Procedure, Query
from greenroom.transports.mcp.calls import Call, Deadlines
from greenroom.transports.mcp.client import Client
from greenroom.transports.mcp.fast_path import Methods, answer_limited, answer_overdue
from greenroom.transports.mcp.offered_tools import Offers
from greenroom.transports.mcp.responses import encode
from greenroom.transports.mcp.sdk_client import SdkClient
from greenroom.transports.mcp.server_info import GREENROOM, Profile
from greenroom.transports.mcp.subscriptions import Subscriptions
from greenroom.transports.mcp.tool_profiles import DEFAULT
from greenroom.transports.mcp.versions import Era
from greenroom.transports.observability.meter import RequestMeter
from greenroom.transports.observability.tracing import find_tracer

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from greenroom.transports.mcp.agent_port import Door
    from greenroom.transports.mcp.client import Toll
    from greenroom.transports.mcp.connection import Connection
    from greenroom.transports.mcp.offered_tools import Offer
    from greenroom.transports.mcp.sdk_server import SdkServer
    from greenroom.transports.mcp.tools import Tool
    from greenroom.transports.observability.meter import Outcome

REQUEST_TIMEOUT = 30.0
DEBOUNCE = 0.1
_SDK = "greenroom.transports.mcp.sdk_server"


class McpServer:
    """The tools of Greenroom, served to one client at a time or to many.

    Args:
        tools: The tools by name.
        door_for: Opens the door for a client, given its name made to fit (`fit_agent_id`).
        profile: What the server says of itself.
        request_timeout: Seconds that a request may take.
        debounce: Seconds within which changes of one resource become one notification.
        profiles: The tool profiles of clients that chose none, neither themselves nor by their keys.
        extend: Registers what else the SDK's server answers.
        run_ready: Has the domain do at once what was posted to it (`Runtime.run_ready`).
        held: A block that is ended with that (`Runtime.held`).

    Attributes:
        offers: What clients are offered, by their profiles.
        methods: The methods that need no SDK, by era and name.
        run_ready: Has the domain do at once what was posted to it.
        held: A block within which that is posted.
        meter: Counts the requests that are over.
        tracer: Makes their spans; None where nobody takes them.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        door_for: Callable[[str], Door],
        *,
        profile: Profile = GREENROOM,
        request_timeout: float = REQUEST_TIMEOUT,
        debounce: float = DEBOUNCE,
        profiles: tuple[str, ...] = DEFAULT,
        extend: Callable[[Server[Client]], None] | None = None,
        run_ready: Callable[[], None] = lambda: None,
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.tools = tools
        self.offers = Offers(tools, profiles)
        self.profile = profile
        self.request_timeout = request_timeout
        self.subscriptions = Subscriptions(debounce)
        self.deadlines = Deadlines(request_timeout, self._overdue)
        self.extend = extend
        self.run_ready = run_ready
        self.held = held
        self.meter = RequestMeter(name for name, tool in tools.items() if tool.alias is None)
        self._aliases = {name: tool.alias.successor for name, tool in tools.items() if tool.alias is not None}
        self.tracer = find_tracer()
        self._door_for = door_for
        self._by_era = {era: Methods(era, self.offers.usual, profile, self.subscriptions) for era in Era}
        self.methods = {era: methods.table for era, methods in self._by_era.items()}
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

    async def serve(
        self,
        connection: Connection,
        *,
        door_for: Callable[[str], Door] | None = None,
        stop: trio.Event | None = None,
        toll: Toll | None = None,
        profiles: tuple[str, ...] = (),
    ) -> None:
        """Serve one client until its input ends and its requests are answered.

        A client that goes away ends this without an error. Cancelling ends it at once.

        Args:
            connection: The client's frames; nothing was read from it yet.
            door_for: Opens this client's door, where the transport knows who it is.
            stop: Once set, nothing more is read, and open requests get `Limits.stop` seconds.
            toll: Counts what the client sends; None where nobody does.
            profiles: The tool profiles that hold for it; empty for the server's own.

        Raises:
            StoreFailedError: the store failed for good; nothing that was not durable was answered.
        """
        await connection.serve(self, door_for or self._door_for, stop, toll, profiles)

    # -- what clients use ------------------------------------------------------------------------

    def greeting(self, version: str, scopes: frozenset[str], offer: Offer) -> bytes:
        """Return the JSON of what answers the ``initialize`` of a holder of ``scopes`` with this offer."""
        profile = self.profile
        said = {"protocolVersion": version, "serverInfo": profile.implementation}
        return encode(said | profile.told_to(scopes, offer.unlisted))

    def is_query(self, request: Any) -> bool:
        """Return whether a request is no message to one actor."""
        return isinstance(request, Query | Procedure | Errand)

    def settled(self, call: Call, outcome: Outcome) -> None:
        """Take note of the end of a request."""
        self.deadlines.forget(call)
        frame = call.frame
        tool = self._aliases.get(frame.name, frame.name) if frame.name is not None else None
        self.meter.note(frame.method, tool, outcome, trio.current_time() - call.arrived)
        if call.span is not None:
            call.span.end(outcome)

    def _overdue(self, call: Call) -> None:
        call.client.overdue(call)

    def answer_overdue(self, client: Client, call: Call) -> None:
        """Answer a call whose time is up."""
        assert client.era is not None, "who called has an era"
        answer_overdue(client, call, self._by_era[client.era].answers)

    def answer_limited(self, client: Client, call: Call, seconds: float) -> None:
        """Answer a call that came too soon after others."""
        assert client.era is not None, "who called has an era"
        answer_limited(client, call, self._by_era[client.era].answers, seconds)

    def sdk_client(self, client: Client) -> SdkClient:
        """Return what has a client's rarer requests answered by the SDK."""
        return SdkClient(self, client)

    async def sdk(self) -> SdkServer:
        """Return the SDK's server, importing it where nobody needed it before.

        Others are served meanwhile: the import runs in a thread, which has the interpreter to itself
        for no longer than 5 ms at a time.
        """
        async with self._importing:
            if self._sdk is None:
                if _SDK not in sys.modules:
                    await trio.to_thread.run_sync(import_module, _SDK)
                self._sdk = import_module(_SDK).SdkServer(self)
            return self._sdk
