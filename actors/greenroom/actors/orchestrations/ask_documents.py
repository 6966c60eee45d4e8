"""The tools `semantic_search` and `get_full_content`: ask corpora, then look at the files of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.replies.grades import least_of
from greenroom.actors.core.replies.sources import note_cache, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import RARE, UNLISTED
from greenroom.actors.knowledge.corpora.requests import corpus_requests as schemas
from greenroom.actors.knowledge.corpora.tools.query_service import Answered, ReadPassages, SearchCorpora
from greenroom.actors.knowledge.ingest.freshness import with_changes
from greenroom.actors.orchestrations.client_session import ClientOrchestration, ClientSessionState

R = TypeVar("R", schemas.ChunksFound, schemas.FullContent)


class SemanticSearch(
    ClientOrchestration[schemas.ChunksFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find passages of documents by what they say and mean."""

    writes: ClassVar[bool] = False

    query: schemas.QueryText
    top_k: schemas.TopK = 10
    strategy: schemas.AStrategy = "auto"
    min_score: schemas.MinScore = None
    min_relevance: Annotated[schemas.MinHybridScore, RARE] = None
    detail_level: schemas.ADetailLevel = "full"
    corpus: schemas.SearchedCorpus = schemas.DEFAULT_CORPUS

    async def carry_out(self, client: ClientSessionState) -> schemas.ChunksFound:
        """Ask the corpus, or all.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, or ``VALIDATION_ERROR``: there are too many.
        """
        least = least_of(self.min_score, self.min_relevance)
        asked = schemas.FindChunks(
            corpus=schemas.DEFAULT_CORPUS,
            query=self.query,
            strategy=self.strategy,
            top_k=self.top_k,
            min_score=least.score,
            min_relevance=least.relevance,
            may_be_nothing=self.min_score is None and self.min_relevance is None,
            detail_level=self.detail_level,
        )
        search = SearchCorpora(corpus=self.corpus, asked=asked)
        answered = await client.runtime.query(search, principal=client.principal)
        _note(answered, answered.said.results)
        note_cache("memory", is_hit=answered.said.cache_hit)
        return await _with_changes(answered, client)


class GetFullContent(
    ClientOrchestration[schemas.FullContent], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Read passages in full that a search has found."""

    writes: ClassVar[bool] = False

    chunk_ids: schemas.ChunkIds
    around: schemas.Around = 0
    corpus: Annotated[schemas.CorpusName, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET

    async def carry_out(self, client: ClientSessionState) -> schemas.FullContent:
        """Ask the corpora that the ids name.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``; ``VALIDATION_ERROR``: an id is from before ids named a corpus.
        """
        read = ReadPassages(corpus=self.corpus, chunk_ids=self.chunk_ids, around=self.around)
        answered = await client.runtime.query(read, principal=client.principal)
        _note(answered, answered.said.chunks)
        return await _with_changes(answered, client)


def _note(
    answered: Answered[Any], passages: Sequence[schemas.ChunkFound] | Sequence[schemas.ChunkContent]
) -> None:
    """Note the files whose passages are read instead of them."""
    sizes = {file.path: file for file in answered.files}
    for found in passages:
        if (file := sizes.get(found.source_file)) is not None:
            corpus = found.corpus or answered.said.corpus
            note_whole(f"{corpus}\0{file.path}\0{file.digest}", file.bytes)


async def _with_changes(answered: Answered[R], client: ClientSessionState) -> R:
    """Return an answer that says which of its files have changed since."""
    if answered.said.freshness is UNSET:
        return answered.said
    fresh = await with_changes(answered.said.freshness, answered.files, client.reach)
    return msgspec.structs.replace(answered.said, freshness=fresh)
