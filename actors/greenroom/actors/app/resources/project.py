"""A project as a resource, from the corpora and sessions that its reader may see."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Final, NamedTuple

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy, scopes
from greenroom.actors.core.auth.namespaces import PROJECT, project_part, segment
from greenroom.actors.core.resources.resource_uris import PROJECT as URI
from greenroom.actors.core.resources.resource_uris import decode_name, project_uri, workflow_uri
from greenroom.actors.core.resources.resources import ResourceInfo
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora, corpus_address
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow, DescribeCorpus
from greenroom.actors.knowledge.corpora.requests.resources import (
    CommonPattern,
    CountEntities,
    FileIndex,
    KnowledgeGraph,
    ProjectDecision,
    ProjectResource,
)
from greenroom.actors.knowledge.corpora.requests.workspace import DescribeWorkspace
from greenroom.actors.sessions.requests.session_context import ListDecisions
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.actor import VisiblePatterns
from greenroom.runtime import Address, Procedure, ProcedureContext, Refusal

SESSIONS: Final = 50
"""Decisions are looked up in at most this many sessions, most recent activity first."""
DECISIONS: Final = 50
"""At most this many decisions are shown, newest first."""


class _Part(NamedTuple):
    total: int
    indexed: int
    last: datetime | None
    nodes: int
    edges: int


class ReadProject(Procedure[ProjectResource], frozen=True, kw_only=True):
    """Read a project by its URI."""

    audit_action: ClassVar[str] = "read_resource"

    uri: str

    async def run(self, context: ProcedureContext) -> ProjectResource:
        """Ask the project's corpora, then its sessions.

        Raises:
            Refusal: ``RESOURCE_NOT_FOUND``: the reader is not a member, or the project is unknown.
        """
        found = URI.fullmatch(self.uri)
        project_id = None if found is None else decode_name(found[1])
        if project_id is None:
            raise auth_errors.resource_not_found(self.uri)
        if not policy.may_see_session(context.principal, project_id):
            raise auth_errors.denial(auth_errors.resource_not_found(self.uri))
        rows = corpora_of(project_id, await context.query(VisibleCorpora()))
        sessions = await _sessions(context, project_id)
        if not rows and not sessions.listed and context.principal.projects is None:
            raise auth_errors.resource_not_found(self.uri)  # a member of all projects may have misspelt it
        parts = [part for row in rows if (part := await _part(context, row)) is not None]
        decisions = sorted(sessions.decisions, key=lambda each: each.at, reverse=True)
        times = [each.last for each in parts if each.last is not None]
        audit_record.record_read(
            context,
            context.principal,
            "read_resource",
            None,
            target=self.uri[: audit_record.LONGEST],
            corpora=len(rows),
            decisions=len(decisions),
        )
        return ProjectResource(
            project_id=project_id,
            file_index=FileIndex(
                total_files=sum(each.total for each in parts),
                indexed_files=sum(each.indexed for each in parts),
                last_index=max(times, default=None),
            ),
            knowledge_graph=KnowledgeGraph(
                nodes=sum(each.nodes for each in parts), edges=sum(each.edges for each in parts)
            ),
            corpora=[row.full_name for row in rows],
            common_patterns=await _patterns(context, project_id),
            decisions=decisions[:DECISIONS],
            partial=sessions.has_more or len(parts) < len(rows) or len(decisions) > DECISIONS,
            resource_info=ResourceInfo(
                uri=project_uri(project_id),
                reader=context.principal.agent_id,
                last_updated=max((*times, *(each.at for each in decisions[:1])), default=None),
            ),
        )


def corpora_of(project_id: str, visible: Iterable[CorpusRow]) -> list[CorpusRow]:
    """Return the corpora of a project, and the indexes of its work trees."""
    owner = PROJECT + segment(project_id)
    return [row for row in visible if row.owner == owner or project_id in row.projects]


async def _part(context: ProcedureContext, row: CorpusRow) -> _Part | None:
    """Return the content of a corpus; None if it was dropped meanwhile."""
    address, name = corpus_address(row), row.full_name
    try:
        view = await context.ask(address, DescribeCorpus(row=row))
        counted = await context.ask(address, CountEntities(corpus=name))
        total, last = view.documents, view.indexed_at
        if row.root is not None:
            state = await context.ask(address, DescribeWorkspace(corpus=name))
            total = max(view.documents, state.of or 0)
            last = state.as_of or last
    except Refusal:
        return None
    return _Part(total, view.documents, last, counted.entities, counted.relations)


async def _patterns(context: ProcedureContext, project_id: str) -> list[CommonPattern]:
    """Return the workflow patterns of the reader's user in the project."""
    if not scopes.allows(context.principal.scopes, scopes.RESOURCES["workflow"]):
        return []
    part = project_part(project_id)
    return [
        CommonPattern(
            uri=workflow_uri(part, pattern.id),
            commands=pattern.commands,
            last_seen=to_datetime(pattern.last_seen),
        )
        for listed, pattern in await context.query(VisiblePatterns())
        if listed.project == part
    ]


class _Sessions(NamedTuple):
    listed: bool
    decisions: list[ProjectDecision]
    has_more: bool


async def _sessions(context: ProcedureContext, project_id: str) -> _Sessions:
    """Return the decisions in sessions, if the reader's scopes allow."""
    if not scopes.allows(context.principal.scopes, scopes.SESSIONS):
        return _Sessions(False, [], False)
    page = await context.query(ListSessions(project_id=project_id, limit=SESSIONS))
    decisions: list[ProjectDecision] = []
    for session in page.sessions:
        try:
            made_there = await context.ask(Address("session", session.session_id), ListDecisions())
        except Refusal:  # deleted meanwhile
            continue
        decisions += [
            ProjectDecision(
                what=made.what, why=made.why, at=made.at, by=made.by, session_id=session.session_id
            )
            for made in made_there
        ]
    return _Sessions(bool(page.sessions), decisions, page.next_cursor is not None)
