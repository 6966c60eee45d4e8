"""The options of a runtime, and the settings of the current store.

Several stores may be open in one process, so no module can keep their settings. The runtime sets them around
turns, queries, procedures and its sidecar; pure functions read them without an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, get_args

import msgspec

GIB = 1 << 30
MIB = 1 << 20
Durability = Literal["power", "process"]


class RuntimeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and intervals of one runtime.

    Attributes:
        durability: ``power``: a reply means fsynced. ``process``: safe against kill -9 only; a power cut may
            destroy the store.
        max_size: Address space and quota of the store, in bytes.
        min_free: Writes stop when the disk has fewer free bytes than this.
        mailbox_limit: The most messages that wait in one mailbox; others get `OverloadedError`. A connection
            may have fewer in flight.
        quantum: One actor handles this many messages before the next ready actor has its turn.
        slice_seconds: How long one actor's turn may hold the event loop, in seconds.
        resident_limit: The most actors in memory, unless more are busy.
        resident_bytes: The most bytes of all actors in memory, estimated, unless more are busy. A larger
            actor leaves memory whenever another is activated.
        idle_seconds: How long an unused actor stays in memory, in seconds.
        drain_seconds: How long closing waits for accepted messages, in seconds.
        idempotency_seconds: How long the reply to an idempotent request is stored, in seconds.
        delivery_attempts: How often a stored tell or timer may fail before it is a dead letter.
    """

    durability: Durability = "power"
    max_size: int = 256 * GIB
    min_free: int = 64 * MIB
    mailbox_limit: int = 4_096
    quantum: int = 64
    slice_seconds: float = 0.004
    resident_limit: int = 20_000
    resident_bytes: int = 192 * MIB
    idle_seconds: float = 300.0
    drain_seconds: float = 5.0
    idempotency_seconds: int = 86_400
    delivery_attempts: int = 3

    def __post_init__(self) -> None:
        if self.durability not in get_args(Durability):  # any other value would act as ``process``
            raise ValueError(f"durability is {self.durability!r}, but power or process is allowed")


CURRENT: ContextVar[Any] = ContextVar("settings of the store", default=None)


def current_settings() -> Any:
    """Return the settings of the current store; None if no store is current."""
    return CURRENT.get()


@contextmanager
def apply_settings(settings: Any) -> Iterator[None]:
    """Make `current_settings` return ``settings`` in a block; enter and leave it in one task."""
    token = CURRENT.set(settings)
    try:
        yield
    finally:
        CURRENT.reset(token)
