"""The requests that agents ask: their types by name, which actor each is for, and which scopes close them."""

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
from greenroom.actors.app.savings.baselines import OPERATIONS
from greenroom.actors.base.orchestration import Orchestration
from greenroom.actors.core.audit.export import ExportAuditLog
from greenroom.actors.core.audit.query import GetAuditLog, GetAuditState, VerifyAudit
from greenroom.actors.core.auth import scopes as auth_scopes
from greenroom.actors.core.keys.admin import CreateApiKey, ListApiKeys, RevokeApiKey, RotateApiKey
from greenroom.actors.corpus.listing import BrowseCorpora, CorpusEntities
from greenroom.actors.corpus.workspace_listing import ListWorkspaces, WorkspaceFiles
from greenroom.actors.hooks.provenance import ListTold
from greenroom.actors.knowledge.corpora.tools.entity_tools import (
    DefineEntities,
    FindVendorInfo,
    SuggestEntities,
)
from greenroom.actors.knowledge.corpora.tools.explain_documents import ExplainDocuments
from greenroom.actors.knowledge.corpora.tools.query_service import ListCorpora
from greenroom.actors.knowledge.ingest.ingest_documents import IngestDocuments
from greenroom.actors.knowledge.workspaces.tools.code_search import CodeSearch
from greenroom.actors.knowledge.workspaces.tools.explain_code import ExplainCode
from greenroom.actors.knowledge.workspaces.tools.read_file import ReadFile
from greenroom.actors.memories.preferences.requests import SetPreferences
from greenroom.actors.memories.recall.explain import ExplainSearch
from greenroom.actors.memories.recall.memory_search import MemorySearch, RecallContext, RetrieveMemory
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests import review as memory_review
from greenroom.actors.memories.storage.directory import BrowseNamespaces
from greenroom.actors.memories.transfer.import_export import ExportMemories, ImportMemories
from greenroom.actors.orchestrations.ask_documents import GetFullContent, SemanticSearch
from greenroom.actors.orchestrations.complete_code import CompleteCode
from greenroom.actors.orchestrations.compress_text import CompressText
from greenroom.actors.orchestrations.dependency_search import DependencySearch
from greenroom.actors.orchestrations.list_documents import CorpusDocuments
from greenroom.actors.orchestrations.outline import Outline
from greenroom.actors.orchestrations.search_code import SearchCodeSemantic
from greenroom.actors.orchestrations.similar_files import SimilarFiles
from greenroom.actors.orchestrations.symbol_search import SymbolSearch
from greenroom.actors.schemas import keyvalue as memory
from greenroom.actors.schemas.resources import ReadResource
from greenroom.actors.schemas.transcripts import ReadTranscript
from greenroom.actors.sessions.handlers.find_sessions import FindSessions
from greenroom.actors.sessions.passports.export import ExportSession
from greenroom.actors.sessions.passports.issued import ListPassports
from greenroom.actors.sessions.passports.restore import RestoreSession
from greenroom.actors.sessions.passports.start_session import MigrateSession, StartSession
from greenroom.actors.sessions.requests import requests as sessions
from greenroom.actors.sessions.requests import session_context as travel
from greenroom.actors.sessions.search.context_search import ExplainSessionSearch
from greenroom.actors.sessions.storage.directory import ListSessions
from greenroom.actors.sessions.workflows.tools import (
    GetWorkflowPatterns,
    RecordWorkflowStep,
    SuggestNextAction,
    WorkflowCheckpoint,
)
from greenroom.runtime import Message, Procedure, Query

