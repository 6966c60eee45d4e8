"""Tools about entities: declare, find and suggest them."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec
import trio
from msgspec import UNSET, Meta

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.client import Client
from greenroom.actors.core.operations import ToolText, operation
from greenroom.actors.core.validation.checked_when_built import CheckedWhenBuilt
from greenroom.actors.knowledge.corpora.requests import corpus_requests, entity_requests
from greenroom.actors.knowledge.corpora.requests.catalogue import corpus_address
from greenroom.actors.knowledge.corpora.tools.corpus_admin import ensure_corpus
from greenroom.actors.knowledge.corpora.tools.query_service import find_row
from greenroom.actors.knowledge.entities import (
    MANIFESTS,
    NAMES,
    USUAL_COUNT,
    NameCounter,
    UnreadableDeclarationsError,
    parse_declarations,
    select_libraries,
)
from greenroom.actors.knowledge.entities.records import DeclarationFile, EntityDeclaration, EntityName
from greenroom.runtime import Procedure, ProcedureContext

R_co = TypeVar("R_co", covariant=True)

SUGGEST_SECONDS: Final = 10.0
"""Counting names is cut after this time, and the reply says so."""
_CUT: Final = "not all documents were read in 10 s"


class EntityQuestion(Procedure[R_co], frozen=True, kw_only=True):
    """Base of requests for entities: subclass it and define `run`."""

    vendor_filter: entity_requests.VendorFilter
    entity_type: entity_requests.AnEntityType | None = None
    include_relationships: Annotated[bool, Meta(description="also what it is to others")] = True
    detail_level: corpus_requests.DetailLevel = "full"
    limit: entity_requests.EntityLimit = 10
    corpus: corpus_requests.CorpusName = corpus_requests.DEFAULT_CORPUS

    async def answered(self, context: ProcedureContext, action: str) -> FoundWithNames:
        """Query the corpus, and record the action."""
        began = trio.current_time()
        row = await find_row(context, self.corpus)
        found = await context.ask(
            corpus_address(row),
            entity_requests.FindEntities(
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
            context, context.principal, action, None, corpus=row.full_name, found=found.total_entities
        )
        reply = entity_requests.EntitiesFound(
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
        return FoundWithNames(reply, found.names, found.ambiguous)


@operation(
    "find_vendor_info",
    scope="knowledge:read",
    tool=ToolText(
        title="Find vendors and libraries",
        description="Find what documents say of a supplier, vendor, library, framework or service: "
        "where in the docs and how often it is mentioned, and what it has to do with "
        "others. Typing errors are forgiven.",
        weight=4,
    ),
)
class FindVendorInfo(
    EntityQuestion[entity_requests.EntitiesFound], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Find vendors, libraries, frameworks and services, and the documents that name them."""

    async def run(self, context: ProcedureContext) -> entity_requests.EntitiesFound:
        """Query the corpus."""
        return (await self.answered(context, "find_vendor_info")).reply


class FoundWithNames(NamedTuple):
    """A reply, and the names of its best entity; ``ambiguous`` names also mean something else."""

    reply: entity_requests.EntitiesFound
    names: list[str]
    ambiguous: list[str]


