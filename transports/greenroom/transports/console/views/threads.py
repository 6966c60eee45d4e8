"""What was said, in the order in which it is shown: by time, or answers below what they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from greenroom.actors.core.replies.replies import MessageView
from greenroom.actors.schemas.transcripts import AnsweredMessage

DEEPEST: Final = 6
"""Answers are set in so far; what answers those stands below them as deep."""
_LINE: Final = 480


class Row(NamedTuple):
    """A message, and how deep it is set in."""

    message: MessageView
    depth: int


def in_time(messages: Sequence[MessageView]) -> list[Row]:
    """Return messages as they came."""
    return [Row(message, 0) for message in messages]


def in_threads(messages: Sequence[MessageView]) -> list[Row]:
    """Return messages, each followed by those that answer it; what answers none of these begins a thread."""
    here = {message.message_id for message in messages}
    answers: dict[int | None, list[MessageView]] = {}
    for message in messages:
        parent = message.parent_message_id
        # An answer is newer than what it answers, so whatever is taken for a parent leads to a root.
        is_answer = parent in here and parent is not None and parent < message.message_id
        answers.setdefault(parent if is_answer else None, []).append(message)
    return list(_walked(answers))


def _walked(answers: Mapping[int | None, list[MessageView]]) -> Iterator[Row]:
    """Yield the tree's messages without recursion: a chain of answers may be as long as a page."""
    open_rows = [Row(message, 0) for message in reversed(answers.get(None, []))]
    while open_rows:
        row = open_rows.pop()
        yield row
        below = answers.get(row.message.message_id, [])
        open_rows += [Row(message, min(row.depth + 1, DEEPEST)) for message in reversed(below)]


def answers_of(
    messages: Sequence[MessageView], elsewhere: Sequence[AnsweredMessage]
) -> Mapping[int, AnsweredMessage]:
    """Return what is answered, by its id: what is said on this page and what is not."""
    wanted = {message.parent_message_id for message in messages}
    here = [
        AnsweredMessage(message_id=each.message_id, sender=each.sender, line=each.content[:_LINE])
        for each in messages
        if each.message_id in wanted
    ]
    return {each.message_id: each for each in (*elsewhere, *here)}