_TO_SESSION: dict[str, type[Message[Any]]] = {
    "create_session": sessions.CreateSession,
    "get_session": sessions.GetSession,
    "reopen_session": travel.ReopenSession,
    "update_session": sessions.UpdateSession,
    "add_message": sessions.AddMessage,
    "get_messages": sessions.GetMessages,
    "search_context": sessions.SearchContext,
    "search_by_sender": sessions.SearchBySender,
    "search_by_timerange": sessions.SearchByTimerange,
}
_TO_OWN_SESSION: dict[str, type[Message[Any]]] = {
    "record_context": travel.RecordContext,
    "get_session_context": travel.GetSessionContext,
    "end_session": travel.EndSession,
}
_TO_CONSOLE_SESSION: dict[str, type[Message[Any]]] = {"read_transcript": ReadTranscript}
_TO_MEMORY: dict[str, type[Message[Any]]] = {
    "set_memory": memory.SetMemory,
    "get_memory": memory.GetMemory,
    "list_memory": memory.ListMemory,
    "delete_memory": memory.DeleteMemory,
}
_TO_NAMESPACE: dict[str, type[Message[Any]]] = {
    "store_memory": memories.StoreMemory,
    "update_memory": memories.UpdateMemory,
    "forget_memory": memories.ForgetMemory,
    "rate_memory": memories.RateMemory,
    "list_memories": memories.ListMemories,
    "list_memory_versions": memories.ListVersions,
    "memory_stats": memories.MemoryStats,
}
_TO_NAMESPACE_BY_CONSOLE: dict[str, type[Message[Any]]] = {
    "browse_memories": memory_review.BrowseMemories,
    "inspect_memory": memory_review.InspectMemory,
    "list_memory_pairs": memory_review.ListMemoryPairs,
    "list_forgotten": memory_review.ListForgotten,
    "restore_memory": memory_review.RestoreMemory,
    "merge_memories": memory_review.MergeMemories,
    "move_memory": memory_review.MoveMemory,
    "withdraw_rating": memory_review.WithdrawRating,
    "settle_memory_pair": memory_review.SettleMemoryPair,
}
_TO_PREFERENCES: dict[str, type[Message[Any]]] = {"set_preferences": SetPreferences}
_OVER_NAMESPACES: dict[str, type[Procedure[Any]]] = {
    "memory_search": MemorySearch,
    "retrieve_memory": RetrieveMemory,
    "recall_context": RecallContext,
}
_OF_CORPORA: dict[str, type[Procedure[Any] | Orchestration[Any]]] = {
    "semantic_search": SemanticSearch,
    "get_full_content": GetFullContent,
    "list_corpora": ListCorpora,
    "find_vendor_info": FindVendorInfo,
    "find_entity": FindEntity,
    "suggest_entities": SuggestEntities,
}
_ORCHESTRATIONS: dict[str, type[Orchestration[Any]]] = {
    "define_entities": DefineEntities,
    "import_memories": ImportMemories,
    "export_memories": ExportMemories,
    "ingest_documents": IngestDocuments,
    "start_session": StartSession,
    "restore_session": RestoreSession,
    "migrate_session": MigrateSession,
    "export_session": ExportSession,
    "search_code_semantic": SearchCodeSemantic,
    "read_file": ReadFile,
    "symbol_search": SymbolSearch,
    "outline": Outline,
    "dependency_search": DependencySearch,
    "similar_files": SimilarFiles,
    "code_search": CodeSearch,
    "compress_text": CompressText,
    "get_stats": GetStats,
    "health_check": HealthCheck,
    "record_workflow_step": RecordWorkflowStep,
    "get_workflow_patterns": GetWorkflowPatterns,
    "suggest_next_action": SuggestNextAction,
    "workflow_checkpoint": WorkflowCheckpoint,
    "create_api_key": CreateApiKey,
    "list_api_keys": ListApiKeys,
    "rotate_api_key": RotateApiKey,
    "revoke_api_key": RevokeApiKey,
    "erase_user": EraseUser,
}

REQUESTS: Mapping[str, type[Message[Any] | Query[Any] | Procedure[Any] | Orchestration[Any]]] = {
    **_TO_SESSION,
    "list_sessions": ListSessions,
    "get_audit_log": GetAuditLog,
    **_TO_OWN_SESSION,
    **_TO_MEMORY,
    **_TO_NAMESPACE,
    **_TO_PREFERENCES,
    **_OVER_NAMESPACES,
    **_OF_CORPORA,
    **_ORCHESTRATIONS,
}
"""The request type of every tool, by the tool's name."""

CONSOLE_REQUESTS: Mapping[str, type[Message[Any] | Query[Any] | Procedure[Any] | Orchestration[Any]]] = {
    "memory_map": MemoryMap,
    **_TO_NAMESPACE_BY_CONSOLE,
    "browse_namespaces": BrowseNamespaces,
    "browse_corpora": BrowseCorpora,
    "list_documents": CorpusDocuments,
    "list_entities": CorpusEntities,
    "list_workspaces": ListWorkspaces,
    "list_workspace_files": WorkspaceFiles,
    "find_sessions": FindSessions,
    "list_passports": ListPassports,
    **_TO_CONSOLE_SESSION,
    "list_told": ListTold,
    "explain_search": ExplainSearch,
    "explain_documents": ExplainDocuments,
    "explain_session_search": ExplainSessionSearch,
    "explain_code": ExplainCode,
    "get_overview": GetOverview,
    "list_people": ListPeople,
    "get_own_key": GetOwnKey,
    "end_browser": EndBrowser,
    "get_audit_state": GetAuditState,
    "verify_audit": VerifyAudit,
    "export_audit_log": ExportAuditLog,
}
"""What only the console asks: served as HTTP and JSON, and not as tools, each of which costs tokens."""

API_REQUESTS: Mapping[str, type[Message[Any] | Query[Any] | Procedure[Any] | Orchestration[Any]]] = {
    **REQUESTS,
    **CONSOLE_REQUESTS,
}
"""The request type of everything that is served as HTTP and JSON, by its name."""

