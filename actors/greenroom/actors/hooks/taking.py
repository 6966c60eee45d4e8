"""Taking what a hook told: turns into a session, what rules find into memories, uses of what was given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from greenroom.actors.auth.namespaces import memory_address, segment, user_namespace
from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.threads import run_in_thread
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.hooks.extraction import Finding, found_in
from greenroom.actors.hooks.use import comes_back
from greenroom.actors.schemas.hook_work import (
    ClientSession,
    HookState,
    KeepTurns,
    KeptTurn,
    LookUpSession,
    NoteTaken,
)
from greenroom.actors.schemas.hooks import HookEvent, Turn
from greenroom.actors.schemas.memories import NoteHelp, StoreMemory
from greenroom.runtime import Address, Procedure, ProcedureContext, Refusal

MOST_CHARACTERS: Final = 200_000
"""Characters of an event's turns that are kept, the newest ones."""
_TURN: Final = 4_000
_CALLS: Final = 500
MOST_REQUEST: Final = 300
"""Characters of a person's request that are kept beside what was given for it."""
_PROJECT: Final = 128
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class TakeHookEvent(Procedure[None], frozen=True, kw_only=True):
    """Take an event of a client's hook; a repeat of it changes nothing.

    Every step can be repeated, and that the event is taken is noted last: whoever was not answered sends it
    again.
    """

    event: HookEvent

    async def run(self, context: ProcedureContext) -> None:
        """Keep what it tells."""
        event, address = self.event, hook_address(user_namespace(context.principal))
        of = session_of(event)
        if (await context.ask(address, LookUpSession(of=of, event_id=event.id))).taken:
            return
        findings = {finding_key(each, of): each for each in await run_in_thread(found_in, event.turns)}
        state = await context.ask(address, LookUpSession(of=of, event_id=event.id, findings=list(findings)))
        for key in state.findings:
            await self._remember(context, key, findings[key])
        used = await self._used(context, state)
        turns = kept_turns(event.turns)
        ends = event.name == "session-end"
        if turns or ends:
            await context.ask(
                Address("session", session_id_of(event, context.principal)),
                KeepTurns(
                    event_id=event.id,
                    of=of,
                    purpose=f"{event.client} in {event.project or event.folder or 'no project'}"[:500],
                    turns=turns,
                    files=used_files(event.turns),
                    ends=ends,
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
            ),
        )

    async def _remember(self, context: ProcedureContext, key: str, finding: Finding) -> None:
        """Store a finding as a memory that nobody reviewed, unless it is there."""
        event = self.event
        provenance = {
            "client": event.client,
            "session": event.session,
            "hook": event.name,
            "at": event.at,
            "rule": finding.rule,
        }
        owner = user_namespace(context.principal)
        store = StoreMemory(
            content=finding.text,
            key=key,
            namespace=f"{owner}:{segment(event.project)}" if event.project else owner,
            kind=finding.kind,
            tags=list(finding.tags),
            metadata=msgspec.Raw(msgspec.json.encode({"provenance": provenance})),
            expected_version=0,
        )
        try:
            await context.ask(memory_address(owner), store)
        except Refusal as refusal:
            if refusal.code != "VERSION_CONFLICT":
                raise

    async def _used(self, context: ProcedureContext, state: HookState) -> list[tuple[int, str]]:
        """Return which of the memories that the session was given the model used, and rate these."""
        used: list[tuple[int, str]] = []
        for number, at, memory in state.open:
            said = [
                turn.text
                for turn in self.event.turns
                if turn.role == "assistant" and (turn.at or self.event.at) >= at
            ]
            if comes_back(memory.marks, said):
                help_seen = NoteHelp(memory_id=memory.memory_id, event_id=self.event.id)
                await context.ask(memory_address(memory.namespace), help_seen)
                used.append((number, memory.memory_id))
        return used


def finding_key(finding: Finding, of: ClientSession) -> str:
    """Return the key of a finding's memory: the same thing said again is the same memory."""
    said = f"{of.project}\0{finding.rule}\0{' '.join(finding.text.split())}"
    return f"{finding.rule}-{blake2b(said.encode(), digest_size=10).hexdigest()}"


def session_of(event: HookEvent) -> ClientSession:
    """Return the client's session that an event is of."""
    return ClientSession(client=event.client, session=event.session, project=event.project[:_PROJECT])


def session_id_of(event: HookEvent, principal: Principal) -> str:
    """Return the id of the session that keeps a client's session."""
    client = _FOREIGN.sub("-", event.client)[:40].strip("-.") or "client"
    named = f"{user_namespace(principal)}\0{event.client}\0{event.session}"
    return f"{client}-{blake2b(named.encode(), digest_size=10).hexdigest()}"


def kept_turns(turns: Sequence[Turn]) -> list[KeptTurn]:
    """Return turns as a session keeps them: what was said, and one line for tools in a row."""
    kept: list[KeptTurn] = []
    calls: list[Turn] = []
    for turn in turns:
        if turn.role == "tool":
            calls.append(turn)
            continue
        kept += _calls(calls)
        calls = []
        if turn.text.strip():
            kept.append(KeptTurn(role=turn.role, text=_ends(turn.text, _TURN), at=turn.at))
    kept += _calls(calls)
    size, first = 0, len(kept)
    while first and (size := size + len(kept[first - 1].text)) <= MOST_CHARACTERS:
        first -= 1
    return kept[first:]


def used_files(turns: Iterable[Turn]) -> list[tuple[str, int]]:
    """Return the files that were worked with, and how often: a written one counts twice."""
    uses: Counter[str] = Counter()
    for turn in turns:
        if turn.path and not turn.failed:
            uses[turn.path] = min(10, uses[turn.path] + 1 + turn.wrote)
    return uses.most_common(50)


def last_request(turns: Sequence[Turn]) -> str:
    """Return how the person's last turn begins."""
    said = (turn.text for turn in reversed(turns) if turn.role == "user" and turn.text.strip())
    return next(said, "")[:MOST_REQUEST]


def _calls(calls: Sequence[Turn]) -> list[KeptTurn]:
    if not calls:
        return []
    words = [_call(each) for each in calls]
    return [KeptTurn(role="tool", text=_ends("; ".join(words), _CALLS), at=calls[-1].at)]


def _call(turn: Turn) -> str:
    what = turn.command or turn.path
    shown = f"{turn.tool or 'tool'}{f': {what[:120]}' if what else ''}"
    return f"{shown} (failed)" if turn.failed else shown


def _ends(text: str, most: int) -> str:
    """Return a text's two ends, if it is longer than allowed."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}\u2026{text[len(text) - half :]}"
