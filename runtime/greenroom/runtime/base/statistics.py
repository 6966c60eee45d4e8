"""The statistics of every part of a runtime, as frozen values, and the histograms they are counted with."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

WORKS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0)
"""Bounds of the number of works in a group."""

SECONDS: Final = (
    *(0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
)
"""Bounds of how long something at the disk took, in seconds."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Values counted in classes, since the runtime was opened.

    Attributes:
        bounds: The highest value of each class but the last, ascending.
        counts: How many values each class holds; the last one holds those above all bounds.
        sum: All values together.
        count: How many values there are.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float
    count: int


class Histogram:
    """Counts values. One thread at a time may `note`; any may ask for the `distribution`.

    Args:
        bounds: The highest value of each class but the last, ascending.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def distribution(self) -> Distribution:
        """Return what was counted so far."""
        counts = tuple(self._counts)
        return Distribution(bounds=self._bounds, counts=counts, sum=self._sum, count=sum(counts))


class ActorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The actors in memory. Counts are since the runtime was opened unless they say "now".

    Attributes:
        resident: In memory now.
        resident_bytes: Their estimated size now.
        activations: Loaded from the store.
        passivations: Left memory because they were idle or memory was short.
        evictions: Of those, because memory was short.
        restarts: Rebuilt after a failure, their own or a sibling's.
        set_aside: Addresses that failed too often and answer with an error now.
    """

    resident: int
    resident_bytes: int
    activations: int
    passivations: int
    evictions: int
    restarts: int
    set_aside: list[str]


class MessageStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The messages. Counts are since the runtime was opened unless they say "now".

    Attributes:
        waiting: Accepted and not yet over, now.
        queued: Of those, in a mailbox, now.
        deepest: In the fullest mailbox, now.
        handled: Ended with a reply or a refusal.
        refused: Of those, the refusals.
        failed: Ended with an exception of the handler.
        repeated: Answered with the stored answer to the same idempotent request.
        expired: Not begun before their deadline.
        abandoned: Given up by their asker.
        overloaded: Not accepted by a full mailbox.
        not_committed: Handled, but the effects found no room in the store.
        dispensed_with: Answered although their audit or the like found no room in the store.
        timers_fired: Timers delivered.
        dead_letters: Tells and timers that could not be handled.
    """

    waiting: int
    queued: int
    deepest: int
    handled: int
    refused: int
    failed: int
    repeated: int
    expired: int
    abandoned: int
    overloaded: int
    not_committed: int
    dispensed_with: int
    timers_fired: int
    dead_letters: int


class DispatcherStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The event loop's share of the actors.

    Attributes:
        ready: Actors that wait for their turn now.
        longest_slice_ms: The longest time that actors or a query held the event loop, in milliseconds.
    """

    ready: int
    longest_slice_ms: float


class CommitStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The way to disk.

    Attributes:
        collected: Works in the group that is being collected now.
        in_flight: Works in the group that is being committed now.
        group_works: How many works the groups had that were committed.
        group_seconds: How long it took to commit them, fsync included.
        sync_seconds: How long their transactions took to reach the disk when all was put into them.
        dropped_notes: How many notes for journals found no room.
    """

    collected: int
    in_flight: int
    group_works: Distribution
    group_seconds: Distribution
    sync_seconds: Distribution
    dropped_notes: int = 0


class BusStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The subscriptions. Counts are since the runtime was opened unless they say "now".

    Attributes:
        subscribers: Subscribers now.
        subscriptions: Topics of all subscribers together, now.
        topics: Different topics among them, now.
        waiting: Topics with publications that not every subscriber was told of yet, now.
        published: Publications committed.
        told: Changes that subscribers took; several publications may be one change.
    """

    subscribers: int
    subscriptions: int
    topics: int
    waiting: int
    published: int
    told: int


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What the store holds and has done. Sizes are bytes, durations seconds.

    Attributes:
        used_bytes: Pages in use by rows; freed pages are used again and do not count.
        map_bytes: The quota (``max_size``).
        file_bytes: The file's length; it never shrinks.
        disk_free: Free space of the disk for this user.
        rows: Rows of all tables.
        commits: Transactions committed since opening.
        works: Works committed since opening.
        failures: Works refused or failed since opening.
        last_commit_seconds: Duration of the newest group, fsync included.
        max_commit_seconds: Duration of the slowest group.
        scans: Readings open now; each keeps the pages that it sees from being used again.
        integrity: Whether all that was in the file when it was opened, and at its last scrub, is known to be
            sound; one that is unchecked is being scrubbed, or waits for that.
    """

    used_bytes: int
    map_bytes: int
    file_bytes: int
    disk_free: int
    rows: int
    commits: int
    works: int
    failures: int
    last_commit_seconds: float
    max_commit_seconds: float
    scans: int
    integrity: Literal["checked", "unchecked"] = "unchecked"


class RelayStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Several processes on one folder, as this one sees it.

    Attributes:
        role: Whether this process owns the folder, or is attached to the one that does.
        owner_pid: The process id of the owner; 0 while there is none.
        attached_pids: The process ids of those that are attached; the owner alone knows them.
        takeovers: How often the owner changed since this process was attached first.
        unanswered: Requests that were relayed and are not answered, now; at the owner those of all who
            are attached.
        oldest_seconds: How long the oldest of them waits; 0 at the owner.
        silent_seconds: For how long the owner, or at the owner the most silent of those who are attached,
            has given no sign of life, in whole seconds.
    """

    role: Literal["owner", "attached"]
    owner_pid: int
    attached_pids: list[int]
    takeovers: int
    unanswered: int = 0
    oldest_seconds: float = 0.0
    silent_seconds: int = 0


class RuntimeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """All parts of one runtime; those of an attached process are the owner's, a second old at most."""

    actors: ActorStatistics
    messages: MessageStatistics
    dispatcher: DispatcherStatistics
    commits: CommitStatistics
    bus: BusStatistics
    store: StoreStatistics
    rows_expired: int
    """Rows that the janitor removed since the runtime was opened."""
    relay: RelayStatistics | None = None
    """What a runtime that shares its folder says of that."""
