"""The profile for clients of the one unified memory search and of its five older names."""

from typing import Final

from greenroom.actors.recall import replies as found
from greenroom.transports.mcp.profiles.profile import Made, ToolProfile

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
    older={
        found.MemoryHit: {"id": "memory_id"},
        found.MemoriesFound: {"total": Made(int, lambda said: len(said.memories))},
    },
)
