"""The settings of the store for which the present code runs.

Several stores may be open in one process, so no module can keep their settings. The runtime sets them around
turns, queries, procedures and its sidecar; pure functions read them without an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

CURRENT: ContextVar[Any] = ContextVar("settings of the store", default=None)


def current_settings() -> Any:
    """Return the settings of the current store; None outside of any."""
    return CURRENT.get()


@contextmanager
def apply_settings(settings: Any) -> Iterator[None]:
    """Make `current_settings` return these in the block; enter and leave it in one task."""
    token = CURRENT.set(settings)
    try:
        yield
    finally:
        CURRENT.reset(token)
