"""The limits of connections to one server: newcomers and accepted connections.

Newcomers never displace accepted connections. When all places are taken, the address with the most newcomers
loses the newcomer that has waited longest. So a flood of silent connections locks no client out: a client
that authenticates at once is accepted before its turn comes.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Final, Literal

import trio

from greenroom.transports.base.errors import retry_later

logger = logging.getLogger(__name__)

SHARE: Final = 3 / 4
"""The share of the places that one address, or one key, may have."""
NEW_SHARE: Final = 1 / 4
"""The share of the places that the newcomers of one address may have."""
FEW: Final = 16
"""The number of places that one address or key may have in any case."""
AT_ONCE: Final = 4
"""Connections that are ended before other tasks run; over HTTP each takes about a millisecond."""
TOLD_EVERY: Final = 10.0
"""One log line summarises the rejections in this many seconds after the first rejection."""
_NAMES: Final = 1_024

RejectionReason = Literal["too slow", "made room"]


class ConnectionSlot:
    """One connection.

    Args:
        name: The group in which its origin is counted; None if it is not counted.

    Attributes:
        is_new: Whether it may still be disconnected to make room, or for being slow.
        rejected_because: Why it was disconnected, if it was.
    """

    __slots__ = ("hang_up", "holder", "is_new", "name", "rejected_because", "since")

    def __init__(self, name: str | None, since: float, hang_up: Callable[[], None]) -> None:
        self.name = name
        self.holder: str | None = None
        self.since = since
        self.hang_up = hang_up
        self.is_new = True
        self.rejected_because: RejectionReason | None = None


class ConnectionLimiter:
    """The connections of one server.

    Args:
        places: How many connections may be accepted at once.
        beyond: How many further connections may wait for their refusal.

    Attributes:
        has_rejections: Set while `rejection_summary` has rejections to report.
    """

    def __init__(self, places: int, beyond: int = 0) -> None:
        self._places = places
        self._room = places + beyond
        self._share = _share(places, SHARE)
        self._new_share = _share(places, NEW_SHARE)
        self._new: dict[str | None, dict[ConnectionSlot, None]] = {}
        self._queue: dict[ConnectionSlot, None] = {}
        self._inside: Counter[str] = Counter()
        self._members = 0
        self.has_rejections = trio.Event()
        self._rejected: Counter[RejectionReason] = Counter()
        self._rejected_names: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._queue) + self._members

    def arrive(self, name: str | None, now: float, hang_up: Callable[[], None]) -> ConnectionSlot | None:
        """Return a slot for a newcomer, perhaps taken from another newcomer; None if full."""
        of_name = self._new.get(name, {})
        if name is not None and len(of_name) >= self._new_share:
            self._reject(next(iter(of_name)), "made room")
        elif len(self) >= self._room:
            if not self._queue:
                return None
            crowded = max(self._new.values(), key=len)
            self._reject(next(iter(crowded)), "made room")
        slot = ConnectionSlot(name, now, hang_up)
        self._new.setdefault(name, {})[slot] = None
        self._queue[slot] = None
        return slot

    def accept(self, slot: ConnectionSlot, name: str | None, holder: str | None) -> None:
        """Accept a newcomer, unless it is accepted already.

        Raises:
            HttpRefusedError: There is no room.
        """
        if not slot.is_new:
            return
        if self._members >= self._places:
            sentence = f"there are {self._places} connections, which is the limit"
            raise retry_later(sentence, status=HTTPStatus.SERVICE_UNAVAILABLE)
        where = None if name is None else f"address {name}"
        who = None if holder is None else f"key {holder}"
        for counted, whose in ((where, "address"), (who, "key")):
            if counted is not None and self._inside[counted] >= self._share:
                sentence = f"there are {self._share} connections of your {whose}, which is the limit for one"
                raise retry_later(sentence)
        self._forget_newcomer(slot)
        slot.name, slot.holder = where, who
        self._members += 1
        self._inside.update(each for each in (where, who) if each is not None)

    def leave(self, slot: ConnectionSlot) -> None:
        """Record that a connection has ended."""
        if slot.is_new:
            self._forget_newcomer(slot)
        elif slot.rejected_because is None:
            self._members -= 1
            for counted in (slot.name, slot.holder):
                if counted is not None:
                    self._inside[counted] -= 1
                    if not self._inside[counted]:
                        del self._inside[counted]

    # -- slow newcomers ----------------------------------------------------

    def oldest(self) -> float | None:
        """Return the time since which the oldest newcomer waits; None if none waits."""
        return next((slot.since for slot in self._queue), None)

    def overdue(self, before: float) -> Iterator[Callable[[], None]]:
        """Yield a function that disconnects each newcomer that arrived by ``before``."""
        while (slot := next(iter(self._queue), None)) is not None and slot.since <= before:
            yield self.reject_slow(slot)

    def reject_slow(self, slot: ConnectionSlot) -> Callable[[], None]:
        """Record a slow newcomer as rejected, and return the function that disconnects it."""
        if slot.is_new:
            self._record_rejection(slot, "too slow")
        return slot.hang_up

    def rejection_summary(self) -> str:
        """Return a log line about the rejections since the last summary."""
        slow, room = self._rejected["too slow"], self._rejected["made room"]
        line = f"{slow + room:,} connections were hung up on before they were let in: "
        line += f"{slow:,} sent too little in time, {room:,} made room for others"
        if self._rejected_names:
            name, count = self._rejected_names.most_common(1)[0]
            line += f"; {count:,} came from {name}"
        self.has_rejections = trio.Event()
        self._rejected.clear()
        self._rejected_names.clear()
        return line

    # -- parts -------------------------------------------------------------

    def _reject(self, slot: ConnectionSlot, why: RejectionReason) -> None:
        self._record_rejection(slot, why)
        slot.hang_up()

    def _record_rejection(self, slot: ConnectionSlot, why: RejectionReason) -> None:
        self._forget_newcomer(slot)
        slot.rejected_because = why
        self._rejected[why] += 1
        self.has_rejections.set()
        if slot.name is not None and (
            slot.name in self._rejected_names or len(self._rejected_names) < _NAMES
        ):
            self._rejected_names[slot.name] += 1

    def _forget_newcomer(self, slot: ConnectionSlot) -> None:
        slot.is_new = False
        del self._queue[slot]
        of_name = self._new[slot.name]
        del of_name[slot]
        if not of_name:
            del self._new[slot.name]


async def log_rejections(limiter: ConnectionLimiter) -> None:
    """Log rejections until cancelled, one line per interval."""
    while True:
        await limiter.has_rejections.wait()
        await trio.sleep(TOLD_EVERY)
        logger.warning(limiter.rejection_summary())


async def run_in_slices(work: Iterable[Callable[[], None]]) -> None:
    """Run many short functions, and let other tasks run after every few."""
    for count, each in enumerate(work, 1):
        each()
        if count % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()


def _share(places: int, part: float) -> int:
    return max(min(places, FEW), int(places * part))
