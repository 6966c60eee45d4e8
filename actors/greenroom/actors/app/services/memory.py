"""Memories for an embedding program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from greenroom.actors.app.administration.index_verification import AllNamespaces
from greenroom.actors.app.services.base import (
    Askable,
    ServiceError,
    ServiceResult,
    from_json,
    plain,
    service_errors,
    to_json,
)
from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.auth.namespaces import is_below, memory_address, owner_of, root_of
from greenroom.actors.core.auth.principal import Principal, check_principal
from greenroom.actors.core.replies.memory_types import MAX_CHANGES, MemoryKind
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.memories.requests import requests
from greenroom.actors.memories.requests.replies import MemoryView, VersionView
from greenroom.actors.memories.storage.directory import ListNamespaces
from greenroom.runtime import Message

R = TypeVar("R")
T = TypeVar("T")

APP = "app"
PAGE = 200


class Memory(ServiceResult):
    """One version of a memory.

    Attributes:
        id: The number of this version, unique below the namespace's root.
        memory_id: The UUID of the memory, the same for all its versions.
        value: The stored value; a text stored by another tool is ``{"content": …}``.
        version: Counts from 1.
        created_by: The author of the first version.
        updated_by: The author of this version.
        created_at: The time of the first version.
        updated_at: The time of this version.
        expires_at: None for never.
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


class MemoryVersion(ServiceResult):
    """An entry of a memory's history: author, version, time and task.

    Attributes:
        id: As in `Memory`.
        memory_id: As in `Memory`; a key that was deleted and reused has several.
        version: Counts from 1 for each memory.
        deleted_at: None if the memory was not deleted.
    """

    id: int
    memory_id: str
    version: int
    author: str | None
    stored_at: datetime
    task_id: str | None
    deleted_at: datetime | None


class ListedMemories(ServiceResult):
    """A page of memories.

    Attributes:
        next_cursor: The cursor of the next page; None after the last.
    """

    memories: list[Memory]
    next_cursor: str | None


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """One of several changes of memories.

    Attributes:
        value: The new value, whether or not the memory exists; None removes it with its history.
        expires_in: Seconds until it expires, up to 100 years; None for never.
    """

    namespace: str
    key: str
    value: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None = None
    expires_in: float | None = None


class MemoryLease(msgspec.Struct, frozen=True, kw_only=True):
    """An extended expiry of a memory: ``expires_in`` seconds from now."""

    namespace: str
    key: str
    expires_in: float


