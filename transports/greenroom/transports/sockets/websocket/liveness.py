"""Decide a WebSocket client's liveness from the times of its bytes. No I/O."""

from __future__ import annotations

from enum import Enum
from math import inf


class Action(Enum):
    """The next action for a connection."""

    NOTHING = "nothing"
    PING = "ping"
    END = "end"


class Liveness:
    """The times of one connection, in trio's seconds.

    Any received bytes are a sign of life, even a part of a frame, because a client in the middle of a long
    frame cannot answer. While the server does not read from the client (at a limit), silence does not count.

    Attributes:
        heard: When bytes last arrived.
        pinged: When a ping was sent that no bytes followed; infinity for none.
        reading: Since when the server reads; infinity while it does not.
        writing: Since when the client has taken none of the output; infinity without output.
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
        if self.pinged != inf:  # reading since then: a pause in reading begins with received bytes
            return Action.END if now - self.pinged >= interval else Action.NOTHING
        return Action.PING if now - max(self.heard, self.reading) >= interval else Action.NOTHING
