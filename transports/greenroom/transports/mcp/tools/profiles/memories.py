"""The profiles of two memory systems: unified search, and memories that travel between tools."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta

from greenroom.actors.core.validation.types import UNLISTED
from greenroom.actors.knowledge.corpora.requests.resources import (
    CommonPattern,
    FileIndex,
    KnowledgeGraph,
    ProjectResource,
)
from greenroom.actors.memories.preferences.requests import PreferencesResource
from greenroom.actors.memories.recall import replies as found
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.actors.sessions.requests import session_context
from greenroom.actors.sessions.requests.session_views import CurrentSessionResource
from greenroom.actors.sessions.workflows import requests as workflows
from greenroom.transports.mcp.tools.profiles.profile import (
    Made,
    OlderName,
    OlderParameter,
    ToolProfile,
    tools_of_area,
)

FOUND_BOTH_FORMS: Final[Mapping[type[msgspec.Struct], Mapping[str, OlderName]]] = {
    MemoryHit: {
        "id": "memory_id",
        "relevance_score": "score",
        "author": Made(str | None, lambda hit: hit.author),
        "tags": Made(list[str], lambda hit: hit.tags),
        "expires_at": Made(datetime | None, lambda hit: hit.expires_at),
    },
    found.MemoriesFound: {"total_found": "total"},
}
"""The names that two systems give to parts of a result, and which parts a hit has even if empty.

Both systems have a `retrieve_memory`, and its answer suits both of them.
"""

EXAMPLES: Final = (
    "Find memories. mode semantic (the usual one) goes by what is meant: "
    '{"query": "when may we deploy"}. mode exact finds a text as it stands: '
    '{"query": "ERR_4711", "mode": "exact"}. mode hybrid lets what was used and rated well rise: '
    '{"query": "deploy rules", "mode": "hybrid", "quality_boost": 0.5}. Times and tags narrow '
    'each of them, or stand alone: {"time_expr": "last week", "tags": ["release"]}, '
    '{"after": "2026-01-01", "before": "2026-06-30", "limit": 50}. include_debug tells how it was found: '
    '{"query": "deploy rules", "include_debug": true}.'
)
"""The description of the search, with a call of each kind."""

MEMORY_SEARCH: Final = ToolProfile(
    tools=(
        "memory_search",
        "retrieve_memory",
        "recall_memory",
        "recall_by_timeframe",
        "retrieve_with_quality_boost",
        "exact_match_retrieve",
        "debug_retrieve",
        "store_memory",
    ),
    defaults={"retrieve_memory": {"n_results": 5}},
    descriptions={
        "memory_search": EXAMPLES,
        "retrieve_memory": 'Find memories by what is meant: {"query": "when may we deploy"}. '
        "Older name of memory_search with mode semantic.",
        "recall_memory": 'Find memories by a time in words: {"query": "deploy", "time_expr": "last week"}. '
        "Older name of memory_search with time_expr.",
        "recall_by_timeframe": "List memories between two dates, both included: "
        '{"start_date": "2026-03-01", "end_date": "2026-03-31"}. '
        "Older name of memory_search with after and before.",
        "retrieve_with_quality_boost": "Find memories, those first that were used and rated well: "
        '{"query": "deploy rules", "quality_weight": 0.5}. Older name of memory_search with mode hybrid.',
        "exact_match_retrieve": 'Find memories that hold a text as it stands: {"content": "ERR_4711"}. '
        "Older name of memory_search with mode exact.",
        "debug_retrieve": 'Find memories and see how they were ranked: {"query": "when may we deploy"}. '
        "Older name of memory_search with include_debug.",
    },
    older={
        **FOUND_BOTH_FORMS,
        found.MemoriesFound: {
            **FOUND_BOTH_FORMS[found.MemoriesFound],
            "total": Made(int, lambda said: len(said.memories)),
        },
        found.SearchDebug: {
            "time_filter": "time_window",
            "tag_filter": "tags",
            "pre_filter_count": Made(int, lambda said: said.counts.get("visible", 0)),
            "embedding_model": "model",
        },
    },
)

_PAGED_MEMORIES = (
    "store_memory",
    "retrieve_memory",
    "update_memory",
    "forget_memory",
    "list_memories",
    "export_memories",
    "import_memories",
    "memory_stats",
    "set_preferences",
)
_TRAVELLING = (
    "start_session",
    "restore_session",
    "get_session_context",
    "migrate_session",
    "export_session",
    "end_session",
)
_UTILITY = tools_of_area("server")
CODE: Final = tools_of_area("code")
"""The tools for code; they also have their own profile."""
_WORKFLOW = ("record_workflow_step", "get_workflow_patterns", "suggest_next_action", "workflow_checkpoint")
_PREFERENCES = OlderParameter(
    "by_preferences", Annotated[bool | None, Meta(extra_json_schema=UNLISTED)], lambda _: True
)


def _part_of_file(target: str | None) -> dict[str, Any] | None:
    """Return the part of a file that the original calls a target."""
    if target is None or target == "full":
        return None
    return {"overview": True} if target == "overview" else {"symbol": target}


_TARGET = OlderParameter(
    "target",
    Annotated[str, Meta(min_length=1, max_length=200, description="full, overview, or the name of a symbol")]
    | None,
    _part_of_file,
    spreads=True,
)


class SearchGiven(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recorded search, as an object."""

    query: session_context.Line


