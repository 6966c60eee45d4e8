"""Models that `greenroom embedder install` installed: their place, and whether they are complete."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from greenroom.actors.core.base.default_folders import default_models_folder
from greenroom.actors.search.embedding.embedder import EmbedderChoice

MINILM: Final = "minilm"
"""The folder of MiniLM among the models."""
WEIGHTS: Final = "weights.safetensors"
TOKENIZER: Final = "tokenizer.json"
RECORD: Final = "installed.json"
"""The file that marks a complete folder, with the size and the SHA-256 of each file."""
LAYOUT: Final = 2
"""The version of the files; the program ignores files of another version."""


def find_fault(models: Path, *, looks_inside: bool = False) -> str | None:
    """Return why MiniLM cannot be loaded from a folder; None if it is installed.

    With ``looks_inside`` it compares digests as well, which reads 24 MB in about 20 ms.
    """
    folder = models / MINILM
    try:
        record = json.loads((folder / RECORD).read_bytes())
        if record["layout"] != LAYOUT:
            return f"another version of this program installed the files in {folder}"
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
    return choice.models or default_models_folder()


def resolve_auto(choice: EmbedderChoice, *, looks_inside: bool = False) -> tuple[EmbedderChoice, str]:
    """Return the embedder for ``auto``, with the reason; any other choice stays as it is."""
    if choice.kind != "auto":
        return choice, "it is the one that was chosen"
    models = models_folder(choice)
    fault = find_fault(models, looks_inside=looks_inside)
    if fault is None:
        return replace(choice, kind="minilm"), f"MiniLM is installed in {models}"
    return replace(choice, kind="static"), add_remedy(fault)


def add_remedy(fault: str) -> str:
    """Add the remedy to the reason why MiniLM cannot be loaded."""
    return f"{fault}; `greenroom embedder install minilm` brings it"
