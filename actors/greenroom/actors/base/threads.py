"""Computing beside the event loop: in threads, few at a time, since one may take megabytes and a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import trio

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

MOST_AT_ONCE: Final = 2
"""A key that scrypt makes of a passphrase may take 256 MB while it is made."""

_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("passports aside")


async def aside(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Return what a pure function returns; a caller that is cancelled does not wait for it."""
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(MOST_AT_ONCE)
        _limiter.set(limiter)
    return await trio.to_thread.run_sync(function, *arguments, limiter=limiter, abandon_on_cancel=True)
