"""Orchestrations: requests that take several actors, carried out by the process that was asked.

A message is for one actor and a procedure only reads. An *orchestration* asks one actor after the other
in the name of its principal. It may end at any moment, with its process or because nobody waits any more, so
what it does must be safe to leave there and to begin again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import ClassVar, Generic, TypeVar

import msgspec

from greenroom.actors.core.auth.principal import Principal
from greenroom.runtime import RuntimeClient

R_co = TypeVar("R_co", covariant=True)

ProgressCallback = Callable[[float, float, str], None]
"""Receives the progress of an orchestration: what is done, of how much, and a sentence."""

PROGRESS_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("REPORT", default=None)
"""The callback of the task that asks; a transport sets it where a client asked for progress."""


def report_progress(done: float, total: float, words: str) -> None:
    """Report the progress of this task's orchestration to `PROGRESS_CALLBACK`, if there is one."""
    callback = PROGRESS_CALLBACK.get()
    if callback is not None:
        callback(done, total, words)


class Orchestration(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to several actors: subclass ``Orchestration[Reply]`` and define `run`.

    Class attributes:
        writes: Whether it changes what is stored.
    """

    writes: ClassVar[bool] = False

    async def run(self, runtime: RuntimeClient, principal: Principal) -> R_co:
        """Run it in the name of a principal, and return the reply."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")
