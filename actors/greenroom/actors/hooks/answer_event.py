"""Answer a hook with context for the session: untrusted text between delimiters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.content.text.escape import Section, delimit, envelope_tokens
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.replies.paging import estimate_tokens
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.briefing.briefing import build_briefing, count_unreviewed
from greenroom.actors.hooks.briefing.context_lines import Line
from greenroom.actors.hooks.briefing.prompt_memories import find_memories, is_trivial
from greenroom.actors.hooks.extraction.turns import MOST_REQUEST, session_of
from greenroom.actors.sessions.requests.hook_events import HookAnswer, HookEvent
from greenroom.actors.sessions.requests.hook_messages import HookState, LookUpSession
from greenroom.actors.sessions.requests.injection_log import Given, NoteGiven
from greenroom.runtime import Procedure, ProcedureContext

_GOES_ON: Final = frozenset({"compact", "resume"})
"""Reasons of a ``session-start`` after which the session still has its earlier context."""


class AnswerHook(Procedure[HookAnswer], frozen=True, kw_only=True):
    """Answer ``session-start`` and ``user-prompt`` with context, other events with nothing.

    Attributes:
        max_tokens: The token budget of the answer; a token is four bytes of UTF-8.
    """

    event: HookEvent
    max_tokens: Annotated[int, Meta(ge=1, le=100_000)] = 1_500

    async def run(self, context: ProcedureContext) -> HookAnswer:
        """Collect the context, log the injection, and return the answer."""
        event = self.event
        is_start = event.name == "session-start"
        if not is_start and (event.name != "user-prompt" or is_trivial(event.prompt)):
            return HookAnswer()
        of, address = session_of(event), hook_address(user_namespace(context.principal))
        state = await context.ask(address, LookUpSession(of=of))
        fresh = is_start and event.reason not in _GOES_ON
        if fresh:
            state = HookState(earlier=state.earlier)
        elif event.reason == "compact":  # no session ended since
            state = msgspec.structs.replace(state, earlier=[])
        prompt = without_secrets(event.prompt)[0]
        budget = self.max_tokens - envelope_tokens()
        partial, least = False, None
        lines: Sequence[Line]
        found = 0
        if is_start:
            found = await count_unreviewed(context, event, state) if fresh else 0
            sections, lines, left_out = await build_briefing(context, event, state, budget)
        else:
            lines, partial, least, left_out = await find_memories(context, event, prompt, state, budget)
            sections = [Section("Memories that may matter for this prompt", [each.text for each in lines])]
        text = delimit(event.id, sections)
        memories = [line.memory for line in lines if line.memory is not None]
        given = Given(
            hook=event.name,
            agent=context.principal.agent_id,
            query=prompt[:MOST_REQUEST],
            reason=event.reason,
            memories=memories,
            lines=[line.digest for line in lines if line.memory is None],
            tokens=estimate_tokens(text),
            partial=partial,
            least=least,
            left_out=left_out,
        )
        await context.ask(address, NoteGiven(of=of, at=event.at, given=given, fresh=fresh))
        return HookAnswer(
            context=text,
            memory_ids=[each.memory_id for each in memories],
            partial=partial,
            found=found,
        )
