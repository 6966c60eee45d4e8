"""The kit's memories as memories of Greenroom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import UNSET

from greenroom.actors import (
    Database,
    MemorySearch,
    MemoryService,
    Principal,
    ServiceError,
    StoreMemory,
    parse_request,
)
from greenroom.actors.app.services.base import from_json, to_json
from greenroom.actors.core.auth.namespaces import memory_address, segment
from greenroom.actors.memories.recall.replies import MemoryHit
from greenroom.adapters.base.extras import needs
from greenroom.adapters.google_adk import names
from greenroom.adapters.google_adk.events import text_of, texts_in, time_of
from greenroom.runtime import Refusal

with needs("google-adk"):
    from google.adk.events.event import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.platform import uuid
    from google.adk.sessions import Session
    from google.genai import types
    from pydantic_core import to_jsonable_python

MOST_FOUND: Final = 10
_LONGEST_QUERY: Final = 10_000
_LONGEST_AUTHOR: Final = 128
_ENTRY: Final = "adk"
"""The member of a memory's metadata that holds the kit's entry without the text."""


class GreenroomMemoryService(BaseMemoryService):
    """Memories of the kit in a `Database`, private to their user.

    Each event with text becomes one memory of its texts, without thoughts, calls and files. Its namespace is
    ``user:<user>:adk:<program>``, where agents of the same user find it with the server's tools. A deleted
    memory is not stored again with its session.

    Args:
        database: The open database.
        agent_id: The agent that the service acts as, 1-100 of ``A-Za-z0-9_.-``.
    """

    def __init__(self, database: Database, agent_id: str = "adk") -> None:
        self._database = database
        self._agent_id = agent_id

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the texts of a session; events that were added before are skipped.

        Raises:
            ServiceError: an event has more than 1 MB, or the user's name more than 128 characters.
        """
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,  # noqa: ARG002  the kit passes it
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store the texts of events; events whose ids were added before are skipped."""
        for event in events:
            if event.content is not None and not event.partial:
                at = time_of(event)
                entry = MemoryEntry(
                    id=event.id,
                    content=event.content,
                    author=event.author,
                    timestamp=None if at is None else at.isoformat(),
                    custom_metadata=dict(custom_metadata or {}),
                )
                await self._keep(app_name, user_id, entry)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories unchanged; a memory with an existing id is skipped."""
        for memory in memories:
            both = {**(custom_metadata or {}), **memory.custom_metadata}
            entry = memory.model_copy(update={"id": memory.id or uuid.new_uuid(), "custom_metadata": both})
            await self._keep(app_name, user_id, entry)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the user's ten best relevant memories of the program, best first.

        Only the first 10,000 characters of the query count.
        """
        if not query.strip():
            return SearchMemoryResponse()
        namespace = names.memory_namespace(app_name, user_id)
        arguments = {"query": query[:_LONGEST_QUERY], "namespace": namespace, "limit": MOST_FOUND}
        try:
            search = parse_request(MemorySearch, to_json(arguments))
            found = await self._database.query(search, principal=self._principal(user_id))
        except Refusal as refusal:
            raise ServiceError.of(refusal) from None
        entries = [await self._entry(user_id, hit) for hit in found.memories]
        return SearchMemoryResponse(memories=[entry for entry in entries if entry is not None])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory by its id from `search_memory`; its session does not restore it."""
        if memory_id:
            namespace = names.memory_namespace(app_name, user_id)
            key = segment(memory_id)
            await self._memories(user_id).delete_memory(namespace, key, self._agent_id, self._agent_id)

    async def _keep(self, app_name: str, user_id: str, entry: MemoryEntry) -> None:
        """Store a memory, unless it exists or has existed before."""
        text = text_of(entry.content)
        if not text.strip():
            return
        namespace, key = names.memory_namespace(app_name, user_id), segment(entry.id or "")
        if await self._memories(user_id).list_versions(namespace, key):
            return
        author = (entry.author or self._agent_id)[:_LONGEST_AUTHOR]
        given = {
            "namespace": namespace,
            "key": key,
            "content": text,
            "kind": "episodic",
            "author": author,
            "metadata": {_ENTRY: _describe(entry)},
            "expected_version": 0,
        }
        try:
            request = parse_request(StoreMemory, to_json(given))
            await self._database.ask(memory_address(namespace), request, principal=self._principal(user_id))
        except Refusal as refusal:
            if refusal.code != "VERSION_CONFLICT":  # a conflict: another call has just added it
                raise ServiceError.of(refusal) from None

    async def _entry(self, user_id: str, hit: MemoryHit) -> MemoryEntry | None:
        """Return a hit as the kit's entry; None if it was deleted since."""
        if hit.content is not UNSET:
            text = hit.content
        elif hit.value is not UNSET:
            text = _json(from_json(hit.value))
        else:
            whole = await self._memories(user_id).get_memory(hit.namespace, hit.key)
            if whole is None:
                return None
            text = _content_of(whole.value)
        metadata = {} if hit.metadata is UNSET else from_json(hit.metadata)
        entry = _restore(text, metadata.get(_ENTRY))
        if entry is not None:
            return entry
        content = types.Content(parts=[types.Part(text=text)])
        return MemoryEntry(
            content=content, id=hit.key, author=hit.author, timestamp=hit.created_at.isoformat()
        )

    def _memories(self, user_id: str) -> MemoryService:
        return MemoryService(self._database, self._principal(user_id))

    def _principal(self, user_id: str) -> Principal:
        return Principal(agent_id=self._agent_id, user=user_id)


def _describe(entry: MemoryEntry) -> dict[str, Any]:
    """Return the fields of an entry besides its text, for `_restore`."""
    described: dict[str, Any] = to_jsonable_python(
        entry, exclude={"content"}, exclude_none=True, inf_nan_mode="null", serialize_unknown=True
    )
    if entry.content.role is not None:
        described["role"] = entry.content.role
    texts = texts_in(entry.content)
    if len(texts) > 1:
        described["lengths"] = [len(text) for text in texts]
    return described


def _restore(text: str, described: Any) -> MemoryEntry | None:
    """Return the entry of a text and its fields; None if another agent stored it."""
    if not isinstance(described, dict) or "id" not in described:
        return None
    more = dict(described)
    try:
        content = types.Content(role=more.pop("role", None), parts=_parts(text, more.pop("lengths", None)))
        return MemoryEntry(content=content, **more)
    except (TypeError, ValueError):  # the metadata may contain anything
        return None


def _content_of(value: Any) -> str:
    """Return the text of a memory that was read whole."""
    content = value.get("content") if isinstance(value, dict) else None
    return content if isinstance(content, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parts(text: str, lengths: list[int] | None) -> list[types.Part]:
    """Split a text into the parts that were joined with line ends."""
    if lengths is None:
        return [types.Part(text=text)]
    parts, at = [], 0
    for length in lengths:
        parts.append(types.Part(text=text[at : at + length]))
        at += length + 1
    return parts
