"""Find the memories for a prompt: few, relevant, and each only once in a session."""

from __future__ import annotations

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
from greenroom.actors.hooks.briefing.outdated import find_replaced
from greenroom.actors.memories.recall.branches import set_apart_branches
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, find
from greenroom.actors.memories.recall.unasked import Judge, for_a_prompt
from greenroom.actors.memories.requests.replies import MemoryFilters
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.actors.sessions.requests.hook_messages import HookState
from greenroom.runtime import ProcedureContext

_SEARCHED: Final = 2_000
MOST_MEMORIES: Final = 5
MOST_TOKENS: Final = 600
_CANDIDATES: Final = 50
_COMPARED: Final = 25
"""An outdated memory is recognised if what replaced it is among this many best."""
_WEAK: Final = "it is too weak"
_OUTDATED: Final = "the session has what replaced it"


class Found(NamedTuple):
    """The memories as lines, best first.

    Attributes:
        partial: Whether only words were searched, without embeddings.
        least: The least score that was required.
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
    asked = LEFT_OUT.sub(" ", prompt).replace(PRIVATE, " ")[:_SEARCHED]  # without the marks of truncation
    search = SearchSpec(
        None,
        asked,
        "semantic",
        0.0,
        MemoryFilters(unreviewed=False),
        _CANDIDATES,
        debug=True,
        min_relevance=None,
        dated=False,  # a date in a prompt is about new work, not about when a memory was stored
    )
    outcome = await find(context, for_a_prompt(search, asked, context.principal, event.projects))
    judge = Judge(asked, outcome)
    left_out: Counter[str] = Counter()
    offered: dict[str, Line] = {}
    likely = await set_apart_branches(event.place, judge.likely(outcome.hits))
    own = [hit for hit in outcome.hits[:_COMPARED] if why_withheld(hit, event.projects, {}) is None]
    replaced = find_replaced(own) if likely else {}
    for hit in likely:
        newer = replaced.get(hit.memory.memory_id)
        for each in (hit,) if newer is None else (newer, hit):
            why = why_withheld(each, event.projects, state.memories)
            if each is hit and newer is not None and newer.memory.memory_id not in offered:
                why = why or _OUTDATED
            if why is None:
                offered[each.memory.memory_id] = render_memory(each, prompt, judge.figure_of(each))
            else:
                left_out[why] += 1
    lines, _ = fit_lines(list(offered.values()), min(budget, MOST_TOKENS), MOST_MEMORIES)
    left_out[_WEAK] = len(outcome.hits) - len(likely)
    left_out[NO_ROOM] = len(offered) - len(lines)
    return Found(lines, outcome.partial is not None, judge.least, +left_out)
