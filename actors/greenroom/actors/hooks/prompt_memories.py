"""What a prompt brings up: memories over the relevance floor, few, each once in a session."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from greenroom.actors.hooks.briefing.context_lines import NO_ROOM, Line, of_memory, why_withheld, within
from greenroom.actors.hooks.prompt_text import searched
from greenroom.actors.memories.recall.search import SearchSpec, chance_of, find
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.recall.near import least_chance, near_roots
from greenroom.actors.schemas.hook_work import HookState
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.runtime import ProcedureContext

MOST_MEMORIES: Final = 5
MOST_TOKENS: Final = 600
_CANDIDATES: Final = 50


class Found(NamedTuple):
    """The memories as lines, best first.

    Attributes:
        lines: The lines.
        partial: Whether words alone found them.
        least: The least chance that each had to have.
        left_out: How many others were found, by the reason why they are not given.
    """

    lines: list[Line]
    partial: bool
    least: float
    left_out: dict[str, int]


async def memories_for(
    context: ProcedureContext, event: HookEvent, prompt: str, state: HookState, budget: int
) -> Found:
    """Return the memories that are likely to matter for an event's prompt, within a budget of tokens."""
    search = SearchSpec(
        None,
        searched(prompt),
        "semantic",
        0.0,
        MemoryFilters(unreviewed=False),
        _CANDIDATES,
        debug=True,
        min_relevance=None,
        roots=near_roots(context.principal, event.project),
        dated=False,  # what is to be done today has nothing to do with what was noted today
    )
    outcome = await find(context, search)
    least = least_chance(outcome)
    left_out: Counter[str] = Counter()
    offered: list[Line] = []
    for hit in outcome.hits:
        why = "it is too weak" if chance_of(hit) < least else why_withheld(hit, event.project, state.memories)
        if why is None:
            offered.append(of_memory(hit, prompt))
        else:
            left_out[why] += 1
    lines, _ = within(offered, min(budget, MOST_TOKENS), MOST_MEMORIES)
    left_out[NO_ROOM] = len(offered) - len(lines)
    return Found(lines, outcome.partial is not None, least, +left_out)
