"""Opening a runtime with everything that sessions and memory need."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from greenroom.actors import _audit
from greenroom.actors._policy import Heard
from greenroom.actors._principal import Principal
from greenroom.actors._refusals import MAX_VALUE_BYTES
from greenroom.actors._times import DAY
from greenroom.actors.directory import _rows as directory
from greenroom.actors.directory._query import ListSessions
from greenroom.actors.memory import _directory as namespaces
from greenroom.actors.memory._actor import MemoryActor
from greenroom.actors.resources._listing import CompleteResource, ListResources
from greenroom.actors.session._actor import SessionActor
from greenroom.runtime import Index, RuntimeOptions, open_shared_runtime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from greenroom.runtime import Actor, Clock, Committer, Group, Query, RecordCodec, SharedRuntime

CONTENT_LIMIT = 10_000
AUDIT_DAYS = 90


@asynccontextmanager
async def open_greenroom(
    path: str | Path,
    *,
    content_limit: int = CONTENT_LIMIT,
    audit_days: int = AUDIT_DAYS,
    actors: Iterable[type[Actor]] = (),
    indexes: Iterable[Index] = (),
    queries: Iterable[type[Query[Any]]] = (),
    groups: Iterable[Group] = (),
    options: RuntimeOptions | None = None,
    clock: Clock | None = None,
    committer: Committer | None = None,
    codec: RecordCodec | None = None,
) -> AsyncIterator[SharedRuntime]:
    """Open a runtime with shared sessions and agent memory, inside an ``async with`` block.

    Ask it through an `Agent`. Several processes may have the same folder open: one owns it, the others
    relay to it, and when it ends another one takes over; `SharedRuntime.role` says which this one is.

    Args:
        path: The folder of the data.
        content_limit: The most characters that a message may have, up to 1,048,576.
        audit_days: How long audit records are kept, in days.
        actors: Actor classes of one's own besides.
        indexes: Shared indexes of one's own besides.
        queries: Queries of one's own besides.
        groups: As in `open_runtime`.
        options: As in `open_runtime`.
        clock: As in `open_runtime`.
        committer: As in `open_runtime`.
        codec: As in `open_runtime`.

    Raises:
        ValueError: a limit is out of range.
        StoreError: as `open_shared_runtime`.
    """
    if not 1 <= content_limit <= MAX_VALUE_BYTES:
        raise ValueError(f"content_limit is {content_limit} and must be between 1 and {MAX_VALUE_BYTES}")
    if audit_days < 1:
        raise ValueError(f"audit_days is {audit_days} and must be at least 1")
    configured = type("SessionActor", (SessionActor,), {"content_limit": content_limit})
    async with open_shared_runtime(
        path,
        principal_type=Principal,
        label_type=Heard,
        actors=[configured, MemoryActor, *actors],
        indexes=[
            Index(directory.INDEX),
            Index(namespaces.INDEX),
            Index(_audit.INDEX, ttl=audit_days * DAY),
            *indexes,
        ],
        queries=[
            ListSessions,
            ListResources,
            CompleteResource,
            namespaces.ListNamespaces,
            namespaces.RootOfMemory,
            *queries,
        ],
        groups=groups,
        options=options,
        clock=clock,
        committer=committer,
        codec=codec,
    ) as runtime:
        yield runtime
