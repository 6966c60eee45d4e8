"""The tools `semantic_search` and `get_full_content`: query corpora, then check the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.replies.grades import least_of
from greenroom.actors.core.replies.sources import note_cache, note_whole
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.core.validation.types import RARE, UNLISTED
from greenroom.actors.knowledge.corpora.requests import corpus_requests
from greenroom.actors.knowledge.corpora.tools.query_service import ReadPassages, SearchCorpora, WithFiles
from greenroom.actors.knowledge.ingest.files.places import FilesClient
from greenroom.actors.knowledge.ingest.freshness import add_changes
from greenroom.runtime import Procedure

R = TypeVar("R", corpus_requests.ChunksFound, corpus_requests.FullContent)


@operation(
    "semantic_search",
    scope="knowledge:read",
    tool=ToolText(
        title="Search documents",
        description="Look up what documents say about something, such as policies and rules, "
        "handbooks, papers, docs or a manual, and on which page: finds passages. Ask "
        "with detail_level metadata first, then open the best three with "
        "get_full_content.",
        weight=4,
    ),
)
class SemanticSearch(
    Procedure[corpus_requests.ChunksFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find passages of documents by their words and meaning."""

    runs = "here"

    query: corpus_requests.QueryText
    top_k: corpus_requests.TopK = 10
    strategy: corpus_requests.AStrategy = "auto"
    min_score: corpus_requests.MinScore = None
    min_relevance: Annotated[corpus_requests.MinHybridScore, RARE] = None
    detail_level: corpus_requests.ADetailLevel = "full"
    corpus: corpus_requests.SearchedCorpus = corpus_requests.DEFAULT_CORPUS

    async def run(self, client: FilesClient) -> corpus_requests.ChunksFound:
        """Query the corpus, or all corpora."""
        least = least_of(self.min_score, self.min_relevance)
        request = corpus_requests.FindChunks(
            corpus=corpus_requests.DEFAULT_CORPUS,
            query=self.query,
            strategy=self.strategy,
            top_k=self.top_k,
            min_score=least.score,
            min_relevance=least.relevance,
            may_be_nothing=self.min_score is None and self.min_relevance is None,
            detail_level=self.detail_level,
        )
        search = SearchCorpora(corpus=self.corpus, asked=request)
        found = await client.runtime.query(search, principal=client.principal)
        _record_savings(found, found.reply.results)
        note_cache("memory", is_hit=found.reply.cache_hit)
        return await _add_changes(found, client)


@operation(
    "get_full_content",
    scope="knowledge:read",
    tool=ToolText(
        title="Read passages",
        description="Open and read in full what semantic_search found: the entire text of passages "
        "or a document, not just excerpts, and what stands before and after.",
        weight=4,
    ),
)
class GetFullContent(
    Procedure[corpus_requests.FullContent], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Read found passages in full."""

    runs = "here"

    chunk_ids: corpus_requests.ChunkIds
    around: corpus_requests.Around = 0
    corpus: Annotated[corpus_requests.CorpusName, Meta(extra_json_schema=UNLISTED)] | UnsetType = UNSET

    async def run(self, client: FilesClient) -> corpus_requests.FullContent:
        """Query the corpora that the ids name."""
        read = ReadPassages(corpus=self.corpus, chunk_ids=self.chunk_ids, around=self.around)
        found = await client.runtime.query(read, principal=client.principal)
        _record_savings(found, found.reply.chunks)
        return await _add_changes(found, client)


def _record_savings(
    found: WithFiles[Any],
    passages: Sequence[corpus_requests.ChunkFound] | Sequence[corpus_requests.ChunkContent],
) -> None:
    sizes = {file.path: file for file in found.files}
    for passage in passages:
        if (file := sizes.get(passage.source_file)) is not None:
            corpus = passage.corpus or found.reply.corpus
            note_whole(f"{corpus}\0{file.path}\0{file.digest}", file.bytes)


async def _add_changes(found: WithFiles[R], client: FilesClient) -> R:
    if found.reply.freshness is UNSET:
        return found.reply
    fresh = await add_changes(found.reply.freshness, found.files, client.files.reach)
    return msgspec.structs.replace(found.reply, freshness=fresh)
