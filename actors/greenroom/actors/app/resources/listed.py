"""What of each kind of resources is listed, and the values of the variables of its templates.

Functions of the table in `kinds`: those that list are asked for the first page alone, but for sessions, which
have pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth import scopes
from greenroom.actors.core.auth.namespaces import PROJECT, name_of_segment, project_of_path, segment
from greenroom.actors.core.auth.policy import memberships, memory_owner, preferences_owner
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import SessionSummary
from greenroom.actors.core.resources import resource_uris as uris
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.schemas.completion import MAX_VALUES
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.actor import VisiblePatterns
from greenroom.actors.sessions.workflows.records import PatternRow, WorkflowRow
from greenroom.runtime import IndexReader, Slices

MOST: Final = 100
"""Resources of one kind that are listed besides sessions."""
COMPLETION_PAGES: Final = 50
"""How many pages of sessions are looked through for one completion, so that it takes no longer than that."""


class ResourceItem(msgspec.Struct, frozen=True, kw_only=True):
    """A resource in a listing; ``last_modified`` is over what the reader may see, None when not known."""

    uri: str
    name: str
    title: str
    description: str
    last_modified: datetime | None = None


class Listing(NamedTuple):
    """A page of a listing.

    Attributes:
        sessions: The sessions that are on it.
        current: The session that the client works in; none for None.
    """

    sessions: list[SessionSummary]
    current: str | None


class Values(NamedTuple):
    """Values of a variable, the likeliest first; ``has_more``: there may be others."""

    values: list[str]
    has_more: bool = False


Lists = Callable[[Listing, IndexReader], Slices[list[ResourceItem]]]
Completes = Callable[[str, IndexReader], Slices[Values]]
"""Returns the values that begin with a text."""


# -- listing ---------------------------------------------------------------------------------


def sessions(page: Listing, _: IndexReader) -> Slices[list[ResourceItem]]:
    """List the sessions of the page."""
    yield from ()
    return [
        ResourceItem(
            uri=uris.session_uri(session.session_id),
            name=session.session_id,
            title=session.purpose,
            description=f"Session of {session.created_by} with {session.message_count} messages for you",
            last_modified=session.last_activity,
        )
        for session in page.sessions
    ]


def memory(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List one's own memory."""
    yield from ()
    owner = memory_owner(reader.principal)
    return [
        ResourceItem(
            uri=uris.memory_uri(owner),
            name="memory",
            title=f"Memory of {owner}",
            description="Keys with values and metadata, by scope; nobody else can read it",
        )
    ]


