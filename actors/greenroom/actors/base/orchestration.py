"""Requests that take several actors, and may take a while: carried out by whoever was asked.

A message is for one actor and a procedure only reads. An *errand* asks one actor after the other in the
name of its principal. It may end at any moment, with its process or because nobody waits any more, so
what it does must be safe to leave there and to begin again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from greenroom.actors.auth.principal import Principal
    from greenroom.runtime import Doors

R_co = TypeVar("R_co", covariant=True)

Report = Callable[[float, float, str], None]
"""Hears how far an errand is: what is done, of how much, and in words."""

REPORT: ContextVar[Report | None] = ContextVar("REPORT", default=None)
"""Who wants to know in the task that asks; a transport sets it where a client asked for progress."""


def report(done: float, total: float, words: str) -> None:
    """Say how far the errand of this task is, if anybody wants to know."""
    hears = REPORT.get()
    if hears is not None:
        hears(done, total, words)


class Errand(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to several actors: subclass ``Errand[Reply]`` and define `run`.

    Class attributes:
        writes: Whether it changes what is stored.
    """

    writes: ClassVar[bool] = False

    async def run(self, doors: Doors, principal: Principal) -> R_co:
        """Carry it out and return the reply."""
        raise NotImplementedError(f"{type(self).__name__} does not define run()")
