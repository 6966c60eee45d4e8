"""The interface of `Agent` that transports use: requests in the name of one agent, and its subscriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from types import TracebackType
from typing import Any, Protocol, Self


class SubscriberPort(Protocol):
    """Subscriptions of one agent: tells which resources changed, as far as it may see them."""

    def __len__(self) -> int:
        """Return how many resources it is subscribed to."""

    def add(self, uri: str) -> None:
        """Subscribe to a resource; one that cannot be never changes."""

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource."""

    async def next(self) -> str:
        """Wait for a change and return the resource's URI."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Cancellable(Protocol):
    """A request under way."""

    def cancel(self) -> None:
        """Cancel it; what is begun is carried out whole."""


class AgentPort(Protocol):
    """An agent of the domain, which requests are sent to."""

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the agent; what they do not open it refuses by itself."""

    def must_ask(self, request: Any) -> bool:
        """Return whether a request is to be asked and cannot be posted."""

    def check_scope(self, request: type[Any], arguments: bytes = b"") -> None:
        """Refuse a request that the agent's scopes do not open, before arguments are read."""

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Any:
        """Return the reply to a request; call `on_accepted` once its place in the order is sure."""

    def post(
        self,
        request: Any,
        done: Callable[[Any], None],
        *,
        on_accepted: Callable[[], None] | None = None,
        deadline: float = inf,
    ) -> Cancellable:
        """Ask a request that is checked; call `done` with the outcome, and `on_accepted` as `ask` does."""

    def fallback(self, request: Any, first: Any) -> Callable[[], Awaitable[Any]] | None:
        """Return what is to be awaited after a post's reply or refusal; None: that is the outcome."""

    def subscriber(self, window: float) -> SubscriberPort:
        """Return a new subscriber, which merges changes within `window` seconds."""

    def close(self) -> None:
        """Let go what is held for the client, which is gone; a second time does nothing."""
