"""The interface of `Client` that the methods of the protocol use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from greenroom.transports.mcp.agent_port import AgentPort, SubscriberPort
from greenroom.transports.mcp.calls import Call
from greenroom.transports.mcp.limits import Limits
from greenroom.transports.mcp.offered_tools import ToolOffer
from greenroom.transports.mcp.open_streams import OpenStreams
from greenroom.transports.mcp.ordering import OrderedQueue
from greenroom.transports.mcp.response_sink import ResponseSink
from greenroom.transports.mcp.roots import Roots
from greenroom.transports.mcp.versions import Era
from greenroom.transports.observability.meter import Outcome


class Spawn(Protocol):
    """Starts a task that ends with the client."""

    def __call__(self, work: Callable[..., Any], /, *args: Any) -> None:
        """Start `work(*args)`, which may be an async function."""


class ClientPort(Protocol):
    """A `Client` as the methods see it.

    Attributes:
        era: The era it speaks; None before its first request.
        initialize: The parameters of its handshake; None without one.
        limits: Bounds of what it may have open.
        offer: The tools that it is offered.
        sink: Sink for messages that belong to no request.
        queue: The order of its requests.
        roots: The questions after its folders; None if it was not asked.
        spawn: Starts a task that ends with the client.
        streams: Its open streams.
        subscriber: Its subscriptions outside of listen streams; None until it subscribes.
        version: The protocol's revision.
    """

    era: Era | None
    initialize: dict[str, Any] | None
    limits: Limits
    subscriber: SubscriberPort | None
    offer: ToolOffer
    sink: ResponseSink
    roots: Roots | None
    spawn: Spawn
    streams: OpenStreams
    queue: OrderedQueue
    version: str

    @property
    def agent(self) -> AgentPort:
        """The client's agent in the domain; to ask for it fixes its name."""

    @property
    def scopes(self) -> frozenset[str]:
        """What the client may do; to ask for it fixes no name."""

    def accept_handshake(self, params: dict[str, Any], version: str) -> None:
        """Record a handshake that was accepted."""

    def ask(self, call: Call, request: Any, done: Callable[[ClientPort, Call, Any], None]) -> None:
        """Send a checked request into the domain; `done` is called with its reply or its error."""

    async def ask_for_sdk(self, call: Call, request_for: Callable[[], Any]) -> Any:
        """Return the reply to a request that came by way of the SDK, asked when its turn has come."""

    async def wait_for_turn(self, call: Call) -> None:
        """Wait for the turn of a request that came by way of the SDK."""

    def answer(self, call: Call, line: bytes, outcome: Outcome = "ok") -> None:
        """Answer a request that is not settled yet."""

    def fail(self, call: Call, code: int, sentence: str, data: Any = None) -> None:
        """Answer a request with an error of the protocol."""

    def notify_changed(self) -> None:
        """Wake whoever waits for a change of this client."""
