"""The namespace roots that a search asks, and how it asks them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import (
    agent_namespace,
    below_root,
    is_below,
    memory_address,
    root_of,
    user_namespace,
)
from greenroom.actors.memories.recall.scatter_gather import (
    Gathered,
    Root,
    ask_each,
    end_of_asking,
    merge_hits,
)
from greenroom.actors.memories.requests.replies import RootSearchResult
from greenroom.actors.memories.requests.requests import FindMemories
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.runtime import ProcedureContext

MOST = 1_000
"""The most roots that one search asks."""
BATCH = 100
"""The number of roots after which only the best hits are kept."""


class Roots(NamedTuple):
    """The roots to ask.

    Attributes:
        ordered: The roots; of too many, the caller's own and the first by name.
        left_out: How many more are visible.
    """

    ordered: list[Root]
    left_out: int = 0

    @property
    def partial(self) -> str | None:
        """A sentence about the roots that are left out; None if all are here."""
        if not self.left_out:
            return None
        return (
            f"of more namespaces than one search asks the first {len(self.ordered):,} by name were searched; "
            f"{self.left_out:,} others may have more: name a namespace"
        )


async def roots_below(context: ProcedureContext, below: str | None) -> list[Root]:
    """Return all visible roots, in the order of their names.

    The caller's own are always among them, because the directory lags behind writes in progress.
    """
    whole = below_root(below)
    if whole is not None and policy.may_write_namespace(context.principal, whole):
        found = {root_of(whole)}
    else:
        found = {*await context.query(ListNamespaces(prefix=below))}
        own = (user_namespace(context.principal), agent_namespace(context.principal))
        found |= {name for name in own if below is None or is_below(name, below) or is_below(below, name)}
    return [Root(name, memory_address(name)) for name in sorted(found)]


async def roots_to_ask(context: ProcedureContext, below: str | None) -> Roots:
    """Return the roots that one search asks."""
    found = await roots_below(context, below)
    if len(found) > MOST:
        own = {user_namespace(context.principal), agent_namespace(context.principal)}
        found.sort(key=lambda root: root.name not in own)
    return Roots(found[:MOST], max(0, len(found) - MOST))


async def search_roots(
    context: ProcedureContext, roots: list[Root], message: FindMemories
) -> Gathered[RootSearchResult]:
    """Search all roots; of many, keep only the best hits.

    Raises:
        GreenroomError: As `ask_each`.
    """
    end = end_of_asking()
    gathered = await ask_each(context, roots[:BATCH], message, end)
    for start in range(BATCH, len(roots), BATCH):
        more = await ask_each(context, roots[start : start + BATCH], message, end)
        gathered = Gathered(
            _only_best([*gathered.found, *more.found], message),
            gathered.failed + more.failed,
            gathered.error or more.error,
        )
    return gathered


def _only_best(found: list[RootSearchResult], message: FindMemories) -> list[RootSearchResult]:
    best = merge_hits(found, message.quality_boost)[: message.limit]
    kept = {hit.memory.memory_id for hit in best}
    return [
        msgspec.structs.replace(each, hits=[hit for hit in each.hits if hit.memory.memory_id in kept])
        for each in found
    ]
