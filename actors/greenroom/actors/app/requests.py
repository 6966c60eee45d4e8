"""The requests of agents, in listing order, and tables from their declarations.

An operation is declared beside its request (`auth.operations`). To add an operation, declare it and name its
request here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from greenroom.actors.app.administration.erase import EraseUser
from greenroom.actors.app.administration.overview import GetOverview
from greenroom.actors.app.administration.people import EndBrowser, GetOwnKey, ListPeople
from greenroom.actors.app.administration.server_stats import GetStats, HealthCheck
from greenroom.actors.app.map.entity_mentions import FindEntity
from greenroom.actors.app.map.request import MemoryMap
from greenroom.actors.app.prompts.requests import CompletePrompt, GetPrompt, ListPrompts
from greenroom.actors.app.resources.kinds import find_kind
from greenroom.actors.app.resources.listing import CompleteResource, ListResources
from greenroom.actors.app.savings import baselines
from greenroom.actors.content.compression.compress_text import CompressText
from greenroom.actors.core.audit.export import ExportAuditLog
from greenroom.actors.core.audit.query import GetAuditLog, GetAuditState, VerifyAudit
from greenroom.actors.core.auth import scopes as auth_scopes
from greenroom.actors.core.keys.admin import CreateApiKey, ListApiKeys, RevokeApiKey, RotateApiKey
from greenroom.actors.core.operations import LISTED, OPERATIONS, Operation, RouteKind, ToolText
from greenroom.actors.core.resources.resources import ReadResource
from greenroom.actors.hooks.provenance import ListTold
from greenroom.actors.knowledge.corpora.tools.entity_tools import (
    DefineEntities,
    FindVendorInfo,
    SuggestEntities,
)
from greenroom.actors.knowledge.corpora.tools.explain_documents import ExplainDocuments
from greenroom.actors.knowledge.corpora.tools.listing import (
    BrowseCorpora,
    CorpusEntities,
    ListWorkspaces,
    WorkspaceFiles,
)
from greenroom.actors.knowledge.corpora.tools.query_service import ListCorpora
from greenroom.actors.knowledge.ingest.ingest_documents import IngestDocuments
from greenroom.actors.knowledge.ingest.list_documents import CorpusDocuments
from greenroom.actors.knowledge.ingest.search_documents import GetFullContent, SemanticSearch
from greenroom.actors.knowledge.workspaces.tools.dependency_search import DependencySearch
from greenroom.actors.knowledge.workspaces.tools.explain_code import ExplainCode
from greenroom.actors.knowledge.workspaces.tools.outline import Outline
from greenroom.actors.knowledge.workspaces.tools.pattern_search import CodeSearch
from greenroom.actors.knowledge.workspaces.tools.read_file import ReadFile
from greenroom.actors.knowledge.workspaces.tools.semantic_search import SearchCodeSemantic
from greenroom.actors.knowledge.workspaces.tools.similar_files import SimilarFiles
from greenroom.actors.knowledge.workspaces.tools.symbol_search import SymbolSearch
from greenroom.actors.knowledge.workspaces.tools.workspace_facts import CompleteCode
from greenroom.actors.memories.preferences.requests import SetPreferences
from greenroom.actors.memories.recall.explain_memories import ExplainSearch
from greenroom.actors.memories.recall.recall_context import RecallContext
from greenroom.actors.memories.recall.search_requests import MemorySearch, RetrieveMemory
from greenroom.actors.memories.requests import keyvalue_requests as memory
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests import review as memory_review
from greenroom.actors.memories.storage.directory import BrowseNamespaces
from greenroom.actors.memories.transfer.import_export import ExportMemories, ImportMemories
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.actors.sessions.passports.export import ExportSession
from greenroom.actors.sessions.passports.issued import ListPassports
from greenroom.actors.sessions.passports.restore import RestoreSession
from greenroom.actors.sessions.passports.start_session import MigrateSession, StartSession
from greenroom.actors.sessions.requests import handover, session_context
from greenroom.actors.sessions.requests import requests as sessions
from greenroom.actors.sessions.requests.session_views import ReadTranscript
from greenroom.actors.sessions.search.context_search import ExplainSessionSearch
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.tools import (
    GetWorkflowPatterns,
    RecordWorkflowStep,
    SuggestNextAction,
    WorkflowCheckpoint,
)
from greenroom.runtime import Message, Procedure

Request = type[Message[Any] | Procedure[Any]]
"""A type of request."""

_LISTED: tuple[Request, ...] = (
    sessions.CreateSession,
    sessions.GetSession,
    ListSessions,
    sessions.UpdateSession,
    sessions.RenameSession,
    handover.ReopenSession,
    sessions.AddMessage,
    sessions.GetMessages,
    sessions.SearchContext,
    sessions.SearchBySender,
    sessions.SearchByTimerange,
    memory.SetMemory,
    memory.GetMemory,
    memory.ListMemory,
    memory.DeleteMemory,
    memories.StoreMemory,
    RetrieveMemory,
    MemorySearch,
    RecallContext,
    SemanticSearch,
    GetFullContent,
    ListCorpora,
    IngestDocuments,
    SearchCodeSemantic,
    SymbolSearch,
    Outline,
    DependencySearch,
    SimilarFiles,
    CodeSearch,
    ReadFile,
    FindVendorInfo,
    FindEntity,
    SuggestEntities,
    DefineEntities,
    memories.UpdateMemory,
    memories.RateMemory,
    memories.ForgetMemory,
    memories.ListMemories,
    memories.ListVersions,
    memories.MemoryStats,
    SetPreferences,
    ImportMemories,
    ExportMemories,
    StartSession,
    RestoreSession,
    session_context.GetSessionContext,
    session_context.RecordContext,
    MigrateSession,
    ExportSession,
    session_context.EndSession,
    CompressText,
    GetStats,
    HealthCheck,
    RecordWorkflowStep,
    GetWorkflowPatterns,
    SuggestNextAction,
    WorkflowCheckpoint,
    GetAuditLog,
    CreateApiKey,
    ListApiKeys,
    RotateApiKey,
    RevokeApiKey,
    EraseUser,
)
"""The requests of the tools, in listing order."""
_OF_CONSOLE: tuple[Request, ...] = (
    MemoryMap,
    memory_review.BrowseMemories,
    memory_review.InspectMemory,
    memory_review.ListMemoryPairs,
    memory_review.ListForgotten,
    memory_review.RestoreMemory,
    memory_review.MergeMemories,
    memory_review.MoveMemory,
    memory_review.WithdrawRating,
    memory_review.SettleMemoryPair,
    BrowseNamespaces,
    BrowseCorpora,
    CorpusDocuments,
    CorpusEntities,
    ListWorkspaces,
    WorkspaceFiles,
    FindSessions,
    ListPassports,
    ReadTranscript,
    ListTold,
    ExplainSearch,
    ExplainDocuments,
    ExplainSessionSearch,
    ExplainCode,
    GetOverview,
    ListPeople,
    GetOwnKey,
    EndBrowser,
    GetAuditState,
    VerifyAudit,
    ExportAuditLog,
)
"""The requests that are served only as HTTP and JSON."""


def _by_name(requests: tuple[Request, ...]) -> dict[str, Operation]:
    declared = {each.request: each for each in OPERATIONS.values()}
    return {declared[request].name: declared[request] for request in requests}


_TOOLS = _by_name(_LISTED)
_CONSOLE = _by_name(_OF_CONSOLE)
_API = {**_TOOLS, **_CONSOLE}
LISTED.update(_API)

REQUESTS: Mapping[str, Request] = {name: each.request for name, each in _TOOLS.items()}
"""The request type of every tool, by the tool's name."""
CONSOLE_REQUESTS: Mapping[str, Request] = {name: each.request for name, each in _CONSOLE.items()}
"""Requests of the console: served as HTTP and JSON, but not as tools, because each tool costs tokens."""
API_REQUESTS: Mapping[str, Request] = {**REQUESTS, **CONSOLE_REQUESTS}
"""The request type of everything served as HTTP and JSON, by name."""
TOOL_TEXTS: Mapping[str, ToolText] = {name: each.tool for name, each in _TOOLS.items() if each.tool}
"""The texts of every tool, by name."""
TOOL_SCOPES: Mapping[str, str] = {name: each.scope for name, each in _TOOLS.items()}
"""The scope of every tool, by name."""
NEEDED: Mapping[str, str] = {
    **{name: each.scope for name, each in _API.items()},
    **{f"resource {kind}": scope for kind, scope in auth_scopes.RESOURCES.items()},
    **{f"prompts with {kind}": scope for kind, scope in auth_scopes.PROMPTS.items()},
}
"""The scope that each request, kind of resource, and kind of prompt context needs."""

