"""Listing of a reader's resources, and completion of the variables of their templates."""

from datetime import datetime

import msgspec

from greenroom.actors.auth import policy, scopes
from greenroom.actors.base.times import to_datetime
from greenroom.actors.corpus.catalogue import VisibleCorpora
from greenroom.actors.schemas import types
from greenroom.actors.schemas.completion import MAX_VALUES, NameCompletion
from greenroom.actors.schemas.resources import (
    CORPUS_TEMPLATE,
    DOCUMENT_TEMPLATE,
    MEMORY_TEMPLATE,
    SESSION_TEMPLATE,
    WORKFLOW_TEMPLATE,
    WORKSPACE_TEMPLATE,
    corpus_uri,
    memory_uri,
    session_uri,
    workflow_uris,
)
from greenroom.actors.session.directory import ListSessions
from greenroom.actors.workflow.actor import VisiblePatterns
from greenroom.runtime import IndexReader, Query, Slices

PAGE = 100
COMPLETION_PAGES = 50
"""How many pages of sessions are looked through for one completion, so that it takes no longer than that."""


class ResourceItem(msgspec.Struct, frozen=True, kw_only=True):
    """A resource in a listing; ``last_modified`` is over what the reader may see, None when not known."""

    uri: str
    name: str
    title: str
    description: str
    last_modified: datetime | None


class ResourceList(msgspec.Struct, frozen=True, kw_only=True):
    """Answers `ListResources`."""

    resources: list[ResourceItem]
    next_cursor: str | None


class ListResources(Query[ResourceList], frozen=True, kw_only=True):
    """List one's own memory, then the sessions that one may see, newest visible activity first."""

    cursor: types.Cursor | None = None
    limit: types.Limit200 = PAGE

    def run(self, reader: IndexReader) -> Slices[ResourceList]:
        """Go through the sessions as `ListSessions` does."""
        kinds = scopes.resources_of(reader.principal.scopes)
        page = None
        if "session" in kinds:
            page = yield from ListSessions(cursor=self.cursor, limit=self.limit).run(reader)
        resources = [
            ResourceItem(
                uri=session_uri(session.session_id),
                name=session.session_id,
                title=session.purpose,
                description=f"Session of {session.created_by} with {session.message_count} messages for you",
                last_modified=session.last_activity,
            )
            for session in (() if page is None else page.sessions)
        ]
        if self.cursor is None and "memory" in kinds:
            owner = policy.memory_owner(reader.principal)
            own = ResourceItem(
                uri=memory_uri(owner),
                name="memory",
                title=f"Memory of {owner}",
                description="Keys with values and metadata, by scope; nobody else can read it",
                last_modified=None,
            )
            resources.insert(0, own)
        if self.cursor is None and "corpus" in kinds:
            resources += [
                ResourceItem(
                    uri=corpus_uri(row.full_name),
                    name=row.full_name,
                    title=f"Corpus {row.full_name}",
                    description="Documents in which semantic_search finds passages",
                    last_modified=None,
                )
                for row in (yield from VisibleCorpora().run(reader))[:PAGE]
            ]
        if self.cursor is None and "workflow" in kinds:
            resources += [
                ResourceItem(
                    uri=workflow_uris(listed.project, pattern.id)[0],
                    name=f"{listed.project}.{pattern.id}".removeprefix("."),
                    title=" → ".join(pattern.commands),
                    description="Commands that you do again and again in this order",
                    last_modified=to_datetime(pattern.last_seen),
                )
                for listed, pattern in (yield from VisiblePatterns().run(reader))[:PAGE]
            ]
        return ResourceList(resources=resources, next_cursor=None if page is None else page.next_cursor)


class CompleteResource(Query[NameCompletion], frozen=True, kw_only=True):
    """Find values for a template's variable that begin with ``value``; unknown templates have none.

    Attributes:
        template: The template.
        argument: Its variable.
        value: What is typed so far.
        known: Values that other variables have, by name. A document's path is looked for in their ``corpus``.
    """

    template: str
    argument: str
    value: str = ""
    known: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def is_path(self) -> bool:
        """Whether it is for a document's path, which the corpus completes."""
        return (self.template, self.argument) == (DOCUMENT_TEMPLATE, "path")

    def run(self, reader: IndexReader) -> Slices[NameCompletion]:
        """Answer session ids that the reader may see, newest first, corpora, patterns, or the own id."""
        kinds = scopes.resources_of(reader.principal.scopes)
        if (self.template, self.argument) == (MEMORY_TEMPLATE, "agent_id") and "memory" in kinds:
            owner = policy.memory_owner(reader.principal)
            return NameCompletion(values=[owner] * owner.startswith(self.value), has_more=False)
        if self.template in {CORPUS_TEMPLATE, DOCUMENT_TEMPLATE} and "corpus" in kinds:
            return (yield from self._corpora(reader))
        if (self.template, self.argument) == (WORKSPACE_TEMPLATE, "workspace") and "workspace" in kinds:
            return (yield from self._corpora(reader))
        if (self.template, self.argument) == (WORKFLOW_TEMPLATE, "pattern_id") and "workflow" in kinds:
            return (yield from self._patterns(reader))
        values: list[str] = []
        if (self.template, self.argument) != (SESSION_TEMPLATE, "session_id") or "session" not in kinds:
            return NameCompletion(values=values, has_more=False)
        cursor = None
        for _ in range(COMPLETION_PAGES):
            page = yield from ListSessions(cursor=cursor, limit=200).run(reader)
            values += [
                session.session_id for session in page.sessions if session.session_id.startswith(self.value)
            ]
            cursor = page.next_cursor
            if cursor is None or len(values) > MAX_VALUES:
                break
        return NameCompletion(
            values=values[:MAX_VALUES],
            has_more=cursor is not None or len(values) > MAX_VALUES,
        )

    def _patterns(self, reader: IndexReader) -> Slices[NameCompletion]:
        """Answer ids of patterns, also for the beginning of one of their commands."""
        names = [
            name
            for listed, pattern in (yield from VisiblePatterns().run(reader))
            if (name := f"{listed.project}.{pattern.id}".removeprefix(".")).startswith(self.value)
            or any(command.startswith(self.value) for command in pattern.commands)
        ]
        return NameCompletion(values=names[:MAX_VALUES], has_more=len(names) > MAX_VALUES)

    def _corpora(self, reader: IndexReader) -> Slices[NameCompletion]:
        """Answer names of corpora: full ones, also for the beginning of the last part."""
        if self.argument not in {"corpus", "workspace"}:
            return NameCompletion(values=[], has_more=False)
        names = [
            row.full_name
            for row in (yield from VisibleCorpora().run(reader))
            if (row.root is not None or self.argument == "corpus")
            and (row.full_name.startswith(self.value) or row.name.startswith(self.value))
        ]
        return NameCompletion(values=names[:MAX_VALUES], has_more=len(names) > MAX_VALUES)
