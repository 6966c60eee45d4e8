"""What hooks learned from typed words, and give before a review, marked and last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.actors.core.auth.namespaces import memory_address, segment, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.briefing.context_lines import (
    MOST_OF_MEMORY,
    Line,
    fit_lines,
    render_line,
    render_memory,
)
from greenroom.actors.hooks.extraction.turns import key_of, session_of
from greenroom.actors.hooks.extraction.typed_words import RULES_OF_WORDS
from greenroom.actors.memories.recall.scatter_gather import Root
from greenroom.actors.memories.recall.search_all_roots import SearchSpec, chance_of, find
from greenroom.actors.memories.requests.replies import FoundMemory, MemoryFilters
from greenroom.actors.sessions.requests.hook_events import HookEvent
from greenroom.actors.sessions.requests.hook_messages import HookState, WhichTyped
from greenroom.runtime import ProcedureContext

LEARNED: Final = "Learned from what the user typed, not reviewed"
"""The heading above such memories."""
_MOST_LINES: Final = {"session-start": 8, "user-prompt": 2}
_MOST_TOKENS: Final = {"session-start": 400, "user-prompt": 150}
_LEAST_CHANCE: Final = 0.2
"""An unreviewed memory needs this probability of being an answer to the prompt."""
_CANDIDATES: Final = 100
_SEARCHED: Final = 2_000
_HEADING_TOKENS: Final = (len(LEARNED) + 4) // 4 + 1


def namespace_of(principal: Principal, project: str) -> str:
    """Return the namespace of what hooks find in a project, which its user alone sees."""
    owner = user_namespace(principal)
    return f"{owner}:{segment(project)}" if project else owner


async def find_learned(
    context: ProcedureContext,
    event: HookEvent,
    prompt: str,
    state: HookState,
    budget: int,
    given: Sequence[Line],
) -> list[Line]:
    """Find unreviewed memories that the user typed in this project, within a budget.

    The hooks themselves noted what was typed. An agent can mark no memory as typed, and a memory that was
    changed does not fit its key any more. At a session's start ``prompt`` is empty. The lines in ``given``
    come before.
    """
    hits = [hit for hit in await _unreviewed(context, event, prompt) if _is_unchanged(hit, event)]
    if not hits:
        return []
    request = WhichTyped(findings=[hit.memory.key for hit in hits])
    typed = frozenset(await context.ask(hook_address(user_namespace(context.principal)), request))
    offered = [
        _render(hit, prompt)
        for hit in hits
        if hit.memory.key in typed
        and state.memories.get(hit.memory.memory_id) != hit.memory.version
        and not any(line.memory and hit.memory.text in line.text for line in given)
    ]
    budget = min(budget - _HEADING_TOKENS, _MOST_TOKENS[event.name])
    return fit_lines(offered, budget, _MOST_LINES[event.name])[0]


async def _unreviewed(context: ProcedureContext, event: HookEvent, prompt: str) -> list[FoundMemory]:
    """Return unreviewed memories of the user and project: the newest, or what answers the prompt."""
    owner = user_namespace(context.principal)
    namespace = namespace_of(context.principal, event.project)
    search = SearchSpec(
        None,
        prompt[:_SEARCHED] or None,
        "semantic",
        0.0,
        MemoryFilters(namespace=namespace, tags=list(RULES_OF_WORDS), unreviewed=True),
        _CANDIDATES,
        min_relevance=None if prompt else 0.0,
        roots=[Root(owner, memory_address(owner))],
        dated=False,
    )
    outcome = await find(context, search)
    least = _LEAST_CHANCE if prompt else 0.0
    return [hit for hit in outcome.hits if hit.memory.namespace == namespace and chance_of(hit) >= least]


def _is_unchanged(hit: FoundMemory, event: HookEvent) -> bool:
    """Return whether a memory is the user's, and still what its key was made of."""
    memory = hit.memory
    rule = memory.key.partition("-")[0]
    return (
        hit.own
        and memory.unreviewed
        and memory.content is not None
        and memory.key == key_of(rule, memory.content, session_of(event).project)
    )


def _render(hit: FoundMemory, prompt: str) -> Line:
    memory = hit.memory
    forget = f"greenroom review forget {memory.memory_id}"
    source = f"learned, not reviewed, {memory.created_at:%Y-%m-%d}; to forget it: {forget}"
    line = render_line(memory.text, source, MOST_OF_MEMORY)
    return render_memory(hit, prompt)._replace(text=line.text)
