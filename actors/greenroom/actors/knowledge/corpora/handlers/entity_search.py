"""Answering about entities: which are meant, where they are mentioned, what they are to others."""

from __future__ import annotations

from itertools import islice
from os.path import commonpath
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from greenroom.actors.core.base.threads import imported
from greenroom.actors.core.base.unicode_forms import composed
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.entities import NameCounter, is_manifest, is_of_others, look_up
from greenroom.actors.knowledge.corpora.handlers.undeclared_names import FoundName, found_names
from greenroom.actors.knowledge.corpora.requests import entity_requests as schemas
from greenroom.actors.knowledge.corpora.requests.corpus_requests import chunk_id
from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityView, RelationshipView
from greenroom.actors.knowledge.corpora.requests.listing_requests import CountEachEntity, EntitiesCountedEach
from greenroom.actors.knowledge.corpora.storage import entity_records as records
from greenroom.actors.knowledge.corpora.storage import mentions
from greenroom.actors.knowledge.corpora.storage import records as corpus_records
from greenroom.actors.knowledge.corpora.storage.entity_records import EntityRecord
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, DocumentSummary
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.memories.requests.map_replies import MappedEntity
from greenroom.actors.schemas.projects import CountEntities, EntitiesCounted
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.knowledge.corpora.storage.mention_counts import MentionCounts

SOURCES: Final = 10
"""Chunks that are named of one entity."""
TOGETHER: Final = 10
"""Entities that are named of those with which one is mentioned together."""
EXAMPLES: Final = 3
TOGETHER_WITH: Final = "mentioned_with"
_READ_CHARACTERS: Final = 400_000
"""Of the texts whose names one message counts: about 50 ms."""
_MOST_MANIFESTS: Final = 200


def find(
    repository: CorpusRepository, request: schemas.FindEntities, context: Context
) -> Slices[schemas.FoundEntities]:
    """Answer the entities that may be meant."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.loaded(context)
    mentions.go_on(repository, context)
    likely = yield from look_up(table.names, request.wanted, context.should_yield)
    counts = yield from _counts(repository, context)
    meant = [
        (likeness, table.by_number[number])
        for number, likeness in likely
        if request.entity_type in {None, table.by_number[number].type}
    ]
    meant.sort(key=lambda each: (-each[0], -counts.mentions(each[1].number), each[1].name))
    found = [entity for _, entity in meant[: request.limit]]
    others: list[FoundName] = []
    if request.entity_type is None and not any(likeness == 1 for likeness, _ in meant):
        known = [name for entity in table.by_number.values() for name in entity.names]
        others = yield from found_names(repository, request.wanted, known, context)
    is_full = request.detail_level == "full"
    relations = _Relations([], 0)
    if request.include_relationships:
        relations = yield from _relations(repository, found, counts, context, request)
    return schemas.FoundEntities(
        entities=[
            *(_view(entity, counts, request.id_prefix, is_full=is_full) for entity in found),
            *(
                _undeclared(each, request.id_prefix, is_full=is_full)
                for each in others[: request.limit - len(found)]
            ),
        ],
        relationships=relations.shown,
        total_entities=len(meant) + len(others),
        total_relationships=relations.total,
        freshness=repository.freshness(context),
        waiting=mentions.waiting(repository),
        names=found[0].names if found else [each.name for each in others[:1]],
        ambiguous=found[0].ambiguous if found else [],
    )


def name_entities(
    repository: CorpusRepository, request: schemas.NameEntities, context: Context
) -> Slices[list[MappedEntity]]:
    """Answer what the entities that were declared first are called."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.loaded(context)
    return [
        MappedEntity(entity.name, entity.type, entity.names, entity.ambiguous)
        for entity in islice(table.by_number.values(), request.limit)
    ]