def preferences(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the preferences of one's user."""
    yield from ()
    owner = preferences_owner(reader.principal)
    return [
        ResourceItem(
            uri=uris.preferences_uri(owner),
            name="preferences",
            title=f"Preferences of {owner}",
            description="What is preferred in every tool; nobody else can read it",
        )
    ]


def savings(_: Listing, __: IndexReader) -> Slices[list[ResourceItem]]:
    """List what one's user saved."""
    yield from ()
    return [
        ResourceItem(
            uri=uris.SAVINGS_OF_USER,
            name="savings",
            title="What was saved",
            description="Tokens of your user's answers by operation and day, beside those of a baseline",
        )
    ]


def current_session(page: Listing, _: IndexReader) -> Slices[list[ResourceItem]]:
    """List the session that the client works in."""
    yield from ()
    if page.current is None:
        return []
    return [
        ResourceItem(
            uri=uris.CURRENT_SESSION,
            name="current_session",
            title="Your session",
            description="The session that you work in: files, searches, decisions, where the work stands",
        )
    ]


def conversation(page: Listing, _: IndexReader) -> Slices[list[ResourceItem]]:
    """List the conversation of the session that the client works in; those of others the template has."""
    yield from ()
    if page.current is None:
        return []
    return [
        ResourceItem(
            uri=uris.conversation_uri(page.current),
            name="conversation",
            title="What was said in your session",
            description="The newest messages whole, older ones shortened, the oldest a line each",
        )
    ]


def corpora(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the corpora that one may see."""
    return [
        ResourceItem(
            uri=uris.corpus_uri(row.full_name),
            name=row.full_name,
            title=f"Corpus {row.full_name}",
            description="Documents in which passages are found",
        )
        for row in (yield from VisibleCorpora().run(reader))[:MOST]
    ]


def projects(page: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the projects that one is a member of, or where that is every one, those that the page shows."""
    names = yield from _projects(reader, page.sessions)
    return [
        ResourceItem(
            uri=uris.project_uri(name),
            name=f"project_{name}",
            title=f"Project {name}",
            description="What is indexed and known of it, and what was decided in its sessions",
        )
        for name in names[:MOST]
    ]


def patterns(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List what one does again and again."""
    return [
        ResourceItem(
            uri=uris.workflow_uri(listed.project, pattern.id),
            name=_pattern_name(listed, pattern),
            title=" → ".join(pattern.commands),
            description="Commands that you do again and again in this order",
            last_modified=to_datetime(pattern.last_seen),
        )
        for listed, pattern in (yield from VisiblePatterns().run(reader))[:MOST]
    ]


# -- completing ------------------------------------------------------------------------------


def own(owner: Callable[[Principal], str]) -> Completes:
    """Return what completes the one value that is the reader's own."""

    def complete(begun: str, reader: IndexReader) -> Slices[Values]:
        yield from ()
        name = owner(reader.principal)
        return Values([name] * name.startswith(begun))

    return complete


def session_ids(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the id of a session, newest activity first."""
    values: list[str] = []
    cursor: str | None = None
    for _ in range(COMPLETION_PAGES):
        page = yield from ListSessions(cursor=cursor, limit=200).run(reader)
        values += [each.session_id for each in page.sessions if each.session_id.startswith(begun)]
        cursor = page.next_cursor
        if cursor is None or len(values) > MAX_VALUES:
            break
    return Values(values, cursor is not None)


def corpus_names(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the name of a corpus: the full one, also for the beginning of the last part."""
    return Values(_named(begun, (yield from VisibleCorpora().run(reader))))


def workspace_names(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the name of a workspace, as that of a corpus."""
    rows = yield from VisibleCorpora().run(reader)
    return Values(_named(begun, (row for row in rows if row.root is not None)))


def project_ids(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the id of a project."""
    newest: list[SessionSummary] = []
    has_more = False
    if scopes.allows(reader.principal.scopes, scopes.SESSIONS):
        page = yield from ListSessions(limit=200).run(reader)
        newest, has_more = page.sessions, page.next_cursor is not None
    names = yield from _projects(reader, newest)
    return Values([name for name in names if name.startswith(begun)], has_more)


def pattern_ids(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the id of a pattern, also for the beginning of one of its commands."""
    return Values(
        [
            name
            for listed, pattern in (yield from VisiblePatterns().run(reader))
            if (name := _pattern_name(listed, pattern)).startswith(begun)
            or any(command.startswith(begun) for command in pattern.commands)
        ]
    )


def _pattern_name(listed: WorkflowRow, pattern: PatternRow) -> str:
    return f"{listed.project}.{pattern.id}".removeprefix(".")


def _named(begun: str, rows: Iterable[CorpusRow]) -> list[str]:
    return [row.full_name for row in rows if row.full_name.startswith(begun) or row.name.startswith(begun)]


def _projects(reader: IndexReader, newest: Iterable[SessionSummary]) -> Slices[list[str]]:
    """Return the reader's projects; of who is in every one those of some sessions and of the corpora."""
    mine = memberships(reader.principal)
    if mine is not None:
        return sorted(mine)
    rows = yield from VisibleCorpora().run(reader)
    return sorted({*(each.project_id for each in newest if each.project_id), *_of_corpora(rows)})


def _of_corpora(rows: Iterable[CorpusRow]) -> Iterator[str]:
    for row in rows:
        if row.owner.startswith(PROJECT):
            name = name_of_segment(row.owner[len(PROJECT) :])
            if PROJECT + segment(name) == row.owner:  # a long one cannot be read back
                yield name
        if row.root is not None:
            yield project_of_path(row.root)
