"""The kinds of resources in one table: URIs, actors, and topics of changes.

A kind is one entry of `KINDS`, in listing order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from greenroom.actors.app.resources import listed
from greenroom.actors.app.resources.project import ReadProject
from greenroom.actors.app.savings.actor import savings_address
from greenroom.actors.app.savings.resource import ReadSavings
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy, scopes
from greenroom.actors.core.auth.namespaces import root_of, segment, user_namespace, workflow_key
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.resources import resource_uris as uris
from greenroom.actors.knowledge.corpora.handlers.resource import ReadCorpusResource
from greenroom.actors.memories.preferences import requests as preferences
from greenroom.actors.sessions.workflows import requests as workflows
from greenroom.runtime import Address, Procedure

DOCUMENT_TEMPLATE = "greenroom://document/{corpus}/{+path}"


class ResourceTemplate(NamedTuple):
    """A kind of resource, as the list of templates shows it; ``kind`` determines its scope."""

    uri_template: str
    name: str
    title: str
    description: str
    kind: str


class ResourceReader(NamedTuple):
    """The reader or subscriber of a resource.

    Attributes:
        token: Identifies the client.
    """

    principal: Principal
    session_id: str | None
    token: str


Found = re.Match[str]


class ResourceKind(NamedTuple):
    """A kind of resources.

    Attributes:
        kind: Its name in `scopes.RESOURCES`, which has its scope.
        address: Returns the actor that answers a `ReadResource`; None if this reader can have no such
            resource.
        topics: Returns the topics of its changes; none for a resource of someone else.
        procedure: Reads it by URI from several actors; None if one actor has it.
    """

    kind: str
    pattern: re.Pattern[str]
    address: Callable[[Found, ResourceReader], Address | None]
    topics: Callable[[Found, ResourceReader], tuple[str, ...]] = lambda found, _: (found[0],)
    procedure: Callable[[str], Procedure[Any]] | None = None
    templates: tuple[ResourceTemplate, ...] = ()
    completes: Mapping[str, listed.Completes] = {}
    lists: listed.Lists | None = None
    has_pages: bool = False


def _by_key(kind: str) -> Callable[[Found, ResourceReader], Address]:
    """Return a function that finds a kind's actor by the key in the URI."""
    return lambda found, _: Address(kind, found[1])


def _in_both(template: ResourceTemplate) -> tuple[ResourceTemplate, ...]:
    """Return a template under both schemes, which mean the same."""
    path = template.uri_template.removeprefix("greenroom")
    other = template._replace(
        uri_template=f"omnimemory{path}",
        name=f"omnimemory_{template.name}",
        description=f"The same as greenroom{path}.",
    )
    return (template, other)


def _own_preferences(found: Found, reader: ResourceReader) -> Address | None:
    mine = policy.preferences_owner(reader.principal)
    named = mine if found[1] is None else uris.decode_name(found[1])
    return Address(preferences.KIND, user_namespace(reader.principal)) if named == mine else None


def _preferences_topics(found: Found, reader: ResourceReader) -> tuple[str, ...]:
    if _own_preferences(found, reader) is None:
        return ()
    return (uris.preferences_topic(user_namespace(reader.principal)),)


def _current_topics(_: Found, reader: ResourceReader) -> tuple[str, ...]:
    topics = (uris.client_topic(reader.token),)
    if reader.session_id is None:
        return topics
    return (*topics, uris.session_uri(reader.session_id), uris.work_topic(reader.session_id))


def _project(found: Found, reader: ResourceReader) -> Address | None:
    named = uris.decode_name(found[1])
    is_mine = named is not None and policy.may_see_session(reader.principal, named)
    return Address("project", found[1]) if is_mine else None


def _project_topics(found: Found, reader: ResourceReader) -> tuple[str, ...]:
    """Return a topic for each part of the project that the reader's scopes open."""
    named = uris.decode_name(found[1])
    if named is None or not policy.may_see_session(reader.principal, named):
        return ()
    return tuple(
        uris.project_topic(segment(named), scope)
        for scope in (scopes.KNOWLEDGE, scopes.CODE, scopes.SESSIONS)
        if scopes.allows(reader.principal.scopes, scope)
    )


