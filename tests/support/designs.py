"""The calls of the five systems whose clients Greenroom serves, and what those read of the answers.

Each table is one system's, under its profile: which tool, with which arguments, and which members the
answer has. A text that begins with ``$`` is what an answer before had, as the entry with that name keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

EVER = {"start_date": "2020-01-01", "end_date": "2999-12-31"}
MESSAGE = ("message_id", "id", "sender", "content", "timestamp", "visibility", "message_type", "metadata")
HIT = ("id", "key", "namespace", "content", "score", "created_at", "updated_at", "author", "tags")
LEARNED = ("memory_id", "key", "content", "metadata", "relevance_score", "created_at")


class Call(NamedTuple):
    """A call, and what its answer has; ``keeps`` names members for later calls."""

    tool: str
    arguments: Mapping[str, Any] = MappingProxyType({})
    has: Sequence[str] = ()
    keeps: Mapping[str, str] = MappingProxyType({})


def of(member: str, names: Sequence[str]) -> list[str]:
    return [f"{member}.{name}" for name in names]


SHARED_CONTEXT = (
    Call(
        "create_session",
        {
            "purpose": "the plan",
            "metadata": {"team": 1},
            "session_id": "s",
            "app_name": "desk",
            "user_id": "user",
            "initial_state": {"step": 1},
            "idempotency_key": "once",
        },
        ("session_id", "created_at", "created_by", "timestamp"),
    ),
    Call("create_session", {"purpose": "another"}, ("session_id",)),
    Call(
        "add_message",
        {"session_id": "s", "content": "the anchor is down", "idempotency_key": "first"},
        ("message_id", "timestamp"),
        {"first": "message_id"},
    ),
    Call(
        "add_message",
        {
            "session_id": "s",
            "content": "noted",
            "visibility": "agent_only",
            "message_type": "human_input",
            "metadata": {"tag": "buoy"},
            "parent_message_id": "$first",
        },
        ("message_id",),
    ),
    Call(
        "get_session",
        {"session_id": "s"},
        (
            *of("session", ("session_id", "id", "purpose", "status", "is_active", "metadata", "created_by")),
            *of("statistics", ("message_count", "visible_message_count", "unique_agents", "last_activity")),
            *of("messages.0", MESSAGE),
            *("has_more", "cursor", "message_count"),
        ),
    ),
    Call(
        "list_sessions",
        {"status": "active", "project_id": None, "cursor": None, "limit": 50},
        (*of("sessions.0", ("session_id", "id")), "next_cursor"),
    ),
    Call(
        "get_messages",
        {"session_id": "s", "limit": 50, "cursor": None, "visibility_filter": "all", "since_id": 0},
        (*of("messages.1", (*MESSAGE, "parent_message_id")), "next_cursor", "total"),
    ),
    Call("get_messages", {"session_id": "s", "offset": 1, "visibility_filter": "agent_only"}, ("messages",)),
    Call(
        "search_context",
        {
            "session_id": "s",
            "query": "anchor",
            "fuzzy_threshold": 60,
            "limit": 10,
            "search_metadata": True,
            "search_scope": "all",
            "recent_hours": 24,
            "max_rows_scanned": 1000,
        },
        (
            *of("results.0", ("message", "score", "match_preview", "relevance")),
            *("query", "threshold", "search_scope", "message_count", "performance_note"),
            *("scanned", "truncated", "search_time_ms", "cache_hit"),
        ),
    ),
    Call(
        "search_context",
        {"session_id": "s", "query": "buoy", "recent_hours": None, "max_rows_scanned": None},
        ("results.0",),
    ),
    Call(
        "search_by_sender",
        {"session_id": "s", "sender": "tester", "limit": 20},
        (*of("messages.0", MESSAGE), "sender", "count"),
    ),
    Call(
        "search_by_timerange",
        {"session_id": "s", "start_time": "2020-01-01T00:00:00Z", "end_time": "2999-12-31", "limit": 50},
        (*of("messages.0", MESSAGE), "timerange.start", "timerange.end"),
    ),
    Call(
        "set_memory",
        {
            "key": "k",
            "value": {"a": 1},
            "session_id": None,
            "expires_in": 3600,
            "metadata": {"m": 1},
            "overwrite": True,
        },
        ("key", "scope", "expires_at", "stored_at", "version", "session_scoped"),
    ),
    Call("set_memory", {"key": "k", "value": "123", "session_id": "s"}, ("scope",)),
    Call(
        "get_memory",
        {"key": "k", "session_id": None, "version": 1},
        ("value.a", "metadata.m", "created_at", "updated_at", "expires_at", "scope", "version"),
    ),
    Call(
        "list_memory",
        {"session_id": "all", "prefix": "k", "limit": 50, "cursor": None},
        (*of("entries.0", ("key", "scope", "value_size", "updated_at")), "scope_filter", "next_cursor"),
    ),
    Call("list_memory", {"session_id": None}, ("entries.0.key", "scope_filter")),
    Call("delete_memory", {"key": "k", "session_id": "s"}, ("existed",)),
    Call("update_session", {"session_id": "s", "status": "paused", "state": {"step": 2}}, ("session.state",)),
    *(
        Call("update_session", {"session_id": "s", "status": status}, ("session.status",))
        for status in ("terminated", "terminated", "archived", "archived")
    ),
)

SERVICES = (
    Call(
        "create_session",
        {
            "purpose": "p",
            "session_id": "s",
            "app_name": "app",
            "user_id": "user",
            "initial_state": {"user:a": 1},
        },
        ("session_id",),
    ),
    Call("add_message", {"session_id": "s", "content": "c"}, ("message_id",)),
    Call(
        "get_session",
        {"session_id": "s"},
        of("session", ("id", "app_name", "user_id", "project_id", "state", "last_update_time", "status")),
    ),
    Call(
        "update_session", {"session_id": "s", "status": "paused"}, ("session.id", "session.last_update_time")
    ),
    Call("get_messages", {"session_id": "s"}, ("messages.0.content",)),
    Call(
        "store_memory",
        {"namespace": "user:user:preferences", "key": "theme", "value": {"dark": True}, "kind": "semantic"},
        ("memory_id", "version"),
    ),
    Call(
        "update_memory",
        {
            "namespace": "user:user:preferences",
            "key": "theme",
            "value": {"dark": False},
            "expected_version": 1,
        },
        ("version",),
    ),
    Call(
        "retrieve_memory",
        {"namespace": "user:user:preferences", "key": "theme"},
        of("memories.0", ("key", "value", "metadata", "is_deleted", "kind", "version")),
    ),
    Call(
        "list_memories",
        {"namespace": "user:user"},
        of(
            "memories.0",
            ("id", "memory_id", "namespace", "key", "value", "metadata", "is_deleted", "version"),
        ),
    ),
    Call(
        "list_memory_versions",
        {"namespace": "user:user:preferences", "key": "theme"},
        of("versions.1", ("id", "version", "author", "stored_at", "is_deleted", "task_id")),
    ),
    Call("forget_memory", {"namespace": "user:user:preferences", "key": "theme"}, ("forgotten",)),
)

PASSAGE = ("chunk_id", "entity_id", "source_file", "entity_type", "hybrid_score", "rank")
IN_FULL = ("chunk_text", "context_header", "vendor_names", "section_title")
SEARCHED = ("total_found", "strategy_used", "execution_time_ms", "cache_hit", "result_ids")
ENTITY = ("entity_id", "name", "entity_type", "mention_count")
RELATION = ("source_id", "target_id", "relationship_type", "source_name", "target_name")
KNOWLEDGE = (
    Call(
        "ingest_documents",
        {"texts": [{"path": "a.md", "text": "# Ships\n\n## Anchors\n\nAcme makes anchors with Chain.\n"}]},
    ),
    Call(
        "define_entities",
        {
            "entities": [
                {
                    "name": "Acme",
                    "type": "vendor",
                    "aliases": ["Acme Inc"],
                    "relations": [{"to": "Chain", "type": "uses"}],
                },
                {"name": "Chain", "type": "library"},
            ]
        },
    ),
    *(
        Call(
            "semantic_search",
            {"query": "anchors", "top_k": 10, "strategy": strategy, "min_score": 0.0, "detail_level": "full"},
            (*of("results.0", (*PASSAGE, *IN_FULL)), *SEARCHED),
            {"chunk": "results.0.chunk_id"},
        )
        for strategy in ("bm25", "hybrid")
    ),
    Call("semantic_search", {"query": "anchors", "strategy": "vector"}, SEARCHED),
    Call(
        "semantic_search",
        {"query": "anchors", "detail_level": "metadata"},
        (*of("results.0", PASSAGE), *SEARCHED, "query_analysis"),
    ),
    Call("semantic_search", {"query": "'; DROP TABLE chunks; --"}, SEARCHED),
    Call(
        "find_vendor_info",
        {
            "vendor_filter": "Acme",
            "entity_type": "vendor",
            "include_relationships": True,
            "detail_level": "full",
        },
        (
            *of("entities.0", (*ENTITY, "description", "source_chunks", "created_at")),
            *of("relationships.0", RELATION),
            *("total_entities", "total_relationships", "execution_time_ms"),
        ),
    ),
    Call(
        "find_vendor_info",
        {"vendor_filter": "acmee", "detail_level": "metadata", "include_relationships": False},
        of("entities.0", ENTITY),
    ),
    Call(
        "get_full_content",
        {"chunk_ids": ["$chunk", 1]},
        (*of("chunks.0", ("chunk_id", "chunk_text", "source_file", *IN_FULL)), "execution_time_ms"),
    ),
)

MEMORY_SEARCH = (
    Call(
        "store_memory",
        {
            "content": "We deploy on Thursdays",
            "key": "deploys",
            "tags": ["release"],
            "conversation_id": "talk",
            "importance": 0.9,
        },
        ("memory_id", "version"),
    ),
    *(
        Call("memory_search", {"query": "deploy", **more}, (*of("memories.0", HIT), "total", "query", "mode"))
        for more in (
            {},
            {"mode": "exact"},
            {"mode": "hybrid"},
            {"mode": "hybrid", "quality_boost": 1.0},
            {"quality_boost": 0.3},
            {"time_expr": "today"},
            {"after": "2020-01-01", "before": "2999-12-31"},
            {"tags": ["release", "other"], "tag_match": "any"},
            {"tags": ["release"], "tag_match": "all"},
            {"namespace": "user:user", "kind": "semantic", "scope": "private", "author": "tester"},
            {"conversation_id": "talk", "limit": 100, "max_tokens": 2000, "timezone": "Europe/Berlin"},
        )
    ),
    *(
        Call("memory_search", {"time_expr": words, "timezone": "UTC"}, ("memories", "total"))
        for words in (
            *("yesterday", "last week", "2 days ago", "last month", "in March 2026", "this morning"),
            "between Monday and Wednesday",
        )
    ),
    Call("memory_search", {"tags": ["release"]}, ("memories.0.key",)),
    Call(
        "memory_search",
        {"query": "deploy", "include_debug": True, "time_expr": "today", "tags": ["release"]},
        of(
            "debug",
            (
                *("time_filter", "tag_filter", "pre_filter_count", "embedding_model", "timings"),
                *("quality_boost", "counts", "scores"),
            ),
        ),
    ),
    Call("retrieve_memory", {"query": "deploy"}, of("memories.0", (*HIT, "relevance_score"))),
    Call("retrieve_memory", {"query": "deploy", "n_results": 5}, ("memories.0.key", "total_found")),
    Call("recall_memory", {"query": "deploy", "time_expr": "today", "n_results": 5}, ("memories.0.key",)),
    Call("recall_by_timeframe", {**EVER, "n_results": 5}, ("memories.0.key",)),
    Call(
        "retrieve_with_quality_boost",
        {"query": "deploy", "quality_weight": 0.3, "n_results": 10},
        ("memories.0.key",),
    ),
    Call("exact_match_retrieve", {"content": "We deploy on Thursdays"}, ("memories.0.key",)),
    Call("debug_retrieve", {"query": "deploy", "n_results": 5}, ("memories.0.key", "debug")),
)

FOUND_IN_CODE = ("file_path", "relevance_score", "excerpt", "line_range", "last_modified")
PATTERN = ("pattern_id", "commands", "confidence", "success_rate", "avg_duration_ms")
UNIVERSAL_MEMORY = (
    Call(
        "omn_create_session",
        {"tool_id": "cursor", "workspace_path": "$workspace", "user_id": "user"},
        ("session_id", "project_id", "created_at", "memory_passport.passport_id"),
        {"session": "session_id", "project": "project_id"},
    ),
    Call(
        "store_memory",
        {
            "content": "the zebra crosses the harbour",
            "key": "zebra",
            "metadata": {
                "tags": ["animal"],
                "importance": 0.8,
                "expiry": "2999-12-31",
                "scope": "shared",
                "mood": "calm",
            },
            "compress": True,
        },
        (
            *("memory_id", "key", "version", "size_bytes", "compressed", "compression_ratio", "tokens"),
            "tokens_saved",
        ),
        {"memory": "memory_id"},
    ),
    *(
        Call(
            "retrieve_memory",
            {**asked, "limit": 10, "decompress": True},
            (
                *of("memories.0", (*LEARNED, "metadata.tags", "metadata.mood", "metadata.expiry")),
                "total_found",
            ),
        )
        for asked in (
            {"query": "zebra harbour"},
            {"key": "zebra"},
            {"query": "zebra", "filters": {"scope": "shared"}},
            {
                "filters": {
                    "tags": ["animal"],
                    "scope": "shared",
                    "min_importance": 0.5,
                    "max_age_days": 1,
                }
            },
        )
    ),
    Call(
        "update_memory",
        {"key": "zebra", "content": "the zebra swims", "metadata": {"tags": ["a"]}, "expected_version": 1},
        ("version",),
    ),
    Call("update_memory", {"memory_id": "$memory", "metadata": {"importance": 0.4}}, ("version",)),
    Call("list_memories", {"filters": {"tags": ["a"]}, "cursor": None, "limit": 10}, ("memories.0.key",)),
    Call(
        "memory_stats",
        {"namespace": "user:user"},
        ("memories", "bytes", "compression_ratio", "by_tag", "by_kind", "by_scope", "by_age", "top_used"),
    ),
    Call("export_memories", {"filters": {"tags": ["a"]}, "format": "jsonl"}, ("uri", "count", "digest")),
    Call("export_memories", {"format": "json"}, ("count",)),
    *(
        Call(
            "import_memories",
            {"source": '{"content": "one", "key": "o"}\n', "on_conflict": how, "dry_run": True},
        )
        for how in ("skip", "overwrite", "version")
    ),
    *(
        Call(
            tool,
            {
                "query": "anchor",
                "scope": "src",
                "limit": 10,
                "min_relevance": 0.0,
                "filters": {"file_types": [".py"], "exclude_paths": ["tests"], "recency_weight": 0.1},
            },
            (*of("results.0", FOUND_IN_CODE), "cache_hit", "search_time_ms"),
        )
        for tool in ("search_code_semantic", "omn_semantic_search")
    ),
    Call("code_search", {"pattern": "calls drop_anchor"}, ("matches.0",)),
    Call("symbol_search", {"symbol": "drop_anchor"}),
    Call("dependency_search", {"target": "src/anchor.py"}),
    Call("similar_files", {"file_path": "src/anchor.py"}),
    Call("read_file", {"path": "src/anchor.py", "symbol": "haul"}, ("files.0.text",)),
    Call("omn1_read", {"file_path": "src/anchor.py", "target": "full"}, ("files.0.text",)),
    Call("omn1_read", {"file_path": "src/anchor.py", "target": "overview"}, ("files.0.outline",)),
    Call("omn1_read", {"file_path": "src/anchor.py", "target": "drop_anchor"}, ("files.0.lines",)),
    Call(
        "record_context",
        {
            "files_accessed": ["src/anchor.py", {"path": "src/ship.py", "importance": 0.9}],
            "recent_searches": ["anchor", {"query": "ship"}],
            "decisions": ["we sail", {"what": "we anchor", "why": "it is late"}],
            "workflow_state": {"task": "sail", "step": "anchor", "status": "active", "next": ["sleep"]},
        },
        ("files_accessed", "recent_searches", "decisions"),
    ),
    Call(
        "get_session_context",
        {"session_id": "$session"},
        of(
            "context",
            ("files_accessed.1.path", "recent_searches.1.query", "decisions.1.what", "workflow_state"),
        ),
    ),
    Call("export_session", {"session_id": "$session"}, ("passport",), {"passport": "passport"}),
    Call("migrate_session", {"session_id": "$session", "to_tool": "zed"}),
    *(
        Call(
            tool,
            {"session_id": "$session", "tool_id": "zed"},
            ("session_id", "context", "restored_at", "original_tool"),
        )
        for tool in ("restore_session", "omn_restore_session")
    ),
    Call(
        "omn_create_session",
        {"tool_id": "cursor", "workspace_path": "$workspace", "restore_from": "$session"},
        ("session_id", "memory_passport"),
    ),
    *(
        Call("record_workflow_step", {"command": command, "success": True, "duration_ms": 5.0}, ("command",))
        for command in ("git add .", "git commit", "git push") * 4
    ),
    Call(
        "get_workflow_patterns",
        {"context": ["git add ."], "limit": 5},
        of("patterns.0", PATTERN),
        {"pattern": "patterns.0.pattern_id"},
    ),
    Call("suggest_next_action", {"context": ["git add ."]}, ("suggestions.0.command",)),
    Call("workflow_checkpoint", {"name": "w", "state": {"at": 1}}, ("outcome",)),
    Call("workflow_checkpoint", {"name": "w"}, ("state.at",)),
    Call("compress_text", {"text": "The anchor is down. " * 30, "target_ratio": 0.5}, ("text",)),
    Call(
        "set_preferences",
        {
            "preferences": {
                "theme": "dark",
                "default_compression": True,
                "search_defaults": {"min_relevance": 0.7, "max_results": 10},
                "auto_features": {"workflow_learning": True, "context_compression": True},
            }
        },
    ),
    Call("get_stats"),
    Call("health_check"),
    Call("memory_search", {"query": "zebra", "mode": "exact"}, ("memories.0.relevance_score",)),
    Call("omn_forget_memory", {"memory_id": "$memory", "confirm": True, "purge": False}, ("forgotten",)),
    Call("end_session", {"session_id": "$session"}, ("status",)),
)

PREFERRED = (
    *("theme", "default_compression"),
    *of("search_defaults", ("min_relevance", "max_results")),
    *of("auto_features", ("workflow_learning", "context_compression")),
)
PROJECT = (
    *of("file_index", ("total_files", "indexed_files", "last_index")),
    *("knowledge_graph.nodes", "knowledge_graph.edges", "common_patterns"),
)
WORK = ("session_id", "tool_id", "workspace_path", "files_accessed", "recent_searches", "decisions")
RESOURCES: dict[str, dict[str, Sequence[str]]] = {
    "shared-context": {
        "session://s": (
            *of("session", ("session_id", "is_active")),
            *of("messages.0", MESSAGE),
            *of("statistics", ("message_count", "visible_message_count", "unique_agents", "last_activity")),
            *("resource_info.requesting_agent", "name", "description", "timestamp"),
        ),
        "agent://tester/memory": (
            *("memory.global.k.value", "memory.global.k.metadata", "memory.sessions"),
            *of("statistics", ("global_keys", "session_scopes", "total_entries")),
        ),
    },
    "universal-memory": {
        f"{scheme}://{path}": has
        for scheme in ("greenroom", "omnimemory")
        for path, has in {
            "user/user/preferences": of("content", PREFERRED),
            "user/preferences": of("preferences", PREFERRED),
            "session/current": of("content", (*WORK, "workflow_state")),
            "project/$project": (*PROJECT, *of("content", ("project_id", *PROJECT))),
            "workflows/$pattern": (*of("pattern", PATTERN), *of("content", PATTERN)),
            "conversation/$session": ("recent", "compressed"),
        }.items()
    },
}
"""By the profile what can be read after its calls, and which members that has."""

DESIGNS = {
    "shared-context": SHARED_CONTEXT,
    "services": SERVICES,
    "knowledge": KNOWLEDGE,
    "memory-search": MEMORY_SEARCH,
    "universal-memory": UNIVERSAL_MEMORY,
}
