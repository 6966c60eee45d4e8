"""Resources: their URIs, which are also the topics of changes; reading one, and what both kinds hold."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.auth import errors as auth_errors
from greenroom.actors.schemas import replies
from greenroom.actors.schemas.corpus import CorpusView
from greenroom.actors.schemas.workflows import WorkflowPattern
from greenroom.actors.schemas.workspace import WorkspaceState
from greenroom.runtime import Address, Message

SESSION_TEMPLATE = "session://{session_id}"
MEMORY_TEMPLATE = "agent://{agent_id}/memory"
CORPUS_TEMPLATE = "greenroom://corpus/{corpus}"
DOCUMENT_TEMPLATE = "greenroom://document/{corpus}/{+path}"
WORKSPACE_TEMPLATE = "greenroom://workspace/{workspace}"
WORKFLOW_TEMPLATE = "greenroom://workflows/{pattern_id}"

_SESSION = re.compile(r"session://([A-Za-z0-9_.-]{1,128})")
_MEMORY = re.compile(r"agent://([A-Za-z0-9_.-]{1,100})/memory(?:\?cursor=([A-Za-z0-9_-]+))?")
_EXPORT = re.compile(r"greenroom://export/([0-9a-f]{32})(?:/(?:[2-9]|[1-9][0-9]{1,3}))?")
_PASSPORT = re.compile(r"greenroom://passport/([0-9a-f]{32})")
_FULL_NAME = r"(?:(?:user|project):[A-Za-z0-9_.@+~-]{1,100}|all):[A-Za-z0-9_.@+-]{1,64}"
_CORPUS = re.compile(f"greenroom://corpus/({_FULL_NAME})")
_WORKSPACE = re.compile(f"greenroom://workspace/({_FULL_NAME})")
_WORKFLOW = re.compile(
    r"(?:greenroom|omnimemory)://workflows/((?:([A-Za-z0-9_.@+~-]{1,90})\.)?([0-9a-f]{16}))"
)
_DOCUMENT = re.compile(f"greenroom://document/({_FULL_NAME})/(.+)")

_KINDS = (
    (_SESSION, "session"),
    (_MEMORY, "memory"),
    (_EXPORT, "export"),
    (_PASSPORT, "passport"),
    (_CORPUS, "corpus"),
    (_DOCUMENT, "corpus"),
    (_WORKSPACE, "workspace"),
    (_WORKFLOW, "workflow"),
)

SCHEMES = ("session", "agent", "greenroom", "omnimemory")
"""What the URIs of resources begin with."""


class ResourceTemplate(NamedTuple):
    """A kind of resource, in words for those who list the templates; ``kind`` tells which scope it needs."""

    uri_template: str
    name: str
    title: str
    description: str
    kind: str


TEMPLATES: tuple[ResourceTemplate, ...] = (
    ResourceTemplate(
        SESSION_TEMPLATE,
        "session",
        "Shared session",
        "A session with its statistics and the newest 100 messages that you may see.",
        "session",
    ),
    ResourceTemplate(
        MEMORY_TEMPLATE,
        "agent_memory",
        "Your memory",
        "Your own memory by scope: keys with values and metadata, newest first, with ?cursor= from there on; "
        "nobody else can read it.",
        "memory",
    ),
    ResourceTemplate(
        CORPUS_TEMPLATE,
        "corpus",
        "Corpus of documents",
        "What is in a corpus, named in full as list_corpora does, and how fresh it is.",
        "corpus",
    ),
    ResourceTemplate(
        DOCUMENT_TEMPLATE,
        "document",
        "Document of a corpus",
        "A document as it was taken in: its text, with the headings.",
        "corpus",
    ),
    ResourceTemplate(
        WORKSPACE_TEMPLATE,
        "workspace",
        "Workspace",
        "What is indexed of a folder of code, named in full as list_corpora does, and how fresh that is.",
        "workspace",
    ),
    ResourceTemplate(
        WORKFLOW_TEMPLATE,
        "workflow_pattern",
        "Workflow pattern",
        "Commands that you do again and again in this order, with how sure, how successful and how long they "
        "are; get_workflow_patterns has the ids.",
        "workflow",
    ),
)
"""All kinds of resources."""


def session_uri(session_id: str) -> str:
    """Return the URI of a session."""
    return f"session://{session_id}"


def memory_uri(agent_id: str) -> str:
    """Return the URI of an agent's memory."""
    return f"agent://{agent_id}/memory"


def corpus_uri(corpus: str) -> str:
    """Return the URI of a corpus by its name in full."""
    return f"greenroom://corpus/{corpus}"


def document_uri(corpus: str, path: str) -> str:
    """Return the URI of a document of a corpus, which is named in full."""
    return f"greenroom://document/{corpus}/{quote(path, safe='/')}"


def workspace_uri(corpus: str) -> str:
    """Return the URI of a workspace by the name of its corpus in full."""
    return f"greenroom://workspace/{corpus}"


def is_of_workspace(uri: str) -> bool:
    """Return whether a URI names a workspace."""
    return _WORKSPACE.fullmatch(uri) is not None


def corpus_of_uri(uri: str) -> tuple[str, str | None] | None:
    """Return the corpus that a URI names, and the path where it is a document's; None for other URIs."""
    if named := _CORPUS.fullmatch(uri) or _WORKSPACE.fullmatch(uri):
        return named[1], None
    if named := _DOCUMENT.fullmatch(uri):
        return named[1], unquote(named[2])
    return None


