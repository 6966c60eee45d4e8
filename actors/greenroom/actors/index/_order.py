"""Who stands next to whom in a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from greenroom.actors.index._document import NO_POSITION

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.int32]


class Neighbours(NamedTuple):
    """By row, -1 for none: the row before and after it in its conversation, and its place there, from 0."""

    previous: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]


def conversation_order(conversation: Rows, position: npt.NDArray[np.int64]) -> Rows:
    """Return the rows that belong to a conversation, by conversation, position and row.

    Rows without a position come after those with one.
    """
    key = position.copy()
    key[key == NO_POSITION] = np.iinfo(np.int64).max
    order = np.lexsort((key, conversation)).astype(np.int32)
    return order[np.searchsorted(conversation[order], 0) :].astype(np.int32)


def neighbours(order: Rows, conversation: Rows, mask: npt.NDArray[np.bool_]) -> Neighbours:
    """Return the neighbours among the rows of ``mask`` only.

    Args:
        order: All rows as `conversation_order` returns them.
        conversation: The number of each row's conversation.
        mask: The rows that exist for this purpose.
    """
    size = len(conversation)
    previous, following, place = (np.full(size, -1, np.int32) for _ in range(3))
    seen = order[mask[order]]
    if len(seen):
        group = conversation[seen]
        same = group[1:] == group[:-1]
        previous[seen[1:][same]] = seen[:-1][same]
        following[seen[:-1][same]] = seen[1:][same]
        index = np.arange(len(seen), dtype=np.int32)
        first = np.where(np.concatenate(([True], ~same)), index, 0)
        place[seen] = index - np.maximum.accumulate(first)
    return Neighbours(previous, following, place)
