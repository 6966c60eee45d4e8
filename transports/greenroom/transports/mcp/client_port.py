"""The interface of `Client` that the methods of the protocol use."""

from __future__ import annotations

from typing import Any, Protocol

from greenroom.transports.base.observability.meter import Outcome
from greenroom.transports.mcp.agent_port import SubscriberPort
from greenroom.transports.mcp.client_identity import ClientIdentity
from greenroom.transports.mcp.clients.open_streams import OpenStreams
from greenroom.transports.mcp.clients.ordering import OrderedQueue
from greenroom.transports.mcp.clients.roots import Roots
from greenroom.transports.mcp.domain_requests import DomainRequests, Spawn
from greenroom.transports.mcp.frames.calls import Call
from greenroom.transports.mcp.limits import Limits
from greenroom.transports.mcp.response_sink import ResponseSink
from greenroom.transports.mcp.tools.offered_tools import ToolOffer


class ClientPort(Protocol):
    """A `Client` as the methods see it.

    Attributes:
        identity: Who it is.
        limits: Bounds of what it may have open.
        offer: The tools that it is offered.
        sink: Sink for messages that belong to no request.
        queue: The order of its requests.
        domain: Its requests on their way into the domain.
        roots: The questions after its folders; None if it was not asked.
        spawn: Starts a task that ends with the client.
        streams: Its open streams.
        subscriber: Its subscriptions outside of listen streams; None until it subscribes.
    """

    identity: ClientIdentity
    limits: Limits
    subscriber: SubscriberPort | None
    offer: ToolOffer
    sink: ResponseSink
    roots: Roots | None
    spawn: Spawn
    streams: OpenStreams
    queue: OrderedQueue
    domain: DomainRequests

    def answer(self, call: Call, line: bytes, outcome: Outcome = "ok") -> None:
        """Answer a request that is not settled yet."""

    def fail(self, call: Call, code: int, sentence: str, data: Any = None) -> None:
        """Answer a request with an error of the protocol."""

    def notify_changed(self) -> None:
        """Wake whoever waits for a change of this client."""
