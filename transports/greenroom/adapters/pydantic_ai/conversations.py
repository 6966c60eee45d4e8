"""Conversations of Pydantic AI agents, kept in sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from greenroom.actors import Database, Event, ListSessions, Principal, ServiceError, SessionService
from greenroom.adapters.base.extras import needs
from greenroom.adapters.pydantic_ai.shown import as_event

with needs("pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter

KEPT: Final = "pydantic_ai"
"""The key of a session's state that has the record, and of an event's metadata that has the message."""
APP: Final = "pydantic-ai"
AFTER: Final = "pydantic_ai:after:"
"""Begins the id of the event that follows a revision, of which there can be one only."""
FIRST: Final = "none"
PAGE: Final = 200

_PLAIN_ID = re.compile(r"(?!pydantic-ai-)[A-Za-z0-9_.-]{1,128}")
_LONGEST_NAME = 128


class GreenroomConversations(ConversationStore):
    """A Pydantic AI `ConversationStore` that keeps each conversation in a Greenroom session.

    Each message is an event of the session, stored once: MCP clients read and search its text as that of
    any message, and ``load`` returns the message as it was. Whoever may see the session may load the conversation;
    ``scope`` of the methods is Pydantic AI's own, and the user whose the session is.

        conversation = await store.load(conversation_id) or Conversation(conversation_id=conversation_id)
        result = await agent.run(prompt, conversation=conversation)
        await store.save(result)

    A save is checked against what was loaded: of two that follow the same revision the second is a
    `ConversationConflict`. A conversation that was deleted neither loads nor lists, and its messages stay in
    the session, where forks still find them; `EraseUser` takes them away.

    Args:
        database: An open database.
        principal: In whose name sessions are made, read and written; the model is ``agent_id`` in them.
        project: The project of new sessions: only its members see them. None: they are everybody's.
    """

    def __init__(self, database: Database, principal: Principal, *, project: str | None = None) -> None:
        self._database = database
        self._principal = principal
        self._project = project
        self._sessions = SessionService(database, principal)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, None where there is none."""
        kept = await self._kept(session_of(conversation_id))
        return None if kept is None else kept.record

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return the records that the principal may see, or those of a scope, newest first."""
        found = [await self._kept(session) for session in await self._all_sessions()]
        records = [kept.record for kept in found if kept is not None and kept.record is not None]
        records = [record for record in records if scope in {None, record.scope}]
        return sorted(records, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and the messages that are new.

        Raises:
            ConversationConflict: another one came before.
            ServiceError: a message is too large or none of JSON's, or the session has ended.
        """
        session = session_of(record.conversation_id)
        kept = await self._kept(session)
        current = None if kept is None or kept.record is None else kept.record.revision
        if current != expected_revision:
            raise ConversationConflict(record.conversation_id)
        if record.head_id is not None and record.head_id not in {entry.id for entry in new_entries}:
            await self._check_head(record)
        if kept is None:
            await self._make_session(session, record)
        await self._append(
            record.conversation_id,
            [self._event(entry) for entry in new_entries],
            after=FIRST if kept is None else kept.revision,
            kept=_Kept(record.revision, record.forked_from, record),
        )

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation; its messages stay in the session.

        Raises:
            ConversationConflict: it is at another revision.
        """
        kept = await self._kept(session_of(conversation_id))
        if kept is None or kept.record is None or kept.revision != expected_revision:
            raise ConversationConflict(conversation_id)
        await self._append(
            conversation_id,
            [],
            after=expected_revision,
            kept=_Kept(f"deleted:{expected_revision}", kept.forked_from, None),
        )

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return the entry with this id.

        Raises:
            LookupError: there is none.
        """
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to one, oldest first, or only the last ``limit`` of them.

        Raises:
            LookupError: one of them is not there.
        """
        if head_id is None or limit == 0:
            return []
        session = head_id.session if isinstance(head_id, _Id) else await self._session_with(head_id)
        stored = await self._stored(session)
        line: list[_Stored] = []
        next_id: str | None = head_id
        while next_id is not None and (limit is None or len(line) < limit):
            while next_id not in stored:  # it is of the conversation from which this one was forked
                kept = None if session is None else await self._kept(session)
                if kept is None or kept.forked_from is None:
                    raise LookupError(f"there is no entry {next_id!r}")
                session = session_of(kept.forked_from)
                stored = await self._stored(session)
            line.append(stored[next_id])
            next_id = line[-1].parent
        return _entries(reversed(line))

    async def _check_head(self, record: ConversationRecord) -> None:
        try:
            await self.read_history(record.head_id, limit=1)
        except LookupError:
            raise ConversationConflict(record.conversation_id) from None

    async def _make_session(self, session: str, record: ConversationRecord) -> None:
        owner = self._principal.user or record.scope or self._principal.agent_id
        try:
            await self._sessions.create_session(session, APP, owner[:_LONGEST_NAME], self._project)
        except ServiceError as error:
            if error.code != "KEY_EXISTS":  # made by another writer, or by an MCP client
                raise

    async def _append(self, conversation_id: str, events: list[Event], *, after: str, kept: _Kept) -> None:
        """Append events, and the state with the last of them.

        That one's id is taken by the first who follows the revision ``after``, so a second one is refused.
        """
        session = session_of(conversation_id)
        if not events:
            actor = f"agent:{self._principal.agent_id}"
            events = [Event(event_type="action", actor=actor, content={KEPT: {"revision": kept.revision}})]
        *first, last = events
        last = msgspec.structs.replace(last, event_id=f"{AFTER}{after}")
        try:
            for event in first:
                await self._sessions.append_event(session, event)
            await self._sessions.append_event(session, last, {KEPT: _KEPT.dump_python(kept, mode="json")})
        except ServiceError as error:
            if error.code == "IDEMPOTENCY_CONFLICT":
                raise ConversationConflict(conversation_id) from error
            raise

    def _event(self, entry: ConversationEntry) -> Event:
        [message] = msgspec.json.decode(ModelMessagesTypeAdapter.dump_json([entry.message]))
        shown = as_event(entry.message, self._principal.agent_id)
        metadata = {KEPT: {"id": entry.id, "parent": entry.parent_id, "message": message}}
        return msgspec.structs.replace(
            shown, event_id=entry.id, content={**shown.content, "metadata": metadata}
        )

    async def _kept(self, session: str) -> _Kept | None:
        """Return what a session's state says of its conversation."""
        state = await self._sessions.get_state(session, KEPT)
        if state is None:
            return None
        kept = _KEPT.validate_python(state)
        if kept.record is not None:
            record = kept.record
            record.head_id = None if record.head_id is None else _Id.of(record.head_id, session)
            record.branches = [_Id.of(branch, session) for branch in record.branches]
        return kept

    async def _stored(self, session: str | None) -> dict[str, _Stored]:
        """Return the messages that are in a session, by the ids of their entries."""
        read = None if session is None else await self._sessions.get_session(session)
        found: dict[str, _Stored] = {}
        for event in [] if read is None else read.events:
            stored = _stored_in(event)
            if stored is not None:
                found.setdefault(stored.id, stored)
        return found

    async def _session_with(self, entry_id: str) -> str | None:
        """Return the session that has an entry of which only the id is known, by looking at all."""
        for session in await self._all_sessions():
            if await self._kept(session) is not None and entry_id in await self._stored(session):
                return session
        return None

    async def _all_sessions(self) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await self._database.query(
                ListSessions(cursor=cursor, limit=PAGE), principal=self._principal
            )
            found += [session.session_id for session in page.sessions]
            cursor = page.next_cursor
            if cursor is None:
                return found


