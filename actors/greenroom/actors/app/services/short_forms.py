"""Store and search texts for a user or a project: `Database.remember` and `Database.search`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from greenroom.actors.app.services.base import Askable, ServiceResult, service_errors, to_json
from greenroom.actors.app.services.memory import APP
from greenroom.actors.app.services.search import MemoryMatch, SearchService
from greenroom.actors.core.auth.errors import invalid
from greenroom.actors.core.auth.namespaces import AGENT, PROJECT, USER, memory_address, segment
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.validation.parse import parse_request
from greenroom.actors.memories.requests.requests import StoreMemory


class StoredMemory(ServiceResult):
    """The result of storing a text.

    Attributes:
        key: Its key; generated if none was given.
        created: Whether it is a new memory, not a new version.
    """

    id: str
    key: str
    namespace: str
    version: int
    created: bool
    stored_at: datetime


async def store_text(
    runtime: Askable,
    content: str,
    user: str | None,
    project: str | None,
    key: str | None,
    tags: Sequence[str],
) -> StoredMemory:
    """Store a text, as `Database.remember` describes."""
    with service_errors():
        namespace = find_namespace(user, project)
        given = {"content": content, "namespace": namespace, "tags": _to_list(tags)}
        request = parse_request(StoreMemory, to_json(given if key is None else {**given, "key": key}))
        saved = await runtime.ask(memory_address(namespace), request, principal=_principal(user))
    return StoredMemory(
        id=saved.memory_id,
        key=saved.key,
        namespace=saved.namespace,
        version=saved.version,
        created=saved.created,
        stored_at=saved.stored_at,
    )


async def find_texts(
    runtime: Askable, query: str, user: str | None, project: str | None, tags: Sequence[str], limit: int
) -> list[MemoryMatch]:
    """Search what `store_text` stored for the same user and project, as `Database.search` describes."""
    with service_errors():
        namespace, principal = find_namespace(user, project), _principal(user)
    found = await SearchService(runtime, principal).search_memories(
        query, namespace=namespace, tags=_to_list(tags) or None, limit=limit
    )
    return found.memories


def find_namespace(user: str | None, project: str | None) -> str:
    """Return the namespace of texts for a user, a project or both."""
    named = [(name, given) for name, given in (("user", user), ("project", project)) if given is not None]
    segments = [_segment(name, given) for name, given in named]
    if user is None:
        return f"{PROJECT}{segments[0]}" if segments else f"{AGENT}{APP}"
    return USER + ":".join(segments)


def _segment(name: str, given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise invalid(name, f"{name}: it takes a text that is not empty and got {given!r:.80}")
    try:
        return segment(given)
    except UnicodeEncodeError as error:
        raise invalid(name, f"{name}: it holds a lone surrogate at character {error.start}") from None


def _principal(user: str | None) -> Principal:
    return Principal(agent_id=APP, user=user)


def _to_list(tags: Any) -> Any:
    """Return tags in the form of JSON; a later check refuses invalid tags by name."""
    return list(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else tags