COUNTED: Mapping[type[Any], str] = {REQUESTS[name]: name for name in baselines.OPERATIONS}
"""The requests with counted savings."""
_BESIDES = (
    ReadResource,
    ListResources,
    CompleteResource,
    CompleteCode,
    ListPrompts,
    GetPrompt,
    CompletePrompt,
)
"""Requests besides tools: resources, prompts, and their completion."""
ASKED = frozenset({*API_REQUESTS.values(), *_BESIDES})
"""Every type of request that an agent may send."""
_ANY: tuple[Request, ...] = (*API_REQUESTS.values(), *_BESIDES)
READS = tuple(request for request in _ANY if issubclass(request, Procedure) and request.runs != "here")
"""The requests that read committed data; a runtime is opened with them."""


AFTER_NOTES = frozenset(
    {*(each.request for each in _API.values() if each.after_notes), ReadResource, GetPrompt}
)
"""Requests that show or end a session's work, or erase data: pending notes are written before them."""


class Route(NamedTuple):
    """Routing of a request type to its actor.

    Attributes:
        kind: What determines its actor: a session id, the agent, a namespace, the user, or a URI.
        is_write: Whether it may carry an idempotency key.
        makes_id: Whether the server may make its session's id.
        by_memory_id: Whether it may name a memory only by id, so that its actor must be looked up.
    """

    tool: str
    kind: RouteKind | Literal["uri"]
    is_write: bool
    makes_id: bool
    by_memory_id: bool = False


