"""The actor that knows who is connected, in memory alone: nothing of it is ever stored.

Each process tells of itself every `TELL_SECONDS`. One that was killed tells nothing any more and is forgotten
after `KEPT_SECONDS`; after a takeover, or when this actor left memory, the others have told again by then.
"""

from __future__ import annotations

from typing import ClassVar, Final

from greenroom.actors.core.presence.requests import (
    EndBrowserSession,
    LeavePresence,
    ProcessPresence,
    ReadPresence,
    TellPresence,
)
from greenroom.actors.core.validation.times import SECOND
from greenroom.runtime import Actor, Address, Context, handles

KIND: Final = "presence"
PRESENCE: Final = Address(KIND, "folder")
TELL_SECONDS: Final = 5.0
KEPT_SECONDS: Final = 3 * TELL_SECONDS
MOST_PROCESSES: Final = 200
MOST_ENDED: Final = 1_000
"""Browsers that are to be logged out and whose processes have not been told yet."""


class PresenceActor(Actor):
    """What the processes of the folder told last."""

    kind: ClassVar[str] = KIND
    size: ClassVar[int] = 200_000

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, ProcessPresence]] = {}
        self._ended: dict[str, None] = {}

    @handles(TellPresence)
    def tell(self, message: TellPresence, context: Context) -> list[str]:
        """Remember what a process tells; answer which of its browsers are to be logged out."""
        process = message.process
        self._told.pop(process.id, None)
        self._told[process.id] = context.now, process
        self._forget(context.now)
        ended = [each.browser for each in process.clients if each.browser in self._ended]
        for browser in filter(None, ended):
            del self._ended[browser]
        return [browser for browser in ended if browser is not None]

    @handles(LeavePresence)
    def leave(self, message: LeavePresence, context: Context) -> None:  # noqa: ARG002  as every handler
        """Forget a process."""
        self._told.pop(message.process, None)

    @handles(ReadPresence)
    def read(self, message: ReadPresence, context: Context) -> list[ProcessPresence]:  # noqa: ARG002  as every handler
        """Answer what is known."""
        self._forget(context.now)
        known = [process for _, process in self._told.values()]
        return sorted(known, key=lambda each: (each.role != "owner", each.since, each.pid))

    @handles(EndBrowserSession)
    def end(self, message: EndBrowserSession, context: Context) -> bool:
        """Have a browser logged out when its process tells next."""
        self._forget(context.now)
        known = any(
            each.browser == message.browser for _, process in self._told.values() for each in process.clients
        )
        if known and len(self._ended) < MOST_ENDED:
            self._ended[message.browser] = None
        return known

    def _forget(self, now: int) -> None:
        oldest = now - round(KEPT_SECONDS * SECOND)
        kept = [(known, told) for known, told in self._told.items() if told[0] >= oldest]
        self._told = dict(kept[-MOST_PROCESSES:])
