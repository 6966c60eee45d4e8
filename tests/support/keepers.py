"""An actor that keeps texts with their vectors, the smallest that shows what an embedder's worker does."""

from __future__ import annotations

from typing import Any

import msgspec
import trio

from greenroom.actors import EmbedderError, TextRefusedError
from greenroom.actors.search.embedding import rows as embedding_rows
from greenroom.actors.search.embedding.embedder import LocalEmbedder
from greenroom.actors.search.embedding.vector_messages import (
    QueryVectors,
    StoreVectors,
    TextsToEmbed,
    UnembeddedText,
    UnembeddedTexts,
    Vectors,
    VectorsStored,
)
from greenroom.runtime import Actor, Context, Message, handles


class Keep(Message[list[int]], frozen=True, kw_only=True):
    """Keep texts; with ``tells`` false the embedder hears of it at its next start only."""

    texts: list[str]
    tells: bool = True


class Kept(msgspec.Struct, frozen=True):
    """What an actor has: its texts, its vectors by space, and the space that its searches use."""

    texts: dict[int, str]
    vectors: dict[str, dict[int, Vectors]]
    serving: str | None


class Show(Message[Kept], frozen=True):
    """Return what is there."""


class Break(Message[None], frozen=True):
    """Fail at the next `StoreVectors`, so many times, or keep nothing of what they bring."""

    times: int
    refuses: bool = False


class Keeper(Actor):
    """Keeps texts. Vectors of a new space take over when it has all of them."""

    kind = "keeper"

    def activate(self, context: Context) -> None:
        self.kept = context.get(b"kept", Kept) or Kept({}, {}, None)
        self.broken = Break(times=0)
        self.asked = 0

    @handles(Keep)
    def keep(self, message: Keep, context: Context) -> list[int]:
        texts, vectors = (
            dict(self.kept.texts),
            {space: dict(made) for space, made in self.kept.vectors.items()},
        )
        serving, ids = self.kept.serving, []
        for text in message.texts:
            number = len(texts) + 1
            ids.append(number)
            texts[number] = text
            sidecar: Any = context.sidecar
            made = sidecar.embed_nowait(text) if message.tells else None
            if made is not None and serving in {None, sidecar.space}:
                vectors.setdefault(sidecar.space, {})[number] = made
                if serving is None:
                    embedding_rows.put_serving(context, None, sidecar.space)
                    serving = sidecar.space
            else:
                embedding_rows.put_pending(context, does=True)
                if message.tells:
                    sidecar.add_pending(context.address)
        self._store(context, Kept(texts, vectors, serving))
        return ids

    @handles(TextsToEmbed)
    def texts(self, message: TextsToEmbed, context: Context) -> UnembeddedTexts:
        del context
        self.asked += 1
        has = self.kept.vectors.get(message.space, {})
        missing = [
            UnembeddedText(id=number, text=text)
            for number, text in self.kept.texts.items()
            if number not in has
        ]
        return UnembeddedTexts(texts=missing[: message.limit], remaining=max(0, len(missing) - message.limit))

    @handles(StoreVectors)
    def vectors(self, message: StoreVectors, context: Context) -> VectorsStored:
        if self.broken.times:
            self.broken = Break(times=self.broken.times - 1, refuses=self.broken.refuses)
            if self.broken.refuses:
                return VectorsStored(stored=0, remaining=len(message.vectors))
            raise RuntimeError("told to fail")
        made = {**self.kept.vectors.get(message.space, {}), **dict(message.vectors)}
        vectors = {**self.kept.vectors, message.space: made}
        serving = self.kept.serving
        if len(made) == len(self.kept.texts):
            if serving != message.space:
                embedding_rows.put_serving(context, serving, message.space)
            vectors, serving = {message.space: made}, message.space
            embedding_rows.put_pending(context, does=False)
        self._store(context, Kept(self.kept.texts, vectors, serving))
        return VectorsStored(stored=len(message.vectors), remaining=len(self.kept.texts) - len(made))

    @handles(Show)
    def show(self, message: Show, context: Context) -> Kept:
        del message, context
        return self.kept

    @handles(Break)
    def break_(self, message: Break, context: Context) -> None:
        del context
        self.broken = message

    def _store(self, context: Context, kept: Kept) -> None:
        context.put(b"kept", kept)
        self.kept = kept


class Letters:
    """An embedder of this test's own: a text's vector counts its letters. It fails when told to."""

    has_tokens = False
    quick: LocalEmbedder | None = None
    batch = 4

    def __init__(self, space: str = "letters:1", dimensions: int = 4) -> None:
        self.space = space
        self.dimensions = dimensions
        self.batches: list[list[str]] = []
        self.trouble: EmbedderError | None = None
        self.refused = ""
        self.closed = False
        self.go_on = trio.Event()
        self.go_on.set()
        self.answers = trio.Event()
        self.answers.set()

    async def embed(self, texts: Any) -> list[Vectors]:
        self.batches.append(list(texts))
        await self.go_on.wait()
        if self.trouble is not None:
            raise self.trouble
        if self.refused and any(self.refused in text for text in texts):
            raise TextRefusedError(f"a text with {self.refused} is refused")
        return [Vectors(scale=1.0, values=bytes([len(text) % 100] * self.dimensions)) for text in texts]

    async def query(self, text: str) -> QueryVectors:
        if self.closed:
            raise RuntimeError("it is closed")  # as the client of an endpoint
        await self.answers.wait()
        if self.trouble is not None:
            raise self.trouble
        return QueryVectors(space=self.space, words=[text], rows=b"")

    async def aclose(self) -> None:
        self.closed = True
