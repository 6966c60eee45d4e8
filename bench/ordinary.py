"""Make the vectors of the ordinary prompts for MiniLM anew, and means: `python -m bench.ordinary MODELS`.

MODELS is the folder in which MiniLM is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from greenroom.actors.search.embedding.models.installed_models import MINILM
from greenroom.actors.search.embedding.models.minilm import load_minilm
from greenroom.actors.search.embedding.models.safetensors import read_tensors, write_tensors
from greenroom.actors.search.embedding.models.static import load_static
from greenroom.actors.search.ranking.mean_vectors import MEANS
from greenroom.actors.search.ranking.ordinary import VECTORS, prompts, vectors_of_prompts


def make(models: Path, target: Path = VECTORS) -> None:
    """Embed the prompts and write their vectors, by space."""
    embedder = load_minilm(models / MINILM, lambda: None)
    made = np.stack([np.frombuffer(each.values, np.int8) for each in embedder.embed(prompts())])
    write_tensors(target, {embedder.space: made}, {})


def make_means(target: Path = MEANS) -> None:
    """Write the mean of the prompts' unit vectors, by space; `make` must have been before."""
    spaces = [load_static().space, *read_tensors(VECTORS)]
    found = {space: vectors_of_prompts(space) for space in spaces}
    means = {space: each.mean(axis=0, dtype=np.float32) for space, each in found.items() if each is not None}
    write_tensors(target, means, {})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    make_means()
