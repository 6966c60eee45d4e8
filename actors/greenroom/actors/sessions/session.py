"""The in-memory state of a session, and the effects that most handlers stage."""

from __future__ import annotations

import msgspec

from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.policy import PUBLIC
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.replies.damage import with_damage
from greenroom.actors.core.resources.resource_uris import session_uri
from greenroom.actors.core.validation.types import CLOSED, SessionStatus
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.actors.sessions.search.message_search import MessageSearch
from greenroom.actors.sessions.storage import directory
from greenroom.actors.sessions.storage.directory import ActivityRow
from greenroom.actors.sessions.storage.message_log import SenderCounters
from greenroom.actors.sessions.storage.records import HEADER, Header, names_in, visible_status
from greenroom.actors.sessions.storage.work_context import SessionWorkContext
from greenroom.runtime import Actor, Context

BASE_BYTES = 4_000  # memory of an instance without messages
SHORTENED_BYTES = 900  # memory of one shortened text, roughly


class Session(Actor):
    """One session; a session that does not exist replies like a forbidden session.

    Attributes:
        header: The header record; None until the session is created.
        ahead: How far message ids run ahead of the clock, in units; see `records.next_id`.
        activity: The activity that each audience sees, as in the directory.
        shortened: Shortened messages by id, from the last read of the conversation resource.
    """

    kind = "session"
    names = staticmethod(names_in)
    name_damage = staticmethod(with_damage)

    def activate(self, context: Context) -> None:
        """Load the header and the counters; the rest stays on disk until needed."""
        self.content_limit: int = context.settings.content_limit
        self.tiers: TierSizes = context.settings.tiers
        self.header = context.get(HEADER, Header)
        self.ahead = 0
        self.counters = SenderCounters()
        self.counters.load(context)
        self.activity = {
            audience: ActivityRow(*activity) for audience, activity in self.counters.audiences().items()
        }
        if self.header is not None:
            public = self.activity.get(PUBLIC, ActivityRow(0, 0))
            at = max(public.at, self.header.updated_at)
            self.activity[PUBLIC] = msgspec.structs.replace(public, at=at)
        self.message_search = MessageSearch(self.counters)
        self.work_context = SessionWorkContext()
        self.shortened: dict[int, str] = {}

    def resident_bytes(self) -> int:
        """Return an estimate of the memory in use."""
        return (
            BASE_BYTES
            + self.counters.resident_bytes()
            + self.message_search.resident_bytes()
            + self.work_context.resident_bytes()
            + SHORTENED_BYTES * len(self.shortened)
        )

    def require_visible(self, context: Context) -> Header:
        """Return the header, or refuse a caller who may not see the session."""
        header = self.header
        if header is None:
            raise auth_errors.session_not_found(context.address.key)
        if not policy.may_see_session(context.principal, header.project_id):
            raise auth_errors.denial(auth_errors.session_not_found(context.address.key))
        return header

    def require_writable(self, context: Context) -> Header:
        """Return the header of a session that is open for writes, or refuse."""
        header = self.require_visible(context)
        if header.status in CLOSED:
            raise auth_errors.session_closed(context.address.key, header.status)
        return header

    def status(self, header: Header, context: Context) -> SessionStatus:
        """Return the status of this header for the sender."""
        return visible_status(header.status, self.counters.count_talk(policy.partitions(context.principal)))

    def count_readable(self, context: Context) -> int:
        """Return the number of messages that the sender may read."""
        return self.counters.count(policy.partitions(context.principal))

    def last_activity(self, principal: Principal) -> int:
        """Return the latest activity that ``principal`` sees (microseconds since 1970)."""
        audiences = policy.audiences(principal)
        return max(self.activity[audience].at for audience in audiences if audience in self.activity)

    def put_header(self, context: Context, header: Header) -> None:
        """Stage a changed header and its listing row; this is an activity for all readers."""
        context.put(HEADER, header)
        directory.put_base(context, header)
        self.header = header
        self.record_activity(context, PUBLIC, messages=0)

    def record_activity(self, context: Context, audience: str, *, messages: int, others: int = 0) -> None:
        """Stage and publish an activity for ``audience``; its time never decreases."""
        old = self.activity.get(audience)
        if old is None:
            new = ActivityRow(context.now, messages, others)
        else:
            new = ActivityRow(max(old.at, context.now), old.messages + messages, old.others + others)
        directory.move(context, audience, old, new)
        self.activity[audience] = new
        self.publish(context, audience)

    def publish(self, context: Context, audience: str) -> None:
        """Publish a change for ``audience``."""
        assert self.header is not None, "an activity is a session's"
        label = policy.ChangeLabel(audience, self.header.project_id)
        context.publish(session_uri(context.address.key), label)
