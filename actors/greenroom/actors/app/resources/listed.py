"""The listed resources of each kind, and the values of their templates' variables.

These are functions of the table in `kinds`. Only sessions have pages; the others list on the first page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from greenroom.actors.core.auth import scopes
from greenroom.actors.core.auth.namespaces import PROJECT, name_of_segment, segment
from greenroom.actors.core.auth.policy import memberships, memory_owner, preferences_owner
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.replies import SessionSummary
from greenroom.actors.core.resources import resource_uris as uris
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.knowledge.corpora.handlers.completion import MAX_VALUES
from greenroom.actors.knowledge.corpora.requests.catalogue import VisibleCorpora
from greenroom.actors.knowledge.corpora.requests.corpus_requests import CorpusRow
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.actor import VisiblePatterns
from greenroom.actors.sessions.workflows.records import PatternRow, WorkflowRow
from greenroom.runtime import IndexReader, Slices

MOST: Final = 100
"""The most listed resources of one kind, except sessions."""
COMPLETION_PAGES: Final = 50
"""At most this many pages of sessions are read for one completion, which limits its time."""


class ResourceItem(msgspec.Struct, frozen=True, kw_only=True):
    """A listed resource; ``last_modified`` covers only data that the reader may see; None if unknown."""

    uri: str
    name: str
    title: str
    description: str
    last_modified: datetime | None = None


class Listing(NamedTuple):
    """A page of a listing."""

    sessions: list[SessionSummary]
    current: str | None


class Values(NamedTuple):
    """Values of a variable, most likely first; ``has_more``: there may be others."""

    values: list[str]
    has_more: bool = False


Lists = Callable[[Listing, IndexReader], Slices[list[ResourceItem]]]
Completes = Callable[[str, IndexReader], Slices[Values]]
"""Returns the values with a given beginning."""


# -- listing ---------------------------------------------------------------------------------


def _item(uri: str, name: str, title: str, description: str, changed: datetime | None = None) -> ResourceItem:
    return ResourceItem(uri=uri, name=name, title=title, description=description, last_modified=changed)


def sessions(page: Listing, _: IndexReader) -> Slices[list[ResourceItem]]:
    """List the sessions of the page."""
    yield from ()
    return [
        _item(
            uris.session_uri(each.session_id),
            each.session_id,
            each.purpose,
            f"Session of {each.created_by} with {each.message_count} messages for you",
            each.last_activity,
        )
        for each in page.sessions
    ]


def memory(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the reader's own memory."""
    yield from ()
    owner = memory_owner(reader.principal)
    words = "Keys with values and metadata, by scope; no one else can read it"
    return [_item(uris.memory_uri(owner), "memory", f"Memory of {owner}", words)]


def preferences(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the preferences of the reader's user."""
    yield from ()
    owner = preferences_owner(reader.principal)
    words = "What is preferred in every tool; no one else can read it"
    return [_item(uris.preferences_uri(owner), "preferences", f"Preferences of {owner}", words)]


def savings(_: Listing, __: IndexReader) -> Slices[list[ResourceItem]]:
    """List the savings of the reader's user."""
    yield from ()
    words = "Tokens of your user's answers by operation and day, beside those of a baseline"
    return [_item(uris.SAVINGS_OF_USER, "savings", "What was saved", words)]


def current_session(page: Listing, _: IndexReader) -> Slices[list[ResourceItem]]:
    """List the client's current session."""
    yield from ()
    words = "The session that you work in: files, searches, decisions, where the work stands"
    item = _item(uris.CURRENT_SESSION, "current_session", "Your session", words)
    return [] if page.current is None else [item]


def conversation(page: Listing, _: IndexReader) -> Slices[list[ResourceItem]]:
    """List the conversation of the current session; the template reaches other conversations."""
    yield from ()
    if page.current is None:
        return []
    title = "The conversation of your session"
    words = "The newest messages whole, older ones shortened, the oldest a line each"
    return [_item(uris.conversation_uri(page.current), "conversation", title, words)]


def corpora(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the corpora that the reader may see."""
    names = [row.full_name for row in (yield from VisibleCorpora().run(reader))[:MOST]]
    words = "Documents in which passages are found"
    return [_item(uris.corpus_uri(name), name, f"Corpus {name}", words) for name in names]


def projects(page: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the reader's projects; for a member of all projects, the projects on the page."""
    names = yield from _projects(reader, page.sessions)
    words = "What is indexed and known of it, and what was decided in its sessions"
    return [
        _item(uris.project_uri(name), f"project_{name}", f"Project {name}", words) for name in names[:MOST]
    ]


def patterns(_: Listing, reader: IndexReader) -> Slices[list[ResourceItem]]:
    """List the reader's workflow patterns."""
    return [
        _item(
            uris.workflow_uri(listed.project, pattern.id),
            _pattern_name(listed, pattern),
            " → ".join(pattern.commands),
            "Commands that you do again and again in this order",
            to_datetime(pattern.last_seen),
        )
        for listed, pattern in (yield from VisiblePatterns().run(reader))[:MOST]
    ]


# -- completing ------------------------------------------------------------------------------


def own(owner: Callable[[Principal], str]) -> Completes:
    """Return a completion with the reader's own value."""

    def complete(begun: str, reader: IndexReader) -> Slices[Values]:
        yield from ()
        name = owner(reader.principal)
        return Values([name] * name.startswith(begun))

    return complete


def session_ids(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the id of a session, most recent activity first."""
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
    """Complete the full name of a corpus, also from the beginning of its last part."""
    return Values(_named(begun, (yield from VisibleCorpora().run(reader))))


def workspace_names(begun: str, reader: IndexReader) -> Slices[Values]:
    """Complete the name of a workspace in the way of `corpus_names`."""
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
    """Complete the id of a pattern, also from the beginning of one of its commands."""
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
    """Return the reader's projects; for a member of all, projects of some sessions and corpora."""
    mine = memberships(reader.principal)
    if mine is not None:
        return sorted(mine)
    rows = yield from VisibleCorpora().run(reader)
    return sorted({*(each.project_id for each in newest if each.project_id), *_of_corpora(rows)})


def _of_corpora(rows: Iterable[CorpusRow]) -> Iterator[str]:
    for row in rows:
        if row.owner.startswith(PROJECT):
            name = name_of_segment(row.owner[len(PROJECT) :])
            if PROJECT + segment(name) == row.owner:  # a long name cannot be recovered
                yield name
        yield from row.projects[:1]
