"""Conversations of Pydantic AI agents, stored in sessions."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors import (
    Database,
    Event,
    GetSession,
    ListSessions,
    Principal,
    ServiceError,
    SessionService,
)
from greenroom.adapters.base.extras import needs
from greenroom.runtime import Address

with needs("pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        RetryFeedbackPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

logger = logging.getLogger(__name__)

MESSAGE: Final = "pydantic_ai"
"""The member of an event's metadata that holds the message; missing if a passport left it out."""
RECORD: Final = "pydantic_ai_record"
"""The member that holds the rest of the conversation's record; the newest one counts."""
APP: Final = "pydantic-ai"
PREFIX: Final = "pydantic_ai:"
"""The beginning of the ids of a conversation's events; MCP clients cannot choose such ids."""
ENTRY: Final = f"{PREFIX}entry:"
AFTER: Final = f"{PREFIX}after:"
"""The beginning of the id of the event after a revision; a revision has only one such event."""
FIRST: Final = "none"
PAGE: Final = 200
LONGEST: Final = 10_000
"""The default limit of a message's characters."""

_DIGEST_BYTES = 32
_PLAIN_ID = re.compile(r"(?!pydantic-ai-|(?:all|current)\Z)[A-Za-z0-9_.-]{1,128}")


class GreenroomConversations(ConversationStore):
    """A Pydantic AI `ConversationStore` with a Greenroom session for each conversation.

    Each message is an event of the session, stored once, which MCP clients read and search; ``load`` returns
    it unchanged. A save is one commit. Conversations of other users are never shown, whatever Pydantic AI's
    own ``scope`` is.

        conversation = await store.load(conversation_id) or Conversation(conversation_id=conversation_id)
        result = await agent.run(prompt, conversation=conversation)
        await store.save(result)

    A second save after the same revision raises `ConversationConflict`. A deleted conversation is neither
    loaded nor listed; its messages stay in the session, where forks find them, until `EraseUser`.

    Args:
        database: An open database.
        principal: The caller: sessions belong to its user; the model acts as its ``agent_id``.
        project_id: The project of new sessions, which only its members see; None for no project.
    """

    def __init__(self, database: Database, principal: Principal, *, project_id: str | None = None) -> None:
        self._database = database
        self._principal = principal
        self._project_id = project_id
        self._longest = LONGEST
        self._sessions = SessionService(database, principal)

    @staticmethod
    def session_of(conversation_id: str) -> str:
        """Return the id of a conversation's session: the conversation's id if valid, else a digest."""
        if _PLAIN_ID.fullmatch(conversation_id):
            return conversation_id
        name = conversation_id.encode(errors="surrogatepass")
        return f"{APP}-{blake2b(name, digest_size=_DIGEST_BYTES).hexdigest()}"

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, or None."""
        kept = await self._read_state(self.session_of(conversation_id))
        return None if kept is None or self._is_hidden(kept) else kept.record

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records of the principal's user, optionally of one scope, newest first."""
        found = [await self._read_state(session) for session in await self._own_sessions()]
        records = [kept.record for kept in found if kept and kept.record and not self._is_hidden(kept)]
        records = [record for record in records if scope in {None, record.scope}]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new messages.

        Raises:
            ConversationConflict: another save came first.
            ServiceError: a message is too large or has no JSON form, or the session has ended.
        """
        session = self.session_of(record.conversation_id)
        kept = await self._read_state(session)
        current = None if kept is None or kept.record is None else kept.record.revision
        if current != expected_revision or (kept is not None and self._is_hidden(kept)):
            raise ConversationConflict(record.conversation_id)
        if record.head_id is not None and record.head_id not in {entry.id for entry in new_entries}:
            try:
                await self.read_history(record.head_id, limit=1)
            except LookupError:
                raise ConversationConflict(record.conversation_id) from None
        if kept is None:
            await self._make_session(session)
        says = _Kept(self._principal.user, record.revision, record.forked_from, record)
        after = FIRST if kept is None else kept.revision
        while True:
            events = [self._event(entry) for entry in new_entries]
            try:
                await self._append(record.conversation_id, events, after=after, kept=says)
            except ServiceError as error:
                if not self._learns_limit(error):
                    raise
            else:
                return

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation; its messages stay in the session.

        Raises:
            ConversationConflict: it has another revision.
        """
        kept = await self._read_state(self.session_of(conversation_id))
        if kept is None or self._is_hidden(kept) or kept.revision != expected_revision:
            raise ConversationConflict(conversation_id)
        await self._append(
            conversation_id,
            [],
            after=expected_revision,
            kept=_Kept(kept.user, f"deleted:{expected_revision}", kept.forked_from, None),
        )

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return the entry with this id.

        Raises:
            LookupError: there is none, or a passport left its message out.
        """
        for entry in await self.read_history(entry_id, limit=1):
            if entry.id == entry_id:
                return entry
        raise LookupError(f"a passport left out the message of the entry {entry_id!r}")

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to ``head_id``, oldest first, or only the last ``limit`` of them.

        If a passport left an entry's message out, the entry is skipped with a warning.

        Raises:
            LookupError: an entry is missing.
        """
        if head_id is None or limit == 0:
            return []
        session = head_id.session if isinstance(head_id, _Id) else await self._session_with(head_id)
        stored = await self._stored(session, limit)
        line: list[_Stored] = []
        next_id: str | None = head_id
        while next_id is not None and (limit is None or len(line) < limit):
            while next_id not in stored:
                session, stored = await self._further(session, stored, next_id)
            found = stored[next_id]
            if found.message is None:
                logger.warning("the session %r came by a passport, which left a message out", session)
            else:
                line.append(found)
            next_id = found.parent
        line.reverse()
        raw = msgspec.json.encode([each.message for each in line])
        messages = ModelMessagesTypeAdapter.validate_json(raw)
        return [
            ConversationEntry(id=each.id, parent_id=each.parent, message=message)
            for each, message in zip(line, messages, strict=True)
        ]

    async def _make_session(self, session: str) -> None:
        """Make a session, unless another writer has made it meanwhile."""
        user = self._principal.user
        try:
            await self._sessions.create_session(session, APP, user, self._project_id)
        except ServiceError as error:
            if error.code != "KEY_EXISTS":
                raise
            request = GetSession(session_id=session)
            read = await self._database.ask(Address("session", session), request, principal=self._principal)
            if (read.session.app_name, read.session.user_id) != (APP, user):
                raise

    async def _append(self, conversation_id: str, events: list[Event], *, after: str, kept: _Kept) -> None:
        """Append events, all or none; the last event has the record.

        The id of the last event is unique for the revision ``after``, so a second save is refused.
        """
        *first, last = events or [
            Event(event_type="action", actor=f"agent:{self._principal.agent_id}", content={})
        ]
        says = _KEPT.dump_python(kept, mode="json")
        content = {**last.content, "metadata": {**last.content.get("metadata", {}), RECORD: says}}
        preview = last.shown
        if preview is not None:
            preview = {**preview, "metadata": {**preview["metadata"], RECORD: says}}
        last = Event(**{**last, "event_id": f"{AFTER}{after}", "content": content, "shown": preview})
        try:
            await self._sessions.append_events(self.session_of(conversation_id), [*first, last])
        except ServiceError as error:
            if error.code == "IDEMPOTENCY_CONFLICT":
                raise ConversationConflict(conversation_id) from error
            raise

    def _event(self, entry: ConversationEntry) -> Event:
        [message] = msgspec.json.decode(ModelMessagesTypeAdapter.dump_json([entry.message]))
        event = _as_event(entry.message, self._principal.agent_id, self._longest)
        place = {"id": entry.id, "parent": entry.parent_id}
        content = {**event.content, "metadata": {MESSAGE: {**place, "message": message}}}
        seen = {**event.content, "metadata": {MESSAGE: place}}
        return Event(**{**event, "event_id": f"{ENTRY}{entry.id}", "content": content, "shown": seen})

    def _learns_limit(self, error: ServiceError) -> bool:
        """Record a lower limit of messages from a refusal; return whether there was one."""
        limit = error.details.get("limit")
        if error.details.get("field") != "content" or not isinstance(limit, int) or limit >= self._longest:
            return False
        self._longest = limit
        return True

    def _is_hidden(self, kept: _Kept) -> bool:
        return kept.user != self._principal.user

    async def _read_state(self, session: str) -> _Kept | None:
        """Return the state of a conversation, from the newest event after a revision."""
        for event in await self._events(session, AFTER, 1):
            kept = _KEPT.validate_python(event.content["metadata"][RECORD])
            if kept.record is not None:
                record = kept.record
                record.head_id = None if record.head_id is None else _Id.of(record.head_id, session)
                record.branches = [_Id.of(branch, session) for branch in record.branches]
            return kept
        return None

    async def _stored(self, session: str | None, limit: int | None = None) -> dict[str, _Stored]:
        """Return the messages in a session, or in its newest events, by entry id."""
        events = [] if session is None else await self._events(session, PREFIX, limit)
        found = [event.content["metadata"].get(MESSAGE) for event in events]
        return {
            each["id"]: _Stored(each["id"], each["parent"], each.get("message")) for each in found if each
        }

    async def _further(
        self, session: str | None, stored: dict[str, _Stored], entry_id: str
    ) -> tuple[str, dict[str, _Stored]]:
        """Return the next place to search for an entry: the session, then its fork's source."""
        if session is not None:
            everything = await self._stored(session)
            if len(everything) > len(stored):
                return session, everything
            kept = await self._read_state(session)
            if kept is not None and kept.forked_from is not None:
                source = self.session_of(kept.forked_from)
                return source, await self._stored(source)
        raise LookupError(f"there is no entry {entry_id!r}")

    async def _events(self, session: str, prefix: str, limit: int | None) -> list[Event]:
        try:
            return await self._sessions.get_events(session, limit, prefix)
        except ServiceError as error:
            if error.code != "SESSION_NOT_FOUND":
                raise
            return []

    async def _session_with(self, entry_id: str) -> str | None:
        """Return the session with an entry, by its id alone; reads all sessions."""
        for session in await self._own_sessions():
            if entry_id in await self._stored(session):
                return session
        return None

    async def _own_sessions(self) -> list[str]:
        """Return the sessions with conversations of the principal's user."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            listing = ListSessions(cursor=cursor, limit=PAGE)
            page = await self._database.query(listing, principal=self._principal)
            found += [
                each.session_id
                for each in page.sessions
                if (each.app_name, each.user_id) == (APP, self._principal.user)
            ]
            cursor = page.next_cursor
            if cursor is None:
                return found


@dataclass(frozen=True)
class _Kept:
    """The state of a conversation and its user; ``record`` is None after deletion."""

    user: str | None
    revision: str
    forked_from: str | None
    record: ConversationRecord | None


_KEPT: Final[TypeAdapter[_Kept]] = TypeAdapter(_Kept)


class _Stored(NamedTuple):
    """An entry in a session.

    ``message`` is the output of `ModelMessagesTypeAdapter`; None if a passport left it out.
    """

    id: str
    parent: str | None
    message: Any


class _Id(str):
    """The id of an entry, with the session where the search for its history starts."""

    __slots__ = ("session",)
    session: str

    @classmethod
    def of(cls, entry_id: str, session: str) -> _Id:
        made = cls(entry_id)
        made.session = session
        return made


def _as_event(message: ModelMessage, agent_id: str, longest: int) -> Event:
    """Convert a message to an event for readers of the session."""
    texts = list(_texts(message))
    text = "\n".join(texts) or f"({', '.join(part.part_kind for part in message.parts) or message.kind})"
    has_text = any(isinstance(part, UserPromptPart | TextPart) for part in message.parts)
    from_user = isinstance(message, ModelRequest) and has_text
    return Event(
        event_type="message" if has_text else "tool_call",
        actor="user" if from_user else f"agent:{agent_id}",
        content={"text": text if len(text) <= longest else f"{text[: longest - 1]}…"},
    )


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        match part:
            case UserPromptPart(content=str(text)) | TextPart(content=text):
                yield text
            case UserPromptPart(content=contents):
                for content in contents:
                    yield content if isinstance(content, str) else f"({content.kind})"
            case ToolCallPart():
                yield f"{part.tool_name}({part.args_as_json_str()})"
            case ToolReturnPart():
                yield f"{part.tool_name}: {part.model_response_str()}"
            case RetryFeedbackPart(content=str(text)):
                yield text
            case _:
                pass
