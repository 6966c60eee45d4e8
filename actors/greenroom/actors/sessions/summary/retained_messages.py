"""Sessions stored by hooks, and the part that other agents of the user may read.

Only the session's own agent reads its messages. Each message also has a part that other agents of the same
user, in the same project, may read: the person's text, the model's last words of a turn, errors of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.storage import message_log
from greenroom.actors.sessions.storage.directory import BaseRow
from greenroom.actors.sessions.storage.records import Entry, Header, StoredMessage, is_by_person
from greenroom.actors.sessions.summary.briefing import TimedUtterance, label_of
from greenroom.actors.sessions.summary.features import Utterance
from greenroom.actors.sessions.summary.summary import MOST_MESSAGES
from greenroom.runtime import Context, Slices

HOOKS_APP: Final = "greenroom-hooks"
"""The program name of sessions that hooks stored."""
_TOOL: Final = "tool output"
"""No agent can have this name: names of agents have no blank."""


def is_kept_by_hooks(header: Header) -> bool:
    """Return whether hooks stored a session."""
    return header.app_name == HOOKS_APP


def is_of_same_user(header: Header | BaseRow, principal: Principal) -> bool:
    """Return whether a session has the same user, or, without a user, the same agent."""
    return header.user_id == principal.user and (
        principal.user is not None or header.created_by == principal.agent_id
    )


def may_read_retained(header: Header, principal: Principal) -> bool:
    """Return whether a reader may read the shared part: same user and project, not impersonated."""
    return (
        is_kept_by_hooks(header)
        and is_of_same_user(header, principal)
        and header.project_id is not None
        and principal.seen_by is None
        and policy.may_see_session(principal, header.project_id)
    )


def read_retained(context: Context, partitions: Iterable[Partition]) -> Slices[list[TimedUtterance]]:
    """Return the shared part, oldest first.

    Of consecutive messages of the model, only the last is included. Each error is included once.
    """
    found: list[TimedUtterance] = []
    errors: set[str] = set()
    is_last = True
    for _, _, message in _newest(context, partitions):
        words = message.words
        if words is not None:
            if not message.is_talk:
                lines = [each for each in reversed(words.splitlines()) if each not in errors]
                errors.update(lines)
                found += [_to_utterance(message, _TOOL, line) for line in lines]
            else:
                by_person = is_by_person(message)
                if words and (by_person or is_last):
                    found.append(_to_utterance(message, label_of(message), words))
                is_last = by_person
        yield
    return found[::-1]


def has_retained(context: Context, partitions: Iterable[Partition]) -> Slices[bool]:
    """Return whether there is a shared part; usually the newest messages decide it."""
    for _, _, message in _newest(context, partitions):
        if message.words:
            return True
        yield
    return False


def _newest(context: Context, partitions: Iterable[Partition]) -> Iterator[Entry]:
    private = [each for each in partitions if each.visibility == "private"]
    return islice(message_log.walk(context, private, reverse=True), MOST_MESSAGES)


def _to_utterance(message: StoredMessage, who: str, words: str) -> TimedUtterance:
    return TimedUtterance(None, message.timestamp, Utterance(who, words, is_by_person(message)))
