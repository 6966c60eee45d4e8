"""Count mentions of single entities and of pairs. Import this module late: it loads numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from greenroom.actors.knowledge.corpora.storage.entity_records import EntityRecord

_ROW = np.dtype([("chunk", "<i8"), ("match", "<u4"), ("count", "<u4")])


class MentionCounts:
    """The mentions of a corpus as columns, with one row for each chunk and entity.

    Args:
        mentions: The records of documents, see `entity_records.pack_mentions`.
        entities: The entities by their match numbers; other mentions are ignored.
        matches: A number that is larger than any match number.
    """

    def __init__(self, mentions: Iterable[bytes], entities: Mapping[int, EntityRecord], matches: int) -> None:
        rows = np.frombuffer(b"".join(mentions), _ROW)
        owners = np.zeros(matches, np.int64)
        for match, entity in entities.items():
            owners[match] = entity.number
        rows = rows[rows["match"] < matches]
        numbers = owners[rows["match"]]
        kept = numbers > 0
        self._entities: NDArray[np.int64] = numbers[kept]
        self._chunks: NDArray[np.int64] = rows["chunk"][kept].astype(np.int64)
        self._counts: NDArray[np.int64] = rows["count"][kept].astype(np.int64)
        begins = np.ones(len(self._chunks), np.bool_)
        begins[1:] = self._chunks[1:] != self._chunks[:-1]  # rows of a chunk stand together
        self._starts: NDArray[np.int64] = np.append(np.flatnonzero(begins), len(self._chunks))
        self._groups: NDArray[np.int64] = np.cumsum(begins) - 1
        self._totals: Any = np.bincount(self._entities, weights=self._counts)

    def mentions(self, entity: int) -> int:
        """Return how often an entity is mentioned."""
        return int(self._totals[entity]) if entity < len(self._totals) else 0

    def chunks(self, entity: int, most: int) -> list[int]:
        """Return the chunks with the most mentions of an entity."""
        rows = self._rows(entity)
        best = np.lexsort((self._chunks[rows], -self._counts[rows]))[:most]
        found: list[int] = self._chunks[rows[best]].tolist()
        return found

    def together(self, entity: int, most: int, examples: int) -> tuple[int, list[tuple[int, int, list[int]]]]:
        """Return the number of entities that chunks mention with an entity, and the most frequent.

        For each of the most frequent: its number, the count of chunks with both, and some of these chunks.
        """
        groups = self._groups[self._rows(entity)]
        first = self._starts[groups]
        sizes = self._starts[groups + 1] - first
        before = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + np.repeat(first - before, sizes)
        others = self._entities[rows]
        chunks = self._chunks[rows]
        counted = np.bincount(others, minlength=entity + 1)
        counted[entity] = 0
        found = np.flatnonzero(counted)
        best = found[np.lexsort((found, -counted[found]))][:most]
        return len(found), [
            (number, int(counted[number]), chunks[others == number][:examples].tolist())
            for number in best.tolist()
        ]

    def _rows(self, entity: int) -> NDArray[np.int64]:
        return np.flatnonzero(self._entities == entity)
