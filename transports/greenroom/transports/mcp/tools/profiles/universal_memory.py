"""The profile for clients of the memory layer that travels between tools."""

from collections.abc import Callable
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
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.actors.sessions.requests import session_context
from greenroom.actors.sessions.requests.session_views import CurrentSessionResource
from greenroom.actors.sessions.workflows import requests as workflows
from greenroom.actors.sessions.workflows.requests import PatternResource
from greenroom.transports.mcp.tools.profiles.memory_search import EXAMPLES, FOUND_BOTH_FORMS
from greenroom.transports.mcp.tools.profiles.profile import Made, OlderParameter, ToolProfile, tools_of_area

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
"""The tools for code, which also have a profile of their own."""
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
"""What is recorded of work, as texts or objects; the listing shows objects, except for searches."""


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
        PatternResource: {"content": "pattern"},
        workflows.WorkflowPattern: {"avg_duration_ms": "average_duration_ms"},
        workflows.NextAction: {"avg_duration_ms": "average_duration_ms"},
    },
)
