"""Answering a hook that asks: what the session should know, as inert data between delimiters."""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import UNSET, Meta

from greenroom.actors.auth.namespaces import PROJECT, memory_address, segment, user_namespace
from greenroom.actors.base.paging import estimate_tokens
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.inert import Section, delimited, envelope_tokens, inert, line_tokens
from greenroom.actors.hooks.taking import session_of
from greenroom.actors.recall.scatter_gather import Root
from greenroom.actors.recall.search import SearchSpec, find
from greenroom.actors.schemas.hook_work import Given, GivenMemory, HookState, LookUpSession, NoteGiven
from greenroom.actors.schemas.hooks import HookAnswer, HookEvent
from greenroom.actors.schemas.memory_replies import FoundMemory, MemoryFilters, MemoryView
from greenroom.runtime import Procedure, ProcedureContext

MOST_MEMORIES: Final = 5
MOST_PROMPT_TOKENS: Final = 600
_SEARCHED: Final = 2_000
_CANDIDATES: Final = 20
_MEMORY: Final = 480
_QUERY: Final = 300
_TRIVIAL: Final = re.compile(
    r"\s*(?:/.*|!.*|(?:y|yes|yep|yeah|ok|okay|no|nope|sure|please|thanks?|thank you|continue|go on|go ahead"
    r"|proceed|do it|done|next|stop|ja|nein|weiter|danke)[\s.!,]*)*",
    re.IGNORECASE | re.DOTALL,
)


class AnswerHook(Procedure[HookAnswer], frozen=True, kw_only=True):
    """Answer ``session-start`` and ``user-prompt`` with what the session should know; others with nothing."""

    event: HookEvent
    max_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 1_500

    async def run(self, context: ProcedureContext) -> HookAnswer:
        """Find it, note that it was given, and answer it."""
        event = self.event
        if event.name != "user-prompt" or _TRIVIAL.fullmatch(event.prompt):
            return HookAnswer()
        address = hook_address(user_namespace(context.principal))
        state = await context.ask(address, LookUpSession(of=session_of(event)))
        found, partial = await self._memories(context, state)
        sections = [Section("Memories that may matter for this prompt", [line for _, line in found])]
        text = delimited(event.id, sections)
        given = Given(
            hook=event.name,
            agent=context.principal.agent_id,
            query=event.prompt[:_QUERY],
            memories=[memory for memory, _ in found],
            tokens=estimate_tokens(text),
            partial=partial,
        )
        await context.ask(address, NoteGiven(of=session_of(event), at=event.at, given=given))
        return HookAnswer(context=text, memory_ids=[memory.memory_id for memory, _ in found], partial=partial)

    async def _memories(
        self, context: ProcedureContext, state: HookState
    ) -> tuple[list[tuple[GivenMemory, str]], bool]:
        roots = [user_namespace(context.principal)]
        if self.event.project:
            roots.append(PROJECT + segment(self.event.project))
        search = SearchSpec(
            None,
            self.event.prompt[:_SEARCHED],
            "semantic",
            0.0,
            MemoryFilters(),
            _CANDIDATES,
            min_relevance=None,
            roots=[Root(name, memory_address(name)) for name in roots],
        )
        outcome = await find(context, search)
        budget = min(self.max_tokens, MOST_PROMPT_TOKENS) - envelope_tokens()
        chosen: list[tuple[GivenMemory, str]] = []
        for hit in outcome.hits:
            line = _line(hit.memory)
            budget_left = budget - line_tokens(line)
            if state.memories.get(hit.memory.memory_id) == hit.memory.version or budget_left < 0:
                continue
            budget = budget_left
            chosen.append((_given(hit), line))
            if len(chosen) == MOST_MEMORIES:
                break
        return chosen, outcome.partial is not None


def _given(hit: FoundMemory) -> GivenMemory:
    memory = hit.memory
    return GivenMemory(
        memory_id=memory.memory_id,
        version=memory.version,
        namespace=memory.namespace,
        key=memory.key,
        score=round(hit.score, 4),
        signals=hit.components or {},
    )


def _line(memory: MemoryView) -> str:
    said = memory.content if memory.content is not None else ""
    if memory.value is not UNSET:
        said = bytes(memory.value).decode()
    by = f" by {memory.author}" if memory.author else ""
    source = inert(f"memory {memory.key} in {memory.namespace}{by}, {memory.updated_at:%Y-%m-%d}", 200)
    return f"{inert(said, _MEMORY)} [{source}]"
