"""A client's session as it is kept: its id, its turns made short, its files, its last request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from greenroom.actors.auth.namespaces import user_namespace
from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.two_ends import two_ends
from greenroom.actors.hooks.findings import Finding
from greenroom.actors.schemas.hook_work import ClientSession, Earlier, KeptTurn
from greenroom.actors.schemas.hooks import HookEvent, Turn

MOST_CHARACTERS: Final = 200_000
"""Characters of an event's turns that are kept, the newest ones."""
_TURN: Final = 4_000
_CALLS: Final = 500
MOST_REQUEST: Final = 300
"""Characters of a person's request that are kept beside what was given for it."""
_PROJECT: Final = 128
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def session_of(event: HookEvent) -> ClientSession:
    """Return the client's session that an event is of."""
    return ClientSession(client=event.client, session=event.session, project=event.project[:_PROJECT])


def session_id_of(of: HookEvent | ClientSession | Earlier, principal: Principal) -> str:
    """Return the id of the session that keeps a client's session."""
    return kept_id(of.client, of.session, user_namespace(principal))


def kept_id(client: str, session: str, owner: str) -> str:
    """Return the id of the session that keeps a client's session.

    Args:
        client: The client's name.
        session: Its own id of the session.
        owner: The namespace of its user, or of its agent where nobody knows the user.
    """
    name = _FOREIGN.sub("-", client)[:40].strip("-.") or "client"
    named = f"{owner}\0{client}\0{session}"
    return f"{name}-{blake2b(named.encode(), digest_size=10).hexdigest()}"


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
            kept.append(KeptTurn(role=turn.role, text=two_ends(turn.text, _TURN), at=turn.at))
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
    return [KeptTurn(role="tool", text=two_ends("; ".join(words), _CALLS), at=calls[-1].at)]


def _call(turn: Turn) -> str:
    what = turn.command or turn.path
    shown = f"{turn.tool or 'tool'}{f': {what[:120]}' if what else ''}"
    return f"{shown} (failed)" if turn.failed else shown


def finding_key(finding: Finding, of: ClientSession) -> str:
    """Return the key of a finding's memory: the same thing said again is the same memory."""
    said = f"{of.project}\0{finding.rule}\0{' '.join(finding.text.split())}"
    return f"{finding.rule}-{blake2b(said.encode(), digest_size=10).hexdigest()}"
