"""The tools about entities: declare them, find them, have some suggested."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET, Meta

from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.corpus.managing import made_corpus
from greenroom.actors.entities import (
    MANIFESTS,
    NAMES,
    USUAL_COUNT,
    NameCounter,
    UnreadableDeclarationsError,
    declarations_in,
    libraries_in,
)
from greenroom.actors.knowledge.corpora.requests import corpus_requests as corpus_schemas
from greenroom.actors.knowledge.corpora.requests import entity_requests as schemas
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.requests.entity_requests import DeclarationFile, EntityDeclaration
from greenroom.actors.knowledge.corpora.tools.query_service import corpus_row
from greenroom.runtime import Procedure, ProcedureContext, RuntimeClient

R_co = TypeVar("R_co", covariant=True)

SUGGEST_SECONDS: Final = 10.0
"""Counting names is cut then, and says so."""
_CUT: Final = "not all documents were read in 10 s"


class EntityQuestion(Procedure[R_co], frozen=True, kw_only=True):
    """What is asked of entities of a corpus, whatever is answered with them: subclass it and define `run`."""

    vendor_filter: schemas.VendorFilter
    entity_type: schemas.AnEntityType | None = None
    include_relationships: Annotated[bool, Meta(description="also what it is to others")] = True
    detail_level: corpus_schemas.DetailLevel = "full"
    limit: schemas.EntityLimit = 10
    corpus: corpus_schemas.CorpusName = corpus_schemas.DEFAULT_CORPUS

    async def answered(self, context: ProcedureContext, deed: str) -> AnsweredEntities:
        """Ask the corpus, and leave an audit record of the deed.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``.
        """
        began = trio.current_time()
        row = await corpus_row(context, self.corpus)
        found = await context.ask(
            corpus_address(row),
            schemas.FindEntities(
                corpus=row.full_name,
                id_prefix=row.id_prefix,
                wanted=self.vendor_filter,
                entity_type=self.entity_type,
                include_relationships=self.include_relationships,
                detail_level=self.detail_level,
                limit=self.limit,
            ),
        )
        audit_record.record_read(
            context, context.principal, deed, None, corpus=row.full_name, found=found.total_entities
        )
        said = schemas.EntitiesFound(
            entities=found.entities,
            relationships=found.relationships,
            total_entities=found.total_entities,
            total_relationships=found.total_relationships,
            execution_time_ms=round((trio.current_time() - began) * 1_000, 3),
            corpus=row.full_name,
            freshness=found.freshness,
            waiting_for_matching=found.waiting or UNSET,
            partial=True if NAMES.lack else UNSET,
            partial_reason=NAMES.lack or UNSET,
        )
        return AnsweredEntities(said, found.names, found.ambiguous)


class FindVendorInfo(
    EntityQuestion[schemas.EntitiesFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find what is known of vendors, libraries, frameworks and services, and where documents name them."""

    async def run(self, context: ProcedureContext) -> schemas.EntitiesFound:
        """Ask the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``.
        """
        return (await self.answered(context, "find_vendor_info")).said


class AnsweredEntities(NamedTuple):
    """An answer, and what the likeliest entity in it is called.

    Attributes:
        said: The answer.
        names: All names.
        ambiguous: Those that also mean something else.
    """

    said: schemas.EntitiesFound
    names: list[str]
    ambiguous: list[str]