def count_each(
    repository: CorpusRepository, request: CountEachEntity, context: Context
) -> Slices[EntitiesCountedEach]:
    """Answer a page of entities with their mentions, those first that are mentioned most."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.loaded(context)
    mentions.go_on(repository, context)
    counts = yield from _counts(repository, context)
    holding = composed(request.holding).casefold()
    meant: list[tuple[int, EntityRecord]] = []
    for entity in table.by_number.values():
        is_named = not holding or any(holding in composed(name).casefold() for name in entity.names)
        if is_named and request.entity_type in {None, entity.type}:
            meant.append((counts.mentions(entity.number), entity))
        if context.should_yield():
            yield
    meant.sort(key=lambda each: (-each[0], each[1].name))
    page = meant[request.start : request.start + request.limit]
    return EntitiesCountedEach(
        entities=[_view(entity, counts, request.id_prefix, is_full=True) for _, entity in page],
        total=len(meant),
        waiting=mentions.waiting(repository),
    )


def count_entities(
    repository: CorpusRepository, request: CountEntities, context: Context
) -> Slices[EntitiesCounted]:
    """Answer how many entities are declared, and how many relations between two that are."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.loaded(context)
    relations = {each for found in table.relations.values() for each in found}
    return EntitiesCounted(entities=len(table.by_number), relations=len(relations))


def _counts(repository: CorpusRepository, context: Context) -> Slices[MentionCounts]:
    """Return all mentions, counted; read once, and counted again after a change."""
    yield from imported("greenroom.actors.knowledge.corpora.storage.mention_counts")
    from greenroom.actors.knowledge.corpora.storage.mention_counts import MentionCounts  # noqa: PLC0415 - needs numpy, loaded by now

    table = repository.entities
    if table.mentions is None:
        read: dict[int, bytes] = {}
        for key, record in context.scan(bytes, prefix=records.MENTIONS):
            read[int.from_bytes(key[len(records.MENTIONS) :])] = record
            if context.should_yield():
                yield
        table.take_mentions(read)
    if table.counts is None:
        assert table.mentions is not None, "they were read just now"
        table.counts = MentionCounts(table.mentions.values(), table.by_match, table.header.next_match)
    return table.counts


def _view(entity: EntityRecord, counts: MentionCounts, id_prefix: int, *, is_full: bool) -> EntityView:
    view = EntityView(
        entity_id=entity.id,
        name=entity.name,
        entity_type=entity.type,
        mention_count=counts.mentions(entity.number),
    )
    if not is_full:
        return view
    return EntityView(
        entity_id=view.entity_id,
        name=view.name,
        entity_type=view.entity_type,
        mention_count=view.mention_count,
        description=entity.description,
        source_chunks=[chunk_id(id_prefix, each) for each in counts.chunks(entity.number, SOURCES)],
        created_at=to_datetime(entity.created_at),
        aliases=[name for name in entity.names if name != entity.name],
        version=entity.version or msgspec.UNSET,
    )


def _undeclared(found: FoundName, id_prefix: int, *, is_full: bool) -> EntityView:
    return EntityView(
        entity_id=None,
        name=found.name,
        entity_type=None,
        mention_count=found.mentions,
        declared=False,
        source_chunks=[chunk_id(id_prefix, each) for each in found.chunks[:SOURCES]] if is_full else [],
        source_files=found.documents[:SOURCES] if is_full else msgspec.UNSET,
    )


class _Relations(NamedTuple):
    """The relations of some entities, and how many there are with those that are not shown."""

    shown: list[RelationshipView]
    total: int


