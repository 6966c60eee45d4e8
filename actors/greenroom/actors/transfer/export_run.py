"""The run of an export: the pages of all namespaces that the caller may see, one after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from greenroom.actors.audit.actor import tell
from greenroom.actors.auth import namespaces as names
from greenroom.actors.auth.principal import Principal
from greenroom.actors.memory.directory import ListNamespaces
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.actors.schemas.transfer import ExportPage
from greenroom.actors.transfer.pending_imports import wait_written
from greenroom.runtime import RuntimeClient

Progress = Callable[[int, int, int], None]
"""Called with how many memories are exported, from how many roots, of how many."""


async def exported(
    runtime: RuntimeClient,
    principal: Principal,
    namespace: str | None,
    filters: MemoryFilters | None = None,
    progress: Progress = lambda _memories, _roots, _of: None,
    unwritten: list[str] | None = None,
) -> AsyncGenerator[list[msgspec.Raw], None]:
    """Yield the memories that the caller may see, all or below leading segments, as JSON of lines, by pages.

    Namespaces come in the order of their names, the memories of each in the order of their creation. What
    is written meanwhile may be in it or not; nothing is in it twice. Who leaves it closes it (`aclosing`).
    An import that is decided is waited for, as long as it goes on: no part of it is taken for the whole.

    Args:
        runtime: Where the actors are.
        principal: Who exports.
        namespace: Below which leading segments.
        filters: Only what fits.
        progress: Hears how far it is.
        unwritten: Gets the roots where a decided import is not written, since it does not go on.

    Raises:
        GreenroomError: as `RuntimeClient.ask`.
    """
    listing = ListNamespaces(prefix=namespace)
    left = await wait_written(
        runtime, principal, namespace, await runtime.query(listing, principal=principal)
    )
    if unwritten is not None:
        unwritten += left
    roots = sorted(await runtime.query(listing, principal=principal))
    if filters is not None:
        filters = msgspec.structs.replace(filters, superseded=True)
    count = size = 0
    try:
        for number, root in enumerate(roots):
            below = names.below_root(namespace) or root
            start: int | None = 0
            while start is not None:
                asked = ExportPage(namespace=below, filters=filters, start=start)
                page: Any = await runtime.ask(names.memory_address(root), asked, principal=principal)
                count += len(page.lines)
                size += sum(len(bytes(line)) for line in page.lines)
                start = page.next
                progress(count, number + (start is None), len(roots))
                if page.lines:
                    yield page.lines
    finally:  # also what was broken off has been handed out
        tell(runtime, "export_memories", principal=principal, namespace=namespace, memories=count, bytes=size)
