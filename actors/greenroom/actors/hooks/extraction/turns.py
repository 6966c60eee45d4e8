"""A client's session as it is kept: its id, its turns made short, its files, its last request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from greenroom.actors.base.two_ends import two_ends
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.hooks.extraction.findings import error_line
from greenroom.actors.hooks.extraction.strip_quotes import own_words
from greenroom.actors.hooks.findings import Finding
from greenroom.actors.schemas.hook_work import ClientSession, Earlier, KeptTurn
from greenroom.actors.sessions.requests.hook_events import HookEvent, Turn

MOST_CHARACTERS: Final = 200_000
"""Characters of an event's turns that are kept, the newest ones."""
_TURN: Final = 4_000
_CALLS: Final = 500
_TYPED: Final = 8_000
"""A longer turn was not typed as a whole, and its middle may be gone."""
_WORDS: Final = 2_000
"""Characters of a turn's words that another agent may read."""
_MOST_ERRORS: Final = 3
"""Errors of tools in a row that it may read, the last ones."""
_REPEATED: Final = 20
"""Characters of a sentence that is a tool's where it stands in what one put out."""
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
    last_words = _last_words(turns)
    for place, turn in enumerate(turns):
        if turn.role == "tool":
            calls.append(turn)
            continue
        kept += _calls(calls)
        calls = []
        if turn.text.strip():
            if turn.role == "assistant":
                words = last_words.get(place)
            else:
                words = _joined(own_words(turn.text[:_TYPED]))
            kept.append(KeptTurn(role=turn.role, text=two_ends(turn.text, _TURN), at=turn.at, words=words))
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
    """Return how the person's last turn with words of their own begins."""
    said = (" ".join(own_words(turn.text)) for turn in reversed(turns) if turn.role == "user")
    return next(filter(None, said), "")[:MOST_REQUEST]


def _calls(calls: Sequence[Turn]) -> list[KeptTurn]:
    if not calls:
        return []
    words = [_call(each) for each in calls]
    errors = dict.fromkeys(error_line(each.text) for each in calls if each.failed)
    words_of_tools = "\n".join(list(filter(None, errors))[-_MOST_ERRORS:])
    return [
        KeptTurn(
            role="tool",
            text=two_ends("; ".join(words), _CALLS),
            at=calls[-1].at,
            words=words_of_tools or None,
        )
    ]


def _last_words(turns: Sequence[Turn]) -> dict[int, str]:
    """Return the model's last words of each turn by their place, without what it repeats of tools."""
    last: list[int] = []
    then = "user"
    for place in reversed(range(len(turns))):
        role = turns[place].role
        if role != "tool" and turns[place].text.strip():
            if role == "assistant" and then == "user":
                last.append(place)
            then = role
    if not last:
        return {}
    put_out = _plain(" ".join(turn.text for turn in turns if turn.role == "tool"))
    return {
        place: _joined(
            each
            for each in own_words(turns[place].text, pastes=False)
            if len(each) < _REPEATED or _plain(each) not in put_out
        )
        for place in last
    }


def _joined(words: Iterable[str]) -> str:
    return two_ends("\n".join(words), _WORDS, "\n")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _call(turn: Turn) -> str:
    what = turn.command or turn.path
    shown = f"{turn.tool or 'tool'}{f': {what[:120]}' if what else ''}"
    return f"{shown} (failed)" if turn.failed else shown


def finding_key(finding: Finding, of: ClientSession) -> str:
    """Return the key of a finding's memory: the same thing said again is the same memory."""
    said = f"{of.project}\0{finding.rule}\0{' '.join(finding.text.split())}"
    return f"{finding.rule}-{blake2b(said.encode(), digest_size=10).hexdigest()}"
