"""Taking what a hook told: turns into a session, what rules find into memories, uses of what was given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from greenroom.actors.auth.namespaces import user_namespace
from greenroom.actors.auth.principal import Principal
from greenroom.actors.hooks.actor import hook_address
from greenroom.actors.schemas.hook_work import ClientSession, KeepTurns, KeptTurn, LookUpSession, NoteTaken
from greenroom.actors.schemas.hooks import HookEvent, Turn
from greenroom.runtime import Address, Procedure, ProcedureContext

MOST_CHARACTERS: Final = 200_000
"""Characters of an event's turns that are kept, the newest ones."""
_TURN: Final = 4_000
_CALLS: Final = 500
_REQUEST: Final = 300
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
        state = await context.ask(address, LookUpSession(of=of, event_id=event.id))
        if state.taken:
            return
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
            ),
        )


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
    return next(said, "")[:_REQUEST]


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
