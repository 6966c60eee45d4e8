"""Modules that are imported when they are first needed, while others are served."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from greenroom.runtime import Slices

_TURN = 0.001
"""Seconds in which the import has the interpreter to itself as far as possible."""


def imported(module: str) -> Slices[None]:
    """Import ``module`` in a thread; yields until it is there, so that a handler holds nobody up.

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
