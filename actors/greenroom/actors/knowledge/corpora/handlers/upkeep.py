"""Checking every corpus for `greenroom verify`, and erasing what is a person's."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from greenroom.actors.knowledge.corpora.handlers import embedding
from greenroom.actors.knowledge.corpora.handlers.indexing import SWEEP
from greenroom.actors.knowledge.corpora.requests.catalogue import AllCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import VerifyCorpus
from greenroom.actors.knowledge.corpora.storage import mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_table import EntityTable
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.schemas.erasure import ErasedPart, EraseFrom
from greenroom.actors.search.index import index as index_module
from greenroom.runtime import Context, GreenroomError, Procedure, ProcedureContext, Slices

_AT_ONCE: Final = 500
"""Records that one message of an erasure deletes."""


def erase(repository: CorpusRepository, request: EraseFrom, context: Context) -> Slices[ErasedPart]:
    """Erase a corpus that is a person's, a batch of its records at a time; or count its documents."""
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
        embedding.forget(repository, context)
        repository.index.unload()
        context.cancel_timer(index_module.TIMER)
    context.cancel_timer(SWEEP)
    context.cancel_timer(mentions.TIMER)
    # Its head goes last: until then it is there for nobody.
    for key in keys:
        context.delete(key)
        if context.should_yield():
            yield
    repository.header = records.CorpusHeader(is_dropped=True)
    repository.answers.clear()
    repository.entities = EntityTable()
    repository.runs = {}
    remaining = len(keys) == most
    if remaining:
        context.put(records.HEADER, repository.header)
    return ErasedPart(counts=counts, remaining=remaining)


class CorporaVerified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found.

    Attributes:
        chunks: Chunks that were compared.
        problems: What differs from them: the corpus, and a sentence each.
        rebuilt: The corpora of which what differs was made anew.
    """

    chunks: int
    problems: list[tuple[str, str]]
    rebuilt: list[str]


class VerifyCorpora(Procedure[CorporaVerified], frozen=True, kw_only=True):
    """Compare the index, the counts and the mentions of every corpus with its texts; for the operator alone.

    Attributes:
        rebuild: Whether what differs is made anew.
    """

    rebuild: bool = False

    async def run(self, context: ProcedureContext) -> CorporaVerified:
        """Ask one after the other: each may have to read all that it has."""
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
