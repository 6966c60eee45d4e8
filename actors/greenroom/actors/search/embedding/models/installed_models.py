"""Which models are installed for good, and where: `greenroom embedder install` puts them there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from greenroom.actors.core.base.default_folders import default_models
from greenroom.actors.search.embedding.embedder import EmbedderChoice

MINILM: Final = "minilm"
"""The folder of MiniLM among the models."""
WEIGHTS: Final = "weights.safetensors"
TOKENIZER: Final = "tokenizer.json"
RECORD: Final = "installed.json"
"""What says that the folder is whole, with the size and the SHA-256 of each of its files."""
LAYOUT: Final = 2
"""Of the files that are written; those of another one do not count as installed."""


def missing(models: Path, *, looks_inside: bool = False) -> str | None:
    """Return why MiniLM is not to be had in a folder of models; None when it is installed there.

    Args:
        models: The folder.
        looks_inside: Whether what is in the files is compared with what was installed, too. That reads 24 MB,
            which takes some 20 ms.
    """
    folder = models / MINILM
    try:
        record = json.loads((folder / RECORD).read_bytes())
        if record["layout"] != LAYOUT:
            return f"what is in {folder} was installed by another version of this program"
        for name in (WEIGHTS, TOKENIZER):
            installed = record["files"][name]
            if (folder / name).stat().st_size != installed["size"]:
                return f"{folder / name} is not whole"
            if looks_inside and digest(folder / name) != installed["sha256"]:
                return f"{folder / name} is damaged"
    except FileNotFoundError:
        return f"MiniLM is not installed in {models}"
    except (OSError, ValueError, LookupError, TypeError) as error:
        return f"{folder} cannot be read: {error}"
    return None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def models_folder(choice: EmbedderChoice) -> Path:
    """Return the folder of installed models."""
    return choice.models or default_models()


def resolved(choice: EmbedderChoice, *, looks_inside: bool = False) -> tuple[EmbedderChoice, str]:
    """Return the embedder that is taken for ``auto``, and why; any other choice is taken as it is.

    Args:
        choice: What is wanted.
        looks_inside: As `missing` has it.
    """
    if choice.kind != "auto":
        return choice, "it is the one that was chosen"
    models = models_folder(choice)
    lack = missing(models, looks_inside=looks_inside)
    if lack is None:
        return replace(choice, kind="minilm"), f"MiniLM is installed in {models}"
    return replace(choice, kind="static"), with_remedy(lack)


def with_remedy(lack: str) -> str:
    """Return why MiniLM is not to be had, and what to do about it."""
    return f"{lack}; `greenroom embedder install minilm` brings it"
