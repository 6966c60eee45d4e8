"""Search for entities: matching names, mentions, and relations."""

from __future__ import annotations

from itertools import islice
from os.path import commonpath
from typing import TYPE_CHECKING, Final

import msgspec

from greenroom.actors.core.base.threads import import_in_thread
from greenroom.actors.core.base.unicode_forms import compose
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.handlers.undeclared_names import UndeclaredName, find_undeclared
from greenroom.actors.knowledge.corpora.requests import entity_requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import chunk_id
from greenroom.actors.knowledge.corpora.requests.entity_requests import EntityView, RelationshipView
from greenroom.actors.knowledge.corpora.requests.listing_requests import CountEachEntity, EntitiesCountedEach
from greenroom.actors.knowledge.corpora.requests.resources import CountEntities, EntitiesCounted
from greenroom.actors.knowledge.corpora.storage import entity_records, mentions, records
from greenroom.actors.knowledge.corpora.storage.entity_records import EntityRecord
from greenroom.actors.knowledge.corpora.storage.entity_table import can_match
from greenroom.actors.knowledge.corpora.storage.records import DocumentRecord, DocumentSummary
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.entities import NameCounter, is_manifest, is_third_party, look_up
from greenroom.actors.knowledge.entities.records import MAX_SOURCE_CHARACTERS, DeclarationFile
from greenroom.actors.memories.requests.map_replies import MappedEntity
from greenroom.runtime import Context, Slices

if TYPE_CHECKING:
    from greenroom.actors.knowledge.corpora.storage.mention_counts import MentionCounts

SOURCES: Final = 10
"""At most this many chunks are listed for one entity."""
TOGETHER: Final = 10
"""For one entity, at most this many entities are listed as mentioned together with it."""
EXAMPLES: Final = 3
TOGETHER_WITH: Final = "mentioned_with"
_READ_CHARACTERS: Final = 400_000
"""One message counts names in about this many characters of text, which takes about 50 ms."""
_MOST_MANIFESTS: Final = 200


def find(
    repository: CorpusRepository, request: entity_requests.FindEntities, context: Context
) -> Slices[entity_requests.FoundEntities]:
    """Return the entities that a name may mean."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.load(context)
    mentions.resume(repository, context)
    likely = yield from look_up(table.names, request.wanted)
    counts = yield from _load_counts(repository, context)
    meant = [
        (likeness, table.by_number[number])
        for number, likeness in likely
        if request.entity_type in {None, table.by_number[number].type}
    ]
    meant.sort(key=lambda each: (-each[0], -counts.mentions(each[1].number), each[1].name))
    found = [entity for _, entity in meant[: request.limit]]
    others: list[UndeclaredName] = []
    if request.entity_type is None and not any(likeness == 1 for likeness, _ in meant):
        known = [name for entity in table.by_number.values() for name in entity.names]
        others = yield from find_undeclared(repository, request.wanted, known, context)
    is_full = request.detail_level == "full"
    relations: list[RelationshipView] = []
    total_relations = 0
    if request.include_relationships:
        relations, total_relations = yield from _find_relations(repository, found, counts, request)
    return entity_requests.FoundEntities(
        entities=[
            *(_make_view(entity, counts, request.id_prefix, is_full=is_full) for entity in found),
            *(
                _view_undeclared(each, request.id_prefix, is_full=is_full)
                for each in others[: request.limit - len(found)]
            ),
        ],
        relationships=relations,
        total_entities=len(meant) + len(others),
        total_relationships=total_relations,
        freshness=repository.freshness(context),
        waiting=mentions.count_waiting(repository),
        names=found[0].names if found else [each.name for each in others[:1]],
        ambiguous=found[0].ambiguous if found else [],
    )


def name_entities(
    repository: CorpusRepository, request: entity_requests.NameEntities, context: Context
) -> Slices[list[MappedEntity]]:
    """Return the names of the entities that were declared first."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.load(context)
    return [
        MappedEntity(entity.name, entity.type, entity.names, entity.ambiguous)
        for entity in islice(table.by_number.values(), request.limit)
    ]


def count_each(
    repository: CorpusRepository, request: CountEachEntity, context: Context
) -> Slices[EntitiesCountedEach]:
    """Return a page of entities with their mentions, most mentioned first."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.load(context)
    mentions.resume(repository, context)
    counts = yield from _load_counts(repository, context)
    holding = compose(request.holding).casefold()
    meant: list[tuple[int, EntityRecord]] = []
    for entity in table.by_number.values():
        is_named = not holding or any(holding in compose(name).casefold() for name in entity.names)
        if is_named and request.entity_type in {None, entity.type}:
            meant.append((counts.mentions(entity.number), entity))
        yield
    meant.sort(key=lambda each: (-each[0], each[1].name))
    page = meant[request.start : request.start + request.limit]
    return EntitiesCountedEach(
        entities=[_make_view(entity, counts, request.id_prefix, is_full=True) for _, entity in page],
        total=len(meant),
        waiting=mentions.count_waiting(repository),
    )


def count_entities(
    repository: CorpusRepository, request: CountEntities, context: Context
) -> Slices[EntitiesCounted]:
    """Count the declared entities, and the relations between them."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.load(context)
    relations = {each for found in table.relations.values() for each in found}
    return EntitiesCounted(entities=len(table.by_number), relations=len(relations))