_PathGiven = Annotated[str, Meta(min_length=1, max_length=1_024)]
_MOST = Meta(max_length=session_context.MOST_GIVEN)


T = TypeVar("T", bound=msgspec.Struct)


def _each(of_text: Callable[[str], T]) -> Callable[[list[str | T] | None], list[T] | None]:
    """Return a function that converts the texts in a list to objects."""

    def read(given: list[str | T] | None) -> list[T] | None:
        if given is None:
            return None
        return [of_text(each) if isinstance(each, str) else each for each in given]

    return read


def _searches(given: list[str | SearchGiven] | None) -> list[str] | None:
    return None if given is None else [each if isinstance(each, str) else each.query for each in given]


_RECORDED = (
    OlderParameter(
        "files_accessed",
        Annotated[list[_PathGiven | session_context.FileUse], _MOST] | None,
        _each(lambda text: session_context.FileUse(path=text)),
        listed=session_context.Files,
    ),
    OlderParameter(
        "recent_searches",
        Annotated[list[session_context.Line | SearchGiven], _MOST] | None,
        _searches,
        listed=session_context.Searches,
    ),
    OlderParameter(
        "decisions",
        Annotated[list[session_context.Paragraph | session_context.DecisionMade], _MOST] | None,
        _each(lambda text: session_context.DecisionMade(what=text)),
        listed=session_context.Decisions,
    ),
)
"""The recorded parts of work, as texts or objects; the listing shows objects, except for searches."""


class CurrentWork(msgspec.Struct, frozen=True, kw_only=True):
    """The current session of a client, in the original's form."""

    session_id: str
    tool_id: str | None
    workspace_path: str | None
    files_accessed: list[session_context.FileView]
    recent_searches: list[session_context.SearchView]
    decisions: list[session_context.DecisionView]
    workflow_state: session_context.WorkflowView | None


def _current_work(read: CurrentSessionResource) -> CurrentWork:
    work = read.work
    return CurrentWork(
        session_id=work.session_id,
        tool_id=work.tool,
        workspace_path=work.workspace_path,
        files_accessed=work.context.files_accessed,
        recent_searches=work.context.recent_searches,
        decisions=work.context.decisions,
        workflow_state=work.context.workflow_state,
    )


class ProjectKnown(msgspec.Struct, frozen=True, kw_only=True):
    """The knowledge about a project, in the original's form."""

    project_id: str
    file_index: FileIndex
    knowledge_graph: KnowledgeGraph
    common_patterns: list[CommonPattern]


def _known_of_project(read: ProjectResource) -> ProjectKnown:
    return ProjectKnown(**{name: getattr(read, name) for name in ProjectKnown.__struct_fields__})


def _metadata(hit: MemoryHit) -> dict[str, Any]:
    """Return a memory's metadata with its tags, importance, scope and expiry."""
    own: dict[str, Any] = (
        {} if hit.metadata is UNSET else msgspec.json.decode(hit.metadata, type=dict[str, msgspec.Raw])
    )
    ends = {} if hit.expires_at is None else {"expiry": hit.expires_at}
    return own | {"tags": hit.tags, "importance": hit.importance, "scope": hit.scope} | ends


UNIVERSAL_MEMORY: Final = ToolProfile(
    tools=(
        *_PAGED_MEMORIES,
        "memory_search",
        *_TRAVELLING,
        "record_context",
        "reopen_session",
        *CODE,
        *_WORKFLOW,
        *_UTILITY,
        *(f"omn_{name}" for name in _PAGED_MEMORIES),
        "omn_create_session",
        *(f"omn_{name}" for name in _TRAVELLING),
        *("omn_semantic_search", "omn1_read"),
        *(f"omn_{name}" for name in (*CODE, *_WORKFLOW, *_UTILITY)),
    ),
    defaults={"omn_retrieve_memory": {"by_preferences": True}},
    parameters={
        "retrieve_memory": (_PREFERENCES,),
        "omn1_read": (_TARGET,),
        "record_context": _RECORDED,
    },
    descriptions={"memory_search": EXAMPLES},
    older_prompts=True,
    older={
        **FOUND_BOTH_FORMS,
        MemoryHit: {**FOUND_BOTH_FORMS[MemoryHit], "metadata": Made(dict[str, Any], _metadata)},
        CurrentSessionResource: {"content": Made(CurrentWork, _current_work)},
        PreferencesResource: {"content": "preferences"},
        ProjectResource: {"content": Made(ProjectKnown, _known_of_project)},
        workflows.PatternResource: {"content": "pattern"},
        workflows.WorkflowPattern: {"avg_duration_ms": "average_duration_ms"},
        workflows.NextAction: {"avg_duration_ms": "average_duration_ms"},
    },
)
