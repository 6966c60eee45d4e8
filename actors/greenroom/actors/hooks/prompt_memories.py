"""What a prompt brings up: memories over the relevance floor, few, each once in a session."""

from __future__ import annotations

from typing import Final, NamedTuple

from greenroom.actors.hooks.lines import Line, chance_of, may_be_given, of_memory, roots_of, within
from greenroom.actors.hooks.prompt_text import searched
from greenroom.actors.recall.search import SearchSpec, find
from greenroom.actors.schemas.hook_work import HookState
from greenroom.actors.schemas.hooks import HookEvent
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.runtime import ProcedureContext

MOST_MEMORIES: Final = 5
MOST_TOKENS: Final = 600
LEAST_CHANCE: Final = 0.4
LEAST_OF_FEW: Final = 0.2
FEW: Final = 100
"""The chance of a memory against nothing from which on it is given, and the same among so few memories.

Among many one is sooner like a prompt without having to do with it; `bench hook_context` measures it.
"""
_CANDIDATES: Final = 50


class Found(NamedTuple):
    """The memories as lines, best first, and whether words alone found them."""

    lines: list[Line]
    partial: bool


async def memories_for(
    context: ProcedureContext, event: HookEvent, prompt: str, state: HookState, budget: int
) -> Found:
    """Return the memories that are likely to matter for an event's prompt, within a budget of tokens."""
    search = SearchSpec(
        None,
        searched(prompt),
        "semantic",
        0.0,
        MemoryFilters(),
        _CANDIDATES,
        debug=True,
        min_relevance=None,
        roots=roots_of(context.principal, event.project),
        dated=False,  # what is to be done today has nothing to do with what was noted today
    )
    outcome = await find(context, search)
    seen = sum(found.counts.get("visible", 0) for found in outcome.found)
    least = LEAST_OF_FEW if seen <= FEW else LEAST_CHANCE
    hits = [
        hit
        for hit in outcome.hits
        if chance_of(hit) >= least and may_be_given(hit, event.project, state.memories)
    ]
    lines, _ = within([of_memory(hit, prompt) for hit in hits], min(budget, MOST_TOKENS), MOST_MEMORIES)
    return Found(lines, outcome.partial is not None)
