"""The corpus actor: which request is handled where."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from greenroom.actors.core.auth import corpora
from greenroom.actors.corpus import code_search, similar_files
from greenroom.actors.index import TidyIndex
from greenroom.actors.knowledge.corpora.handlers import chunks as reading
from greenroom.actors.knowledge.corpora.handlers import completion as completing
from greenroom.actors.knowledge.corpora.handlers import declare_entities as declaring
from greenroom.actors.knowledge.corpora.handlers import (
    embedding,
    entity_search,
    ingest_runs,
    resource,
    search,
    upkeep,
    verification,
)
from greenroom.actors.knowledge.corpora.handlers import indexing as filling
from greenroom.actors.knowledge.corpora.handlers import lease as keeping
from greenroom.actors.knowledge.corpora.requests import code_relations
from greenroom.actors.knowledge.corpora.requests import corpus_requests as requests
from greenroom.actors.knowledge.corpora.requests import entity_requests as entities
from greenroom.actors.knowledge.corpora.requests.ingestion import DescribeFilling, ListFailed, NoteIngest
from greenroom.actors.knowledge.corpora.requests.listing_requests import CountEachEntity
from greenroom.actors.knowledge.corpora.storage import facts, mentions, records
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.memories.requests.requests import StoreVectors, TextsToEmbed
from greenroom.actors.schemas import code, completion, workspace
from greenroom.actors.schemas.erasure import EraseFrom
from greenroom.actors.schemas.projects import CountEntities
from greenroom.runtime import Actor, Context, Message, Restate, Slices, handles

T = TypeVar("T")
R = TypeVar("R")


def _by(
    message_type: type[Message[R]], function: Callable[[CorpusRepository, T, Context], R | Slices[R]]
) -> Callable[[CorpusActor, T, Context], R | Slices[R]]:
    """Handle a message by a function of the corpus."""

    def handle(actor: CorpusActor, message: T, context: Context) -> R | Slices[R]:
        return function(actor.repository, message, context)

    return handles(message_type)(handle)


class CorpusActor(Actor):
    """One corpus, addressed by its owner and its number there."""

    kind = corpora.CORPUS_KIND
    names = staticmethod(records.names_in)

    def activate(self, context: Context) -> None:
        """Read what holds for the whole corpus; everything else stays on disk."""
        self.repository = CorpusRepository(context)

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return self.size + self.repository.resident_bytes()

    put = _by(requests.PutDocument, filling.put)
    note_reader = _by(requests.NoteReader, filling.note_reader)
    remove = _by(requests.RemoveDocuments, filling.remove)
    page = _by(requests.ListDocuments, filling.page)
    describe = _by(requests.DescribeCorpus, filling.describe)
    call = _by(requests.CallCorpus, filling.call)
    note_ingest = _by(NoteIngest, ingest_runs.note)
    describe_filling = _by(DescribeFilling, ingest_runs.describe)
    list_failed = _by(ListFailed, ingest_runs.failed)
    find = _by(requests.FindChunks, search.find)
    read_facts = _by(code.ReadFacts, facts.read_facts)
    read_symbols = _by(code.ReadSymbols, facts.read)
    find_code = _by(code.FindCode, code_search.find)
    find_similar = _by(code_relations.FindSimilar, similar_files.find)
    find_names = _by(completion.FindNames, completing.find)
    read = _by(requests.ReadChunks, reading.read)
    document = _by(resource.ReadDocument, resource.document)
    declare = _by(entities.DeclareEntities, declaring.declare)
    count_entities = _by(CountEntities, entity_search.count_entities)
    find_entities = _by(entities.FindEntities, entity_search.find)
    count_each = _by(CountEachEntity, entity_search.count_each)
    name_entities = _by(entities.NameEntities, entity_search.name_entities)
    count_names = _by(entities.CountNames, entity_search.count_names)
    manifests = _by(entities.ReadManifests, entity_search.manifests)
    keep = _by(workspace.KeepWorkspace, keeping.keep)
    find_keeper = _by(workspace.FindKeeper, keeping.find_keeper)
    drop_keeper = _by(workspace.DropKeeper, keeping.drop_keeper)
    describe_workspace = _by(workspace.DescribeWorkspace, keeping.describe)
    texts = _by(TextsToEmbed, embedding.texts)
    vectors = _by(StoreVectors, embedding.store)
    verify = _by(requests.VerifyCorpus, verification.verify)
    erase = _by(EraseFrom, upkeep.erase)

    @handles(requests.LoadCorpus)
    def load(self, _: requests.LoadCorpus, context: Context) -> Slices[None]:
        """Read the index into memory."""
        return search.load(self.repository, context)

    @handles(requests.NextChunk)
    def next_chunk(self, _: requests.NextChunk, _context: Context) -> int:
        """Answer the number of the next chunk."""
        return self.repository.header.next_chunk

    @handles(requests.DiscardCorpus)
    def discard(self, _: requests.DiscardCorpus, context: Context) -> None:
        """Be there for nobody any more."""
        filling.discard(self.repository, context)

    @handles(filling.SweepCorpus)
    def sweep(self, _: filling.SweepCorpus, context: Context) -> Slices[None]:
        """Remove a batch of what a dropped corpus had."""
        return filling.sweep(self.repository, context)

    @handles(mentions.MatchDocuments)
    def match(self, _: mentions.MatchDocuments, context: Context) -> Slices[None]:
        """Look for the names of entities in some documents."""
        return mentions.step(self.repository, context)

    @handles(TidyIndex)
    def tidy(self, _: TidyIndex, context: Context) -> Slices[None]:
        """Do a step of the index's upkeep."""
        if not self.repository.header.is_dropped:
            yield from self.repository.index.compact(context)

    @handles(Restate)
    def restate(self, _: Restate, context: Context) -> None:
        """Write the rows again by which the embedder finds the corpus."""
        context.use_reserve()
        embedding.list_again(self.repository, context)