def session_of(conversation_id: str) -> str:
    """Return the id of the session that has a conversation: the same where that is one, else its digest."""
    if _PLAIN_ID.fullmatch(conversation_id):
        return conversation_id
    return (
        f"pydantic-ai-{blake2b(conversation_id.encode(errors='surrogatepass'), digest_size=32).hexdigest()}"
    )


@dataclass(frozen=True)
class _Kept:
    """What a session's state says of its conversation: ``record`` is None once it was deleted."""

    revision: str
    forked_from: str | None
    record: ConversationRecord | None


_KEPT: Final[TypeAdapter[_Kept]] = TypeAdapter(_Kept)


class _Stored(NamedTuple):
    """An entry as it lies in a session: its message is what `ModelMessagesTypeAdapter` makes of it."""

    id: str
    parent: str | None
    message: Any


class _Id(str):
    """The id of an entry, which knows the session where its history begins to be looked for."""

    __slots__ = ("session",)
    session: str

    @classmethod
    def of(cls, entry_id: str, session: str) -> _Id:
        made = cls(entry_id)
        made.session = session
        return made


def _stored_in(event: Event) -> _Stored | None:
    """Return the entry that an event is; None for what others wrote, whose events have no ids of ours."""
    metadata = event.content.get("metadata")
    kept = metadata.get(KEPT) if isinstance(metadata, dict) else None
    if not isinstance(kept, dict) or not (
        event.event_id == kept.get("id") or event.event_id.startswith(AFTER)
    ):
        return None
    return _Stored(kept["id"], kept["parent"], kept["message"])


def _entries(line: Iterable[_Stored]) -> list[ConversationEntry]:
    stored = list(line)
    messages = ModelMessagesTypeAdapter.validate_json(msgspec.json.encode([each.message for each in stored]))
    return [
        ConversationEntry(id=each.id, parent_id=each.parent, message=message)
        for each, message in zip(stored, messages, strict=True)
    ]
