"""Declare, rename and remove entities of a corpus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.knowledge.corpora.requests import entity_requests
from greenroom.actors.knowledge.corpora.requests.corpus_requests import is_text
from greenroom.actors.knowledge.corpora.storage import entity_records, mentions
from greenroom.actors.knowledge.corpora.storage.entity_records import EntitiesHeader, EntityRecord
from greenroom.actors.knowledge.corpora.storage.repository import CorpusRepository
from greenroom.actors.knowledge.entities import NAMES, fold
from greenroom.actors.knowledge.entities.records import EntityDeclaration, Relation
from greenroom.runtime import Context, Refusal, Slices

_LONGEST_ID: Final = 16


class _Changes:
    """The entities of a corpus before and after a request."""

    def __init__(self, header: EntitiesHeader, entities: dict[int, EntityRecord]) -> None:
        self.before = entities
        self.after = dict(entities)
        self.numbers = {fold(entity.name): number for number, entity in entities.items()}
        # For each name, the entities that have, or had, a relation to it.
        self._pointing: dict[str, set[int]] = defaultdict(set)
        for entity in entities.values():
            self._index_relations(entity)
        self.next_entity = header.next_entity
        self.next_match = header.next_match
        self.unchanged = 0

    def make(self, request: entity_requests.DeclareEntities, context: Context) -> Slices[None]:
        """Make all changes that a request contains."""
        for name in request.remove:
            self.remove(name)
            yield
        for declared in request.declarations:
            self.declare(declared, context.now)
            yield
        if request.are_all:
            self.drop_found(request.libraries)
        for library in request.libraries:
            self.update_version(library, context.now, is_found=request.manifests is not None)
            yield

    def declare(self, declared: EntityDeclaration, now: int, *, is_found: bool = False) -> None:
        """Add an entity, or replace its declaration."""
        declared = _tidy(declared)
        same = self.numbers.get(fold(declared.name))
        number = same if declared.entity_id is None else int(declared.entity_id[1:])
        if declared.entity_id is not None and number not in self.after:
            raise auth_errors.invalid(
                "entity_id", f"entity_id: there is no entity {declared.entity_id!r}; leave it out to add one"
            )
        if same is not None and same != number:
            raise auth_errors.invalid(
                "name", f"name: {declared.name!r} is the name of the entity e{same}; remove that one first"
            )
        old = None if number is None else self.after[number]
        if number is None:
            number, self.next_entity = self.next_entity, self.next_entity + 1
        self._put(entity_records.make_record(declared, number, now, is_found=is_found), old)

    def update_version(self, library: EntityDeclaration, now: int, *, is_found: bool) -> None:
        """Add a library; if it is already declared, update only its version."""
        number = self.numbers.get(fold(library.name))
        if number is None:
            self.declare(library, now, is_found=is_found)
        else:
            old = self.after[number]
            self._put(msgspec.structs.replace(old, version=library.version), old)

    def drop_found(self, libraries: Iterable[EntityDeclaration]) -> None:
        named = {fold(library.name) for library in libraries}
        for entity in list(self.after.values()):
            if entity.is_found and fold(entity.name) not in named:
                self.remove(entity.id)

    def remove(self, name: str) -> None:
        """Remove an entity by its name or id, and remove declared relations to it."""
        number = self.numbers.get(fold(name))
        if number is None and name.startswith("e") and name[1:].isdecimal() and len(name) <= _LONGEST_ID:
            number = int(name[1:])
        gone = None if number is None else self.after.pop(number, None)
        if gone is not None:
            del self.numbers[fold(gone.name)]
            self._rename_target(gone.name, None)

    def _put(self, fresh: EntityRecord, old: EntityRecord | None) -> None:
        if old is not None:
            has_same_names = (fresh.names, fresh.ambiguous) == (old.names, old.ambiguous)
            match = old.match if has_same_names else self._new_match()
            fresh = msgspec.structs.replace(fresh, match=match, created_at=old.created_at)
            if fresh == old:
                self.unchanged += 1
                return
            del self.numbers[fold(old.name)]
        else:
            fresh = msgspec.structs.replace(fresh, match=self._new_match())
        self.after[fresh.number] = fresh
        self.numbers[fold(fresh.name)] = fresh.number
        self._index_relations(fresh)
        if old is not None and old.name != fresh.name:
            self._rename_target(old.name, fresh.name)

    def _new_match(self) -> int:
        self.next_match += 1
        return self.next_match - 1

    def _rename_target(self, old: str, new: str | None) -> None:
        target = fold(old)
        for number in sorted(self._pointing.pop(target, ())):
            entity = self.after.get(number)
            if entity is None:
                continue
            moved = [
                Relation(new, relation.type) if new and fold(relation.to) == target else relation
                for relation in entity.relations
                if new or fold(relation.to) != target
            ]
            self.after[number] = msgspec.structs.replace(entity, relations=moved)
            self._index_relations(self.after[number])

    def _index_relations(self, entity: EntityRecord) -> None:
        for relation in entity.relations:
            self._pointing[fold(relation.to)].add(entity.number)


def declare(
    repository: CorpusRepository, request: entity_requests.DeclareEntities, context: Context
) -> Slices[entity_requests.EntitiesDeclared]:
    """Declare entities and remove some."""
    repository.check(context.principal, request.corpus)
    if (request.declarations or request.libraries) and (lack := NAMES.lack):
        raise auth_errors.invalid("entities", f"entities: {lack}")
    table = yield from repository.entities.load(context)
    if request.remove and not (request.declarations or request.libraries):
        context.use_reserve()
    changes = _Changes(table.header, table.by_number)
    yield from changes.make(request, context)
    if len(changes.after) > entity_requests.MAX_ENTITIES:
        raise Refusal(
            "QUOTA_EXCEEDED",
            f"the corpus would have {len(changes.after):,} entities; "
            f"the limit is {entity_requests.MAX_ENTITIES:,}",
            limit=entity_requests.MAX_ENTITIES,
        )
    stored = yield from _stage(repository, changes, context)
    if request.manifests is not None:
        table.put_header(context, msgspec.structs.replace(table.header, manifests_read=request.manifests))
    if request.manifests is None or any(stored):
        audit_record.record(
            context,
            "define_entities",
            None,
            corpus=request.corpus,
            added=len(stored.added),
            changed=len(stored.changed),
            removed=len(stored.removed),
        )
    return entity_requests.EntitiesDeclared(
        added=[entity.name for entity in stored.added],
        changed=[entity.name for entity in stored.changed],
        removed=[entity.name for entity in stored.removed],
        unchanged=changes.unchanged,
        waiting=mentions.count_waiting(repository),
    )


class _Stored(NamedTuple):
    """The entities that a request added, changed and removed."""

    added: list[EntityRecord]
    changed: list[EntityRecord]
    removed: list[EntityRecord]


def _stage(repository: CorpusRepository, changes: _Changes, context: Context) -> Slices[_Stored]:
    """Stage the changes; match documents again if names or relations changed."""
    before, after = changes.before, changes.after
    stored = _Stored(
        added=[entity for number, entity in after.items() if number not in before],
        changed=[entity for number, entity in after.items() if before.get(number, entity) != entity],
        removed=[entity for number, entity in before.items() if number not in after],
    )
    for entity in (*stored.added, *stored.changed):
        context.put(entity_records.entity_key(entity.number), entity)
        yield
    for entity in stored.removed:
        context.delete(entity_records.entity_key(entity.number))
    if not any(stored):
        return stored
    table = repository.entities
    header = msgspec.structs.replace(
        table.header, next_entity=changes.next_entity, next_match=changes.next_match
    )
    table.replace(header, after)
    table.put_header(context, header)
    moved = any(_changes_matching(before[entity.number], entity) for entity in stored.changed)
    if stored.added or stored.removed or moved:
        mentions.start(repository, context)
    repository.answers.clear()
    repository.publish(context)
    return stored


def _changes_matching(old: EntityRecord, new: EntityRecord) -> bool:
    return old.match != new.match or old.relations != new.relations


def _tidy(declared: EntityDeclaration) -> EntityDeclaration:
    """Return a declaration with tidy names: no superfluous space, no duplicates."""
    texts = [declared.name, *declared.aliases, *declared.ambiguous, declared.description]
    texts += [text for relation in declared.relations for text in (relation.to, relation.type)]
    if not all(map(is_text, [*texts, declared.version or ""])):
        raise auth_errors.invalid("entities", "entities: a text is no Unicode: it has lone surrogates")
    name = " ".join(declared.name.split())
    if not fold(name):
        raise auth_errors.invalid("name", "name: it is empty but for space and what joins words")
    return msgspec.structs.replace(
        declared,
        name=name,
        aliases=_tidy_names(declared.aliases),
        ambiguous=_tidy_names(declared.ambiguous),
        relations=list(dict.fromkeys(declared.relations)),
    )


def _tidy_names(given: Iterable[str]) -> list[str]:
    tidied = (" ".join(name.split()) for name in given)
    return list(dict.fromkeys(name for name in tidied if fold(name)))
