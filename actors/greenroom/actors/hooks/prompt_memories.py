"""What a prompt brings up: memories over the relevance floor, few, each once in a session."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from greenroom.actors.hooks.lines import Line, may_be_given, of_memory, roots_of, within
from greenroom.actors.recall.search import SearchSpec, find
from greenroom.actors.schemas.hook_work import HookState
from greenroom.actors.schemas.hooks import HookEvent
from greenroom.actors.schemas.memory_replies import MemoryFilters
from greenroom.runtime import ProcedureContext

MOST_MEMORIES: Final = 5
MOST_TOKENS: Final = 600
LEAST_CHANCE: Final = 0.2
"""The chance of a memory against nothing from which on it is given; see `bench hooks` for what that comes to."""
_SEARCHED: Final = 2_000
_CANDIDATES: Final = 20
_TRIVIAL: Final = re.compile(
    r"\s*(?:[/!#].*|(?:(?:y|yes|yep|yeah|yup|ok|okay|k|no|nope|sure|right|good|great|perfect|nice|fine|cool|please"
    r"|thanks?|thank you|continue|resume|go|go on|go ahead|carry on|keep going|proceed|do it|do that|try again"
    r"|retry|again|done|next|stop|wait|commit|push|ja|nein|weiter|danke|genau|[0-9a-z])\b[\s.,!?;:)-]*)*)",
    re.IGNORECASE | re.DOTALL,
)


class Found(NamedTuple):
    """The memories as lines, best first, and whether words alone found them."""

    lines: list[Line]
    partial: bool


def is_trivial(prompt: str) -> bool:
    """Return whether a prompt asks for nothing that could be looked up: consent, or a client's command."""
    return _TRIVIAL.fullmatch(prompt) is not None


async def memories_for(context: ProcedureContext, event: HookEvent, state: HookState, budget: int) -> Found:
    """Return the memories that are likely to matter for an event's prompt, within a budget of tokens."""
    search = SearchSpec(
        None,
        event.prompt[:_SEARCHED],
        "semantic",
        0.0,
        MemoryFilters(),
        _CANDIDATES,
        debug=True,
        min_relevance=None,
        roots=roots_of(context.principal, event.project),
    )
    outcome = await find(context, search)
    least = LEAST_CHANCE / (1 - LEAST_CHANCE)
    hits = [
        hit
        for hit in outcome.hits
        if (hit.odds or 0.0) >= least and may_be_given(hit, event.project, state.memories)
    ]
    lines, _ = within([of_memory(hit, event.prompt) for hit in hits], min(budget, MOST_TOKENS), MOST_MEMORIES)
    return Found(lines, outcome.partial is not None)
