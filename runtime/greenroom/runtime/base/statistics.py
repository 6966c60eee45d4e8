"""The statistics of a runtime as frozen values, and their histograms.

The meaning, kind and exported name of each figure stand beside its field: metrics and the reference are
generated from that.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

WORKS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0)
"""The bounds of a histogram of the number of commit units in a group."""

SECONDS: Final = (
    *(0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0),
)
"""The bounds of a histogram of the durations of disk operations, in seconds."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A histogram of values since the runtime was opened.

    Attributes:
        bounds: The highest value of each class but the last, ascending.
        counts: The number of values in each class; the last one is above all bounds.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float
    count: int


class Histogram:
    """A counter of values; one thread may `observe`, any may read the `distribution`."""

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
        """Return the values counted so far."""
        counts = tuple(self._counts)
        return Distribution(bounds=self._bounds, counts=counts, sum=self._sum, count=sum(counts))


def counter(name: str, meaning: str) -> Meta:
    """Describe a figure that only grows, exported as ``greenroom_<name>``."""
    return Meta(description=meaning, extra={"kind": "counter", "name": f"greenroom_{name}"})


def gauge(name: str, meaning: str, **reading: Any) -> Meta:
    """Describe a current value, exported as ``greenroom_<name>``.

    ``reading`` turns a field into a number: ``scale`` is a factor, ``one`` is the value that is exported as 1
    while all others are 0, and ``absent`` is the number for a missing value.
    """
    return Meta(description=meaning, extra={"kind": "gauge", "name": f"greenroom_{name}", **reading})


def unexported(meaning: str) -> Meta:
    """Describe a figure that is not exported."""
    return Meta(description=meaning)


def histogram(name: str, meaning: str) -> Meta:
    """Describe a `Distribution` since the runtime was opened, exported as ``greenroom_<name>``."""
    return Meta(description=meaning, extra={"kind": "histogram", "name": f"greenroom_{name}"})


class ActorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The actors in memory."""

    resident: Annotated[int, gauge("actors_resident", "Actors in memory.")]
    resident_bytes: Annotated[int, gauge("actors_resident_bytes", "Estimated size of the actors in memory.")]
    activations: Annotated[int, counter("actor_activations", "Actors loaded from the store.")]
    passivations: Annotated[
        int,
        counter("actor_passivations", "Actors that left memory because they were idle or memory was short."),
    ]
    evictions: Annotated[
        int, counter("actor_evictions", "Of the passivated actors, those that left because memory was short.")
    ]
    restarts: Annotated[
        int,
        counter("actor_restarts", "Actors rebuilt from the store after a failure, their own or a sibling's."),
    ]
    set_aside: Annotated[
        list[str],
        gauge(
            "actors_set_aside",
            "Actors that failed too often and answer with an error until they are readmitted.",
        ),
    ]


class MessageStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The messages."""

    waiting: Annotated[
        int,
        gauge(
            "messages_waiting",
            "Messages that were accepted and not answered: in mailboxes, running, or waiting for "
            "their commit.",
        ),
    ]
    queued: Annotated[int, gauge("mailbox_messages", "Messages in the mailboxes of all actors together.")]
    deepest: Annotated[int, gauge("mailbox_deepest_messages", "Messages in the fullest mailbox.")]
    handled: Annotated[
        int, counter("messages_handled", "Messages to actors that ended with a reply or a refusal.")
    ]
    refused: Annotated[
        int, counter("messages_refused", "Of the handled messages, those that an actor refused.")
    ]
    failed: Annotated[
        int,
        counter(
            "messages_failed",
            "Messages whose handler raised an exception: faults in the program; the log has the traceback.",
        ),
    ]
    repeated: Annotated[
        int,
        counter(
            "messages_repeated", "Messages answered with the stored answer to the same idempotent request."
        ),
    ]
    expired: Annotated[
        int, counter("messages_expired", "Messages that were not begun before their deadline.")
    ]
    abandoned: Annotated[int, counter("messages_abandoned", "Messages abandoned by their caller.")]
    overloaded: Annotated[int, counter("messages_overloaded", "Messages that a full mailbox refused.")]
    not_committed: Annotated[
        int,
        counter(
            "messages_not_committed",
            "Messages that were handled and whose effects found no room in the store.",
        ),
    ]
    dispensed_with: Annotated[
        int,
        counter(
            "messages_dispensed_with",
            "Messages answered although dispensable effects, such as audit, found no room in the store.",
        ),
    ]
    timers_fired: Annotated[int, counter("timers_fired", "Timers delivered to actors.")]
    dead_letters: Annotated[
        int,
        counter("dead_letters", "Tells and timers that could not be handled; the log says which and why."),
    ]


class DispatcherStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The event loop's share of the actors."""

    ready: Annotated[int, gauge("actors_ready", "Actors that wait for their turn on the event loop.")]
    longest_slice_ms: Annotated[
        float,
        gauge(
            "longest_slice_seconds",
            "Longest time since the start for which actors or a query held the event loop.",
            scale=0.001,
        ),
    ]


class CommitStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The way to disk."""

    collected: Annotated[
        int, gauge("works_collected", "Commit units in the group that waits for its commit.")
    ]
    in_flight: Annotated[int, gauge("works_in_flight", "Commit units in the group that is being committed.")]
    group_works: Annotated[
        Distribution,
        histogram(
            "commit_works", "Commit units, each the effects of one message, that were committed together."
        ),
    ]
    group_seconds: Annotated[
        Distribution, histogram("commit_seconds", "Time to commit a group of commit units, fsync included.")
    ]
    sync_seconds: Annotated[
        Distribution, histogram("fsync_seconds", "Time that a commit waited for the disk.")
    ]
    dropped_notes: Annotated[
        int, counter("notes_dropped", "Audit records of reads and denials that found no room.")
    ] = 0


class BusStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The subscriptions."""

    subscribers: Annotated[int, gauge("subscribers", "Subscribers to changes of resources.")]
    subscriptions: Annotated[
        int, gauge("subscriptions", "Resources subscribed to, of all subscribers together.")
    ]
    topics: Annotated[int, gauge("resources_subscribed", "Different resources with a subscriber.")]
    waiting: Annotated[
        int,
        gauge("resources_still_telling", "Resources with changes that not every subscriber has taken yet."),
    ]
    published: Annotated[
        int, counter("publications", "Changes of resources that were committed and published.")
    ]
    told: Annotated[
        int, counter("changes_told", "Changes that subscribers took; several publications may be one change.")
    ]


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """The content and activity of the store. Sizes are bytes, durations seconds.

    A store is ``checked`` when the whole file was found sound at the opening or the last scrub. It is
    ``damaged`` when some records are damaged; it is served without them, and the first are named. An
    ``unchecked`` store is being scrubbed, or waits for that.
    """

    used_bytes: Annotated[
        int,
        gauge(
            "store_used_bytes", "Size of what is in the store; freed pages are used again and do not count."
        ),
    ]
    map_bytes: Annotated[
        int, gauge("store_quota_bytes", "How large the store may grow (max_size); writes stop at 95 % of it.")
    ]
    file_bytes: Annotated[int, gauge("store_file_bytes", "Length of the store's file, which never shrinks.")]
    disk_free: Annotated[
        int, gauge("disk_free_bytes", "Free space for this user on the disk that holds the store.")
    ]
    rows: Annotated[int, gauge("store_rows", "Rows in the store, of all tables.")]
    commits: Annotated[int, counter("commits", "Transactions committed to the store.")]
    works: Annotated[int, unexported("Commit units committed since opening.")]
    failures: Annotated[
        int, counter("commit_failures", "Commit units that the store refused or that failed.")
    ]
    last_commit_seconds: Annotated[float, unexported("Duration of the newest group, fsync included.")]
    max_commit_seconds: Annotated[float, unexported("Duration of the slowest group.")]
    scans: Annotated[
        int,
        gauge("store_scans", "Open snapshots of the store; each keeps pages from being reused."),
    ]
    integrity: Annotated[
        Literal["checked", "unchecked", "damaged"],
        gauge(
            "store_unchecked",
            "1 until the whole file of the store is known to be sound, by a scrub if need be.",
            one="unchecked",
        ),
    ] = "unchecked"
    former_format: Annotated[
        int, unexported("The former format until a health check reports it; else 0.")
    ] = 0
    damaged_records: Annotated[
        int,
        gauge("store_damaged_records", "Records known to differ from what was stored."),
    ] = 0
    damaged: Annotated[list[str], unexported("The names of the first damaged records.")] = field(
        default_factory=list
    )


class RelayStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Several processes on one folder, as this process sees them.

    Only the owner knows the ids of attached processes. ``silent_seconds`` are whole seconds.
    """

    role: Annotated[
        Literal["owner", "attached"],
        gauge(
            "owner",
            "1 in the process that owns the folder, 0 in one attached to it, whose figures of "
            "messages, actors, commits, subscriptions and store are the owner's.",
            one="owner",
            absent=1,
        ),
    ]
    owner_pid: Annotated[int, unexported("The process id of the owner; 0 while there is none.")]
    attached_pids: Annotated[list[int], gauge("attached", "Processes that are attached to this one.")]
    takeovers: Annotated[
        int,
        counter(
            "takeovers", "Times that the process which owns the folder changed while this one shared it."
        ),
    ]
    unanswered: Annotated[
        int, gauge("relayed_waiting", "Requests relayed by this process, or to it, that are not answered.")
    ] = 0
    oldest_seconds: Annotated[
        float,
        gauge("relayed_oldest_seconds", "Time for which the oldest request that this process relayed waits."),
    ] = 0.0
    silent_seconds: Annotated[
        int,
        gauge(
            "relay_silent_seconds",
            "Time without a sign of life from the owner, or at the owner from the most silent "
            "attached process.",
        ),
    ] = 0


class RuntimeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one runtime; an attached process has the owner's, a second old.

    Only a runtime that shares its folder has a ``relay``.
    """

    actors: ActorStatistics
    messages: MessageStatistics
    dispatcher: DispatcherStatistics
    commits: CommitStatistics
    bus: BusStatistics
    store: StoreStatistics
    rows_expired: Annotated[int, counter("rows_expired", "Stored rows removed because their time was over.")]
    relay: RelayStatistics | None = None
