"""Vector spaces in the shared index: the backlog, and the space of each actor.

Each actor that stores memories writes its own rows in `INDEX`, in the commit of the change:

- one row at `WAITING` while some of its texts lack vectors of the space that its searches use;
- one row at `serving_key(space)` for that space. When all texts have vectors of a new space, the row moves
  there. If the older vectors are kept (see `is_kept`), the older row stays as well.

So the remaining work of an embedder is found without a request to every actor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import msgspec

from greenroom.runtime import Actor, Address, Context, IndexReader, Message, Procedure, Row, Slices, handles

MINILM: Final = "minilm:"
"""The prefix of the name of MiniLM's space."""
STATIC: Final = "static:minilm-l6-v2:1:256"
"""The space of the bundled word vectors. The 1 is the version of our way to combine them."""


INDEX: Final = "embedding"
WAITING: Final = b"w"
_SERVING: Final = b"s"
SPACES: Final = "spaces"
"""The index of the spaces, each with the embedder that made it."""


class Waiting(msgspec.Struct, frozen=True):
    """The value of a row in `INDEX`: empty, since the key says everything."""


class Space(msgspec.Struct, frozen=True):
    """The embedder that made a vector space."""

    embedder: str
    model: str | None = None


def serving_key(space: str) -> bytes:
    """Return the sort key of an actor's row for the space in which it searches."""
    return _SERVING + space.encode()


def put_pending(context: Context, *, does: bool) -> None:
    """Stage whether the actor has texts that lack vectors."""
    if does:
        context.put_row(INDEX, WAITING, Waiting())
    else:
        context.delete_row(INDEX, WAITING)


def put_serving(context: Context, before: str | None, now: str | None) -> None:
    """Stage the actor's move from one vector space to another; None stands for no space."""
    if before is not None:
        context.delete_row(INDEX, serving_key(before))
    if now is not None:
        context.put_row(INDEX, serving_key(now), Waiting())


def is_kept(context: Context, space: str) -> bool:
    """Return whether vectors of this space stay although searches use another one."""
    return context.sidecar is not None and bool(context.sidecar.keeps(space))


class Unfinished(msgspec.Struct, frozen=True):
    """The actors with work left for a space, and the spaces that these actors use."""

    addresses: list[Address]
    older: dict[str, Space | None]
    is_known: bool


class FindUnfinished(Procedure[Unfinished], frozen=True, kw_only=True):
    """Find the remaining work for ``space``, by default for the space of ``maker``."""

    runs = "snapshot"

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
            yield
        older: dict[str, Space | None] = {}
        for row in _of_other_spaces(reader, space):
            found[row.address] = None
            name = row.sort_key[len(_SERVING) :].decode()
            older[name] = spaces.get(name)
            yield
        return Unfinished(list(found), older, space in spaces)


def _of_other_spaces(reader: IndexReader, space: str | None) -> Iterator[Row[Waiting]]:
    """Yield the rows of actors that search in other spaces; skip rows of ``space``."""
    own = None if space is None else serving_key(space)
    for row in reader.rows(INDEX, Waiting, prefix=_SERVING):
        if row.sort_key == own:
            yield from reader.rows(INDEX, Waiting, prefix=_SERVING, start=own + b"\0")
            return
        yield row


KIND: Final = "embedder"


class NoteEmbedder(Message[None], frozen=True, kw_only=True):
    """Record the embedder of this space."""

    embedder: str
    model: str | None = None


class EmbedderActor(Actor):
    """The record of one space; its key is the space's name."""

    kind: ClassVar[str] = KIND
    size: ClassVar[int] = 100

    @handles(NoteEmbedder)
    def note(self, message: NoteEmbedder, context: Context) -> None:
        """Write the row that `FindUnfinished` reads."""
        context.put_row(SPACES, context.address.key.encode(), Space(message.embedder, message.model))


def registry_address(space: str) -> Address:
    """Return the address of the actor that records the embedder of a space."""
    return Address(KIND, space)
