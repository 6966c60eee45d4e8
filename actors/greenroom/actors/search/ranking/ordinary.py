"""Nearness: how much nearer a query is than ordinary prompts are. Needs numpy.

Some texts are near to everything that people write, and in a large store something is near by chance. So a
cosine alone does not tell an answer from noise. A list of ordinary prompts in several languages, which
concern no project, shows what chance brings:

    nearness = (cosine - mean of the ordinary prompts' cosines) / their standard deviation

The mean and the deviation belong to the text. For each ordinary prompt, the nearness of the nearest text
shows how near a prompt comes that has no answer in this very store.

`bench.ordinary` makes the vectors of the prompts for MiniLM anew; those of the word vectors are quickly made.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from greenroom.actors.search.embedding import rows as spaces
from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.ranking.rank import Ranked
from greenroom.actors.search.ranking.view import Floats, Mask, View
from greenroom.runtime import Slices

FOLDER: Final = Path(__file__).parent / "ordinary_prompts"
PROMPTS: Final = FOLDER / "prompts.txt"
VECTORS: Final = FOLDER / "minilm.safetensors"
MOST: Final = 1_000
"""At most this many texts are compared with the ordinary prompts; of more, some evenly spread ones."""
_BLOCK: Final = 32
_EPSILON: Final = 1e-6


class Near(NamedTuple):
    """How near a query is to rows, and how near ordinary prompts come.

    Attributes:
        by_place: The nearness of ranked rows, by their place; rows without a vector have none.
        ordinary: For each ordinary prompt, the nearness of the row that is nearest to it.
        share: The part of the rows that ``ordinary`` is about.
    """

    by_place: Mapping[int, float]
    ordinary: Sequence[float]
    share: float


NOT_COMPARED: Final = Near({}, (), 1.0)


class _Ordinary(NamedTuple):
    rows: Mask
    best: list[float]
    share: float


@functools.cache
def prompts() -> tuple[str, ...]:
    """Return the ordinary prompts."""
    return tuple(PROMPTS.read_text("utf-8").splitlines())


@functools.cache
def vectors_of_prompts(space: str) -> Floats | None:
    """Return the unit vectors of the ordinary prompts; None if the space has none."""
    if space == spaces.STATIC:
        from greenroom.actors.search.embedding.models.static import load_static  # noqa: PLC0415 - loads a file

        made = load_static().embed(prompts())
        return _unit(np.stack([np.frombuffer(each.values, np.int8) for each in made]))
    found = read_tensors(VECTORS).get(space)
    return None if found is None else _unit(found)


def compare_with_ordinary(
    view: View, space: str, wanted: Mask, ranked: Ranked, places: npt.NDArray[np.intp]
) -> Slices[Near]:
    """Compare a query with ordinary prompts, at ranked places and among the wanted rows."""
    prompts_there, found = vectors_of_prompts(space), view.corpus.vectors(space)
    if prompts_there is None or found is None or "meaning" not in ranked.signals:
        return NOT_COMPARED
    values, _, has = found
    chosen = places[has[ranked.rows[places]]]
    _, mean, deviation = _compare(values[ranked.rows[chosen]], prompts_there)
    near = (ranked.signals["meaning"][chosen] - mean) / deviation
    yield
    known = yield from _find_ordinary(view, space, wanted & view.visible & has, prompts_there)
    return Near(dict(zip(chosen.tolist(), near.tolist(), strict=True)), known.best, known.share)


def _find_ordinary(view: View, space: str, mask: Mask, ordinary: Floats) -> Slices[_Ordinary]:
    """Return how near ordinary prompts come to rows; a view remembers the last answer."""
    known: _Ordinary | None = view.ordinary.get(space)
    if known is not None and np.array_equal(known.rows, mask):
        return known
    rows = np.flatnonzero(mask)
    count = len(rows)
    if count > MOST:
        rows = rows[np.linspace(0, count - 1, MOST).astype(np.intp)]
    values = view.corpus.vectors(space)
    assert values is not None, "the caller has seen them"
    best = np.full(len(ordinary), -math.inf, np.float32)
    for start in range(0, len(rows), _BLOCK):
        cosines, mean, deviation = _compare(values[0][rows[start : start + _BLOCK]], ordinary)
        np.maximum(best, ((cosines.T - mean) / deviation).max(axis=1), out=best)
        yield
    view.ordinary[space] = made = _Ordinary(mask, best.tolist(), len(rows) / max(1, count))
    return made


def _compare(values: npt.NDArray[np.int8], ordinary: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the cosines of texts with the ordinary prompts, and each text's mean and deviation."""
    cosines: Floats = _unit(values) @ ordinary.T
    deviation = np.maximum(cosines.std(axis=1), np.float32(_EPSILON))
    return cosines, cosines.mean(axis=1), deviation


def _unit(values: npt.NDArray[Any]) -> Floats:
    numbers = values.astype(np.float32)
    found: Floats = numbers / np.maximum(np.linalg.norm(numbers, axis=1, keepdims=True), np.float32(_EPSILON))
    return found
