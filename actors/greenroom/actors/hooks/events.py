"""Hook events of a client: answer them with context, and ingest what they report."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from greenroom.actors.content.secrets.detect import without_secrets
from greenroom.actors.content.text.analyze import TextSettings, text_settings
from greenroom.actors.content.text.escape import Section, delimit, envelope_tokens
from greenroom.actors.core.auth.namespaces import memory_address, user_namespace
from greenroom.actors.core.base.threads import run_in_thread
from greenroom.actors.core.replies.paging import estimate_tokens
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.briefing.briefing import build_briefing, count_unreviewed
from greenroom.actors.hooks.briefing.changed_decisions import CHANGED, find_changed
from greenroom.actors.hooks.briefing.context_lines import Line, is_used, to_section
from greenroom.actors.hooks.briefing.learned import LEARNED, find_learned, namespace_of
from greenroom.actors.hooks.briefing.prompt_memories import find_memories
from greenroom.actors.hooks.extraction.extraction import carry_over, found_in
from greenroom.actors.hooks.extraction.findings import Extractor, Finding
from greenroom.actors.hooks.extraction.turns import (
    MOST_REQUEST,
    count_files,
    finding_key,
    last_request,
    session_of,
    shorten_turns,
    to_request,
)
from greenroom.actors.hooks.extraction.typed_words import heard_in, typed_in
from greenroom.actors.memories.recall.prompt_cues import is_trivial
from greenroom.actors.memories.requests.requests import NoteHelp, StoreMemory
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.actors.sessions.requests.hook_events import HookAnswer, HookEvent, Turn
from greenroom.actors.sessions.requests.hook_messages import (
    HookState,
    KeepTurns,
    LookUpSession,
    NoteTaken,
    session_id_of,
)
from greenroom.actors.sessions.requests.injection_log import Given, NoteGiven
from greenroom.runtime import Address, Procedure, ProcedureContext, Refusal, current_settings

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
        elif event.reason == "compact":  # no session has ended since the last briefing
            state = msgspec.structs.replace(state, earlier=[])
        prompt = without_secrets(event.prompt)[0]
        budget = self.max_tokens - envelope_tokens()
        partial, least = False, None
        lines: Sequence[Line]
        found = 0
        if is_start:
            found = await count_unreviewed(context, event, state) if fresh else 0
            sections, lines, left_out = await build_briefing(context, event, state, budget)
            changed = await find_changed(context, event, state, self._left(sections))
            sections, lines = [*sections, to_section(CHANGED, changed)], [*lines, *changed]
        else:
            lines, partial, least, left_out = await find_memories(context, event, prompt, state, budget)
            sections = [to_section("Memories that may matter for this prompt", lines)]
        if not _reviewed_only():
            learned = await find_learned(context, event, prompt, state, self._left(sections), lines)
            sections, lines = [*sections, to_section(LEARNED, learned)], [*lines, *learned]
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
        request = to_request(prompt)
        await context.ask(address, NoteGiven(of=of, at=event.at, given=given, fresh=fresh, request=request))
        return HookAnswer(
            context=text,
            memory_ids=[each.memory_id for each in memories],
            partial=partial,
            found=found,
        )

    def _left(self, sections: Sequence[Section]) -> int:
        """Return what sections leave of the token budget."""
        used = max(envelope_tokens(), estimate_tokens(delimit(self.event.id, sections)))
        return self.max_tokens - used


logger = logging.getLogger(__name__)


class TakeHookEvent(Procedure[None], frozen=True, kw_only=True):
    """Ingest an event of a client's hook; a repeat changes nothing.

    Every step is idempotent, and the event is marked as ingested last. A client without an answer sends the
    event again.
    """

    event: HookEvent

    async def run(self, context: ProcedureContext) -> None:
        """Store the turns, findings and uses of the event."""
        event, address = self.event, hook_address(user_namespace(context.principal))
        of = session_of(event)
        before = await context.ask(address, LookUpSession(of=of, event_id=event.id))
        if before.taken:
            return
        found = await _find(event.turns, before)
        findings = {finding_key(each, of): each for each in found.findings}
        state = await context.ask(address, LookUpSession(of=of, event_id=event.id, findings=list(findings)))
        for key in state.findings:
            await self._remember(context, key, findings[key])
        used = await self._find_used(context, state)
        turns = await run_in_thread(shorten_turns, event.turns)
        ends = event.name == "session-end"
        compacts = event.name == "pre-compact"
        if turns or ends or compacts:
            await context.ask(
                Address("session", session_id_of(event, context.principal)),
                KeepTurns(
                    event_id=event.id,
                    of=of,
                    purpose=f"{event.client} in {event.project or event.folder or 'no project'}"[:500],
                    turns=turns,
                    revision=event.revision,
                    files=count_files(event.turns),
                    ends=ends,
                    compacted=event.at if compacts else None,
                    reason=event.reason if compacts else "",
                ),
            )
        await context.ask(
            address,
            NoteTaken(
                of=of,
                event_id=event.id,
                at=event.at,
                ended=event.reason if ends else None,
                request=last_request(event.turns),
                used=used,
                findings=state.findings,
                typed=[finding_key(each, of) for each in found.typed],
                carried=found.carried,
                heard=found.heard,
            ),
        )

    async def _remember(self, context: ProcedureContext, key: str, finding: Finding) -> None:
        """Store a finding as a memory without a review, unless the key exists."""
        event = self.event
        provenance = {
            "client": event.client,
            "session": event.session,
            "hook": event.name,
            "at": event.at,
            "rule": finding.rule,
        }
        store = StoreMemory(
            content=finding.text,
            key=key,
            namespace=namespace_of(context.principal, event.project),
            kind=finding.kind,
            tags=list(finding.tags),
            metadata=msgspec.Raw(
                msgspec.json.encode({"provenance": provenance, **event.revision.as_member()})
            ),
            unreviewed=True,
            expected_version=0,
        )
        try:
            await context.ask(memory_address(user_namespace(context.principal)), store)
        except Refusal as refusal:
            if refusal.code != "VERSION_CONFLICT":
                raise

    async def _find_used(self, context: ProcedureContext, state: HookState) -> list[tuple[int, str]]:
        """Return which injected memories the model used, and count each use as help."""
        used: list[tuple[int, str]] = []
        for number, at, memory in state.open:
            texts = [
                turn.text
                for turn in self.event.turns
                if turn.role == "assistant" and (turn.at or self.event.at) >= at
            ]
            if is_used(memory.marks, texts):
                help_seen = NoteHelp(memory_id=memory.memory_id, event_id=self.event.id)
                await context.ask(memory_address(memory.namespace), help_seen)
                used.append((number, memory.memory_id))
        return used


class _Found(NamedTuple):
    """The findings in turns, the typed ones, and what the next event needs."""

    findings: list[Finding]
    typed: list[Finding]
    carried: list[Turn]
    heard: list[int]


async def _find(turns: Sequence[Turn], before: HookState) -> _Found:
    """Find memories in turns; if the program's own extractor fails, use the plain rules."""
    by_rules = await run_in_thread(_by_rules, turns, before)
    settings: StoreSettings | None = current_settings()
    if settings is not None and settings.extractor is not None:
        try:
            return by_rules._replace(findings=await settings.extractor(turns), typed=[])
        except Exception:  # every exception: a faulty extractor must not lose the event
            logger.exception("the extractor failed; the rules take its place")
    return by_rules


def _by_rules(turns: Sequence[Turn], before: HookState) -> _Found:
    findings = found_in(turns, before.carried)
    return _Found(
        findings,
        typed_in(findings, turns, before.carried, before.heard),
        carry_over(turns, before.carried),
        heard_in(turns, before.heard),
    )


def _reviewed_only() -> bool:
    settings: StoreSettings | None = current_settings()
    return settings is not None and settings.reviewed_only


@dataclass(frozen=True, slots=True)
class StoreSettings(TextSettings):
    """The settings of one store; see `current_settings` of the runtime.

    Attributes:
        extractor: Finds memories in turns; None for the plain rules.
        reviewed_only: Whether hooks give no memory before its review, even if the person typed it.
    """

    content_limit: int
    tiers: TierSizes
    extractor: Extractor | None = None
    reviewed_only: bool = False


def store_settings(
    languages: Sequence[str],
    content_limit: int,
    tiers: TierSizes,
    extractor: Extractor | None,
    *,
    reviewed_only: bool = False,
) -> StoreSettings:
    """Build the settings of a store; `ValueError` if a language has no stemmer."""
    text = text_settings(tuple(languages))
    return StoreSettings(text.rules, text.code, content_limit, tiers, extractor, reviewed_only)
