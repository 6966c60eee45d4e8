"""Which models are installed for good, and where: `greenroom embedder install` puts them there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from greenroom.actors.base.paths import default_models
from greenroom.actors.embedding.embedder import EmbedderChoice

MINILM: Final = "minilm"
"""The folder of MiniLM among the models."""
WEIGHTS: Final = "weights.safetensors"
TOKENIZER: Final = "tokenizer.json"
RECORD: Final = "installed.json"
"""What says that the folder is whole, with the size of each of its files."""
LAYOUT: Final = 1
"""Of the files that are written; those of another one do not count as installed."""


def missing(models: Path) -> str | None:
    """Return why MiniLM is not to be had in a folder of models; None when it is installed there."""
    folder = models / MINILM
    try:
        record = json.loads((folder / RECORD).read_bytes())
        if record["layout"] != LAYOUT:
            return f"what is in {folder} was installed by another version of this program"
        for name in (WEIGHTS, TOKENIZER):
            if (folder / name).stat().st_size != record["files"][name]:
                return f"{folder / name} is not whole"
    except FileNotFoundError:
        return f"MiniLM is not installed in {models}"
    except (OSError, ValueError, LookupError, TypeError) as error:
        return f"{folder} cannot be read: {error}"
    return None


def models_folder(choice: EmbedderChoice) -> Path:
    """Return the folder of installed models."""
    return choice.models or default_models()


def resolved(choice: EmbedderChoice) -> tuple[EmbedderChoice, str]:
    """Return the embedder that is taken for ``auto``, and why; any other choice is taken as it is."""
    if choice.kind != "auto":
        return choice, "it is the one that was chosen"
    models = models_folder(choice)
    lack = missing(models)
    if lack is None:
        return replace(choice, kind="minilm"), f"MiniLM is installed in {models}"
    return replace(choice, kind="static"), f"{lack} (`greenroom embedder install minilm` does it)"
