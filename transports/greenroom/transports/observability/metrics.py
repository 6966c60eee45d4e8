"""The metrics of a runtime for Prometheus: the whole list, with their names and what they mean.

Names keep to Prometheus' conventions: base units, and `_total` behind what only grows, which
the exposition adds by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from greenroom.runtime import Distribution, RuntimeStatistics


class Metric(NamedTuple):
    """One number: its name, what it means, and how it is read.

    Attributes:
        name: Its name without the suffix that a counter gets.
        help: What it means, on one line.
        read: Takes it from a runtime's statistics.
    """

    name: str
    help: str
    read: Callable[[RuntimeStatistics], float]


class HistogramMetric(NamedTuple):
    """One distribution: its name, what its values mean, and how it is read.

    Attributes:
        name: Its name, with the unit of its values.
        help: What its values mean, on one line.
        read: Takes it from a runtime's statistics.
    """

    name: str
    help: str
    read: Callable[[RuntimeStatistics], Distribution]


COUNTERS: Final = (
    Metric(
        "greenroom_messages_handled",
        "Messages to actors that ended with a reply or a refusal.",
        lambda now: now.messages.handled,
    ),
    Metric(
        "greenroom_messages_refused",
        "Of the handled messages, those that an actor refused.",
        lambda now: now.messages.refused,
    ),
    Metric(
        "greenroom_messages_failed",
        "Messages whose handler raised an exception: faults in the program; the log has the traceback.",
        lambda now: now.messages.failed,
    ),
    Metric(
        "greenroom_messages_repeated",
        "Messages answered with the stored answer to the same idempotent request.",
        lambda now: now.messages.repeated,
    ),
    Metric(
        "greenroom_messages_expired",
        "Messages that were not begun before their deadline.",
        lambda now: now.messages.expired,
    ),
    Metric(
        "greenroom_messages_abandoned",
        "Messages given up by their asker.",
        lambda now: now.messages.abandoned,
    ),
    Metric(
        "greenroom_messages_overloaded",
        "Messages that a full mailbox did not take.",
        lambda now: now.messages.overloaded,
    ),
    Metric(
        "greenroom_messages_not_committed",
        "Messages that were handled and whose effects found no room in the store.",
        lambda now: now.messages.not_committed,
    ),
    Metric(
        "greenroom_messages_dispensed_with",
        "Messages answered although their audit or the like found no room in the store.",
        lambda now: now.messages.dispensed_with,
    ),
    Metric(
        "greenroom_notes_dropped",
        "Audit records of reads and denials for which there was no room.",
        lambda now: now.commits.dropped_notes,
    ),
    Metric("greenroom_timers_fired", "Timers delivered to actors.", lambda now: now.messages.timers_fired),
    Metric(
        "greenroom_dead_letters",
        "Tells and timers that could not be handled; the log says which and why.",
        lambda now: now.messages.dead_letters,
    ),
    Metric(
        "greenroom_actor_activations",
        "Actors loaded from the store.",
        lambda now: now.actors.activations,
    ),
    Metric(
        "greenroom_actor_passivations",
        "Actors that left memory because they were idle or memory was short.",
        lambda now: now.actors.passivations,
    ),
    Metric(
        "greenroom_actor_evictions",
        "Of the passivated actors, those that left because memory was short.",
        lambda now: now.actors.evictions,
    ),
    Metric(
        "greenroom_actor_restarts",
        "Actors rebuilt from the store after a failure, their own or a sibling's.",
        lambda now: now.actors.restarts,
    ),
    Metric("greenroom_commits", "Transactions committed to the store.", lambda now: now.store.commits),
    Metric(
        "greenroom_commit_failures",
        "Works that the store refused or that failed.",
        lambda now: now.store.failures,
    ),
    Metric(
        "greenroom_publications",
        "Changes of resources that were committed and published.",
        lambda now: now.bus.published,
    ),
    Metric(
        "greenroom_changes_told",
        "Changes that subscribers took; several publications may be one change.",
        lambda now: now.bus.told,
    ),
    Metric(
        "greenroom_rows_expired",
        "Stored rows removed because their time was over.",
        lambda now: now.rows_expired,
    ),
    Metric(
        "greenroom_takeovers",
        "Times that the process which owns the folder changed while this one shared it.",
        lambda now: 0 if now.relay is None else now.relay.takeovers,
    ),
)
"""What only grows, since the server was started."""

GAUGES: Final = (
    Metric(
        "greenroom_messages_waiting",
        "Messages that were accepted and are not over: in mailboxes, at work, or waiting for their commit.",
        lambda now: now.messages.waiting,
    ),
    Metric(
        "greenroom_mailbox_messages",
        "Messages in the mailboxes of all actors together.",
        lambda now: now.messages.queued,
    ),
    Metric(
        "greenroom_mailbox_deepest_messages",
        "Messages in the fullest mailbox.",
        lambda now: now.messages.deepest,
    ),
    Metric("greenroom_actors_resident", "Actors in memory.", lambda now: now.actors.resident),
    Metric(
        "greenroom_actors_resident_bytes",
        "Estimated size of the actors in memory.",
        lambda now: now.actors.resident_bytes,
    ),
    Metric(
        "greenroom_actors_set_aside",
        "Actors that failed too often and answer with an error until they are readmitted.",
        lambda now: len(now.actors.set_aside),
    ),
    Metric(
        "greenroom_actors_ready",
        "Actors that wait for their turn on the event loop.",
        lambda now: now.dispatcher.ready,
    ),
    Metric(
        "greenroom_longest_slice_seconds",
        "Longest time since the start for which actors or a query held the event loop.",
        lambda now: now.dispatcher.longest_slice_ms / 1000,
    ),
    Metric(
        "greenroom_works_collected",
        "Works in the group that waits for its commit.",
        lambda now: now.commits.collected,
    ),
    Metric(
        "greenroom_works_in_flight",
        "Works in the group that is being committed.",
        lambda now: now.commits.in_flight,
    ),
    Metric(
        "greenroom_subscribers",
        "Subscribers to changes of resources.",
        lambda now: now.bus.subscribers,
    ),
    Metric(
        "greenroom_subscriptions",
        "Resources subscribed to, of all subscribers together.",
        lambda now: now.bus.subscriptions,
    ),
    Metric(
        "greenroom_resources_subscribed",
        "Different resources with a subscriber.",
        lambda now: now.bus.topics,
    ),
    Metric(
        "greenroom_resources_still_telling",
        "Resources with changes that not every subscriber was told of yet.",
        lambda now: now.bus.waiting,
    ),
    Metric(
        "greenroom_store_used_bytes",
        "Size of what is in the store; freed pages are used again and do not count.",
        lambda now: now.store.used_bytes,
    ),
    Metric(
        "greenroom_store_quota_bytes",
        "How large the store may grow (max_size); writes stop at 95 % of it.",
        lambda now: now.store.map_bytes,
    ),
    Metric(
        "greenroom_store_file_bytes",
        "Length of the store's file, which never shrinks.",
        lambda now: now.store.file_bytes,
    ),
    Metric(
        "greenroom_disk_free_bytes",
        "Free space for this user on the disk that holds the store.",
        lambda now: now.store.disk_free,
    ),
    Metric("greenroom_store_rows", "Rows in the store, of all tables.", lambda now: now.store.rows),
    Metric(
        "greenroom_store_scans",
        "Readings of the store that are open; each keeps pages from being used again.",
        lambda now: now.store.scans,
    ),
    Metric(
        "greenroom_store_unchecked",
        "1 while it is not known that all of the store's file is sound, until a scrub has read it.",
        lambda now: int(now.store.integrity == "unchecked"),
    ),
    Metric(
        "greenroom_owner",
        "1 in the process that owns the folder, 0 in one attached to it, whose figures of messages, actors, "
        "commits, subscriptions and store are the owner's.",
        lambda now: int(now.relay is None or now.relay.role == "owner"),
    ),
    Metric(
        "greenroom_attached",
        "Processes that are attached to this one.",
        lambda now: 0 if now.relay is None else len(now.relay.attached_pids),
    ),
    Metric(
        "greenroom_relayed_waiting",
        "Requests relayed by this process, or to it, that are not answered.",
        lambda now: 0 if now.relay is None else now.relay.unanswered,
    ),
    Metric(
        "greenroom_relayed_oldest_seconds",
        "Time for which the oldest request that this process relayed waits.",
        lambda now: 0 if now.relay is None else now.relay.oldest_seconds,
    ),
    Metric(
        "greenroom_relay_silent_seconds",
        "Time without a sign of life from the owner, or at the owner from the most silent attached process.",
        lambda now: 0 if now.relay is None else now.relay.silent_seconds,
    ),
)
"""What is so at this moment."""

HISTOGRAMS: Final = (
    HistogramMetric(
        "greenroom_commit_works",
        "Works, each the effects of one message, that were committed together.",
        lambda now: now.commits.group_works,
    ),
    HistogramMetric(
        "greenroom_commit_seconds",
        "Time to commit a group of works, fsync included.",
        lambda now: now.commits.group_seconds,
    ),
    HistogramMetric(
        "greenroom_fsync_seconds",
        "Of a commit, the time for which the disk was waited for.",
        lambda now: now.commits.sync_seconds,
    ),
)
"""What is distributed, since the server was started."""
