"""The interface of `Agent` for transports: requests of one agent, and its subscriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from math import inf
from typing import Any, Protocol


class SubscriberPort(AbstractContextManager["SubscriberPort"], Protocol):
    """The subscriptions of one agent; reports changes of the resources that it may see."""

    def __len__(self) -> int:
        """Return the number of subscribed resources."""

    def add(self, uri: str) -> None:
        """Subscribe to a resource; a resource that cannot exist never changes."""

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource."""

    async def wait_heard(self) -> None:
        """Wait until no later change of the resources is missed."""

    async def next(self) -> str:
        """Wait for a change and return the resource's URI."""


class Cancellable(Protocol):
    """A request in flight."""

    def cancel(self) -> None:
        """Cancel it; an action that has begun is completed."""


class AgentPort(Protocol):
    """An agent, to which requests are sent."""

    @property
    def scopes(self) -> frozenset[str]:
        """The agent's scopes; the agent itself refuses requests that they do not open."""

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Refuse a request outside the agent's scopes, before its arguments are parsed."""

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Any:
        """Return the reply; call `on_accepted` once the request's place in the order is fixed."""

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        in_task: Callable[[Callable[[], Awaitable[Any]]], None],
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> Cancellable | None:
        """Send a checked request; call `done` with the outcome, and `on_accepted` as `ask` does.

        If a callback does not suffice, `in_task` is called with an async function that returns the outcome.
        If this is known at once, `post` returns None.
        """

    def subscriber(self, window: float) -> SubscriberPort:
        """Return a new subscriber, which merges changes within `window` seconds."""

    def close(self) -> None:
        """Release everything that is held for the client after its end; idempotent."""
