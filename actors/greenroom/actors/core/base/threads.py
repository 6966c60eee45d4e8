"""Threads beside the event loop: computations, reads of files, and slow imports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Thread
from typing import Final, TypeVar, TypeVarTuple

import trio

from greenroom.runtime import WAITING, Slices

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

MOST_AT_ONCE: Final = 2
"""The most computations at once: deriving a key from a passphrase by scrypt may take 256 MB."""
READERS: Final = 4
"""The most files read at once; each may have 64 MB."""

_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("passports aside")
_readers: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("files read")


async def run_in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Run a pure function in a thread; a cancelled caller does not wait for it."""
    limiter = get_or_make(_limiter, lambda: trio.CapacityLimiter(MOST_AT_ONCE))
    return await trio.to_thread.run_sync(function, *arguments, limiter=limiter, abandon_on_cancel=True)


async def read_in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Run a function that reads files in a thread; a slow disk delays only readers."""
    limiter = get_or_make(_readers, lambda: trio.CapacityLimiter(READERS))
    return await trio.to_thread.run_sync(function, *arguments, limiter=limiter, abandon_on_cancel=True)


def get_or_make(variable: trio.lowlevel.RunVar[R], make: Callable[[], R]) -> R:
    """Return a variable's value in this run of trio; the first call makes it."""
    try:
        return variable.get()
    except LookupError:
        value = make()
        variable.set(value)
        return value


_TURN = 0.001
"""For so many seconds, the import has the interpreter mostly to itself."""


def import_in_thread(module: str) -> Slices[None]:
    """Import ``module`` in a thread and yield until it is done.

    Numpy takes 0.1 s. If the import fails, it fails again where its names are used.
    """
    thread = _importing(module)
    while thread.is_alive():
        thread.join(_TURN)
        yield WAITING


@cache
def _importing(module: str) -> Thread:
    thread = Thread(target=_import, args=[module], name=f"import of {module}", daemon=True)
    thread.start()
    return thread


def _import(module: str) -> None:
    import_module(module)
    if "numpy" in sys.modules:
        import_module("numpy.ma")  # `numpy.unique` imports it on its first call
