"""The frameworks of adapters, each of which is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from greenroom.actors.core.base.optional_packages import install


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Say what to install, where an import of the block fails for want of the framework.

    Args:
        extra: The name of the extra that has it.

    Raises:
        ImportError: in the place of a `ModuleNotFoundError`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"this adapter needs {error.name}, which is not installed: {install(extra)}"
        ) from error
