"""One client while it is served: its connection, and the door into the domain that opens for it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import trio

from greenroom.runtime import StoreFailedError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from greenroom.transports.protocol._connection import Call, Connection

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


class Door(Protocol):
    """Where requests go: an agent of the domain."""

    async def ask(
        self, request: Any, *, checked: bool = False, on_accepted: Callable[[], None] | None = None
    ) -> Any:
        """Return the reply to a request; call `on_accepted` once its place in the order is sure."""

    def subscriber(self, window: float) -> Notices:
        """Return what hears of resources, merging changes within so many seconds."""


def fit_agent_id(name: str | None) -> str:
    """Return a client's own name as an agent id: 1-100 characters of ``A-Za-z0-9_.-``."""
    plain = unicodedata.normalize("NFKD", name or "").encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-")[:AGENT_ID_LENGTH] or NAMELESS_AGENT


class Served:
    """One client being served, and the door that its first request of the domain opens.

    Attributes:
        connection: Its frames.
        notices: What it hears of outside of listen streams; None until it subscribes.
        failed: Why the store failed for good, once it did.
        abort: Ends the serving at once.
        start: Runs a function in a task that ends with the serving.
    """

    def __init__(
        self, connection: Connection, door_for: Callable[[str], Door], nursery: trio.Nursery
    ) -> None:
        self.connection = connection
        self.notices: Notices | None = None
        self.failed: StoreFailedError | None = None
        self.abort: Callable[[], None] = nursery.cancel_scope.cancel
        self.start: Callable[[Callable[[], Awaitable[None]]], None] = nursery.start_soon
        self._door_for = door_for
        self._door: Door | None = None

    @property
    def door(self) -> Door:
        """The client's door; its name is fixed by now."""
        if self._door is None:
            self._door = self._door_for(fit_agent_id(self.connection.client_name))
        return self._door

    async def ask(
        self, call: Call, request_for: Callable[[], Any], *, checked: bool = False, large: bool
    ) -> bytes:
        """Return the JSON of the reply to a request, which is asked when its turn has come.

        Args:
            call: What brought the request.
            request_for: Makes the request.
            checked: Whether it is checked already.
            large: Whether the reply may be large.

        Raises:
            Exception: whatever making or asking it raised, except that a failed store ends everything.
        """
        assert call.turn is not None, "requests of the domain have turns"
        await call.turn.come()
        try:
            async with self.connection.room_for_answer(large=large):
                request = request_for()
                reply = await self.door.ask(request, checked=checked, on_accepted=call.turn.leave)
                return msgspec.json.encode(reply)
        except StoreFailedError as error:
            self.failed = error
            self.connection.mute()
            self.abort()
            await trio.sleep_forever()
            raise AssertionError("cancelled above") from None
