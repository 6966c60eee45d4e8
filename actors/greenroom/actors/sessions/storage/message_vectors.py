"""The vectors of a session's messages that are kept: those of a model, which takes its time to make them.

    v                   the spaces in which some messages have vectors, the oldest first
    v space id          one message's vector

Vectors of words are not kept. They are made as the rest of what is searched is, in memory, when a session is
searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from greenroom.actors.core.replies.memory_types import Vectors
from greenroom.actors.search.embedding import rows
from greenroom.runtime import Context, Slices

VECTORS = b"v"


class Spaces(msgspec.Struct, frozen=True, array_like=True):
    """The spaces of a session.

    Attributes:
        numbers: What stands for each in keys, the oldest first.
        next_number: The next one's number.
    """

    numbers: dict[str, int] = {}
    next_number: int = 0


class MessageVector(msgspec.Struct, frozen=True, array_like=True):
    """One message's vector, as in `Vectors`."""

    scale: float
    values: bytes


class MessageVectors:
    """The kept vectors of one session. The oldest space serves until those of another are complete."""

    def __init__(self) -> None:
        self._spaces: Spaces | None = None

    def spaces(self, context: Context) -> list[str]:
        """Return the spaces in which messages have vectors, the oldest first."""
        return list(self._known(context).numbers)

    def serving(self, context: Context) -> str | None:
        """Return the space in which searches compare."""
        return next(iter(self._known(context).numbers), None)

    def find(self, context: Context, space: str, message_id: int) -> Vectors | None:
        """Return one message's vector."""
        number = self._known(context).numbers[space]
        found = context.get(_key(number, message_id), MessageVector)
        return None if found is None else Vectors(scale=found.scale, values=found.values)

    def put(self, context: Context, space: str, vectors: Iterable[tuple[int, Vectors]]) -> None:
        """Stage vectors, by the ids of the messages."""
        known = self._known(context)
        if space not in known.numbers:
            if not known.numbers:
                rows.put_serving(context, None, space)
            numbers = {**known.numbers, space: known.next_number}
            known = self._put_spaces(context, Spaces(numbers, known.next_number + 1))
        for message_id, made in vectors:
            stored = MessageVector(made.scale, made.values)
            context.put(_key(known.numbers[space], message_id), stored)

    def ids(self, context: Context, spaces: Iterable[str]) -> Slices[set[int]]:
        """Return the ids of the messages with vectors in one of ``spaces``."""
        found: set[int] = set()
        for number in self._numbers(context, spaces):
            for key, _ in context.scan(msgspec.Raw, prefix=_prefix(number)):
                found.add(int.from_bytes(key[-_ID_BYTES:]))
                if context.should_yield():
                    yield
        return found

    def drop_all_but(self, context: Context, space: str | None) -> Slices[None]:
        """Stage that no space is left but one, and those that are kept."""
        known = self._known(context)
        others = [other for other in known.numbers if other != space and not rows.is_kept(context, other)]
        if not others:
            return
        for number in self._numbers(context, others):
            for key, _ in context.scan(msgspec.Raw, prefix=_prefix(number)):
                context.delete(key)
                if context.should_yield():
                    yield
        left = {name: number for name, number in known.numbers.items() if name not in others}
        rows.put_serving(context, self.serving(context), next(iter(left), None))
        self._put_spaces(context, Spaces(left, known.next_number))

    def forget(self, context: Context, message_ids: Sequence[int]) -> Slices[None]:
        """Stage that these messages have no vectors."""
        for number in self._known(context).numbers.values():
            for message_id in message_ids:
                context.delete(_key(number, message_id))
                if context.should_yield():
                    yield

    def list_again(self, context: Context) -> None:
        """Stage the row again by which the embedder finds the session."""
        rows.put_serving(context, None, self.serving(context))

    def unlist(self, context: Context) -> None:
        """Stage that the embedder finds no such session."""
        rows.put_serving(context, self.serving(context), None)

    def _known(self, context: Context) -> Spaces:
        if self._spaces is None:
            self._spaces = context.get(VECTORS, Spaces) or Spaces()
        return self._spaces

    def _put_spaces(self, context: Context, spaces: Spaces) -> Spaces:
        if spaces.numbers:
            context.put(VECTORS, spaces)
        else:
            context.delete(VECTORS)
        self._spaces = spaces
        return spaces

    def _numbers(self, context: Context, spaces: Iterable[str]) -> list[int]:
        known = self._known(context).numbers
        return [known[space] for space in spaces if space in known]


_ID_BYTES = 8


def _prefix(space: int) -> bytes:
    return VECTORS + space.to_bytes(2)


def _key(space: int, message_id: int) -> bytes:
    return _prefix(space) + message_id.to_bytes(_ID_BYTES)
