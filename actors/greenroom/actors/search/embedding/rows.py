"""Vector spaces in the shared index: which actors lack vectors, which space each searches, what made a space.

Each actor that keeps memories writes its own rows in `INDEX`, in the commit of what they are about:

- one at `WAITING` as long as some of its texts have no vectors of the space that its searches use;
- one at `serving(space)`, of that space. It moves when all texts have vectors of a new one. Where the older
  vectors are kept (see `is_kept`) it stays beside the new one's.

So what an embedder still has to do is found without asking every actor there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import msgspec

from greenroom.runtime import Actor, Address, Context, IndexReader, Message, Query, Row, Slices, handles

MINILM: Final = "minilm:"
"""With this the name of MiniLM's space begins."""
STATIC: Final = "static:minilm-l6-v2:1:256"
"""Of the word vectors that ship with the program. The 1 is our way of making a text's vector of theirs."""


INDEX: Final = "embedding"
WAITING: Final = b"w"
_SERVING: Final = b"s"
SPACES: Final = "spaces"
"""The index of the spaces, each with the embedder that made it; see `spaces`."""


class Waiting(msgspec.Struct, frozen=True):
    """The value of a row in `INDEX`, whose key says all."""


class Space(msgspec.Struct, frozen=True):
    """The embedder that made a vector space.

    Attributes:
        embedder: As `--embedder` has it.
        model: The name of an endpoint's model.
    """

    embedder: str
    model: str | None = None


def serving_key(space: str) -> bytes:
    """Return the sort key of the row of an actor that searches in a space."""
    return _SERVING + space.encode()


def put_pending(context: Context, *, does: bool) -> None:
    """Stage whether some of the actor's texts lack vectors; for a handler that changes it."""
    if does:
        context.put_row(INDEX, WAITING, Waiting())
    else:
        context.delete_row(INDEX, WAITING)


def put_serving(context: Context, before: str | None, now: str | None) -> None:
    """Stage that the actor's searches use vectors of another space than before; None stands for none."""
    if before is not None:
        context.delete_row(INDEX, serving_key(before))
    if now is not None:
        context.put_row(INDEX, serving_key(now), Waiting())


def is_kept(context: Context, space: str) -> bool:
    """Return whether vectors of this space stay, though searches use those of another one."""
    return context.sidecar is not None and bool(context.sidecar.keeps(space))


class Unfinished(msgspec.Struct, frozen=True):
    """Work that is left for a space.

    Attributes:
        addresses: The actors with texts that lack vectors, or whose vectors are of other spaces.
        older: These spaces, with what made them where that is known.
        is_known: Whether it has been noted what made the space that is wanted.
    """

    addresses: list[Address]
    older: dict[str, Space | None]
    is_known: bool


class FindUnfinished(Query[Unfinished], frozen=True, kw_only=True):
    """Find what is to be done for a space. For the process that owns the folder.

    Attributes:
        space: The space that is wanted; None while it is not known: then it is taken to be the one that
            ``maker`` made when it was noted.
        maker: The embedder that is wanted.
    """

    space: str | None
    maker: Space

    def run(self, reader: IndexReader) -> Slices[Unfinished]:
        """Read the rows."""
        spaces = {row.sort_key.decode(): row.value for row in reader.rows(SPACES, Space)}
        made = [space for space, maker in spaces.items() if maker == self.maker]
        space = self.space or next(iter(made), None)
        found: dict[Address, None] = {}
        for row in reader.rows(INDEX, Waiting, prefix=WAITING):
            found[row.address] = None
            if reader.should_yield():
                yield
        older: dict[str, Space | None] = {}
        for row in _of_other_spaces(reader, space):
            found[row.address] = None
            name = row.sort_key[len(_SERVING) :].decode()
            older[name] = spaces.get(name)
            if reader.should_yield():
                yield
        return Unfinished(list(found), older, space in spaces)


def _of_other_spaces(reader: IndexReader, space: str | None) -> Iterator[Row[Waiting]]:
    """Yield the rows of actors that search elsewhere; those that do not may be a million."""
    own = None if space is None else serving_key(space)
    for row in reader.rows(INDEX, Waiting, prefix=_SERVING):
        if row.sort_key == own:
            yield from reader.rows(INDEX, Waiting, prefix=_SERVING, start=own + b"\0")
            return
        yield row


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


def registry_address(space: str) -> Address:
    """Return the address of the actor that remembers what made a space."""
    return Address(KIND, space)
