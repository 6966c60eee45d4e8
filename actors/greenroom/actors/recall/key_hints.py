"""A key that is not where a tool looks first: whether another place is meant, or which call reaches it.

Pure functions of the request, of what the first look answered, and of where the key was found.

1. A read takes what the caller's agent or user has before what others share.
2. A change is carried out where exactly one namespace that the caller may write has the key.
3. Nothing is removed elsewhere: a removal that is repeated would go on to the next memory of that key.
4. What the caller may only read, and what `set_memory` bound to a session, is named and never taken.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors.auth import policy
from greenroom.actors.auth.namespaces import agent_namespace, user_namespace
from greenroom.actors.auth.principal import Principal
from greenroom.actors.recall.replies import PlacesFound
from greenroom.actors.schemas import keyvalue as memory
from greenroom.actors.schemas import memories
from greenroom.actors.schemas.memory_replies import KeyPlace
from greenroom.actors.schemas.replies import MemoryDeleted
from greenroom.runtime import Refusal

NAMED: Final = 20
"""Places that a refusal names."""
_READS: Final = frozenset({memory.GetMemory, memories.ListVersions})
_CHANGES: Final = frozenset({memories.UpdateMemory, memories.RateMemory})
_REMOVES: Final = frozenset({memory.DeleteMemory, memories.ForgetMemory})
_BY_KEY_ALONE: Final = frozenset({memory.GetMemory, memory.DeleteMemory})
_CHANGING: Final = frozenset({"update_memory", "delete_memory", "forget_memory"})
BY_KEY: Final = _READS | _CHANGES | _REMOVES
"""Requests that may name a memory by its key alone."""


def is_missed(request: Any, first: object) -> bool:
    """Return whether a request named a key alone, and what it was answered first says that there is none."""
    if isinstance(first, Refusal):
        return first.code == "MEMORY_NOT_FOUND" and request.key is not None and _namespace(request) is None
    return isinstance(first, MemoryDeleted) and not first.existed and request.session_id is None


def may_miss(request: object) -> bool:
    """Return whether a reply that is no refusal may say that a key is not there."""
    return isinstance(request, memory.DeleteMemory) and request.session_id is None


def other_namespace(request: Any, found: PlacesFound, principal: Principal) -> str | None:
    """Return the namespace in which a request is to be carried out instead; None: in no other."""
    kind = type(request)
    if kind in _REMOVES or _session(request) is not None or _is_there(request, found, principal):
        return None
    open_to_me = [
        place.namespace
        for place in found.places
        if place.session_id is None and policy.may_write_namespace(principal, place.namespace)
    ]
    if kind in _READS and open_to_me[:1] in ([agent_namespace(principal)], [user_namespace(principal)]):
        return open_to_me[0]
    if len(open_to_me) != 1 or (kind in _CHANGES and found.failed):
        return None
    return open_to_me[0]


def refusal(tool: str, request: Any, found: PlacesFound, principal: Principal) -> Refusal | None:
    """Return the refusal that says where a key lies; None when what was answered first is all there is."""
    if not found.places or _is_there(request, found, principal):
        return None
    lies = ", ".join(_call(tool, place, principal) for place in found.places[:NAMED])
    more = f" and {len(found.places) - NAMED:,} more" if len(found.places) > NAMED else ""
    where = _first_look(request, principal)
    places = msgspec.to_builtins(found.places[:NAMED])
    if type(request) in _BY_KEY_ALONE:
        places = [{name: place[name] for name in place if name != "memory_id"} for place in places]
    return Refusal(
        "MEMORY_NOT_FOUND",
        f"there is no memory {request.key!r} where {tool} looks, in {where!r}; it lies {lies}{more}",
        key=request.key,
        namespace=where,
        places=places,
    )


def other_namespaces(found: PlacesFound, taken: str) -> list[str]:
    """Return the namespaces besides the one taken in which a key lies."""
    return list(dict.fromkeys(place.namespace for place in found.places if place.namespace != taken))


def _call(tool: str, place: KeyPlace, principal: Principal) -> str:
    """Return where a memory lies, and which call reaches it."""
    own = place.namespace == agent_namespace(principal)
    where = f"in {place.namespace!r}"
    if place.session_id is not None:
        where = f"{where} for session {place.session_id!r}"
    if tool in _CHANGING and not policy.may_write_namespace(principal, place.namespace):
        return f"{where} (yours to read only)"
    if tool in {"get_memory", "delete_memory"} and own and place.session_id is not None:
        return f"{where} ({tool} with session_id {place.session_id!r})"
    if tool == "get_memory" and own:
        return f"{where} ({tool} without session_id)"
    if tool == "delete_memory":
        tool = "forget_memory"
    if place.session_id is not None:
        return f"{where} ({tool} with memory_id {place.memory_id!r} in place of key)"
    return f"{where} ({tool} with namespace {place.namespace!r})"


def _is_there(request: Any, found: PlacesFound, principal: Principal) -> bool:
    """Return whether the key lies where the request looked: it lacks something else then."""
    where, session_id = _first_look(request, principal), _session(request)
    return any(place.namespace == where and place.session_id == session_id for place in found.places)


def _first_look(request: Any, principal: Principal) -> str:
    if type(request) in _BY_KEY_ALONE:
        return agent_namespace(principal)
    return user_namespace(principal)


def _namespace(request: Any) -> str | None:
    return getattr(request, "namespace", None)


def _session(request: Any) -> str | None:
    return getattr(request, "session_id", None)