class MemoryService:
    r"""Memories in namespaces, as Python objects: the same memories that the MCP tools show.

    A namespace is 2 to 8 segments joined by a colon. One that begins with ``user:`` or ``agent:`` belongs to
    that user or agent, and its memories are private; one with ``project:`` belongs to the project's members.
    All others are shared with the members of the writer's projects.

    A value is any JSON value of up to 1 MB, and comes back equal. Keys have 1-255 characters and none of ``/
    \ : * ? " < > |``. A change is executed whole or not at all, and is durable when the method returns. A
    refusal is a `ServiceError`, which is a ``ValueError``.

    Args:
        runtime: The runtime of `open_greenroom`, or a `Database`.
        principal: The identity of the service, which limits what it sees and writes. Without one it acts as
            the namespace's owner, or else as the agent ``app``, a member of every project: the program is
            responsible for its users.
    """

    def __init__(self, runtime: Askable, principal: Principal | None = None) -> None:
        self._runtime = runtime
        self._principal = None if principal is None else check_principal(principal)

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
        """Store a new memory; return the number of its first version.

        ``memory_type`` is ``semantic``, ``episodic`` or ``procedural``; ``task_id`` is for the audit record.

        Raises:
            ServiceError: The key is taken, or an argument breaks a rule.
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
        """Return the newest version of a memory, or ``version``; None if there is none."""
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
        """Store a memory's whole new value as the next version; return the version's number.

        Raises:
            ServiceError: The memory does not exist, an argument breaks a rule, or the memory is not at the
                ``expected_version`` (``VERSION_CONFLICT``, with ``current_version`` in the details).
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
        """Delete a memory but for its history; return whether it existed."""
        dropped = await self._ask(
            requests.DropMemory, namespace, key=key, deleted_by=deleted_by, task_id=task_id
        )
        return dropped.forgotten > 0

    async def purge_memory(self, namespace: str, key: str, deleted_by: str, task_id: str) -> bool:
        """Remove a key's memory, its history, and memories deleted before; return whether any existed."""
        given = {"key": key, "deleted_by": deleted_by, "task_id": task_id, "purge": True}
        first = dropped = await self._ask(requests.DropMemory, namespace, **given)
        while dropped.remaining:
            dropped = await self._ask(requests.DropMemory, namespace, **given)
        return first.forgotten > 0

    async def list_versions(self, namespace: str, key: str) -> list[MemoryVersion]:
        """Return all versions under a key, oldest first; deleted memories count, purged ones do not."""
        found: list[MemoryVersion] = []
        cursor: str | None = None
        while True:
            try:
                page = await self._ask(requests.ListVersions, namespace, key=key, limit=1_000, cursor=cursor)
            except ServiceError as error:
                if error.code == "MEMORY_NOT_FOUND":
                    return found
                raise
            found += [_version(view) for view in page.versions]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def search_memories(
        self, namespace_prefix: str, memory_type: str | None = None, limit: int = 50
    ) -> list[Memory]:
        """Return the memories at or below a namespace, most recent update first.

        The prefix has whole segments: ``user:al`` matches nothing of ``user:alice``.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            sentence = f"limit: it takes a whole number from 1 and got {limit!r}"
            raise ServiceError("VALIDATION_ERROR", sentence, field="limit")
        found: list[Memory] = []
        places = await self._places(
            namespace_prefix.removesuffix(":") if isinstance(namespace_prefix, str) else namespace_prefix
        )
        for place in places:
            found += await self._newest(place, memory_type, limit)
            if len(places) > 1:
                found.sort(key=lambda memory: memory.updated_at, reverse=True)
                del found[limit:]
        return found

    async def page_memories(
        self, namespace: str, limit: int = PAGE, cursor: str | None = None
    ) -> ListedMemories:
        """Return a page of 1-200 memories at or below a namespace, most recent update first.

        The namespace has at least two segments. A memory that is updated between two pages may be on none.
        """
        return await self._page(namespace, limit, cursor, superseded=True)

    async def list_namespaces(self, namespace: str) -> list[str]:
        """Return the namespaces with memories at or below ``namespace`` (two segments or more), sorted."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            listed = await self._ask(requests.ListSubNamespaces, namespace, cursor=cursor)
            found += listed.namespaces
            cursor = listed.next_cursor
            if cursor is None:
                return sorted(found)

    async def change_memories(self, changes: Sequence[MemoryChange]) -> None:
        """Store and remove up to 1,000 memories below one root, in order, all or nothing.

        Raises:
            ServiceError: A change breaks a rule, and nothing was changed; or there are several roots.
        """
        with service_errors():
            checked = [
                parse_request(requests.MemoryChange, _encode(msgspec.structs.asdict(each)))
                for each in changes
            ]
        for some in _parts(checked):
            await self._tell(requests.ChangeMemories(changes=some), [each.namespace for each in some])

    async def prolong_memories(self, leases: Sequence[MemoryLease]) -> None:
        """Extend the expiry of memories below one root; skip missing memories and unlimited ones.

        Raises:
            ServiceError: A lease breaks a rule, and nothing was changed; or there are several roots.
        """
        with service_errors():
            checked = [
                parse_request(requests.MemoryLease, _encode(msgspec.structs.asdict(each))) for each in leases
            ]
        for some in _parts(checked):
            await self._tell(requests.ProlongMemories(leases=some), [each.namespace for each in some])

    async def _newest(self, namespace: str, memory_type: str | None, limit: int) -> list[Memory]:
        found: list[Memory] = []
        cursor: str | None = None
        filters = {} if memory_type is None else {"kind": memory_type}
        while True:
            page = await self._page(
                namespace, min(PAGE, limit - len(found)), cursor, superseded=True, **filters
            )
            found += page.memories
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    async def _page(self, namespace: str, limit: int, cursor: str | None, **filters: Any) -> ListedMemories:
        page = await self._ask(requests.ListMemories, namespace, filters=filters, limit=limit, cursor=cursor)
        found: list[Memory] = []
        for view in page.memories:
            memory = await self.get_memory(view.namespace, view.key) if view.withheld else _memory(view)
            if memory is not None:
                found.append(memory)
        return ListedMemories(memories=found, next_cursor=page.next_cursor)

    async def _places(self, prefix: str) -> list[str]:
        """Return the prefixes to query: the prefix itself, or all roots that begin with it."""
        if not isinstance(prefix, str) or ":" in prefix:
            return [prefix]
        with service_errors():
            asked = parse_request(ListNamespaces, to_json({"prefix": prefix}))
        if self._principal is not None:
            return sorted(await self._runtime.query(asked, principal=self._principal))
        everything = await self._runtime.query(AllNamespaces())
        return sorted(root for root in everything if is_below(root, prefix))

    async def _ask(self, request_type: type[Message[R]], namespace: str, **arguments: Any) -> R:
        """Check the arguments by the tools' rules, and ask the owner of the namespace."""
        with service_errors():
            request = parse_request(request_type, _encode({"namespace": namespace, **arguments}))
            return await self._runtime.ask(
                memory_address(namespace), request, principal=self._asker(namespace)
            )

    async def _tell(self, request: Message[None], namespaces: list[str]) -> None:
        roots = sorted({root_of(namespace) for namespace in namespaces})
        with service_errors():
            if len(roots) > 1:
                raise invalid(
                    "namespace",
                    f"namespace: they are below {roots[0]!r} and {roots[1]!r}; use one root per call",
                )
            await self._runtime.ask(memory_address(roots[0]), request, principal=self._asker(roots[0]))

    def _asker(self, namespace: str) -> Principal:
        return self._principal or owner_of(namespace, Principal(agent_id=APP))


def _encode(arguments: Mapping[str, Any]) -> bytes:
    return to_json({name: plain(value) for name, value in arguments.items() if value is not None})


def _parts(checked: list[T]) -> Iterator[list[T]]:
    """Yield parts that fit into one commit each."""
    for first in range(0, len(checked), MAX_CHANGES):
        yield checked[first : first + MAX_CHANGES]


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


def _version(view: VersionView) -> MemoryVersion:
    return MemoryVersion(
        id=view.id,
        memory_id=view.memory_id,
        version=view.version,
        author=view.author,
        stored_at=view.stored_at,
        task_id=view.task_id,
        deleted_at=view.deleted_at,
    )
