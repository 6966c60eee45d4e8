"""The memories of all roots on one map, in one order, as columns. Needs numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.app.map.layout import Floats, Places
from greenroom.actors.memories.requests.map_replies import MapOrder, MappedMemory, MappedRoot

LARGEST: Final = 10.0
"""The size of the largest nodes."""


class Memories(NamedTuple):
    """The memories of a map.

    Attributes:
        nodes: For each root, the map index of each of its memories.
    """

    shown: list[MappedMemory]
    uses: npt.NDArray[np.int64]
    ratings: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]
    nodes: list[Places]


class Vectors(NamedTuple):
    """Unit vectors, one per row, and for each vector the index of its memory."""

    space: str
    nodes: Places
    values: Floats


def in_order(roots: Sequence[MappedRoot], order: MapOrder) -> Memories:
    """Return the memories of all roots: the largest first, or the newest."""
    memories = [memory for root in roots for memory in root.memories]
    uses = np.array([uses for root in roots for uses in root.uses], np.int64)
    ratings = np.array([rating for root in roots for rating in root.ratings], np.float64)
    sizes = np.minimum(LARGEST, 1.5 + np.log2(1 + uses) + np.maximum(0, ratings))
    created = np.array([memory.created_at for memory in memories], np.int64)
    ordered = np.lexsort((-created, -sizes) if order == "used" else (-created,))
    node = np.empty(len(memories), np.intp)
    node[ordered] = np.arange(len(memories))
    ends = np.cumsum([len(root.memories) for root in roots])[:-1]
    return Memories(
        [memories[place] for place in ordered.tolist()],
        uses[ordered],
        ratings[ordered],
        sizes[ordered],
        np.split(node, ends) if roots else [],
    )


def vectors_of(roots: Sequence[MappedRoot], memories: Memories, notes: list[str]) -> Vectors | None:
    """Return the vectors of the embedding space that most memories have."""
    spaces: Counter[str] = Counter()
    for root in roots:
        if root.vectors is not None:
            spaces[root.vectors.space] += len(root.vectors.places)
    if not spaces:
        return None
    (space, count), *rest = spaces.most_common()
    if rest:
        notes.append(f"{sum(spaces.values()) - count} memories have vectors of another embedder only")
    values, nodes = [], []
    for root, its_nodes in zip(roots, memories.nodes, strict=True):
        if root.vectors is not None and root.vectors.space == space:
            values.append(np.frombuffer(root.vectors.values, np.int8).reshape(-1, root.vectors.dimensions))
            nodes.append(its_nodes[root.vectors.places])
    whole = np.concatenate(values).astype(np.float32)
    whole /= np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), np.float32(1))
    every = np.concatenate(nodes)
    order = np.argsort(every)  # independent of the order of the replies
    return Vectors(space, every[order], whole[order])
