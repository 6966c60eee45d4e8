"""A session as people read it: pages of what was said, from its end backwards or from a message on."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.core.replies import replies
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.schemas.transcripts import AnsweredMessage, ReadTranscript, Transcript, Writer
from greenroom.actors.sessions import reads
from greenroom.actors.sessions.compactions import compactions
from greenroom.actors.sessions.conversation import beginning
from greenroom.actors.sessions.hook_turns import HookedSession
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.records import Entry, view
from greenroom.runtime import Context, Slices, handles


class TranscribedSession(HookedSession):
    """A session that people read."""

    @handles(ReadTranscript)
    def transcript(self, request: ReadTranscript, context: Context) -> Slices[Transcript]:
        """Answer a page."""
        header = self._visible(context)
        if request.before is not None and request.start is not None:
            raise auth_errors.invalid("start", "start: give before or start, not both")
        partitions = policy.partitions(context.principal)
        entries, has_older, has_newer = yield from _page(request, context, partitions)
        messages = [view(entry, context.principal) for entry in entries]
        return Transcript(
            session=(yield from reads.session(context, header, self._counters.talk(partitions))),
            statistics=self._statistics(context.principal, partitions),
            messages=messages,
            answered=_answered(messages, context, partitions),
            writers=self._writers(partitions),
            compactions=compactions(context),
            has_older=has_older,
            has_newer=has_newer,
        )

    def _writers(self, partitions: Sequence[Partition]) -> list[Writer]:
        found = [
            Writer(sender=sender, messages=count, last_at=to_datetime(last_at))
            for sender, (count, last_at) in self._counters.writers(partitions).items()
        ]
        return sorted(found, key=attrgetter("last_at"), reverse=True)


def _page(
    request: ReadTranscript, context: Context, partitions: Sequence[Partition]
) -> Slices[tuple[list[Entry], bool, bool]]:
    """Return messages, oldest first, and whether there are older and newer ones."""
    if request.start is not None:
        walked = log.walk(context, partitions, lowest=request.start)
        entries, has_newer = yield from log.take(context, walked, request.limit)
        older = log.walk(context, partitions, highest=request.start - 1, reverse=True)
        return entries, next(older, None) is not None, has_newer
    highest = log.HIGHEST_ID if request.before is None else request.before - 1
    walked = log.walk(context, partitions, highest=highest, reverse=True)
    entries, has_older = yield from log.take(context, walked, request.limit)
    newer = iter(()) if request.before is None else log.walk(context, partitions, lowest=request.before)
    return entries[::-1], has_older, next(newer, None) is not None


def _answered(
    messages: Sequence[replies.MessageView], context: Context, partitions: Sequence[Partition]
) -> list[AnsweredMessage]:
    here = {message.message_id for message in messages}
    wanted = {message.parent_message_id for message in messages} - here - {None}
    found = [log.find(context, partitions, each) for each in sorted(filter(None, wanted))]
    return [
        AnsweredMessage(
            message_id=entry.message_id,
            sender=entry.message.sender,
            line=beginning(entry.message.content),
        )
        for entry in found
        if entry is not None
    ]