KINDS: tuple[ResourceKind, ...] = (
    ResourceKind(
        "memory",
        uris.MEMORY,
        _by_key("memory"),
        templates=(
            ResourceTemplate(
                "agent://{agent_id}/memory",
                "agent_memory",
                "Your memory",
                "Your own memory by scope: keys with values and metadata, newest first, with ?cursor= from "
                "there on; no one else can read it.",
                "memory",
            ),
        ),
        completes={"agent_id": listed.own(policy.memory_owner)},
        lists=listed.memory,
    ),
    ResourceKind(
        "session",
        uris.SESSION,
        _by_key("session"),
        templates=(
            ResourceTemplate(
                "session://{session_id}",
                "session",
                "Shared session",
                "A session with its statistics and the newest 100 messages that you may see.",
                "session",
            ),
        ),
        completes={"session_id": listed.session_ids},
        lists=listed.sessions,
        has_pages=True,
    ),
    ResourceKind(  # only for subscriptions: a namespace is read in pages, by requests
        "memory",
        uris.MEMORIES,
        lambda *_: None,
        lambda found, _: (uris.memories_uri(root_of(found[1])),),
    ),
    ResourceKind("export", uris.EXPORT, _by_key("export")),
    ResourceKind("passport", uris.PASSPORT, _by_key("passport")),
    ResourceKind(
        "corpus",
        uris.CORPUS,
        _by_key("corpus"),
        procedure=lambda uri: ReadCorpusResource(uri=uri),
        templates=(
            ResourceTemplate(
                "greenroom://corpus/{corpus}",
                "corpus",
                "Corpus of documents",
                "What is in a corpus, named in full, and how fresh it is.",
                "corpus",
            ),
        ),
        completes={"corpus": listed.corpus_names},
        lists=listed.corpora,
    ),
    ResourceKind(
        "corpus",
        uris.DOCUMENT,
        _by_key("corpus"),
        procedure=lambda uri: ReadCorpusResource(uri=uri),
        templates=(
            ResourceTemplate(
                DOCUMENT_TEMPLATE,
                "document",
                "Document of a corpus",
                "A document as it was taken in: its text, with the headings.",
                "corpus",
            ),
        ),
        completes={"corpus": listed.corpus_names},
    ),
    ResourceKind(
        "workspace",
        uris.WORKSPACE,
        _by_key("workspace"),
        procedure=lambda uri: ReadCorpusResource(uri=uri),
        templates=(
            ResourceTemplate(
                "greenroom://workspace/{workspace}",
                "workspace",
                "Workspace",
                "What is indexed of a folder of code, named in full, and how fresh that is.",
                "workspace",
            ),
        ),
        completes={"workspace": listed.workspace_names},
    ),
    ResourceKind(
        "workflow",
        uris.WORKFLOW,
        lambda found, reader: Address(workflows.KIND, workflow_key(reader.principal, found[2] or "")),
        lambda found, _: (uris.workflow_uri(found[2] or "", found[3]),),
        templates=_in_both(
            ResourceTemplate(
                "greenroom://workflows/{pattern_id}",
                "workflow_pattern",
                "Workflow pattern",
                "Commands that you do again and again in this order, with how sure, how successful and how "
                "long they are.",
                "workflow",
            )
        ),
        completes={"pattern_id": listed.pattern_ids},
        lists=listed.patterns,
    ),
    ResourceKind(
        "preferences",
        uris.PREFERENCES,
        _own_preferences,
        _preferences_topics,
        templates=_in_both(
            ResourceTemplate(
                "greenroom://user/{user_id}/preferences",
                "preferences",
                "Your preferences",
                "What your user prefers, in every tool; no one else can read it.",
                "preferences",
            )
        ),
        completes={"user_id": listed.own(policy.preferences_owner)},
        lists=listed.preferences,
    ),
    ResourceKind(
        "savings",
        uris.SAVINGS,
        lambda _, reader: savings_address(user_namespace(reader.principal)),
        lambda *_: (),
        procedure=lambda uri: ReadSavings(uri=uri),
        lists=listed.savings,
    ),
    ResourceKind(
        "session",
        uris.CURRENT,
        lambda _, reader: None if reader.session_id is None else Address("session", reader.session_id),
        _current_topics,
        lists=listed.current_session,
    ),
    ResourceKind(
        "project",
        uris.PROJECT,
        _project,
        _project_topics,
        procedure=lambda uri: ReadProject(uri=uri),
        templates=_in_both(
            ResourceTemplate(
                "greenroom://project/{project_id}",
                "project",
                "Project",
                "What is indexed and known of a project, and what was decided in its sessions.",
                "project",
            )
        ),
        completes={"project_id": listed.project_ids},
        lists=listed.projects,
    ),
    ResourceKind(
        "session",
        uris.CONVERSATION,
        _by_key("session"),
        lambda found, _: (uris.session_uri(found[1]),),
        templates=_in_both(
            ResourceTemplate(
                "greenroom://conversation/{session_id}",
                "conversation",
                "Conversation",
                "A session's messages, to be read at once: the newest messages whole, older ones "
                "shortened, the oldest a line each.",
                "session",
            )
        ),
        completes={"session_id": listed.session_ids},
        lists=listed.conversation,
    ),
)
"""Every kind of resource."""

TEMPLATES: tuple[ResourceTemplate, ...] = tuple(each for kind in KINDS for each in kind.templates)
"""All templates, in listing order."""

_BEGINNING = re.compile(r"(?:\(\?:[a-z|]+\)|[a-z]+)://(?:[a-z]+/?)?")
SCHEMES = ("session", "agent", "greenroom", "omnimemory")
"""The schemes of resource URIs."""


def find_kind(uri: str) -> tuple[ResourceKind, Found] | None:
    """Return the kind of a resource by its URI, or None if there is none."""
    for kind in KINDS:
        if found := kind.pattern.fullmatch(uri):
            return kind, found
    return None


@cache
def _beginnings() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(beginning[0]), kind.kind)
        for kind in KINDS
        if (beginning := _BEGINNING.match(kind.pattern.pattern))
    )


def scope_kind(uri: str) -> str | None:
    """Return the kind of a URI, by its beginning if necessary; None if unknown.

    `scopes.RESOURCES` has the kinds.
    """
    found = find_kind(uri)
    if found is not None:
        return found[0].kind
    return next((kind for beginning, kind in _beginnings() if beginning.match(uri)), None)


def check_scheme(uri: str) -> None:
    """Check that a URI has a served scheme, whether or not the resource exists."""
    if not uri.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        raise auth_errors.invalid(
            "uri",
            f"uri: no resource begins like {uri[:200]!r}; there are session://{{session_id}} and "
            "agent://{agent_id}/memory, and what the templates say begins with greenroom:// and omnimemory://",
            schemes=list(SCHEMES),
        )
