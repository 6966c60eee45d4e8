"""Extras: the frameworks of the adapters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from greenroom.actors.core.base.optional_packages import install_command


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Name the extra to install if an import in the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"this adapter needs {error.name}, which is not installed: {install_command(extra)}"
        ) from error
