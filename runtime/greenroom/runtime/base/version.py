"""The version of this program."""

from __future__ import annotations

import functools


@functools.cache
def program_version() -> str:
    """Return the version that is installed; ``unknown`` where the files alone are there."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes long to import

    try:
        return version("greenroom")
    except PackageNotFoundError:
        return "unknown"