_EXPORTS = ("export_memories", "export_session")
"""What changes nothing, but keeps what it answers for a while, and signs it."""
COUNTED: Mapping[type[Any], str] = {REQUESTS[name]: name for name in OPERATIONS}
"""The requests of which is counted what they save."""
_BESIDES = (
    ReadResource,
    ListResources,
    CompleteResource,
    CompleteCode,
    ListPrompts,
    GetPrompt,
    CompletePrompt,
)
"""What is asked besides tools: resources, prompts, and what completes them."""
ASKED = frozenset({*API_REQUESTS.values(), *_BESIDES})
"""Every type of request that an agent may ask."""


AFTER_NOTES = frozenset(
    {
        travel.GetSessionContext,
        travel.RecordContext,
        travel.EndSession,
        travel.ReopenSession,
        sessions.UpdateSession,
        StartSession,
        RestoreSession,
        MigrateSession,
        ExportSession,
        ReadResource,
        GetPrompt,
        EraseUser,
    }
)
"""What shows the work of a session, ends it or erases: what was noted before is written before that."""


class Route(NamedTuple):
    """Routing of a request type to its actor.

    Attributes:
        tool: The request's name.
        kind: What tells its actor: a session's id, the agent, a namespace, the user, or a URI.
        is_write: Whether it may carry an idempotency key.
        makes_name: Whether it may leave the name of its actor to us.
    """

    tool: str
    kind: Literal["session", "agent", "namespace", "preferences", "uri"]
    is_write: bool
    makes_name: bool


def is_write(request_type: type[msgspec.Struct]) -> bool:
    """Return whether requests of this type change something; messages take an ``idempotency_key`` then."""
    return "idempotency_key" in request_type.__struct_fields__ or getattr(request_type, "writes", False)


def _routes() -> dict[type[Message[Any]], Route]:
    tables: dict[
        Literal["session", "agent", "namespace", "preferences", "uri"], dict[str, type[Message[Any]]]
    ] = {
        "session": {**_TO_SESSION, **_TO_OWN_SESSION, **_TO_CONSOLE_SESSION},
        "agent": _TO_MEMORY,
        "namespace": {**_TO_NAMESPACE, **_TO_NAMESPACE_BY_CONSOLE},
        "preferences": _TO_PREFERENCES,
        "uri": {"resources/read": ReadResource},
    }
    return {
        message: Route(name, kind, is_write(message), message is sessions.CreateSession)
        for kind, messages in tables.items()
        for name, message in messages.items()
    }


ROUTES = _routes()
"""Which actor each type of message is for."""
TOOLS: Mapping[type[Any], str] = {request: name for name, request in REQUESTS.items()}
"""The tools' names, by the types of their requests."""
LEARNED = {
    request: name
    for request, name in TOOLS.items()
    if request not in {RecordWorkflowStep, GetWorkflowPatterns, SuggestNextAction, WorkflowCheckpoint}
}
"""The tools whose calls are recorded as steps of work, where that is wanted: all but those of workflows."""
NAMES = {message: route.tool for message, route in ROUTES.items()}
"""The names of messages, by their types."""
_BY_MEMORY_ID = frozenset(
    message
    for message in (*_TO_MEMORY.values(), *_TO_NAMESPACE.values(), *_TO_NAMESPACE_BY_CONSOLE.values())
    if "memory_id" in message.__struct_fields__
)


def is_looked_up(request: object) -> bool:
    """Return whether the actor of a request must be looked up first: all that is known is a memory's id.

    Such a request is asked and cannot be posted.
    """
    return (
        type(request) in _BY_MEMORY_ID
        and getattr(request, "memory_id", None) is not None
        and getattr(request, "namespace", None) is None
    )


def takes_several(request: object) -> bool:
    """Return whether a request reads a resource that is not one actor's, but made of what several have."""
    if not isinstance(request, ReadResource):
        return False
    found = find_kind(request.uri)
    return found is not None and (found[0].procedure is not None or found[0].kind == "savings")


@lru_cache(maxsize=256)
def closed_to(scopes: frozenset[str]) -> Mapping[type[Any], tuple[str, str]]:
    """Return the requests that ``scopes`` forbid: each type's name and the scope that it needs."""
    needed = {request: (name, auth_scopes.needed_for_request(name)) for name, request in API_REQUESTS.items()}
    closed = {request: found for request, found in needed.items() if not auth_scopes.allows(scopes, found[1])}
    if not auth_scopes.contexts_of(scopes):
        closed |= dict.fromkeys((ListPrompts, GetPrompt), ("prompts", auth_scopes.CODE))
    return closed


@lru_cache(maxsize=256)
def closed_to_onlookers(scopes: frozenset[str]) -> Mapping[type[Any], tuple[str, str]]:
    """Return the same for who looks on as another agent: also what keeps something in that one's name."""
    exports = {REQUESTS[name]: (name, auth_scopes.needed_for_request(name)) for name in _EXPORTS}
    return {**closed_to(scopes), **exports}
