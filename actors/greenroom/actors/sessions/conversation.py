"""What was said in a session, in tiers: the newest as it is, older messages shortened, the oldest a line.

The same messages make the same tiers: nothing here knows a clock, chance or a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from greenroom.actors.content.text.extract import extracted
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.schemas.conversations import CompressedMessage, MessageLine, TierCounts
from greenroom.actors.sessions import reads
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.actors.sessions.search import preview
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.records import Entry, view
from greenroom.runtime import Context, Slices

COMPRESSED_CHARACTERS: Final = 400
COMPRESSED_BYTES: Final = 900  # of memory, roughly
LINE_CHARACTERS: Final = 120
RECENT_BYTES: Final = log.PAGE_BYTES // 2
"""What the recent tier may take of an answer (`log.answer_bytes`); what is older is shortened instead.
The newest message is there however large it is."""


class Tiers(NamedTuple):
    """The tiers, the oldest message of each first.

    Attributes:
        characters: Of the contents of all messages in them, and ``shown`` of what is left of these.
        cursor: Leads `GetMessages` to older messages; None where there are none.
    """

    recent: list[replies.MessageView]
    compressed: list[CompressedMessage]
    lines: list[MessageLine]
    characters: int
    shown: int
    cursor: str | None

    def counts(self, total: int) -> TierCounts:
        """Return how many messages are in each tier, of how many."""
        return TierCounts(
            recent=len(self.recent), compressed=len(self.compressed), lines=len(self.lines), total=total
        )


def tiers_of(
    context: Context, partitions: Sequence[Partition], sizes: TierSizes, known: Mapping[int, str]
) -> Slices[Tiers]:
    """Return the newest messages in ``partitions``, by tiers.

    Args:
        context: The message's context.
        partitions: What the reader sees.
        sizes: How large the tiers are.
        known: Shortened texts of messages by their ids, of an earlier reading: each takes milliseconds.
    """
    recent: list[replies.MessageView] = []
    compressed: list[CompressedMessage] = []
    lines: list[MessageLine] = []
    characters = shown = size = 0
    last: Entry | None = None
    cursor: str | None = None
    for entry in log.walk(context, partitions, reverse=True):
        content = entry.message.content
        if len(recent) < sizes.recent and not compressed and not lines:
            size += log.answer_bytes(entry.message)  # it goes through all of the metadata
        else:
            size = RECENT_BYTES + 1
        if not recent or size <= RECENT_BYTES:
            recent.append(view(entry, context.principal))
            shown += len(content)
        elif len(compressed) < sizes.compressed and not lines:
            compressed.append(_compressed(entry, known.get(entry.message_id)))
            shown += len(compressed[-1].text)
        elif len(lines) < sizes.lines:
            lines.append(_line(entry))
            shown += len(lines[-1].line)
        else:
            cursor = None if last is None else reads.cursor_before(last, context.address.key)
            break
        characters += len(content)
        last = entry
        if context.should_yield():
            yield
    return Tiers(recent[::-1], compressed[::-1], lines[::-1], characters, shown, cursor)


def _compressed(entry: Entry, text: str | None) -> CompressedMessage:
    message = entry.message
    return CompressedMessage(
        message_id=entry.message_id,
        sender=message.sender,
        timestamp=to_datetime(message.timestamp),
        text=extracted(message.content, COMPRESSED_CHARACTERS) if text is None else text,
        characters=len(message.content),
    )


def _line(entry: Entry) -> MessageLine:
    message = entry.message
    return MessageLine(
        message_id=entry.message_id,
        sender=message.sender,
        timestamp=to_datetime(message.timestamp),
        line=beginning(message.content),
    )


def beginning(content: str) -> str:
    """Return how a message begins, as one line."""
    return preview(" ".join(content[: LINE_CHARACTERS * 4].split()), "", LINE_CHARACTERS).text
