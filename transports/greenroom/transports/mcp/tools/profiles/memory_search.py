"""The profile for clients of the unified memory search and its six older names."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from greenroom.actors.memories.recall import replies as found
from greenroom.transports.mcp.tools.profiles.profile import Made, OlderName, ToolProfile

FOUND_BOTH_FORMS: Final[Mapping[type[msgspec.Struct], Mapping[str, OlderName]]] = {
    found.MemoryHit: {
        "id": "memory_id",
        "relevance_score": "score",
        "author": Made(str | None, lambda hit: hit.author),
        "tags": Made(list[str], lambda hit: hit.tags),
        "expires_at": Made(datetime | None, lambda hit: hit.expires_at),
    },
    found.MemoriesFound: {"total_found": "total"},
}
"""The names that two systems give to parts of a result, and which of them a hit has even if empty.

Both have a `retrieve_memory`, and its answer suits both.
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
