"""The statistics of all parts of a runtime."""

from __future__ import annotations

from greenroom.runtime.base.statistics import (
    ActorStatistics,
    DispatcherStatistics,
    MessageStatistics,
    RuntimeStatistics,
)
from greenroom.runtime.kernel.expiry import ExpirySweeper
from greenroom.runtime.kernel.group_commit import GroupCommit
from greenroom.runtime.kernel.kernel import Kernel
from greenroom.runtime.kernel.outbox import Outbox
from greenroom.runtime.kernel.pubsub import Bus
from greenroom.runtime.store.store import Store


def runtime_statistics(
    kernel: Kernel, outbox: Outbox, commits: GroupCommit, bus: Bus, store: Store, sweeper: ExpirySweeper
) -> RuntimeStatistics:
    """Return the statistics of a runtime with these parts."""
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
            set_aside=[str(address) for address in kernel.restart_history.quarantined],
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
            timers_fired=outbox.fired,
            dead_letters=outbox.dead_letters,
        ),
        dispatcher=DispatcherStatistics(
            ready=len(kernel.dispatcher), longest_slice_ms=round(kernel.dispatcher.longest_slice * 1e3, 3)
        ),
        commits=commits.statistics(),
        bus=bus.statistics(),
        store=store.statistics(),
        rows_expired=sweeper.removed,
    )
