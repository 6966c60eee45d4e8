"""How far the embedding is, for whoever wants to see it, in whichever process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from greenroom.runtime import Procedure

if TYPE_CHECKING:
    from greenroom.actors.embedding.service import Embedding
    from greenroom.runtime import Desk

EmbeddingState = Literal["off", "idle", "loading", "ready", "failing"]


class EmbeddingStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of meaning. Counts are since the runtime was opened unless they say "now".

    Attributes:
        embedder: Which one is wanted, as `--embedder` has it.
        state: ``off``: none is wanted; ``idle``: none was needed so far; then ``loading``, ``ready``, or
            ``failing`` when it cannot be had or does not embed now.
        space: The name of its vectors, once it was ready.
        trouble: Why it fails.
        embedded: Texts that got vectors from the worker.
        texts_waiting: Texts without vectors of this space, about, now.
        actors_waiting: How many actors have these, now.
        older_spaces: The spaces of embedders before this one in which some actors search, now.
        queries: Searches that asked for vectors.
        queries_without: Of those, how many got none.
    """

    embedder: str
    state: EmbeddingState
    space: str | None
    trouble: str | None
    embedded: int
    texts_waiting: int
    actors_waiting: int
    older_spaces: list[str]
    queries: int
    queries_without: int


OFF = EmbeddingStatistics(
    embedder="none",
    state="off",
    space=None,
    trouble=None,
    embedded=0,
    texts_waiting=0,
    actors_waiting=0,
    older_spaces=[],
    queries=0,
    queries_without=0,
)


class GetEmbedding(Procedure[EmbeddingStatistics], frozen=True, kw_only=True):
    """Ask the process that owns the folder how far its embedding is."""

    async def run(self, desk: Desk) -> EmbeddingStatistics:
        """Return what becomes of meaning."""
        companion: Embedding | None = desk.companion
        return OFF if companion is None else companion.statistics()