def _load_counts(repository: CorpusRepository, context: Context) -> Slices[MentionCounts]:
    yield from import_in_thread("greenroom.actors.knowledge.corpora.storage.mention_counts")
    from greenroom.actors.knowledge.corpora.storage.mention_counts import MentionCounts  # noqa: PLC0415 - needs numpy, which is already loaded

    table = repository.entities
    if table.mentions is None:
        read: dict[int, bytes] = {}
        for key, record in context.scan(bytes, prefix=entity_records.MENTIONS):
            read[int.from_bytes(key[len(entity_records.MENTIONS) :])] = record
            yield
        table.set_mentions(read)
    if table.counts is None:
        assert table.mentions is not None, "they were read just now"
        table.counts = MentionCounts(table.mentions.values(), table.by_match, table.header.next_match)
    return table.counts


def _make_view(entity: EntityRecord, counts: MentionCounts, id_prefix: int, *, is_full: bool) -> EntityView:
    view = EntityView(
        entity_id=entity.id,
        name=entity.name,
        entity_type=entity.type,
        mention_count=counts.mentions(entity.number),
    )
    if not is_full:
        return view
    return msgspec.structs.replace(
        view,
        description=entity.description,
        source_chunks=[chunk_id(id_prefix, each) for each in counts.chunks(entity.number, SOURCES)],
        created_at=to_datetime(entity.created_at),
        aliases=[name for name in entity.names if name != entity.name],
        version=entity.version or msgspec.UNSET,
    )


def _view_undeclared(found: UndeclaredName, id_prefix: int, *, is_full: bool) -> EntityView:
    return EntityView(
        entity_id=None,
        name=found.name,
        entity_type=None,
        mention_count=found.mentions,
        declared=False,
        source_chunks=[chunk_id(id_prefix, each) for each in found.chunks[:SOURCES]] if is_full else [],
        source_files=found.documents[:SOURCES] if is_full else msgspec.UNSET,
    )


def _find_relations(
    repository: CorpusRepository,
    found: list[EntityRecord],
    counts: MentionCounts,
    request: entity_requests.FindEntities,
) -> Slices[tuple[list[RelationshipView], int]]:
    """Return the relations of entities in both directions (declared first), and the total."""
    shown = _list_declared(repository, found)
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
                _make_relation(entity, target, TOGETHER_WITH, declared=False), chunk_count=chunks
            )
            if request.detail_level == "full":
                ids = [chunk_id(request.id_prefix, each) for each in examples]
                seen = msgspec.structs.replace(seen, example_chunks=ids)
            shown.append(seen)
        yield
    return shown, total


def _list_declared(repository: CorpusRepository, found: list[EntityRecord]) -> list[RelationshipView]:
    table = repository.entities
    both = (each for entity in found for each in table.relations.get(entity.number, ()))
    return [
        _make_relation(table.by_number[each.source], table.by_number[each.target], each.type, declared=True)
        for each in dict.fromkeys(both)
    ]


def _make_relation(
    source: EntityRecord, target: EntityRecord, type_: str, *, declared: bool
) -> RelationshipView:
    return RelationshipView(
        source_id=source.id,
        target_id=target.id,
        relationship_type=type_,
        source_name=source.name,
        target_name=target.name,
        declared=declared,
    )


def count_names(
    repository: CorpusRepository, request: entity_requests.CountNames, context: Context
) -> Slices[entity_requests.NamesCounted]:
    """Count the names in some documents."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.load(context)
    counter = NameCounter()
    documents = characters = 0
    after: int | None = None
    start = records.number_key(request.after)
    for key, where in context.scan(bytes, prefix=records.NUMBERS, start=start):
        if characters >= _READ_CHARACTERS:
            after = int.from_bytes(key[len(records.NUMBERS) :])
            break
        document = context.get(where, DocumentRecord)
        assert document is not None, "a number's row goes with its document"
        documents += 1
        characters += document.text_bytes
        passages = repository.all_passages(context, document)
        for place, passage in zip(document.places, passages, strict=False):
            counter.add(place.id, passage.text)
            yield
    known = [] if after is not None else [name for each in table.by_number.values() for name in each.names]
    return entity_requests.NamesCounted(
        counts=counter.export(), documents=documents, after=after, known=known
    )


def read_manifests(
    repository: CorpusRepository, request: entity_requests.ReadManifests, context: Context
) -> Slices[entity_requests.ManifestsRead]:
    """Return the manifests among the documents; manifests nearest to the root come first."""
    repository.check(context.principal, request.corpus)
    table = yield from repository.entities.load(context)
    mentions.resume(repository, context)
    state = table.header.manifests
    if request.only_changed and (state == table.header.manifests_read or not can_match()):
        return entity_requests.ManifestsRead(manifests=[], state=state, is_changed=False)
    paths: list[str] = []
    root: str | None = None
    for _, summary in context.scan(DocumentSummary, prefix=records.DOCUMENTS):
        path = summary.path
        if path.startswith("/") and (root is None or not path.startswith(f"{root}/")):
            folder = path.rpartition("/")[0] or "/"
            root = commonpath([root or folder, folder])
        if is_manifest(path):
            paths.append(path)
        yield
    near = sorted(paths, key=lambda path: (path.count("/"), path))
    own = [each for each in near if not is_third_party(each, root if each.startswith("/") and root else "")]
    found: list[DeclarationFile] = []
    for path in own[:_MOST_MANIFESTS]:
        document = repository.document(context, path)
        assert document is not None, "it was read just now"
        if document.text_bytes > MAX_SOURCE_CHARACTERS:
            continue
        passages = repository.all_passages(context, document)
        found.append(DeclarationFile(document.path, "\n".join(each.text for each in passages)))
        yield
    return entity_requests.ManifestsRead(manifests=found, state=state)