_WRITING = frozenset(each.request for each in _API.values() if each.writes)


def is_write(request_type: type[msgspec.Struct]) -> bool:
    """Return whether requests of this type write; messages then accept an ``idempotency_key``."""
    return request_type in _WRITING


ROUTES: dict[type[Message[Any]], Route] = {
    **{
        each.request: Route(name, each.route, each.writes, each.makes_id, each.by_memory_id)
        for name, each in _API.items()
        if each.route is not None
    },
    ReadResource: Route("resources/read", "uri", is_write=False, makes_id=False),
}
"""The route of each type of message."""
TOOLS: Mapping[type[Any], str] = {request: name for name, request in REQUESTS.items()}
"""The tools' names, by the types of their requests."""
LEARNED = {each.request: name for name, each in _TOOLS.items() if each.is_step}
"""The tools whose calls can be recorded as workflow steps: all except the tools for workflows."""
NAMES = {message: route.tool for message, route in ROUTES.items()}
"""The names of messages, by their types."""


def takes_several(request: object) -> bool:
    """Return whether a request reads a resource of several actors."""
    if not isinstance(request, ReadResource):
        return False
    found = find_kind(request.uri)
    return found is not None and found[0].procedure is not None


@lru_cache(maxsize=256)
def closed_to(scopes: frozenset[str]) -> Mapping[type[Any], tuple[str, str]]:
    """Return the requests that ``scopes`` forbid: each type's name, and the scope it needs."""
    needed = {each.request: (name, each.scope) for name, each in _API.items()}
    closed = {request: found for request, found in needed.items() if not auth_scopes.allows(scopes, found[1])}
    if not auth_scopes.contexts_of(scopes):
        closed |= dict.fromkeys((ListPrompts, GetPrompt), ("prompts", auth_scopes.CODE))
    return closed


@lru_cache(maxsize=256)
def closed_to_impersonators(scopes: frozenset[str]) -> Mapping[type[Any], tuple[str, str]]:
    """Return the requests that impersonators may not send, also those that store the agent's data."""
    kept = {each.request: (name, each.scope) for name, each in _API.items() if each.keeps}
    return {**closed_to(scopes), **kept}
