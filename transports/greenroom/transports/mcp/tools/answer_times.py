"""When an answer is made: said in ``_meta`` of each, and in its body to clients that look for it there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import msgspec
import trio

AT_KEY: Final = "greenroom/at"
"""Under this key of ``_meta`` an answer tells when it was made."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ENDS = tuple(b'%03dZ"' % microseconds for microseconds in range(1_000))
"""How the text of a time ends, by the microseconds of its millisecond."""


class Moment(msgspec.Struct, frozen=True):
    """When an answer is made.

    Attributes:
        microseconds: The time since 1970 UTC.
        json: The same as RFC 3339 has it, in JSON.
        arrived: When its request was read, in trio's time.
    """

    microseconds: int
    json: bytes
    arrived: float

    @property
    def at(self) -> dt.datetime:
        """The time."""
        return _EPOCH + dt.timedelta(0, 0, self.microseconds)

    @property
    def seconds(self) -> float:
        """How long ago its request was read."""
        return trio.current_time() - self.arrived

    def meta(self, more: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what ``_meta`` of the answer says, with what it says besides."""
        return {**(more or {}), AT_KEY: self.json[1:-1].decode()}


class AnswerTimes:
    """Tells what time it is.

    Args:
        now: Returns the wall clock in nanoseconds since 1970 UTC.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._millisecond = -1
        self._text = b""

    def moment(self, arrived: float) -> Moment:
        """Return the present moment for the answer to a request that was read at a time of trio's clock.

        Every answer pays for it, so the text of a millisecond is made once for all its answers.
        """
        microseconds = self._now() // 1_000
        millisecond = microseconds // 1_000
        if millisecond != self._millisecond:
            self._millisecond = millisecond
            at = _EPOCH + dt.timedelta(milliseconds=millisecond)
            self._text = f'"{at:%Y-%m-%dT%H:%M:%S}.{millisecond % 1_000:03}'.encode()
        return Moment(microseconds, self._text + _ENDS[microseconds % 1_000], arrived)
