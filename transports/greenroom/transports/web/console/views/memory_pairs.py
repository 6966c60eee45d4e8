"""Pairs of memories, with their differences and what a merge would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from greenroom.actors.memories.requests.review import ListedMemory, MemoryPair
from greenroom.transports.web.console.views.text_differences import Stretch, differences


class Kept(NamedTuple):
    """A memory of a pair, and what it gets by a merge.

    Attributes:
        gains: The tags that only the other one has.
        raised: The importance that it gets; None if its own is as high.
    """

    memory: ListedMemory
    other: ListedMemory
    gains: list[str]
    raised: float | None


class ShownPair(NamedTuple):
    """A pair, with the differences of its texts if they are short enough."""

    newer: Kept
    older: Kept
    similarity: float
    stretches: list[Stretch] | None


def shown_pairs(pairs: Sequence[MemoryPair]) -> list[ShownPair]:
    """Return pairs as they are shown.

    A pair whose memories other pairs before it connect is left out: of three alike ones there are two pairs.
    """
    found: list[ShownPair] = []
    groups: dict[str, set[str]] = {}
    for pair in pairs:
        newer, older = pair.newer.memory_id, pair.older.memory_id
        if newer in groups.get(older, ()):
            continue
        group = groups.get(newer, {newer}) | groups.get(older, {older})
        groups.update(dict.fromkeys(group, group))
        found.append(
            ShownPair(
                _to_kept(pair.newer, pair.older),
                _to_kept(pair.older, pair.newer),
                pair.similarity,
                differences(pair.older.preview, pair.newer.preview),
            )
        )
    return found


def _to_kept(memory: ListedMemory, other: ListedMemory) -> Kept:
    gains = [tag for tag in other.tags if tag not in memory.tags]
    raised = other.importance if other.importance > memory.importance else None
    return Kept(memory, other, gains, raised)
