"""The records that the contenders of `durable` write, and what must be found afterwards."""

from __future__ import annotations

from typing import NamedTuple

RECORD_BYTES = 200


class Load(NamedTuple):
    """How many callers write for how long."""

    callers: int
    seconds: float


class Written(NamedTuple):
    """What was acknowledged: writes by caller, and in how many seconds."""

    counts: list[int]
    seconds: float

    def rate(self) -> float:
        """Return the acknowledged writes a second."""
        return sum(self.counts) / self.seconds

    def records(self) -> dict[bytes, bytes]:
        """Return every record that was acknowledged, by key."""
        keys = [key_of(caller, number) for caller, count in enumerate(self.counts) for number in range(count)]
        return {key: record_of(key) for key in keys}


def key_of(caller: int, number: int) -> bytes:
    """Return the key of a caller's record."""
    return b"%06d-%08d" % (caller, number)


def record_of(key: bytes) -> bytes:
    """Return the record under a key: about as long as a short chat message."""
    return (key * (RECORD_BYTES // len(key) + 1))[:RECORD_BYTES]
