"""The mean vector of ordinary texts, for each model that is known; `bench.ordinary` makes it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import numpy as np

from greenroom.actors.search.embedding.models.safetensors import read_tensors
from greenroom.actors.search.ranking.view import Floats

MEANS: Final = Path(__file__).parent / "ordinary_prompts" / "means.safetensors"


@functools.cache
def mean_of(space: str) -> Floats | None:
    """Return the mean of ordinary prompts' unit vectors; None for an unknown space."""
    found = read_tensors(MEANS).get(space)
    return None if found is None else np.array(found, np.float32)