class SuggestEntities(
    Procedure[schemas.EntitiesSuggested], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Suggest names that the documents repeat and nobody has declared."""

    min_count: Annotated[int, Meta(ge=1, le=1_000_000, description="times at least")] = USUAL_COUNT
    limit: Annotated[int, Meta(ge=1, le=200, description="names at most")] = 30
    corpus: corpus_schemas.CorpusName = corpus_schemas.DEFAULT_CORPUS

    async def run(self, context: ProcedureContext) -> schemas.EntitiesSuggested:
        """Have the documents read a few at a time, for ten seconds at most.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``.
        """
        began = trio.current_time()
        row = await corpus_row(context, self.corpus)
        counter = NameCounter()
        documents = 0
        after: int | None = 0
        known: list[str] = []
        while after is not None and trio.current_time() < began + SUGGEST_SECONDS:
            some = await context.ask(
                corpus_address(row), schemas.CountNames(corpus=row.full_name, after=after)
            )
            counter.merge(some.counts)
            documents += some.documents
            after, known = some.after, some.known
        audit_record.record_read(
            context, context.principal, "suggest_entities", None, corpus=row.full_name, documents=documents
        )
        return schemas.EntitiesSuggested(
            suggestions=counter.suggestions(known, self.min_count, self.limit),
            documents=documents,
            corpus=row.full_name,
            execution_time_ms=round((trio.current_time() - began) * 1_000, 3),
            partial=UNSET if after is None else True,
            partial_reason=UNSET if after is None else _CUT,
        )


class DefineEntities(
    Orchestration[schemas.EntitiesDefined], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Declare entities: in the call, in YAML files and manifests, or by the manifests in the corpus.

    Each takes the place of the one that has its name, or its ``entity_id`` when it gets another name. Of a
    library that is declared already a manifest changes the version alone. A file that cannot be read is
    named, and the rest is declared.
    """

    writes: ClassVar[bool] = True

    entities: Annotated[list[EntityDeclaration], Meta(max_length=schemas.MAX_DECLARED)] = msgspec.field(
        default_factory=list
    )
    remove: Annotated[
        list[schemas.EntityName], Meta(max_length=schemas.MAX_DECLARED, description="names or ids")
    ] = msgspec.field(default_factory=list)
    files: Annotated[
        list[DeclarationFile],
        Meta(max_length=100, description="YAML, pyproject.toml, package.json, go.mod, Cargo.toml"),
    ] = msgspec.field(default_factory=list)
    manifests: Annotated[bool, Meta(description="also the libraries of manifests in the corpus")] = False
    corpus: corpus_schemas.CorpusName = corpus_schemas.DEFAULT_CORPUS

    async def run(self, runtime: RuntimeClient, principal: Principal) -> schemas.EntitiesDefined:
        """Read the files, and tell the corpus.

        Raises:
            Refusal: ``CORPUS_NOT_FOUND``, ``VALIDATION_ERROR``, ``QUOTA_EXCEEDED``.
        """
        row = await made_corpus(runtime, principal, self.corpus)
        read = await run_in_thread(_read, self.files)
        if self.manifests:
            request = schemas.ReadManifests(corpus=row.full_name)
            found = await runtime.ask(corpus_address(row), request, principal=principal)
            libraries, unreadable = await run_in_thread(libraries_in, found.manifests)
            read.libraries += libraries
            read.unreadable += unreadable
        declared = await runtime.ask(
            corpus_address(row),
            schemas.DeclareEntities(
                corpus=row.full_name,
                declarations=[*self.entities, *read.declarations],
                libraries=read.libraries,
                remove=self.remove,
            ),
            principal=principal,
        )
        return schemas.EntitiesDefined(
            corpus=row.full_name,
            added=declared.added,
            changed=declared.changed,
            removed=declared.removed,
            unchanged=declared.unchanged,
            unreadable=read.unreadable,
            waiting_for_matching=declared.waiting,
        )


class _Read(msgspec.Struct):
    """What files declare."""

    declarations: list[EntityDeclaration] = msgspec.field(default_factory=list)
    libraries: list[EntityDeclaration] = msgspec.field(default_factory=list)
    unreadable: list[str] = msgspec.field(default_factory=list)


def _read(files: list[DeclarationFile]) -> _Read:
    read = _Read()
    for file in files:
        try:
            declared = declarations_in(file.name, file.text)
        except UnreadableDeclarationsError as error:
            read.unreadable.append(str(error))
            continue
        is_manifest = file.name.replace("\\", "/").rpartition("/")[2] in MANIFESTS
        (read.libraries if is_manifest else read.declarations).extend(declared)
    return read
