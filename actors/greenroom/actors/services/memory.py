"""Memories for a program that embeds Greenroom."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from greenroom.actors.auth.namespaces import is_below, memory_address, owner_of
from greenroom.actors.auth.principal import Principal
from greenroom.actors.base.parse import parse_request
from greenroom.actors.memory.directory import ListNamespaces
from greenroom.actors.recall.index_verification import AllNamespaces
from greenroom.actors.schemas import memories as requests
from greenroom.actors.schemas.memory_replies import MemoryView
from greenroom.actors.schemas.memory_types import MemoryKind
from greenroom.actors.services.base import Askable, ServiceError, ServiceResult, from_json, plain, to_json
from greenroom.runtime import Message, Refusal

R = TypeVar("R")

APP = "app"
PAGE = 200


class Memory(ServiceResult, frozen=True, kw_only=True):
    """One version of a memory.

    Attributes:
        id: The number of this version, unique below the namespace's root.
        memory_id: The UUID of the memory, the same for all its versions.
        namespace: Where it is.
        key: Its key.
        value: What was stored; a text that another tool stored comes as ``{"content": …}``.
        memory_type: What kind of memory it is.
        metadata: A dictionary of what JSON can hold.
        version: Counts from 1.
        created_by: Who wrote the first version.
        updated_by: Who wrote this one.
        created_at: When the first version was written.
        updated_at: When this one was written.
        expires_at: When it ends, None for never.
    """

    id: int
    memory_id: str
    namespace: str
    key: str
    value: Any
    memory_type: MemoryKind
    metadata: dict[str, Any]
    version: int
    created_by: str | None
    updated_by: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None


class MemoryVersion(ServiceResult, frozen=True, kw_only=True):
    """One entry of a memory's history: who wrote which version when, and for which task.

    Attributes:
        id: As in `Memory`.
        memory_id: As in `Memory`. A key that was deleted and taken anew has versions of several.
        version: Counts from 1 for each memory.
        author: Who wrote it.
        stored_at: When.
        task_id: For which task.
        deleted_at: When the memory was deleted, None for one that is there.
    """

    id: int
    memory_id: str
    version: int
    author: str | None
    stored_at: datetime
    task_id: str | None
    deleted_at: datetime | None


class MemoryService:
    r"""Memories in namespaces, in Python objects: the same memories that the MCP tools show.

    A namespace is 2 to 8 segments joined by a colon, such as ``user:alice:preferences``. One that begins
    with ``user:`` or ``agent:`` belongs to that user or agent alone, one with ``project:`` to the
    project's members. Memories in the first two are private, all others are shared with the members
    of the writer's projects.

    A value holds what JSON can hold, up to 1 MB, and comes back equal; dictionaries have text keys.
    Keys have 1-255 characters and none of ``/ \ : * ? " < > |``. A change is carried out whole or not at
    all, and is on disk when the method returns. A "no" is a `ServiceError`, which is a ``ValueError``.

    Args:
        runtime: What `open_greenroom` opened, or a `Database`.
        principal: In whose name the service asks; what this one may not see or write, the service
            does not either. Without one it asks in the name of whoever owns the namespace, and elsewhere
            as the agent ``app``, a member of every project: the program answers for its users.
    """

    def __init__(self, runtime: Askable, principal: Principal | None = None) -> None:
        self._runtime = runtime
        self._principal = principal

    async def add_memory(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        memory_type: str,
        created_by: str,
        task_id: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Store a new memory.

        Args:
            namespace: Where.
            key: Under which key.
            value: A dictionary.
            memory_type: ``semantic``, ``episodic`` or ``procedural``.
            created_by: Who writes it.
            task_id: For which task; it goes into the audit record.
            metadata: A dictionary.

        Returns:
            The number of its first version.

        Raises:
            ServiceError: the key is taken, or an argument breaks a rule.
        """
        saved = await self._ask(
            requests.AddMemory,
            namespace,
            key=key,
            value=plain(value),
            memory_type=memory_type,
            created_by=created_by,
            task_id=task_id,
            metadata={} if metadata is None else plain(metadata),
        )
        return saved.id

    async def get_memory(self, namespace: str, key: str, version: int | None = None) -> Memory | None:
        """Return the newest version of a memory, or an older one; None when there is no such.

        Raises:
            ServiceError: an argument breaks a rule.
        """
        try:
            shown = await self._ask(requests.ReadMemory, namespace, key=key, version=version)
        except ServiceError as error:
            if error.code == "MEMORY_NOT_FOUND":
                return None
            raise
        return _memory(shown.memory)

    async def update_memory(
        self,
        namespace: str,
        key: str,
        value: Mapping[str, Any],
        updated_by: str,
        task_id: str,
        *,
        expected_version: int | None = None,
    ) -> int:
        """Store the next version of a memory; older ones stay readable.

        Args:
            namespace: Where it is.
            key: Its key.
            value: The whole new value.
            updated_by: Who writes it.
            task_id: For which task; it goes into the audit record.
            expected_version: The version that this one is to follow. When another writer came before, it
                is a conflict (``VERSION_CONFLICT``, with ``current_version`` in the details).

        Returns:
            The number of the new version.

        Raises:
            ServiceError: there is no such memory, it is at another version, or an argument breaks a rule.
        """
        saved = await self._ask(
            requests.ReviseMemory,
            namespace,
            key=key,
            value=plain(value),
            updated_by=updated_by,
            task_id=task_id,
            expected_version=expected_version,
        )
        return saved.id

    async def delete_memory(self, namespace: str, key: str, deleted_by: str, task_id: str) -> bool:
        """Delete a memory: it is gone from reads and searches, and its history is kept until it is purged.

        Returns:
            Whether there was one.

        Raises:
            ServiceError: an argument breaks a rule.
        """
        dropped = await self._ask(
            requests.DropMemory, namespace, key=key, deleted_by=deleted_by, task_id=task_id
        )
        return dropped.forgotten > 0

    async def purge_memory(self, namespace: str, key: str, deleted_by: str, task_id: str) -> bool:
        """Remove a memory with its history, and what was deleted under its key before.

        Returns:
            Whether there was anything.

        Raises:
            ServiceError: an argument breaks a rule.
        """
        given = {"key": key, "deleted_by": deleted_by, "task_id": task_id, "purge": True}
        first = dropped = await self._ask(requests.DropMemory, namespace, **given)
        while dropped.remaining:
            dropped = await self._ask(requests.DropMemory, namespace, **given)
        return first.forgotten > 0

    async def list_versions(self, namespace: str, key: str) -> list[MemoryVersion]:
        """Return every version under a key that was not purged, oldest first, also of deleted memories.

        Raises:
            ServiceError: an argument breaks a rule.
        """
        found: list[MemoryVersion] = []
        cursor: str | None = None
        while True:
            try:
                page = await self._ask(requests.ListVersions, namespace, key=key, limit=1_000, cursor=cursor)
            except ServiceError as error:
                if error.code == "MEMORY_NOT_FOUND":
                    return found
                raise
            found += msgspec.convert(page.versions, list[MemoryVersion], from_attributes=True)
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def search_memories(
        self, namespace_prefix: str, memory_type: str | None = None, limit: int = 50
    ) -> list[Memory]:
        """Return the memories at or below a namespace, newest update first.

        Args:
            namespace_prefix: Whole segments: ``user:al`` finds nothing of ``user:alice``, and ``user``
                finds what lies in any user's namespace.
            memory_type: Only of this kind.
            limit: At most so many, from 1 on.

        Raises:
            ServiceError: an argument breaks a rule.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            sentence = f"limit: it takes a whole number from 1 and got {limit!r}"
            raise ServiceError("VALIDATION_ERROR", sentence, field="limit")
        found: list[Memory] = []
        places = await self._places(namespace_prefix)
        for place in places:
            found += await self._newest(place, memory_type, limit)
            if len(places) > 1:
                found.sort(key=lambda memory: memory.updated_at, reverse=True)
                del found[limit:]
        return found

    async def _newest(self, namespace: str, memory_type: str | None, limit: int) -> list[Memory]:
        filters = {"superseded": True, **({} if memory_type is None else {"kind": memory_type})}
        found: list[Memory] = []
        cursor: str | None = None
        while True:
            page = await self._ask(
                requests.ListMemories,
                namespace,
                filters=filters,
                limit=min(PAGE, limit - len(found)),
                cursor=cursor,
            )
            for view in page.memories:
                memory = await self.get_memory(view.namespace, view.key) if view.withheld else _memory(view)
                if memory is not None:
                    found.append(memory)
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    async def _places(self, prefix: str) -> list[str]:
        """Return what to ask about: the prefix itself, or all roots that begin with it alone."""
        if not isinstance(prefix, str) or ":" in prefix:
            return [prefix]
        try:
            asked = parse_request(ListNamespaces, to_json({"prefix": prefix}))
        except Refusal as refusal:
            raise ServiceError(refusal.code, refusal.sentence, **refusal.details) from None
        if self._principal is not None:
            return sorted(await self._runtime.query(asked, principal=self._principal))
        everything = await self._runtime.query(AllNamespaces())
        return sorted(root for root in everything if is_below(root, prefix))

    async def _ask(self, request_type: type[Message[R]], namespace: str, **arguments: Any) -> R:
        """Check the arguments as those of a tool, and ask the owner of the namespace.

        Raises:
            ServiceError: in the place of any `Refusal`.
        """
        try:
            given = {"namespace": namespace, **arguments}
            request = parse_request(
                request_type, to_json({name: value for name, value in given.items() if value is not None})
            )
            principal = self._principal or owner_of(namespace, Principal(agent_id=APP))
            return await self._runtime.ask(memory_address(namespace), request, principal=principal)
        except Refusal as refusal:
            raise ServiceError(refusal.code, refusal.sentence, **refusal.details) from None


def _memory(view: MemoryView) -> Memory:
    value = {"content": view.content} if view.value is UNSET else from_json(view.value)
    return Memory(
        id=view.id,
        memory_id=view.memory_id,
        namespace=view.namespace,
        key=view.key,
        value=value,
        memory_type=view.kind,
        metadata={} if view.metadata is UNSET else from_json(view.metadata),
        version=view.version,
        created_by=view.author,
        updated_by=view.updated_by,
        created_at=view.created_at,
        updated_at=view.updated_at,
        expires_at=view.expires_at,
    )
