"""Liveness of a WebSocket client, decided from when it was heard last. No I/O, no clock."""

from __future__ import annotations

from enum import Enum
from math import inf


class Action(Enum):
    """The next action about a connection."""

    NOTHING = "nothing"
    PING = "ping"
    END = "end"


class Liveness:
    """The times of one connection, in trio's seconds.

    Anything that is heard is a sign of life, be it a part of a frame: a client in the middle
    of a long frame cannot answer. While nothing is read from the client (it is at a limit)
    nothing can be heard, so nothing is held against it.

    Attributes:
        heard: When bytes last came.
        pinged: When a ping was sent that nothing came after; infinity for none.
        reading: Since when the connection is read from; infinity while it is not.
        writing: Since when the client has taken nothing of what is being sent; infinity while
            nothing is being sent.
    """

    __slots__ = ("heard", "pinged", "reading", "writing")

    def __init__(self, now: float) -> None:
        self.heard = now
        self.pinged = inf
        self.reading = inf
        self.writing = inf

    def record_received(self, now: float) -> None:
        """Record that bytes arrived."""
        self.heard = now
        self.pinged = inf

    def next_action(self, now: float, interval: float) -> Action:
        """Return the next action, given the seconds of silence before a ping and after it."""
        if now - self.writing >= interval:
            return Action.END
        if self.pinged != inf:  # and read from ever since: a pause in reading begins with bytes that came
            return Action.END if now - self.pinged >= interval else Action.NOTHING
        return Action.PING if now - max(self.heard, self.reading) >= interval else Action.NOTHING