def workflow_uris(project: str, pattern: str) -> tuple[str, str]:
    """Return the URIs of a pattern, under either scheme; ``project`` as in an actor's key, empty for none."""
    name = f"{project}.{pattern}" if project else pattern
    return f"greenroom://workflows/{name}", f"omnimemory://workflows/{name}"


def pattern_of_uri(uri: str) -> tuple[str, str] | None:
    """Return the project, as in an actor's key, and the pattern that a URI names; None for other URIs."""
    named = _WORKFLOW.fullmatch(uri)
    return None if named is None else (named[2] or "", named[3])


def check_scheme(uri: str) -> None:
    """Check that a URI is of a kind that is served, whether or not there is such a resource.

    Raises:
        Refusal: ``VALIDATION_ERROR`` naming the schemes that are.
    """
    if not uri.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        raise auth_errors.invalid(
            "uri",
            f"uri: no resource begins like {uri[:200]!r}; there are {SESSION_TEMPLATE} and {MEMORY_TEMPLATE}",
            schemes=list(SCHEMES),
        )


def parse_uri(uri: str) -> Address | None:
    """Return the actor that a resource's URI names, or None when no resource can have such a URI.

    That of a corpus is known by another key than the name in the URI; see `corpus_of_uri`. That of a pattern
    is known by who reads; see `pattern_of_uri`.
    """
    for pattern, kind in _KINDS:
        if named := pattern.fullmatch(uri):
            return Address(kind, named[1])
    return None


def cursor_of(uri: str) -> str | None:
    """Return the cursor in the URI of an agent's memory, None where it is read from the beginning."""
    named = _MEMORY.fullmatch(uri)
    return None if named is None else named[2]


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a resource says of itself.

    Attributes:
        uri: Its URI.
        reader: The agent that it was put together for; another one may see more or less.
        last_updated: When it changed last, as far as the reader may see; None when it holds nothing.
        supports_subscriptions: Whether changes of it can be subscribed to.
    """

    uri: str
    reader: str
    last_updated: datetime | None
    supports_subscriptions: bool = True


class SessionResource(msgspec.Struct, frozen=True, kw_only=True):
    """A session with the newest messages that the reader may see, oldest of them first.

    ``cursor`` leads `GetMessages` further back.
    """

    session: replies.SessionView
    messages: list[replies.MessageView]
    statistics: replies.SessionStatistics
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class MemoryItem(replies.MemoryEntry, frozen=True, kw_only=True):
    """An entry with its value, but one that is larger than 1 MB, which `GetMemory` has."""

    value: msgspec.Raw | UnsetType = UNSET
    metadata: msgspec.Raw


class MemoryByScope(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """Entries by their keys, newest update first: global ones, and those of each session."""

    global_: dict[str, MemoryItem]
    sessions: dict[str, dict[str, MemoryItem]]


class MemoryCounts(msgspec.Struct, frozen=True, kw_only=True, rename={"global_": "global"}):
    """How many entries there are by scope, also those that the page has no room for."""

    global_: int
    sessions: dict[str, int]
    total: int


class MemoryFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How many keys are global, how many sessions have some, and how many there are in all, on every page."""

    global_keys: int
    session_scopes: int
    total_entries: int


class MemoryResource(msgspec.Struct, frozen=True, kw_only=True):
    """A page of an agent's memory: its newest entries by scope.

    ``cursor`` leads further back: as ``?cursor=`` behind the URI, or `ListMemory` of all scopes.
    """

    agent_id: str
    memory: MemoryByScope
    counts: MemoryCounts
    statistics: MemoryFigures
    has_more: bool
    cursor: str | None
    resource_info: ResourceInfo


class ExportResource(msgspec.Struct, frozen=True, kw_only=True):
    """An export of memories: its text, which is of another type than other resources."""

    uri: str
    mime_type: str
    text: str


class DocumentItem(msgspec.Struct, frozen=True, kw_only=True):
    """A document in what a corpus says of itself."""

    uri: str
    path: str
    title: str
    chunks: int
    indexed_at: datetime


class CorpusResource(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus: what is in it, how fresh it is, and some of its documents.

    ``has_more``: there are more documents than these.
    """

    corpus: CorpusView
    documents: list[DocumentItem]
    has_more: bool
    resource_info: ResourceInfo


class WorkspaceResource(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace: what is indexed of its folder, how fresh that is, and what is left out.

    Attributes:
        workspace: Its folder and its size.
        freshness: How far the index is, how it is kept, and how many files are left out, by reason.
        files: Some of the files that are indexed.
        has_more: Whether there are more than these.
    """

    workspace: CorpusView
    freshness: WorkspaceState
    files: list[str]
    has_more: bool
    resource_info: ResourceInfo


class DocumentResource(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was taken in: its chunks one after the other, with the headings between them.

    ``modified_at``: when its file was changed; None for what was sent as a text. ``is_cut``: its text is
    longer than this.
    """

    corpus: str
    path: str
    title: str
    kind: str
    bytes: int
    modified_at: datetime | None
    indexed_at: datetime
    text: str
    is_cut: bool
    resource_info: ResourceInfo


class PatternResource(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern of one's own steps."""

    pattern: WorkflowPattern
    resource_info: ResourceInfo


class ReadResource(
    Message[
        SessionResource
        | MemoryResource
        | ExportResource
        | CorpusResource
        | DocumentResource
        | WorkspaceResource
        | PatternResource
    ],
    frozen=True,
    kw_only=True,
):
    """Read a session, one's own memory, an export, a corpus or part of one, or a pattern by its URI."""

    uri: str
