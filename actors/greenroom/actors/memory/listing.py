"""Listing memories, newest update first."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec import UNSET

from greenroom.actors.base import budget, cursor
from greenroom.actors.memory import upgrade
from greenroom.actors.memory.filters import ALL, EntryFilter, newest_first
from greenroom.actors.memory.repository import MemoryRepository
from greenroom.actors.memory.views import shown
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas import memory_replies as replies
from greenroom.runtime import Context, Slices

PAGE_BYTES = 1_048_576
"""Contents of one page, about; one more memory may go beyond it."""
BYTES_A_MEMORY = 500
"""What the rest of a memory counts for besides its content."""


def page(
    repository: MemoryRepository, request: requests.ListMemories, context: Context
) -> Slices[replies.MemoryPage]:
    """Answer a page; a memory that is updated meanwhile moves to the front."""
    yield from upgrade.finish(repository, context)
    filters = request.filters or ALL
    digest = blake2b(msgspec.json.encode(filters), digest_size=8).hexdigest()
    binding = f"memories {request.namespace} {digest}"
    highest = None
    if request.cursor is not None:
        highest = int.from_bytes(cursor.decode(request.cursor, binding)) - 1
    fitting = EntryFilter(repository, context, filters, request.namespace)
    views: list[replies.MemoryView] = []
    updates: list[int] = []
    size, has_more = 0, False
    for stored in newest_first(context, highest):
        if fitting.fits(stored.entry):
            size += stored.entry.value_size + BYTES_A_MEMORY
            if len(views) == request.limit or (views and size > PAGE_BYTES):
                has_more = True
                break
            views.append((yield from shown(repository, context, stored.entry)))
            updates.append(stored.entry.update)
        if context.should_yield():
            yield
    cut = budget.take_in_order(
        views, request.max_tokens, lambda each: {"memory_id": each.memory_id, "key": each.key}
    )
    has_more = has_more or cut.passed < len(views)
    return replies.MemoryPage(
        memories=cut.kept,
        count=len(cut.kept),
        next_cursor=cursor.encode(updates[cut.passed - 1].to_bytes(8), binding) if has_more else None,
        imitates=repository.imitates if views else UNSET,
        tokens=cut.tokens,
        left_out=cut.left_out,
        over_budget=cut.over_budget,
    )
