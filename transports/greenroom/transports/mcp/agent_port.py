"""The door into the domain: what a client's requests are asked through, and in whose name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from greenroom.runtime import Refusal

AGENT_ID_LENGTH = 100
NAMELESS_AGENT = "agent"


class Notices(Protocol):
    """What a door hears of: which resources changed, as far as its principal may see."""

    def __len__(self) -> int:
        """Return how many resources it hears of."""

    def add(self, uri: str) -> None:
        """Hear of a resource from now on; an impossible one is never heard of."""

    def remove(self, uri: str) -> None:
        """Hear of a resource no more."""

    async def next(self) -> str:
        """Wait for a change and return the resource's URI."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Withdrawable(Protocol):
    """A request under way."""

    def abandon(self) -> None:
        """Call it off; what is begun is carried out whole."""


class Door(Protocol):
    """Where requests go: an agent of the domain."""

    @property
    def scopes(self) -> frozenset[str]:
        """What its agent may do; the door itself refuses what it may not."""

    def must_ask(self, request: Any) -> bool:
        """Return whether a request is to be asked and cannot be posted."""

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
    ) -> Withdrawable:
        """Ask a request that is checked; call `done` with the outcome, and `on_accepted` as `ask` does."""

    def further(self, request: Any, first: Refusal) -> Callable[[], Awaitable[Any]] | None:
        """Return what is to be awaited for the outcome of a post that was refused; None: it is that."""

    def subscriber(self, window: float) -> Notices:
        """Return what hears of resources, merging changes within so many seconds."""

    def close(self) -> None:
        """The client is gone; a second time does nothing."""


def fit_agent_id(name: str | None) -> str:
    """Return a client's own name as an agent id: 1-100 characters of ``A-Za-z0-9_.-``."""
    plain = unicodedata.normalize("NFKD", name or "").encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-")[:AGENT_ID_LENGTH] or NAMELESS_AGENT
