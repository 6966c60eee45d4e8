"""Make the vectors of the ordinary prompts for MiniLM anew: `python -m bench.ordinary MODELS`.

MODELS is the folder in which MiniLM is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from greenroom.actors.search.embedding.models.installed_models import MINILM
from greenroom.actors.search.embedding.models.minilm import load_minilm
from greenroom.actors.search.embedding.models.safetensors import write_tensors
from greenroom.actors.search.ranking.ordinary import VECTORS, prompts


def make(models: Path, target: Path = VECTORS) -> None:
    """Embed the prompts and write their vectors, by space."""
    embedder = load_minilm(models / MINILM, lambda: None)
    made = np.stack([np.frombuffer(each.values, np.int8) for each in embedder.embed(prompts())])
    write_tensors(target, {embedder.space: made}, {})


if __name__ == "__main__":
    make(Path(sys.argv[1]))
