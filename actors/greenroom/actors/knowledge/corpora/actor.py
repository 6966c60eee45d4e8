"""The corpus actor: the table of its requests and their handlers."""

from __future__ import annotations

from typing import ClassVar

from greenroom.actors.core.auth import corpora
from greenroom.actors.core.erasure import EraseFrom
from greenroom.actors.core.replies.damage import with_damage
from greenroom.actors.knowledge.corpora.handlers import (
    chunks,
    code_search,
    completion,
    declare_entities,
    embedding,
    entity_search,
    find_names,
    indexing,
    ingest_runs,
    lease,
    resource,
    search,
    upkeep,
)
from greenroom.actors.knowledge.corpora.requests import (
    code_relations,
    code_requests,
    code_symbols,
    corpus_requests,
    entity_requests,
    workspace,
)
from greenroom.actors.knowledge.corpora.requests.ingestion import DescribeFilling, ListFailed, NoteIngest
from greenroom.actors.knowledge.corpora.requests.listing_requests import CountEachEntity
from greenroom.actors.knowledge.corpora.requests.resources import CountEntities
from greenroom.actors.knowledge.corpora.storage import facts, mentions
from greenroom.actors.knowledge.corpora.storage.records import names_in
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.search.embedding.vector_messages import StoreVectors, TextsToEmbed
from greenroom.actors.search.index import TidyIndex
from greenroom.runtime import Restate


class CorpusActor(CorpusRepository):
    """One corpus; its address has its owner and its number."""

    kind = corpora.CORPUS_KIND
    names = staticmethod(names_in)
    name_damage = staticmethod(with_damage)
    handlers: ClassVar = {
        corpus_requests.PutDocument: indexing.put,
        corpus_requests.PutDocuments: indexing.put_all,
        corpus_requests.NoteReader: indexing.record_reader,
        corpus_requests.RemoveDocuments: indexing.remove,
        corpus_requests.ListDocuments: indexing.list_documents,
        corpus_requests.DescribeCorpus: indexing.describe,
        corpus_requests.CallCorpus: indexing.set_name,
        NoteIngest: ingest_runs.record,
        DescribeFilling: ingest_runs.describe,
        ListFailed: ingest_runs.list_failed,
        corpus_requests.FindChunks: search.find,
        code_symbols.ReadFacts: facts.read_facts,
        code_symbols.FindNamed: find_names.find_named,
        code_symbols.ReadSymbols: facts.read_symbols,
        code_requests.FindCode: code_search.find,
        code_relations.FindSimilar: code_search.find_similar,
        completion.FindNames: completion.find,
        corpus_requests.ReadChunks: chunks.read,
        resource.ReadDocument: resource.read_document,
        entity_requests.DeclareEntities: declare_entities.declare,
        CountEntities: entity_search.count_entities,
        entity_requests.FindEntities: entity_search.find,
        CountEachEntity: entity_search.count_each,
        entity_requests.NameEntities: entity_search.name_entities,
        entity_requests.CountNames: entity_search.count_names,
        entity_requests.ReadManifests: entity_search.read_manifests,
        workspace.KeepWorkspace: lease.update,
        workspace.FindKeeper: lease.find_holder,
        workspace.DropKeeper: lease.release,
        workspace.DescribeWorkspace: lease.describe,
        TextsToEmbed: embedding.list_texts,
        StoreVectors: embedding.store,
        corpus_requests.VerifyCorpus: upkeep.verify,
        EraseFrom: upkeep.erase,
        corpus_requests.LoadCorpus: search.load,
        corpus_requests.NextChunk: upkeep.next_chunk,
        corpus_requests.DiscardCorpus: indexing.discard,
        indexing.SweepCorpus: indexing.sweep,
        mentions.MatchDocuments: mentions.match,
        TidyIndex: upkeep.tidy,
        Restate: upkeep.restate,
    }