def _relations(
    repository: CorpusRepository,
    found: list[EntityRecord],
    counts: MentionCounts,
    context: Context,
    request: schemas.FindEntities,
) -> Slices[_Relations]:
    """Return the relations of entities in both directions, what was declared first."""
    shown = _declared(repository, found)
    total = len(shown)
    pairs: set[frozenset[int]] = set()
    for entity in found:
        count, best = counts.together(entity.number, TOGETHER, EXAMPLES)
        total += count
        for other, chunks, examples in best:
            pair = frozenset({entity.number, other})
            if pair in pairs:
                continue
            pairs.add(pair)
            target = repository.entities.by_number[other]
            seen = msgspec.structs.replace(
                _relation(entity, target, TOGETHER_WITH, declared=False), chunk_count=chunks
            )
            if request.detail_level == "full":
                ids = [chunk_id(request.id_prefix, each) for each in examples]
                seen = msgspec.structs.replace(seen, example_chunks=ids)
            shown.append(seen)
        if context.should_yield():
            yield
    return _Relations(shown, total)


def _declared(repository: CorpusRepository, found: list[EntityRecord]) -> list[RelationshipView]:
    table = repository.entities
    both = (each for entity in found for each in table.relations.get(entity.number, ()))
    return [
        _relation(table.by_number[each.source], table.by_number[each.target], each.type, declared=True)
        for each in dict.fromkeys(both)
    ]


def _relation(source: EntityRecord, target: EntityRecord, type_: str, *, declared: bool) -> RelationshipView:
    return RelationshipView(
        source_id=source.id,
        target_id=target.id,
        relationship_type=type_,
        source_name=source.name,
        target_name=target.name,
        declared=declared,
    )


def count_names(
    repository: CorpusRepository, request: schemas.CountNames, context: Context
) -> Slices[schemas.NamesCounted]:
    """Count the names in some documents."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.loaded(context)
    counter = NameCounter()
    documents = characters = 0
    after: int | None = None
    start = corpus_records.number_key(request.after)
    for key, where in context.scan(bytes, prefix=corpus_records.NUMBERS, start=start):
        if characters >= _READ_CHARACTERS:
            after = int.from_bytes(key[len(corpus_records.NUMBERS) :])
            break
        document = context.get(where, DocumentRecord)
        assert document is not None, "a number's row goes with its document"
        documents += 1
        characters += document.text_bytes
        places = iter(document.places)
        for block in range(len(document.blocks)):
            for passage in repository.passages(context, document, block):
                counter.add(next(places).id, passage.text)
                if context.should_yield():
                    yield
    known = [] if after is not None else [name for each in table.by_number.values() for name in each.names]
    return schemas.NamesCounted(counts=counter.counted(), documents=documents, after=after, known=known)


def manifests(
    repository: CorpusRepository, request: schemas.ReadManifests, context: Context
) -> Slices[schemas.ManifestsRead]:
    """Answer the manifests among the documents, those nearest to the root of all."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.loaded(context)
    mentions.go_on(repository, context)
    state = table.header.manifests
    if request.only_changed and (state == table.header.manifests_read or not can_match()):
        return schemas.ManifestsRead(manifests=[], state=state, is_changed=False)
    paths: list[str] = []
    root: str | None = None
    for _, summary in context.scan(DocumentSummary, prefix=corpus_records.DOCUMENTS):
        path = summary.path
        if path.startswith("/") and (root is None or not path.startswith(f"{root}/")):
            folder = path.rpartition("/")[0] or "/"
            root = commonpath([root or folder, folder])
        if is_manifest(path):
            paths.append(path)
        if context.should_yield():
            yield
    near = sorted(paths, key=lambda path: (path.count("/"), path))
    own = [each for each in near if not is_of_others(each, root if each.startswith("/") and root else "")]
    found: list[schemas.DeclarationFile] = []
    for path in own[:_MOST_MANIFESTS]:
        document = repository.document(context, path)
        assert document is not None, "it was read just now"
        if document.text_bytes > schemas.MAX_SOURCE_CHARACTERS:
            continue
        passages = [
            passage.text
            for block in range(len(document.blocks))
            for passage in repository.passages(context, document, block)
        ]
        found.append(schemas.DeclarationFile(document.path, "\n".join(passages)))
        if context.should_yield():
            yield
    return schemas.ManifestsRead(manifests=found, state=state)
