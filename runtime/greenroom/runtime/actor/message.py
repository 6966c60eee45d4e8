"""The messages that actors handle, and what a handler may answer with."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Generic, TypeVar, get_args

import msgspec

from greenroom.runtime.base.address import Address

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Slices = Generator[None, None, R]
"""The generator that a handler of long work is: it yields whenever `Context.should_yield` says so."""


class Message(msgspec.Struct, Generic[R_co], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request to one actor whose reply is an ``R``: subclass ``Message[int]`` and declare the fields.

    It must survive JSON, because tells, timers and idempotent answers are stored as that.
    """

    def precheck(self) -> tuple[Address, Message[Any]] | None:
        """Return a request to make before this message is delivered, and to whom, or None.

        The supervisor asks first and puts the answer into `Context.precheck_answer`: a
        check at that moment, not a lock. Who waits for no reply waits for no answer
        either, so a message with a question is asked or posted, and not told.
        """
        return None


def check_told(message: Message[Any]) -> None:
    """Check that a message can be told, now or at its time.

    Raises:
        TypeError: it has a question.
    """
    if message.precheck() is not None:
        raise TypeError(
            f"{type(message).__name__} has a question that another actor answers first, so it can be neither "
            "told nor put on a timer; ask it"
        )


def reply_type(asked: type[Any]) -> Any:
    """Return the ``R`` of a subclass of ``Message[R]``, or of another generic type of one parameter.

    Raises:
        TypeError: the class does not say what it is answered with.
    """
    for base in asked.__mro__:
        for generic in getattr(base, "__orig_bases__", ()):
            match get_args(generic):
                case (answer,) if not isinstance(answer, TypeVar):
                    return answer
    raise TypeError(
        f"{asked.__name__} does not say what it is answered with: derive it from Message[...] or the like"
    )


class Replay(Message[None], frozen=True, kw_only=True):
    """The values of `Context.record_revocation` that a restored store lacks, oldest first."""

    values: list[msgspec.Raw]
