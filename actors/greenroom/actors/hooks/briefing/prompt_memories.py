"""Find the memories for a prompt: few, relevant, and each only once in a session."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from greenroom.actors.content.secrets.detect import LEFT_OUT
from greenroom.actors.content.text.private_parts import PRIVATE
from greenroom.actors.hooks.briefing.context_lines import (
    NO_ROOM,
    Line,
    fit_lines,
    render_memory,
    why_withheld,
)
from greenroom.actors.memories.recall.branches import set_apart_branches
from greenroom.actors.memories.recall.recall_context import least_chance, near_roots
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, chance_of, find
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.actors.sessions.requests.hook_messages import HookState
from greenroom.runtime import ProcedureContext

_SEARCHED: Final = 2_000
# The alternatives must not overlap: each ambiguous word doubles the time of the match.
_TRIVIAL: Final = re.compile(
    r"\s*(?:/[A-Za-z][\w:.-]*(?:\s.*)?|!.*"
    r"|(?:(?:y|yes|yep|yeah|yup|ok|okay|k|no|nope|sure|right|good|great|perfect|nice|fine|cool"
    r"|please|thanks?|thank you|continue|resume|go|go on|go ahead|carry on|keep going|proceed|do it|do that"
    r"|try again|retry|again|done|next|stop|wait|commit|push|ja|nein|weiter|danke|genau|[0-9a-jl-xz])\b"
    r"[\s.,!?;:)-]*)*)",
    re.IGNORECASE | re.DOTALL,
)


def is_trivial(prompt: str) -> bool:
    """Return whether a prompt is only consent or a client's command."""
    return _TRIVIAL.fullmatch(prompt) is not None


MOST_MEMORIES: Final = 5
MOST_TOKENS: Final = 600
_CANDIDATES: Final = 50


class Found(NamedTuple):
    """The memories as lines, best first.

    Attributes:
        partial: Whether only words were searched, without embeddings.
        least: The least chance of relevance that was required.
        left_out: How many other memories were found, by the reason why they are not injected.
    """

    lines: list[Line]
    partial: bool
    least: float
    left_out: dict[str, int]


async def find_memories(
    context: ProcedureContext, event: HookEvent, prompt: str, state: HookState, budget: int
) -> Found:
    """Find the memories that are likely to matter for a prompt, within a token budget."""
    search = SearchSpec(
        None,
        LEFT_OUT.sub(" ", prompt).replace(PRIVATE, " ")[:_SEARCHED],  # without the marks of truncation
        "semantic",
        0.0,
        MemoryFilters(unreviewed=False),
        _CANDIDATES,
        debug=True,
        min_relevance=None,
        roots=near_roots(context.principal, *event.projects),
        dated=False,  # a date in a prompt is about new work, not about when a memory was stored
    )
    outcome = await find(context, search)
    least = least_chance(outcome)
    left_out: Counter[str] = Counter()
    offered: list[Line] = []
    for hit in await set_apart_branches(event.place, outcome.hits):
        why = (
            "it is too weak" if chance_of(hit) < least else why_withheld(hit, event.projects, state.memories)
        )
        if why is None:
            offered.append(render_memory(hit, prompt))
        else:
            left_out[why] += 1
    lines, _ = fit_lines(offered, min(budget, MOST_TOKENS), MOST_MEMORIES)
    left_out[NO_ROOM] = len(offered) - len(lines)
    return Found(lines, outcome.partial is not None, least, +left_out)
