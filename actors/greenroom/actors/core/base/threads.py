"""Work in threads beside the event loop: computations, few at a time, and slow imports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Thread
from typing import Final, TypeVar, TypeVarTuple

import trio

from greenroom.runtime import Slices

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

MOST_AT_ONCE: Final = 2
"""A key that scrypt makes of a passphrase may take 256 MB while it is made."""
READERS: Final = 4
"""Files that are read at once; one may have 64 MB."""

_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("passports aside")
_readers: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("files read")


async def run_in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Run a pure function in a thread; a caller that is cancelled does not wait for it."""
    limiter = _limiter_of(_limiter, MOST_AT_ONCE)
    return await trio.to_thread.run_sync(function, *arguments, limiter=limiter, abandon_on_cancel=True)


async def read_in_thread(function: Callable[[*Ts], R], *arguments: *Ts) -> R:
    """Run a function that reads files, likewise: a slow disk holds up nobody but who reads."""
    limiter = _limiter_of(_readers, READERS)
    return await trio.to_thread.run_sync(function, *arguments, limiter=limiter, abandon_on_cancel=True)


def _limiter_of(variable: trio.lowlevel.RunVar[trio.CapacityLimiter], most: int) -> trio.CapacityLimiter:
    try:
        return variable.get()
    except LookupError:
        limiter = trio.CapacityLimiter(most)
        variable.set(limiter)
        return limiter


_TURN = 0.001
"""Seconds in which the import has the interpreter to itself as far as possible."""


def imported(module: str) -> Slices[None]:
    """Import ``module`` in a thread; yields until it is there, so that a handler blocks no other.

    Numpy takes 0.1 s. An import that fails, fails again where its names are wanted.
    """
    thread = _importing(module)
    while thread.is_alive():
        thread.join(_TURN)
        yield


@cache
def _importing(module: str) -> Thread:
    thread = Thread(target=_import, args=[module], name=f"import of {module}", daemon=True)
    thread.start()
    return thread


def _import(module: str) -> None:
    import_module(module)
    if "numpy" in sys.modules:
        import_module("numpy.ma")  # which `numpy.unique` imports when it is first called
