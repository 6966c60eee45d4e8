"""Stored vectors of a session's messages: a model's vectors, which are slow to compute.

    v                   the spaces in which messages have vectors, the oldest first
    v space id          one message's vector

Word vectors are not stored: a search computes them in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from greenroom.actors.search.embedding import rows
from greenroom.actors.search.embedding.vector_messages import Vectors
from greenroom.runtime import Context, RecordDamagedError, Slices

VECTORS = b"v"


class Spaces(msgspec.Struct, frozen=True, array_like=True):
    """The spaces of a session, the oldest first, with their numbers in keys."""

    numbers: dict[str, int] = {}
    next_number: int = 0


class MessageVector(msgspec.Struct, frozen=True, array_like=True):
    """The vector of one message, as in `Vectors`."""

    scale: float
    values: bytes


class MessageVectors:
    """The stored vectors of one session.

    The oldest space serves searches until the vectors of another space are complete.
    """

    def __init__(self) -> None:
        self._spaces: Spaces | None = None

    def spaces(self, context: Context) -> list[str]:
        """Return the spaces in which messages have vectors, the oldest first."""
        return list(self._load_spaces(context).numbers)

    def serving(self, context: Context) -> str | None:
        """Return the space that searches use."""
        return next(iter(self._load_spaces(context).numbers), None)

    def find(self, context: Context, space: str, message_id: int) -> Vectors | None:
        """Return the vector of one message."""
        number = self._load_spaces(context).numbers[space]
        try:
            found = context.get(_key(number, message_id), MessageVector)
        except RecordDamagedError:  # the vector is computed again
            return None
        return None if found is None else Vectors(scale=found.scale, values=found.values)

    def put(self, context: Context, space: str, vectors: Iterable[tuple[int, Vectors]]) -> None:
        """Stage vectors by the ids of messages."""
        known = self._load_spaces(context)
        if space not in known.numbers:
            if not known.numbers:
                rows.put_serving(context, None, space)
            numbers = {**known.numbers, space: known.next_number}
            known = self._put_spaces(context, Spaces(numbers, known.next_number + 1))
        for message_id, made in vectors:
            stored = MessageVector(made.scale, made.values)
            context.put(_key(known.numbers[space], message_id), stored)

    def ids(self, context: Context, spaces: Iterable[str]) -> Slices[set[int]]:
        """Return the ids of messages with vectors in one of ``spaces``."""
        found: set[int] = set()
        for number in self._numbers(context, spaces):
            for key in context.keys(_prefix(number)):
                found.add(int.from_bytes(key[-_ID_BYTES:]))
                yield
        return found

    def drop_all_but(self, context: Context, space: str | None) -> Slices[None]:
        """Stage the removal of all spaces except ``space`` and the spaces that are retained."""
        known = self._load_spaces(context)
        others = [other for other in known.numbers if other != space and not rows.is_kept(context, other)]
        if not others:
            return
        for number in self._numbers(context, others):
            for key in context.keys(_prefix(number)):
                context.delete(key)
                yield
        left = {name: number for name, number in known.numbers.items() if name not in others}
        rows.put_serving(context, self.serving(context), next(iter(left), None))
        self._put_spaces(context, Spaces(left, known.next_number))

    def forget(self, context: Context, message_ids: Sequence[int]) -> Slices[None]:
        """Stage the removal of the vectors of these messages."""
        for number in self._load_spaces(context).numbers.values():
            for message_id in message_ids:
                context.delete(_key(number, message_id))
                yield

    def list_again(self, context: Context) -> None:
        """Stage the embedder's row of the session again."""
        rows.put_serving(context, None, self.serving(context))

    def unlist(self, context: Context) -> None:
        """Stage the removal of the embedder's row of the session."""
        rows.put_serving(context, self.serving(context), None)

    def _load_spaces(self, context: Context) -> Spaces:
        if self._spaces is None:
            try:
                self._spaces = context.get(VECTORS, Spaces) or Spaces()
            except RecordDamagedError:  # the vectors are computed again
                self._spaces = Spaces()
        return self._spaces

    def _put_spaces(self, context: Context, spaces: Spaces) -> Spaces:
        if spaces.numbers:
            context.put(VECTORS, spaces)
        else:
            context.delete(VECTORS)
        self._spaces = spaces
        return spaces

    def _numbers(self, context: Context, spaces: Iterable[str]) -> list[int]:
        known = self._load_spaces(context).numbers
        return [known[space] for space in spaces if space in known]


_ID_BYTES = 8


def _prefix(space: int) -> bytes:
    return VECTORS + space.to_bytes(2)


def _key(space: int, message_id: int) -> bytes:
    return _prefix(space) + message_id.to_bytes(_ID_BYTES)
