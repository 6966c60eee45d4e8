"""The time of an answer, in ``_meta``, and for older systems in its body."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import msgspec
import trio

AT_KEY: Final = "greenroom/at"
"""The key of ``_meta`` under which an answer has its time."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ENDS = tuple(b'%03dZ"' % microseconds for microseconds in range(1_000))
"""The end of the text of a time, by the microseconds within its millisecond."""


class Moment(msgspec.Struct, frozen=True):
    """The time of an answer.

    Attributes:
        json: The time in RFC 3339, as JSON.
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
        """Seconds since its request was read."""
        return trio.current_time() - self.arrived

    def meta(self, more: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the ``_meta`` of the answer, with further members."""
        return {**(more or {}), AT_KEY: self.json[1:-1].decode()}


class AnswerTimes:
    """Makes the times of answers."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._millisecond = -1
        self._text = b""

    def moment(self, arrived: float) -> Moment:
        """Return the current time, for the answer to a request read at ``arrived``.

        Every answer needs it, so the text of a millisecond is made once for all its answers.
        """
        microseconds = self._now() // 1_000
        millisecond = microseconds // 1_000
        if millisecond != self._millisecond:
            self._millisecond = millisecond
            at = _EPOCH + dt.timedelta(milliseconds=millisecond)
            self._text = f'"{at:%Y-%m-%dT%H:%M:%S}.{millisecond % 1_000:03}'.encode()
        return Moment(microseconds, self._text + _ENDS[microseconds % 1_000], arrived)
