"""What other agents of a user may be told of a session that hooks keep, and which sessions those are.

Its messages are its agent's alone. Each has besides what others of the same user, in the same project, may
be told: what the person typed, the model's last words of a turn, errors of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.records import Entry, Header, StoredMessage, is_by_person
from greenroom.actors.sessions.summary.briefing import Heard, label_of
from greenroom.actors.sessions.summary.features import Said
from greenroom.actors.sessions.summary.summary import MOST_MESSAGES
from greenroom.runtime import Context, Slices

APP: Final = "greenroom-hooks"
"""The program that such sessions belong to."""
_TOOL: Final = "tool output"
"""No agent can be called so: names of agents have no blank."""


def is_kept(header: Header) -> bool:
    """Return whether hooks keep a session."""
    return header.app_name == APP


def is_of(header: Header, principal: Principal) -> bool:
    """Return whether a session is of the same user, or of the same agent where nobody knows the user."""
    return header.user_id == principal.user and (
        principal.user is not None or header.created_by == principal.agent_id
    )


def may_be_told(header: Header, principal: Principal) -> bool:
    """Return whether a reader may be told what was said: the same user, in its project, and no onlooker."""
    return (
        is_kept(header)
        and is_of(header, principal)
        and header.project_id is not None
        and principal.seen_by is None
        and policy.may_see_session(principal, header.project_id)
    )


def kept_words(context: Context, partitions: Iterable[Partition]) -> Slices[list[Heard]]:
    """Return what may be told, oldest first: of what the model said in a row the last, each error once.

    Args:
        context: The message's context.
        partitions: All of the session's.
    """
    found: list[Heard] = []
    errors: set[str] = set()
    is_last = True
    for _, _, message in _newest(context, partitions):
        words = message.words
        if words is not None:
            if not message.is_talk:
                lines = [each for each in reversed(words.splitlines()) if each not in errors]
                errors.update(lines)
                found += [_heard(message, _TOOL, line) for line in lines]
            else:
                by_person = is_by_person(message)
                if words and (by_person or is_last):
                    found.append(_heard(message, label_of(message), words))
                is_last = by_person
        if context.should_yield():
            yield
    return found[::-1]


def has_kept_words(context: Context, partitions: Iterable[Partition]) -> Slices[bool]:
    """Return whether there is anything that may be told; mostly the newest messages say so."""
    for _, _, message in _newest(context, partitions):
        if message.words:
            return True
        if context.should_yield():
            yield
    return False


def _newest(context: Context, partitions: Iterable[Partition]) -> Iterator[Entry]:
    private = [each for each in partitions if each.visibility == "private"]
    return islice(log.walk(context, private, reverse=True), MOST_MESSAGES)


def _heard(message: StoredMessage, who: str, words: str) -> Heard:
    return Heard(None, message.timestamp, Said(who, words, is_by_person(message)))