@operation(
    "suggest_entities",
    scope="knowledge:read",
    tool=ToolText(
        title="Suggest names",
        description="Propose names, products and identifiers worth tracking, that documents repeat "
        "and nobody has declared yet, with counts; declare those that matter with "
        "define_entities.",
        weight=4,
    ),
)
class SuggestEntities(
    Procedure[entity_requests.EntitiesSuggested], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Suggest undeclared names that documents repeat."""

    min_count: Annotated[int, Meta(ge=1, le=1_000_000, description="times at least")] = USUAL_COUNT
    limit: Annotated[int, Meta(ge=1, le=200, description="names at most")] = 30
    corpus: corpus_requests.CorpusName = corpus_requests.DEFAULT_CORPUS

    async def run(self, context: ProcedureContext) -> entity_requests.EntitiesSuggested:
        """Count names in a few documents at a time, for ten seconds at most."""
        began = trio.current_time()
        row = await find_row(context, self.corpus)
        counter = NameCounter()
        documents = 0
        after: int | None = 0
        known: list[str] = []
        while after is not None and trio.current_time() < began + SUGGEST_SECONDS:
            some = await context.ask(
                corpus_address(row), entity_requests.CountNames(corpus=row.full_name, after=after)
            )
            counter.merge(some.counts)
            documents += some.documents
            after, known = some.after, some.known
        audit_record.record_read(
            context, context.principal, "suggest_entities", None, corpus=row.full_name, documents=documents
        )
        return entity_requests.EntitiesSuggested(
            suggestions=counter.suggest(known, self.min_count, self.limit),
            documents=documents,
            corpus=row.full_name,
            execution_time_ms=round((trio.current_time() - began) * 1_000, 3),
            partial=UNSET if after is None else True,
            partial_reason=UNSET if after is None else _CUT,
        )


@operation(
    "define_entities",
    scope="knowledge:write",
    tool=ToolText(
        title="Define entities",
        description="Register names that documents mention, of vendors, products or libraries, and "
        "put suggested candidates in force: names and abbreviations that are one and "
        "the same and count as a single name, and relations; here, or in YAML or "
        "manifests. Also rename and remove names.",
        overwrites=True,
        repeatable=True,
        weight=4,
    ),
)
class DefineEntities(
    Procedure[entity_requests.EntitiesDefined], frozen=True, metaclass=CheckedWhenBuilt, kw_only=True
):
    """Declare entities: in the call, in files, or by manifests in the corpus.

    A declaration replaces the entity with its name; with an ``entity_id``, it renames that entity. A manifest
    changes only the version of a declared library. The reply lists unreadable files; the rest is declared.
    """

    runs = "here"
    entities: Annotated[list[EntityDeclaration], Meta(max_length=entity_requests.MAX_DECLARED)] = (
        msgspec.field(default_factory=list)
    )
    remove: Annotated[
        list[EntityName], Meta(max_length=entity_requests.MAX_DECLARED, description="names or ids")
    ] = msgspec.field(default_factory=list)
    files: Annotated[
        list[DeclarationFile],
        Meta(max_length=100, description="YAML, pyproject.toml, package.json, go.mod, Cargo.toml"),
    ] = msgspec.field(default_factory=list)
    manifests: Annotated[bool, Meta(description="also the libraries of manifests in the corpus")] = False
    corpus: corpus_requests.CorpusName = corpus_requests.DEFAULT_CORPUS

    async def run(self, client: Client) -> entity_requests.EntitiesDefined:
        """Parse the files, and send the declarations to the corpus."""
        runtime, principal = client.runtime, client.principal
        row = await ensure_corpus(runtime, principal, self.corpus)
        read = await run_in_thread(_read, self.files)
        if self.manifests:
            request = entity_requests.ReadManifests(corpus=row.full_name)
            found = await runtime.ask(corpus_address(row), request, principal=principal)
            libraries, unreadable = await run_in_thread(select_libraries, found.manifests)
            read.libraries += libraries
            read.unreadable += unreadable
        declared = await runtime.ask(
            corpus_address(row),
            entity_requests.DeclareEntities(
                corpus=row.full_name,
                declarations=[*self.entities, *read.declarations],
                libraries=read.libraries,
                remove=self.remove,
            ),
            principal=principal,
        )
        return entity_requests.EntitiesDefined(
            corpus=row.full_name,
            added=declared.added,
            changed=declared.changed,
            removed=declared.removed,
            unchanged=declared.unchanged,
            unreadable=read.unreadable,
            waiting_for_matching=declared.waiting,
        )


class _Read(msgspec.Struct):
    """Declarations in files."""

    declarations: list[EntityDeclaration] = msgspec.field(default_factory=list)
    libraries: list[EntityDeclaration] = msgspec.field(default_factory=list)
    unreadable: list[str] = msgspec.field(default_factory=list)


def _read(files: list[DeclarationFile]) -> _Read:
    read = _Read()
    for file in files:
        try:
            declared = parse_declarations(file.name, file.text)
        except UnreadableDeclarationsError as error:
            read.unreadable.append(str(error))
            continue
        is_manifest = file.name.replace("\\", "/").rpartition("/")[2] in MANIFESTS
        (read.libraries if is_manifest else read.declarations).extend(declared)
    return read
