"""Find memories that are outdated, although no link shows it.

A memory that another one names in ``supersedes`` is never found. For the others, their words decide, as they
do in a search for the present state; see `ranking.supersession`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.actors.core.validation.times import to_microseconds
from greenroom.actors.memories.requests.replies import FoundMemory

LIKELY: Final = 0.5
"""A newer memory that replaces another one with this probability comes before it; `SURELY`, in its place.

Of ten linked pairs in five worlds of `bench/worlds`, the first one finds eight, and three that are no pairs.
"""
SURELY: Final = 0.75


def find_replaced(hits: Sequence[FoundMemory], least: float = LIKELY) -> dict[str, FoundMemory]:
    """Return, for the id of each outdated memory among some, the memory that replaced it."""
    from greenroom.actors.search.ranking.supersession import (  # noqa: PLC0415 - needs numpy, loaded by a search
        LONGEST,
        Statement,
        estimate_supersessions,
        find_partners,
    )

    compared = [hit for hit in hits if len(hit.memory.text) <= LONGEST]
    if len(compared) < 2:  # noqa: PLR2004 - a pair
        return {}
    memories = [hit.memory for hit in compared]
    statements = [
        Statement.read(
            memory.text,
            memory.tags,
            to_microseconds(memory.created_at),
            is_imported=isinstance(memory.imported, str),
        )
        for memory in memories
    ]
    partners, parts = find_partners(estimate_supersessions(statements, None, "words"))
    return {
        memory.memory_id: compared[newer]
        for memory, newer, part in zip(memories, partners.tolist(), parts.tolist(), strict=True)
        if part >= least
    }
