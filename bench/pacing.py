"""A load at a fixed rate, whatever the server does with it.

What is sent when is decided before anything is sent, and a time is counted from that moment
on. A client that waits for a slow answer before it asks again would ask less just when it
matters, and its percentiles would be too good: the "coordinated omission".
"""

from __future__ import annotations

import time
from typing import Final, Protocol

from bench.channels import Exchange

_ROUND: Final = 0.05  # seconds at most between two questions whether to go on


class Paced(Protocol):
    """What is done at the rate."""

    def send(self, exchange: Exchange, number: int, due: float) -> None:
        """Post the message with this number, which should leave at the moment ``due``."""

    def take(self, who: int, messages: list[bytes], now: float) -> None:
        """Take what came on a channel."""

    def goes_on(self, now: float, *, all_sent: bool) -> bool:
        """Say whether there is more to send or to wait for; asked many times a second."""


def pace(exchange: Exchange, paced: Paced, *, begin: float, rate: float, count: int) -> None:
    """Send at a rate and take what comes, until there is no more.

    Args:
        exchange: The channels.
        paced: What is sent.
        begin: When the first message leaves, on `time.monotonic`'s clock.
        rate: Messages a second.
        count: How many.
    """
    number = 0
    while paced.goes_on(now := time.monotonic(), all_sent=number == count):
        while number < count and (due := begin + number / rate) <= now:
            paced.send(exchange, number, due)
            number += 1
        exchange.flush()
        wait = begin + number / rate - time.monotonic() if number < count else _ROUND
        for who, messages in exchange.turn(min(wait, _ROUND)):
            paced.take(who, messages, time.monotonic())
