"""The actors that remember what made a space.

When the embedder changes, queries need the old one for a while.
"""

from __future__ import annotations

from typing import ClassVar, Final

from greenroom.actors.embedding.rows import SPACES, Space
from greenroom.runtime import Actor, Address, Context, Message, handles

KIND: Final = "embedder"


class NoteEmbedder(Message[None], frozen=True, kw_only=True):
    """Remember which embedder makes this space."""

    embedder: str
    model: str | None = None


class EmbedderActor(Actor):
    """One space; its key is the space's name."""

    kind: ClassVar[str] = KIND
    size: ClassVar[int] = 100

    @handles(NoteEmbedder)
    def note(self, message: NoteEmbedder, context: Context) -> None:
        """Write it down where `FindUnfinished` looks."""
        context.put_row(SPACES, context.address.key.encode(), Space(message.embedder, message.model))


def register_of(space: str) -> Address:
    """Return who remembers what made a space."""
    return Address(KIND, space)
