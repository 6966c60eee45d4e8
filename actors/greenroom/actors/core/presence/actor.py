"""The presence actor: the processes and connected clients of the folder, in memory only.

Each process sends a heartbeat every `HEARTBEAT_SECONDS`. A killed process is forgotten after
`EXPIRY_SECONDS`. After a takeover or passivation, all living processes have sent another heartbeat by then.
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
HEARTBEAT_SECONDS: Final = 5.0
EXPIRY_SECONDS: Final = 3 * HEARTBEAT_SECONDS
MOST_PROCESSES: Final = 200
MOST_ENDED: Final = 1_000
"""At most this many browsers wait to be logged out, until their processes send a heartbeat."""


class PresenceActor(Actor):
    """The last heartbeat of each process."""

    kind: ClassVar[str] = KIND
    size: ClassVar[int] = 200_000

    def __init__(self) -> None:
        self._heartbeats: dict[str, tuple[int, ProcessPresence]] = {}
        self._ended: dict[str, None] = {}

    @handles(TellPresence)
    def tell(self, message: TellPresence, context: Context) -> list[str]:
        """Store a heartbeat; return the browsers that the sending process must log out."""
        process = message.process
        self._heartbeats.pop(process.id, None)
        self._heartbeats[process.id] = context.now, process
        self._forget(context.now)
        ended = [each.browser for each in process.clients if each.browser in self._ended]
        for browser in filter(None, ended):
            del self._ended[browser]
        return [browser for browser in ended if browser is not None]

    @handles(LeavePresence)
    def leave(self, message: LeavePresence, context: Context) -> None:  # noqa: ARG002  as every handler
        """Remove a process."""
        self._heartbeats.pop(message.process, None)

    @handles(ReadPresence)
    def read(self, message: ReadPresence, context: Context) -> list[ProcessPresence]:  # noqa: ARG002  as every handler
        """Return the known processes."""
        self._forget(context.now)
        known = [process for _, process in self._heartbeats.values()]
        return sorted(known, key=lambda each: (each.role != "owner", each.since, each.pid))

    @handles(EndBrowserSession)
    def end(self, message: EndBrowserSession, context: Context) -> bool:
        """Log out a browser with the next heartbeat of its process."""
        self._forget(context.now)
        known = any(
            each.browser == message.browser
            for _, process in self._heartbeats.values()
            for each in process.clients
        )
        if known and len(self._ended) < MOST_ENDED:
            self._ended[message.browser] = None
        return known

    def _forget(self, now: int) -> None:
        oldest = now - round(EXPIRY_SECONDS * SECOND)
        recent = [item for item in self._heartbeats.items() if item[1][0] >= oldest]
        self._heartbeats = dict(recent[-MOST_PROCESSES:])
