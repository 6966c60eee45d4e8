"""A client's session as stored: its id, shortened turns, files and last request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from greenroom.actors.content.text.truncate import truncate_middle
from greenroom.actors.hooks.extraction.findings import Finding, find_error_line
from greenroom.actors.hooks.extraction.strip_quotes import strip_quotes
from greenroom.actors.hooks.extraction.typed_words import is_pasted
from greenroom.actors.sessions.requests.hook_events import HookEvent, Turn
from greenroom.actors.sessions.requests.hook_messages import ClientSession, KeptTurn

MOST_CHARACTERS: Final = 200_000
"""At most this many characters of an event's turns are stored: the newest turns."""
_TURN: Final = 4_000
_CALLS: Final = 500
_TYPED: Final = 8_000
"""A person does not type a turn longer than this, so its middle may be left out."""
_WORDS: Final = 2_000
"""Another agent may read at most this many characters of a turn."""
_MOST_ERRORS: Final = 3
"""Another agent may read at most this many errors of consecutive tool calls: the last ones."""
_REPEATED: Final = 20
"""A sentence of at least this many characters that is also in a tool's output counts as the tool's."""
MOST_REQUEST: Final = 300
"""The injection log has at most this many characters of a person's request."""
_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[^\n]*|\Z)", re.MULTILINE | re.DOTALL)
_PROJECT: Final = 128


def session_of(event: HookEvent) -> ClientSession:
    """Return the client's session of an event."""
    return ClientSession(client=event.client, session=event.session, project=event.project[:_PROJECT])


def shorten_turns(turns: Sequence[Turn]) -> list[KeptTurn]:
    """Shorten turns for a session; consecutive tool calls become one line."""
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
                words = _join(strip_quotes(turn.text[:_TYPED]))
            kept.append(
                KeptTurn(role=turn.role, text=truncate_middle(turn.text, _TURN), at=turn.at, words=words)
            )
    kept += _calls(calls)
    size, first = 0, len(kept)
    while first and (size := size + len(kept[first - 1].text)) <= MOST_CHARACTERS:
        first -= 1
    return kept[first:]


def count_files(turns: Iterable[Turn]) -> list[tuple[str, int]]:
    """Return the files in turns, and how often each was used; writes count twice."""
    uses: Counter[str] = Counter()
    for turn in turns:
        if turn.path and not turn.failed:
            uses[turn.path] = min(10, uses[turn.path] + 1 + turn.wrote)
    return uses.most_common(50)


def last_request(turns: Sequence[Turn]) -> str:
    """Return the beginning of the last turn that the person typed."""
    return next(filter(None, (to_request(turn.text) for turn in reversed(turns) if turn.role == "user")), "")


def to_request(text: str) -> str:
    """Return the beginning of the typed words beside code; empty if they may be pasted."""
    words = _FENCED.sub("", text)
    return "" if is_pasted(words) else " ".join(strip_quotes(words))[:MOST_REQUEST]


def _calls(calls: Sequence[Turn]) -> list[KeptTurn]:
    if not calls:
        return []
    words = [_call(each) for each in calls]
    errors = dict.fromkeys(find_error_line(each.text) for each in calls if each.failed)
    words_of_tools = "\n".join(list(filter(None, errors))[-_MOST_ERRORS:])
    return [
        KeptTurn(
            role="tool",
            text=truncate_middle("; ".join(words), _CALLS),
            at=calls[-1].at,
            words=words_of_tools or None,
        )
    ]


def _last_words(turns: Sequence[Turn]) -> dict[int, str]:
    """Return the model's last words by turn, without copies of tool output."""
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
    outputs = _plain(" ".join(turn.text for turn in turns if turn.role == "tool"))
    return {
        place: _join(
            each
            for each in strip_quotes(turns[place].text, pastes=False)
            if len(each) < _REPEATED or _plain(each) not in outputs
        )
        for place in last
    }


def _join(words: Iterable[str]) -> str:
    return truncate_middle("\n".join(words), _WORDS, "\n")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _call(turn: Turn) -> str:
    target = turn.command or turn.path
    line = f"{turn.tool or 'tool'}{f': {target[:120]}' if target else ''}"
    return f"{line} (failed)" if turn.failed else line


def finding_key(finding: Finding, of: ClientSession) -> str:
    """Return the key of a finding's memory; the same finding always gets the same key."""
    return key_of(finding.rule, finding.text, of.project)


def key_of(rule: str, text: str, project: str) -> str:
    """Return the key of a finding's memory, which is tied to the text."""
    name = f"{project}\0{rule}\0{' '.join(text.split())}"
    return f"{rule}-{blake2b(name.encode(), digest_size=10).hexdigest()}"
