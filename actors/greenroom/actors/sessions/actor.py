"""The session actor: the handlers of messages, state and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.errors import MAX_VALUE_BYTES
from greenroom.actors.core.auth.namespaces import user_namespace
from greenroom.actors.core.auth.policy import PUBLIC, Partition
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies import replies
from greenroom.actors.core.resources.resource_uris import session_uri
from greenroom.actors.core.validation.times import to_datetime
from greenroom.actors.core.validation.types import SessionStatus
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests.replies import UnembeddedTexts, VectorsStored
from greenroom.actors.sessions import migrations, reads
from greenroom.actors.sessions.handlers import events as session_events
from greenroom.actors.sessions.handlers import session_naming as naming_of
from greenroom.actors.sessions.handlers.search import SessionSearch
from greenroom.actors.sessions.large_events import put_parts
from greenroom.actors.sessions.requests import requests
from greenroom.actors.sessions.requests import requests as events
from greenroom.actors.sessions.storage import directory, fields, records
from greenroom.actors.sessions.storage import message_log as log
from greenroom.actors.sessions.storage.directory import ActivityRow
from greenroom.actors.sessions.storage.message_log import SenderCounters
from greenroom.actors.sessions.storage.records import (
    CLOSED,
    HEADER,
    KEPT_FOR_IT,
    METADATA,
    STATE,
    Entry,
    Header,
    Naming,
    StoredMessage,
    check_step,
    message_key,
    names_in,
    seen_status,
)
from greenroom.runtime import Actor, Context, Slices, handles

AHEAD_AT_LEAST = 1 << 16  # about a second: what the header's bound starts from when ids run ahead
MOST_UTF8_BYTES = 4  # of one character
BASE_BYTES = 4_000  # of memory, for an instance without messages


class SessionActor(Actor):
    """One session. An address that was never created answers as a forbidden one does.

    Class attributes:
        content_limit: The most characters that a message may have.
    """

    kind = "session"
    names = staticmethod(names_in)
    content_limit: ClassVar[int] = 10_000

    def activate(self, context: Context) -> None:
        """Load the header and the tallies; messages stay on disk."""
        self._header = context.get(HEADER, Header)
        self._counters = SenderCounters()
        self._counters.load(context)
        self._finder = SessionSearch()
        self._ahead = 0
        self._activity = {
            audience: ActivityRow(*activity) for audience, activity in self._counters.audiences().items()
        }
        if self._header is not None:
            public = self._activity.get(PUBLIC, ActivityRow(0, 0))
            at = max(public.at, self._header.updated_at)
            self._activity[PUBLIC] = msgspec.structs.replace(public, at=at)

    def resident_bytes(self) -> int:
        """Return an estimate that grows with senders and with what is prepared for searching."""
        return BASE_BYTES + self._counters.resident_bytes() + self._finder.resident_bytes()

    # -- the session itself ------------------------------------------------

    @handles(requests.CreateSession)
    def create(self, request: requests.CreateSession, context: Context) -> Slices[replies.SessionCreated]:
        """Make the session, unless its id is taken."""
        return self._create(request, context)

    def _create(self, request: requests.CreateSession, context: Context) -> Slices[replies.SessionCreated]:
        principal: Principal = context.principal
        session_id = context.address.key
        policy.check_new_session(principal, session_id, request.user_id, request.project_id)
        if self._header is not None:
            # One id names one session, for whoever says it, so this id cannot be given; see docs/security.md.
            is_hidden = not policy.may_see_session(principal, self._header.project_id)
            refusal = auth_errors.session_exists(session_id)
            raise auth_errors.denial(refusal) if is_hidden else refusal
        metadata = yield from fields.merged(context, "metadata", {}, request.metadata)
        state = yield from fields.merged(context, "initial_state", {}, request.initial_state)
        now = context.now
        header = Header(
            purpose=request.purpose,
            status="created",
            created_at=now,
            created_by=principal.agent_id,
            updated_at=now,
            terminated_at=None,
            app_name=request.app_name,
            user_id=request.user_id if request.user_id is not None else principal.user,
            project_id=request.project_id,
            ahead=0,
        )
        yield from fields.put(context, METADATA, metadata)
        yield from fields.put(context, STATE, state)
        audit_record.record(context, "create_session", session_id, project_id=request.project_id)
        self._change(context, header)
        if header.user_id == principal.user:  # else it is somebody's who is not here to take it up
            owner = user_namespace(principal)
            migrations.put_recent(context, owner, header.project_id, principal.agent_id)
        return replies.SessionCreated(
            session_id=session_id, created_at=to_datetime(now), created_by=principal.agent_id
        )

    @handles(requests.GetSession)
    def read(self, _: requests.GetSession, context: Context) -> Slices[replies.SessionRead]:
        """Answer the session with the newest messages that the caller may see."""
        return self._read(context, self._visible(context))

    @handles(requests.UpdateSession)
    def update(self, request: requests.UpdateSession, context: Context) -> Slices[replies.SessionUpdated]:
        """Change the status, merge metadata and state; ``temp:`` keys go when the session ends.

        The status that it has already changes nothing.
        """
        header = self._visible(context)
        stored = yield from fields.load(context, METADATA)
        metadata = yield from fields.merged(context, "metadata", stored, request.metadata)
        stored = yield from fields.load(context, STATE)
        state = yield from fields.merged(context, "state", stored, request.state)
        if not metadata and not state and request.status is None:
            raise auth_errors.invalid(
                "status", "status: give a status, metadata or state; there is nothing to change"
            )
        partitions = policy.partitions(context.principal)
        if request.status is not None:
            check_step(seen_status(header.status, self._counters.talk(partitions)), request.status)
        if header.status in CLOSED and (metadata or state):
            raise auth_errors.session_closed(request.session_id, header.status)
        status = header.status if request.status is None else request.status
        if status == header.status and not metadata and not state:
            session = yield from reads.session(context, header, self._counters.talk(partitions))
            return replies.SessionUpdated(session=session)
        now = context.now
        ends = status in CLOSED and header.status not in CLOSED
        changed = msgspec.structs.replace(
            header,
            status=status,
            updated_at=max(now, header.updated_at),  # `activate` finds the place in the directory by it
            terminated_at=now if ends else header.terminated_at,
        )
        yield from fields.put(context, METADATA, metadata)
        yield from fields.put(context, STATE, state)
        if ends:
            yield from fields.drop(context, STATE, lambda key: key.startswith("temp:"))
        audit_record.record(
            context,
            "update_session",
            request.session_id,
            old_status=header.status,
            status=status,
            metadata_keys=len(metadata),
            state_keys=len(state),
        )
        session = yield from reads.session(context, changed, self._counters.talk(partitions))
        self._change(context, changed)
        return replies.SessionUpdated(session=session)

    @handles(requests.StatusOfSession)
    def status(self, _: requests.StatusOfSession, context: Context) -> SessionStatus | None:
        """Answer the session's status to a sender that may see the session, and keeps something for it."""
        header = self._header
        if header is None:
            return None
        if not policy.may_see_session(context.principal, header.project_id):
            audit_record.record_read(
                context, context.principal, "see_session", context.address.key, outcome="denied"
            )
            return None
        if header.status not in CLOSED and context.get(KEPT_FOR_IT, bytes) is None:
            context.put(KEPT_FOR_IT, b"")
        return header.status

    # -- messages ----------------------------------------------------------

    @handles(requests.AddMessage)
    def add_message(self, request: requests.AddMessage, context: Context) -> replies.MessageAdded:
        """Append a message."""
        header = self._visible(context)
        principal: Principal = context.principal
        if header.status in CLOSED:
            raise auth_errors.session_closed(context.address.key, header.status)
        self._check_content(request.content)
        parent = self._parent(request.parent_message_id, context)
        partition = policy.partition_of(principal, request.visibility)
        message = StoredMessage(
            sender=principal.agent_id,
            timestamp=context.now,
            message_type=request.message_type,
            parent=parent,
            metadata=bytes(request.metadata),
            content=request.content,
            of_another=None not in (principal.user, header.user_id) and principal.user != header.user_id,
        )
        message_id = self._append(context, partition, message)
        audit_record.record(
            context,
            "add_message",
            context.address.key,
            message_id=message_id,
            visibility=request.visibility,
            message_type=request.message_type,
            characters=len(request.content),
        )
        return replies.MessageAdded(message_id=message_id, timestamp=to_datetime(context.now))

    @handles(requests.GetMessages)
    def get_messages(self, request: requests.GetMessages, context: Context) -> Slices[replies.MessagePage]:
        """Answer a page of the messages that the caller may see."""
        before = self._visible(context).continues
        page = yield from reads.page(request, context, self._counters)
        if before and not self._counters.count(policy.partitions(context.principal)):
            return msgspec.structs.replace(page, continues=before, earlier=reads.call_for_newest(before))
        return page

    @handles(requests.SearchContext)
    def search_by_words(
        self, request: requests.SearchContext, context: Context
    ) -> Slices[replies.SearchResults]:
        """Answer as a process of an older version has it asked, which has nothing embedded."""
        return self._search(requests.FindMessages(asked=request), context)

    @handles(requests.FindMessages)
    def search(self, request: requests.FindMessages, context: Context) -> Slices[replies.SearchResults]:
        """Answer the messages that match the query best, and leave an audit record."""
        return self._search(request, context)

    def _search(self, request: requests.FindMessages, context: Context) -> Slices[replies.SearchResults]:
        self._visible(context)
        answer = yield from self._finder.search(request, context, self._counters)
        characters = len(request.asked.query)
        _record_search(context, "search_context", answer.message_count, query_characters=characters)
        return answer

    @handles(memories.TextsToEmbed)
    def texts(self, request: memories.TextsToEmbed, context: Context) -> Slices[UnembeddedTexts]:
        """Hand over texts of messages without vectors of a space."""
        return self._finder.texts(request, context, self._counters)

    @handles(memories.StoreVectors)
    def vectors(self, request: memories.StoreVectors, context: Context) -> Slices[VectorsStored]:
        """Keep vectors of messages."""
        return self._finder.store(request, context, self._counters)

    @handles(requests.SearchBySender)
    def by_sender(self, request: requests.SearchBySender, context: Context) -> Slices[replies.SenderMessages]:
        """Answer one sender's newest messages, and leave an audit record."""
        self._visible(context)
        answer = yield from reads.by_sender(request, context, self._counters)
        named = {"sender": request.sender} if answer.count else {}  # else it may be any text
        _record_search(context, "search_by_sender", answer.count, **named)
        return answer

    @handles(requests.SearchByTimerange)
    def by_timerange(
        self, request: requests.SearchByTimerange, context: Context
    ) -> Slices[replies.TimeRangeMessages]:
        """Answer the messages between two times, and leave an audit record."""
        header = self._visible(context)
        answer = yield from reads.by_timerange(request, context, header.ahead)
        _record_search(context, "search_by_timerange", answer.count, timerange=answer.timerange)
        return answer

    # -- what the session service asks ---------------------------------------

    @handles(events.AppendEvent)
    def append_event(self, request: events.AppendEvent, context: Context) -> Slices[events.EventView]:
        """Append an event and merge its changes of the state; a repeat of it does neither."""
        return self._append_with_state(request, context)

    def _append_with_state(self, request: events.AppendEvent, context: Context) -> Slices[events.EventView]:
        header = self._visible(context)
        principal: Principal = context.principal
        earlier = session_events.find(context, request.event_id)
        if earlier is not None:
            return session_events.repeated(request, earlier, context)
        if header.status in CLOSED:
            raise auth_errors.session_closed(request.session_id, header.status)
        message = session_events.stored(request, context.now)
        if message.is_talk:
            self._check_content(message.content)
        changes: list[fields.NumberedField] = []
        if bytes(request.state_delta) != b"{}":
            state = yield from fields.load(context, STATE)
            changes = yield from fields.merged(context, "state_delta", state, request.state_delta)
        if changes:
            yield from fields.put(context, STATE, changes)
            self._change(context, msgspec.structs.replace(header, updated_at=context.now))
        partition = policy.partition_of(principal, request.visibility)
        message_id = self._append_event(context, partition, request, message)
        audit_record.record(
            context,
            "append_event",
            request.session_id,
            message_id=message_id,
            visibility=request.visibility,
            event_type=request.event_type,
            actor=request.actor,
            characters=len(message.content),
            state_keys=len(changes),
        )
        return session_events.view(Entry(message_id, partition, message), context)

    @handles(events.TakeSnapshot)
    def snapshot(self, _: events.TakeSnapshot, context: Context) -> Slices[events.Snapshot]:
        """Answer the session, and which event is the newest that the caller may see."""
        partitions = policy.partitions(context.principal)
        header = self._visible(context)
        session = yield from reads.session(context, header, self._counters.talk(partitions))
        last = yield from session_events.last(context)
        return events.Snapshot(
            session=session,
            newest_id=self._counters.newest(partitions),
            last_event_id=None if last is None else last.event_id,
            last_event_at=None if last is None else to_datetime(last.at),
        )

    @handles(events.GetEvents)
    def get_events(self, request: events.GetEvents, context: Context) -> Slices[events.EventPage]:
        """Answer some of the events that the caller may see."""
        self._visible(context)
        return session_events.page(request, context)

    @handles(events.GetState)
    def get_state(self, request: events.GetState, context: Context) -> Slices[events.StateValue]:
        """Answer the value of one key of the state."""
        self._visible(context)
        state = yield from fields.load(context, STATE)
        if request.key not in state:
            return events.StateValue(found=False)
        return events.StateValue(found=True, value=msgspec.Raw(state[request.key].field.value))

    # -- parts -------------------------------------------------------------

    def _visible(self, context: Context) -> Header:
        """Return the header.

        Raises:
            Refusal: ``SESSION_NOT_FOUND``, whether it does not exist or is not for the caller.
        """
        header = self._header
        if header is None:
            raise auth_errors.session_not_found(context.address.key)
        if not policy.may_see_session(context.principal, header.project_id):
            raise auth_errors.denial(auth_errors.session_not_found(context.address.key))
        return header

    def _parent(self, message_id: int | None, context: Context) -> tuple[int, str] | None:
        """Return the id and the audience of the message that is answered.

        Raises:
            Refusal: ``PARENT_MESSAGE_NOT_FOUND``, whether it does not exist or is not for the caller.
        """
        if message_id is None:
            return None
        parent = log.find(context, policy.partitions(context.principal), message_id)
        if parent is None:
            refusal = auth_errors.parent_not_found(message_id)
            is_there = log.find(context, self._counters.all_partitions(), message_id) is not None
            raise auth_errors.denial(refusal) if is_there else refusal
        return message_id, parent.partition.audience

    def _check_content(self, content: str) -> None:
        if len(content) > self.content_limit:
            raise auth_errors.too_long("content", len(content), self.content_limit)
        if MOST_UTF8_BYTES * len(content) > MAX_VALUE_BYTES:
            size = len(content.encode())
            if size > MAX_VALUE_BYTES:
                raise auth_errors.too_large("content", size)

    def _append(self, context: Context, partition: Partition, message: StoredMessage) -> int:
        """Stage a message at the end of the log; return its id."""
        header = self._header
        assert header is not None, "who appends has seen the session"
        last_id = self._counters.last_id
        message_id, self._ahead = records.next_id(last_id, self._ahead, context.now, context.random)
        context.put(message_key(partition, message_id), message)
        self._counters.record(context, partition, message_id, message)
        self._finder.note_added(context)
        self._move(context, partition.audience, messages=1, others=int(not message.is_talk))
        if self._ahead > header.ahead:
            self._header = msgspec.structs.replace(header, ahead=max(2 * self._ahead, AHEAD_AT_LEAST))
            context.put(HEADER, self._header)
        if header.naming is not None and header.naming.left and partition.audience == PUBLIC:
            self._take_name(header.naming, message, context)
        return message_id

    def _take_name(self, naming: Naming, message: StoredMessage, context: Context) -> None:
        """Stage what a message that everybody may read makes of the session's name."""
        assert self._header is not None, "it is appended to"
        named = naming_of.renamed(self._header, naming, message)
        if named is not None:
            context.put(HEADER, named)
            if named.purpose != self._header.purpose:
                directory.put_base(context, named)
            self._header = named

    def _append_event(
        self, context: Context, partition: Partition, event: events.AppendEvent, message: StoredMessage
    ) -> int:
        """Stage an event at the end of the log; return its message id."""
        message_id = self._append(context, partition, message)
        context.put(session_events.event_key(partition, event.event_id), message_id)
        put_parts(context, partition, message_id, event.whole)
        return message_id

    def _change(self, context: Context, header: Header) -> None:
        """Stage a changed header and what listings show of it; every reader sees this activity."""
        context.put(HEADER, header)
        directory.put_base(context, header)
        self._header = header
        self._move(context, PUBLIC, messages=0)

    def _move(self, context: Context, audience: str, *, messages: int, others: int = 0) -> None:
        """Note and publish an activity that ``audience`` sees; a clock that jumped back makes none older."""
        old = self._activity.get(audience)
        if old is None:
            new = ActivityRow(context.now, messages, others)
        else:
            new = ActivityRow(max(old.at, context.now), old.messages + messages, old.others + others)
        directory.move(context, audience, old, new)
        self._activity[audience] = new
        self._tell_of(context, audience)

    def _tell_of(self, context: Context, audience: str) -> None:
        """Publish that there is something new for ``audience``."""
        assert self._header is not None, "an activity is a session's"
        label = policy.ChangeLabel(audience, self._header.project_id)
        context.publish(session_uri(context.address.key), label)

    def _read(self, context: Context, header: Header) -> Slices[replies.SessionRead]:
        partitions = policy.partitions(context.principal)
        messages, cursor = yield from reads.newest(context, context.address.key, partitions)
        session = yield from reads.session(context, header, self._counters.talk(partitions))
        statistics = self._statistics(context.principal, partitions)
        return replies.SessionRead(
            session=session,
            messages=messages,
            statistics=statistics,
            has_more=cursor is not None,
            cursor=cursor,
        )

    def _statistics(self, principal: Principal, partitions: Sequence[Partition]) -> replies.SessionStatistics:
        seen = [
            self._activity[audience].at
            for audience in policy.audiences(principal)
            if audience in self._activity
        ]
        return replies.SessionStatistics(
            message_count=self._counters.count(partitions),
            unique_agents=self._counters.senders(partitions),
            last_activity=to_datetime(max(seen)),
        )


def _record_search(context: Context, action: str, found: int, **details: Any) -> None:
    """Buffer the audit record of a search."""
    audit_record.record_read(context, context.principal, action, context.address.key, found=found, **details)
