"""Settings of a store, for the code that runs on its behalf.

Several stores may be open in one process, so what one was opened with is kept in no module. The runtime sets
it around turns, queries, procedures and its sidecar; pure functions far below read it without an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

CURRENT: ContextVar[Any] = ContextVar("settings of the store", default=None)


def current_settings() -> Any:
    """Return what the store was opened with whose code runs; None outside of any."""
    return CURRENT.get()


@contextmanager
def apply_settings(settings: Any) -> Iterator[None]:
    """Let `current_settings` return these within the block; it must be left in the task that entered it."""
    token = CURRENT.set(settings)
    try:
        yield
    finally:
        CURRENT.reset(token)
