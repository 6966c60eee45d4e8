"""The version of this program."""

from __future__ import annotations

import functools


@functools.cache
def program_version() -> str:
    """Return the installed version; ``unknown`` if the package is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - takes long to import

    try:
        return version("greenroom")
    except PackageNotFoundError:
        return "unknown"
