"""Message ids: 53 bits that grow, of time and random bits, so that gaps tell nothing.

An id is 47 bits of time, in units of 16 microseconds since 2020, and 6 random bits.
A hidden message between two visible ones leaves no trace in them: each id comes from
the clock, not from the id before it. Only when the clock has not passed the last id (it
stands still, or jumped back) must the next one be built on the last, by a random step so
heavy-tailed that any gap can be a single one. From there the ids run ahead of the clock by
a constant, on their own again, until the clock has passed them.

When a clock jumps decades ahead the ids leave time behind at `LAST_UNIT` and go on by such
steps through the remaining eighth of the 53 bits.
"""

from __future__ import annotations

import random
from typing import NamedTuple

EPOCH = 1_577_836_800_000_000  # 2020-01-01 UTC in microseconds since 1970
UNIT_SHIFT = 4
RANDOM_BITS = 6
LAST_UNIT = (1 << 47) - (1 << 44)  # the year 2082
LONGEST_STEP = 1 << 20


class NextId(NamedTuple):
    """An id, and by how many units the ids run ahead of the clock now."""

    message_id: int
    ahead: int


def next_id(last_id: int, ahead: int, now: int, random: random.Random) -> NextId:
    """Return an id above ``last_id`` for a message at ``now`` (microseconds since 1970)."""
    clock = _units(now)
    last_unit = last_id >> RANDOM_BITS
    if clock > last_unit:
        ahead = 0
    elif clock + ahead <= last_unit:
        ahead = last_unit + _step(random) - clock
    unit = clock + ahead
    if unit >= LAST_UNIT:
        return NextId(max(last_id, LAST_UNIT << RANDOM_BITS) + _step(random), ahead)
    return NextId(unit << RANDOM_BITS | random.getrandbits(RANDOM_BITS), ahead)


def lowest_id(time: int) -> int:
    """Return a bound that no id of a message at or after ``time`` (microseconds since 1970) lies below."""
    return min(_units(time), LAST_UNIT) << RANDOM_BITS


def highest_id(time: int, ahead: int) -> int:
    """Return a bound that no id of a message at or before ``time`` (microseconds since 1970) lies above.

    ``ahead`` bounds by how many units ids ever ran ahead of the clock.
    """
    unit = _units(time) + ahead
    return (1 << 53) - 1 if unit >= LAST_UNIT else (unit + 1 << RANDOM_BITS) - 1


def ahead_of(message_id: int, time: int) -> int:
    """Return by how many units an id runs ahead of the time of its message; negative when it lies behind."""
    return (message_id >> RANDOM_BITS) - min(_units(time), LAST_UNIT)


def _units(time: int) -> int:
    return max(0, time - EPOCH) >> UNIT_SHIFT


def _step(random: random.Random) -> int:
    """Return a random number of at least 1 whose tail is so heavy that a sum of two looks like one."""
    return min(int(max(random.random(), 1e-9) ** -2), LONGEST_STEP)
