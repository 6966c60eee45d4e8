"""Several events at once: appended, read from the end, and removed for good."""

from __future__ import annotations

from collections import Counter

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import Partition
from greenroom.actors.sessions.actor import SessionActor
from greenroom.actors.sessions.handlers import events as session_events
from greenroom.actors.sessions.large_events import drop_parts
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.records import CLOSED, Entry, StoredMessage, message_key
from greenroom.runtime import Context, Slices, handles


class EventBatches(SessionActor):
    """A session whose events come and go several at once."""

    @handles(requests.AppendEvents)
    def append_events(self, request: requests.AppendEvents, context: Context) -> Slices[None]:
        """Append the events that are not there yet."""
        header = self._visible(context)
        new = yield from self._new(request, context)
        if new and header.status in CLOSED:
            raise auth_errors.session_closed(request.session_id, header.status)
        for event, message in new:
            partition = policy.partition_of(context.principal, event.visibility)
            self._append_event(context, partition, event, message)
            if context.should_yield():
                yield
        if new:
            audit_record.record(
                context,
                "append_events",
                request.session_id,
                events=len(new),
                characters=sum(len(message.content) for _, message in new),
                **_in_parts(sum(len(event.whole) for event, _ in new)),
            )

    @handles(requests.GetNewestEvents)
    def newest_events(
        self, request: requests.GetNewestEvents, context: Context
    ) -> Slices[requests.EventPage]:
        """Answer the newest events that the caller may see."""
        self._visible(context)
        return session_events.newest(request, context)

    @handles(requests.RemoveEvents)
    def remove_events(
        self, request: requests.RemoveEvents, context: Context
    ) -> Slices[requests.EventsRemoved]:
        """Remove events, and whatever was made of them."""
        header = self._visible(context)
        if header.status in CLOSED:
            raise auth_errors.session_closed(request.session_id, header.status)
        context.use_reserve()
        newest: requests.EventView | None = None
        removed: list[int] = []
        counts: Counter[tuple[Partition, str, bool]] = Counter()
        for entry in log.walk(context, policy.partitions(context.principal), reverse=True):
            if session_events.id_of(entry).startswith(request.id_prefix):
                newest = newest or session_events.view(entry, context)
                removed.append(entry.message_id)
                counts[entry.partition, entry.message.sender, entry.message.is_talk] += 1
                _drop(context, entry)
                if len(removed) == request.limit:
                    break
            if context.should_yield():
                yield
        if newest is None:
            return requests.EventsRemoved(count=0, newest=None)
        yield from self._finder.forget(context, removed)
        self._uncount(context, counts)
        audit_record.record(context, "remove_events", request.session_id, events=len(removed))
        return requests.EventsRemoved(count=len(removed), newest=newest)

    def _new(
        self, request: requests.AppendEvents, context: Context
    ) -> Slices[list[tuple[requests.AppendEvent, StoredMessage]]]:
        """Return the events that are not there yet.

        Raises:
            Refusal: one of them breaks a rule, or another event has its id.
        """
        new: dict[str, tuple[requests.AppendEvent, StoredMessage]] = {}
        for event in request.events:
            earlier = session_events.find(context, event.event_id)
            if earlier is not None:
                session_events.repeated(event, earlier, context)
            elif event.event_id in new:
                raise auth_errors.event_conflict(request.session_id, event.event_id)
            else:
                message = session_events.stored(event, context.now)
                if message.is_talk:
                    self._check_content(message.content)
                new[event.event_id] = event, message
            if context.should_yield():
                yield
        return list(new.values())

    def _uncount(self, context: Context, counts: Counter[tuple[Partition, str, bool]]) -> None:
        """Stage what is left to count. The session keeps its place in listings: nothing has come."""
        for (partition, sender, is_talk), count in counts.items():
            others = 0 if is_talk else count
            self._counters.uncount(context, partition, sender, count, others)
            old = self._activity[partition.audience]
            new = msgspec.structs.replace(old, messages=old.messages - count, others=old.others - others)
            directory.move(context, partition.audience, old, new)
            self._activity[partition.audience] = new
        for audience in {partition.audience for partition, _, _ in counts}:
            self._tell_of(context, audience)


def _drop(context: Context, entry: Entry) -> None:
    """Stage that a message is no more, nor its id as an event, nor its content in parts."""
    context.delete(message_key(entry.partition, entry.message_id))
    if entry.message.event is not None:
        context.delete(session_events.event_key(entry.partition, entry.message.event.event_id))
        drop_parts(context, entry.partition, entry.message_id, entry.message.event.whole_bytes)


def _in_parts(size: int) -> dict[str, int]:
    """Return what an audit row says of contents in parts."""
    return {"bytes_in_parts": size} if size else {}
