"""A session as resources: with its newest messages, as a conversation in tiers, as what a client works in."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from greenroom.actors.core.audit import record as audit_record
from greenroom.actors.core.auth import errors as auth_errors
from greenroom.actors.core.auth import policy
from greenroom.actors.core.resources.resource_uris import (
    conversation_uri,
    is_of_conversation,
    is_of_current_session,
)
from greenroom.actors.schemas.conversations import ConversationResource, CurrentSessionResource
from greenroom.actors.schemas.resource_info import ResourceInfo
from greenroom.actors.schemas.resources import ReadResource, SessionResource
from greenroom.actors.sessions import conversation, reads
from greenroom.actors.sessions.conversation_tiers import TierSizes
from greenroom.actors.sessions.handover import HandoverSession
from greenroom.actors.sessions.storage.records import Header
from greenroom.runtime import Context, Slices, handles


class ReadableSession(HandoverSession):
    """A session that is read as a resource.

    Class attributes:
        tiers: How large the tiers of its conversation are.
    """

    tiers: ClassVar[TierSizes] = TierSizes()

    def activate(self, context: Context) -> None:
        """Load the session; what is shortened of its messages is made when it is wanted."""
        super().activate(context)
        self._shortened: dict[int, str] = {}

    def resident_bytes(self) -> int:
        """Return an estimate that has the shortened texts, too."""
        return super().resident_bytes() + conversation.COMPRESSED_BYTES * len(self._shortened)

    @handles(ReadResource)
    def resource(
        self, request: ReadResource, context: Context
    ) -> Slices[SessionResource | CurrentSessionResource | ConversationResource]:
        """Answer what the URI asks for."""
        header = self._header
        if header is None:
            raise auth_errors.resource_not_found(request.uri)
        if not policy.may_see_session(context.principal, header.project_id):
            raise auth_errors.denial(auth_errors.resource_not_found(request.uri))
        if is_of_conversation(request.uri):
            return self._conversation(request, context, header)
        if is_of_current_session(request.uri):
            return self._current(request, context, header)
        return self._whole(request, context, header)

    def _whole(self, request: ReadResource, context: Context, header: Header) -> Slices[SessionResource]:
        read = yield from self._read(context, header)
        audit_record.record_resource_read(context, messages=len(read.messages))
        return SessionResource(
            session=read.session,
            messages=read.messages,
            statistics=read.statistics,
            has_more=read.has_more,
            cursor=read.cursor,
            resource_info=_info(request, context, read.statistics.last_activity),
        )

    def _conversation(
        self, request: ReadResource, context: Context, header: Header
    ) -> Slices[ConversationResource]:
        partitions = policy.partitions(context.principal)
        tiers = yield from conversation.tiers_of(context, partitions, self.tiers, self._shortened)
        self._shortened = {each.message_id: each.text for each in tiers.compressed}
        counts = tiers.counts(self._counters.count(partitions))
        audit_record.record_resource_read(context, messages=counts.recent + counts.compressed + counts.lines)
        return ConversationResource(
            session_id=context.address.key,
            purpose=header.purpose,
            lines=tiers.lines,
            compressed=tiers.compressed,
            recent=tiers.recent,
            counts=counts,
            characters=tiers.characters,
            shown=tiers.shown,
            has_more=tiers.cursor is not None,
            cursor=tiers.cursor,
            resource_info=_info(
                request, context, self._statistics(context.principal, partitions).last_activity
            ),
        )

    def _current(
        self, request: ReadResource, context: Context, header: Header
    ) -> Slices[CurrentSessionResource]:
        partitions = policy.partitions(context.principal)
        session = yield from reads.session(context, header, self._counters.talk(partitions))
        statistics = self._statistics(context.principal, partitions)
        audit_record.record_resource_read(context, messages=0)
        return CurrentSessionResource(
            session=session,
            statistics=statistics,
            work=(yield from self._context_read(context, header, None)),
            conversation=conversation_uri(context.address.key),
            resource_info=_info(request, context, statistics.last_activity),
        )


def _info(request: ReadResource, context: Context, last_updated: datetime) -> ResourceInfo:
    return ResourceInfo(uri=request.uri, reader=context.principal.agent_id, last_updated=last_updated)
