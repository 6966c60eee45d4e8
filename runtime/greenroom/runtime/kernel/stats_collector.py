"""What the parts of a runtime say of themselves, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from greenroom.runtime.base.statistics import (
    ActorStatistics,
    DispatcherStatistics,
    MessageStatistics,
    RuntimeStatistics,
)

if TYPE_CHECKING:
    from greenroom.runtime.kernel.expiry import Janitor
    from greenroom.runtime.kernel.group_commit import Pipeline
    from greenroom.runtime.kernel.kernel import Kernel
    from greenroom.runtime.kernel.outbox import Deliveries
    from greenroom.runtime.kernel.pubsub import Bus
    from greenroom.runtime.store.store import Store


def runtime_statistics(
    kernel: Kernel, deliveries: Deliveries, pipeline: Pipeline, bus: Bus, store: Store, janitor: Janitor
) -> RuntimeStatistics:
    """Return the figures of a runtime with these parts.

    Raises:
        StoreError: the store is closed, or this process was forked from the one that opened it.
    """
    counts, residents = kernel.counts, kernel.residents
    mailboxes = kernel.dispatcher.mailboxes()
    return RuntimeStatistics(
        actors=ActorStatistics(
            resident=len(residents),
            resident_bytes=residents.bytes,
            activations=residents.activations,
            passivations=residents.passivations,
            evictions=residents.evictions,
            restarts=counts["restarts"],
            set_aside=[str(address) for address in kernel.failures.set_aside],
        ),
        messages=MessageStatistics(
            waiting=kernel.waiting,
            queued=sum(mailboxes),
            deepest=max(mailboxes, default=0),
            handled=counts["handled"],
            refused=counts["refused"],
            failed=counts["failed"],
            repeated=counts["repeated"],
            expired=counts["expired"],
            abandoned=counts["abandoned"],
            overloaded=counts["overloaded"],
            not_committed=counts["not_committed"],
            dispensed_with=counts["dispensed_with"],
            timers_fired=deliveries.fired,
            dead_letters=deliveries.dead_letters,
        ),
        dispatcher=DispatcherStatistics(
            ready=len(kernel.dispatcher), longest_slice_ms=round(kernel.dispatcher.longest_slice * 1e3, 3)
        ),
        commits=pipeline.statistics(),
        bus=bus.statistics(),
        store=store.statistics(),
        rows_expired=janitor.removed,
    )
