"""Maintain a corpus: compaction, erasing a person's data, verifying all corpora."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from greenroom.actors.core.erasure import ErasedPart, EraseFrom
from greenroom.actors.knowledge.corpora.handlers import embedding
from greenroom.actors.knowledge.corpora.handlers.indexing import SWEEP
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import NextChunk, VerifyCorpus
from greenroom.actors.knowledge.corpora.storage import mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.search.index import TidyIndex
from greenroom.actors.search.index import index as index_module
from greenroom.runtime import Context, GreenroomError, Procedure, ProcedureContext, Restate, Slices

_AT_ONCE: Final = 500
"""Records that one message of an erasure deletes."""


def erase(repository: CorpusRepository, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Erase a person's corpus in steps, or count its documents in a dry run."""
    if not request.person.has_root(context.address.key):
        return ErasedPart(counts={})
    documents = repository.header.documents
    counts = {"documents": documents} if documents else {}
    if request.dry_run:
        return ErasedPart(counts=counts)
    context.use_reserve()
    most = context.most_rows(_AT_ONCE)
    keys = [key for key, _ in islice(context.scan(msgspec.Raw), most)]
    if not repository.header.is_dropped:
        embedding.unmark(repository, context)
        repository.index.unload()
        context.cancel_timer(index_module.TIMER)
    context.cancel_timer(SWEEP)
    context.cancel_timer(mentions.TIMER)
    # The header is deleted last: it marks the corpus as dropped until then.
    for key in keys:
        context.delete(key)
        yield
    repository.header = records.CorpusHeader(is_dropped=True)
    repository.answers.clear()
    repository.entities = EntityTable()
    repository.runs = {}
    remaining = len(keys) == most
    if remaining:
        context.put(records.HEADER, repository.header)
    return ErasedPart(counts=counts, remaining=remaining)


def next_chunk(repository: CorpusRepository, _: NextChunk, __: Context) -> int:
    """Return the number of the next chunk."""
    return repository.header.next_chunk


def tidy(repository: CorpusRepository, _: TidyIndex, context: Context) -> Slices[None]:
    """Do one step of the index's compaction."""
    if not repository.header.is_dropped:
        yield from repository.index.compact(context)


def restate(repository: CorpusRepository, _: Restate, context: Context) -> None:
    """Write the embedder's index rows again."""
    context.use_reserve()
    embedding.restate(repository, context)


class CorporaVerified(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a verification: ``problems`` are a corpus and a sentence each."""

    chunks: int
    problems: list[tuple[str, str]]
    rebuilt: list[str]


class VerifyCorpora(Procedure[CorporaVerified], frozen=True, kw_only=True):
    """Compare every corpus's index, counts and mentions with its texts; operator only."""

    rebuild: bool = False

    async def run(self, context: ProcedureContext) -> CorporaVerified:
        """Verify one corpus after the other: each may have to read all its records."""
        chunks = 0
        problems: list[tuple[str, str]] = []
        rebuilt: list[str] = []
        for row in await context.query(AllCorpora()):
            try:
                found = await context.ask(corpus_address(row), VerifyCorpus(rebuild=self.rebuild))
            except GreenroomError as error:
                problems.append((row.full_name, str(error)))
                continue
            chunks += found.chunks
            problems += [(row.full_name, problem) for problem in found.problems]
            if found.rebuilt:
                rebuilt.append(row.full_name)
        return CorporaVerified(chunks=chunks, problems=problems, rebuilt=rebuilt)
