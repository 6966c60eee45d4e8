"""The quality of a memory: 0-1, of what is known of it apart from any query. Needs numpy.

    quality = 0.4 importance + 0.2 use + 0.1 recent use + 0.3 rating

Importance is what the writer gave. Use grows with each use and is 0.63 after five. Recent use halves
every three weeks. The rating is the mean of all, from -1 (0) over none (0.5) to 1 (1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from greenroom.actors.core.validation.times import DAY

if TYPE_CHECKING:
    from greenroom.actors.search.index.corpus import Corpus

    Floats = npt.NDArray[np.float32]

WEIGHTS = {"importance": 0.4, "use": 0.2, "recent_use": 0.1, "rating": 0.3}
_SOME_USES = 5.0
_RECENT_DAYS = 30.0


def quality_of(corpus: Corpus, rows: npt.NDArray[np.intp], now: int) -> tuple[Floats, dict[str, Floats]]:
    """Return the quality of rows of the index at a time (microseconds since 1970), and its parts."""
    uses = corpus.uses[rows].astype(np.float32)
    days = np.maximum(0, now - corpus.last_used[rows]).astype(np.float32) / np.float32(DAY)
    recent: Floats = np.exp(-days / np.float32(_RECENT_DAYS), dtype=np.float32)
    parts: dict[str, Floats] = {
        "importance": corpus.importance[rows],
        "use": 1 - np.exp(-uses / np.float32(_SOME_USES)),
        "recent_use": np.where(uses > 0, recent, np.float32(0)),
        "rating": (corpus.rating[rows] + np.float32(1)) / np.float32(2),
    }
    total = np.zeros(len(rows), np.float32)
    for name, weight in WEIGHTS.items():
        parts[name] = np.float32(weight) * parts[name]
        total += parts[name]
    return total, parts
