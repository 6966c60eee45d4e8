"""Messages that erase a person, to every actor that may hold something of theirs."""

from __future__ import annotations

import msgspec

from greenroom.actors.core.auth.person import Person
from greenroom.runtime import Message


class ErasedPart(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor holds of a person, or held.

    Attributes:
        counts: How many of each kind; none that are 0.
        remaining: Whether there is more, so that the actor is to be asked again.
    """

    counts: dict[str, int]
    remaining: bool = False


class EraseFrom(Message[ErasedPart], frozen=True, kw_only=True):
    """Erase what an actor holds of a person, or only count it; what is erased already is no error."""

    person: Person
    dry_run: bool


class ReadErased(Message[list[str]], frozen=True, kw_only=True):
    """Read which users were erased, until the store's file is rewritten. Not a tool."""


class BeginErasure(Message[Person], frozen=True, kw_only=True):
    """Remember that a person is being erased, until nothing of them is in the store's file any more.

    Answered with all that is known of them, from an earlier attempt, too.
    """

    person: Person
