"""Resolve a key that is not in the namespace where a tool looks first.

Pure functions decide, from the request, the first reply, and the namespaces that have the key:

1. A read prefers the memories of the caller's agent and user to shared ones.
2. A change is carried out if exactly one namespace that the caller may write has the key.
3. Nothing is removed elsewhere: a repeated removal would remove the next memory with that key.
4. A memory that the caller may only read, or that `set_memory` bound to a session, is named, but not used.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from greenroom.actors.core.auth import policy
from greenroom.actors.core.auth.namespaces import agent_namespace, memory_address, user_namespace
from greenroom.actors.core.auth.principal import Principal
from greenroom.actors.core.base.unicode_forms import same_text
from greenroom.actors.core.replies.replies import MemoryDeleted
from greenroom.actors.core.validation import types
from greenroom.actors.memories.reading.reads import NEAR_KEYS
from greenroom.actors.memories.recall.replies import PlacesFound
from greenroom.actors.memories.recall.scatter_gather import ask_each, roots_below
from greenroom.actors.memories.requests import keyvalue_requests, requests
from greenroom.actors.memories.requests.replies import KeyPlace
from greenroom.actors.memories.requests.requests import LocateKey
from greenroom.runtime import GreenroomError, Idempotency, Procedure, ProcedureContext, Refusal, RuntimeClient

NAMED: Final = 20
"""A refusal names at most this many places."""
_READS: Final = frozenset({keyvalue_requests.GetMemory, requests.ListVersions})
_CHANGES: Final = frozenset({requests.UpdateMemory, requests.RateMemory})
_REMOVES: Final = frozenset({keyvalue_requests.DeleteMemory, requests.ForgetMemory})
_BY_KEY_ALONE: Final = frozenset({keyvalue_requests.GetMemory, keyvalue_requests.DeleteMemory})
_CHANGING: Final = frozenset({"update_memory", "delete_memory", "forget_memory"})
BY_KEY: Final = _READS | _CHANGES | _REMOVES
"""Requests that may name a memory by its key alone."""
MISSES: Final = (Refusal, MemoryDeleted)
"""Types of first replies that can mean that the key is elsewhere."""


def is_missed(request: Any, first: object) -> bool:
    """Return whether the first reply says that the request's key is missing."""
    if isinstance(first, Refusal):
        return first.code == "MEMORY_NOT_FOUND" and request.key is not None
    return isinstance(first, MemoryDeleted) and not first.existed and may_miss(request)


def may_miss(request: object) -> bool:
    """Return whether a reply that is no refusal can mean that a key is missing."""
    if not isinstance(request, keyvalue_requests.DeleteMemory):
        return False
    return request.session_id is None and request.key is not None


def other_namespace(request: Any, found: PlacesFound, principal: Principal) -> str | None:
    """Return the other namespace in which to carry out a request, or None."""
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


def lies_elsewhere(tool: str, request: Any, found: PlacesFound, principal: Principal) -> Refusal | None:
    """Return the refusal that says where a key is; None if the first reply stands."""
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


def did_you_mean(first: Refusal | MemoryDeleted, keys: list[str]) -> Refusal | MemoryDeleted:
    """Add similar keys to the first reply."""
    if not keys:
        return first
    if isinstance(first, MemoryDeleted):
        return msgspec.structs.replace(first, did_you_mean=keys)
    wanted = first.details.get("memory", first.details.get("key"))
    meant = " or ".join(f"{key!a}" if same_text(key, wanted or key) else repr(key) for key in keys)
    hinted = Refusal(
        first.code, f"{first.sentence}; did you mean {meant}?", **first.details, did_you_mean=keys
    )
    hinted.is_denial = first.is_denial
    return hinted


def _call(tool: str, place: KeyPlace, principal: Principal) -> str:
    """Return a phrase that says where a memory is, and which call reaches it."""
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
    """Return whether the key is where the request looked; then something else is missing."""
    where, session_id = _first_look(request, principal), _session(request)
    return any(place.namespace == where and place.session_id == session_id for place in found.places)


def _first_look(request: Any, principal: Principal) -> str:
    if type(request) in _BY_KEY_ALONE:
        return agent_namespace(principal)
    return user_namespace(principal)


def _session(request: Any) -> str | None:
    return getattr(request, "session_id", None)


class PlacesOfKey(Procedure[PlacesFound], frozen=True, kw_only=True):
    """Find the visible namespaces that have a key; internal."""

    key: types.MemoryKey
    forgotten: bool = False

    async def run(self, context: ProcedureContext) -> PlacesFound:
        """Ask every root; return the caller's namespaces first, then the others by name."""
        roots = await roots_below(context, None)
        answers = await ask_each(context, roots, LocateKey(key=self.key, forgotten=self.forgotten))
        own = (agent_namespace(context.principal), user_namespace(context.principal))
        places = [place for each in answers.found for place in each.places]
        places.sort(
            key=lambda place: (
                own.index(place.namespace) if place.namespace in own else len(own),
                place.session_id is not None,
                place.namespace,
                place.session_id or "",
            )
        )
        return PlacesFound(places=places, failed=answers.failed)


class KeyResolver:
    """Resolve keys for one principal."""

    def __init__(self, runtime: RuntimeClient, principal: Principal, tools: dict[type[Any], str]) -> None:
        self._runtime = runtime
        self._principal = principal
        self._tools = tools

    async def answer(self, request: Any, idempotency: Idempotency | None, first: Any) -> Any:
        """Answer a request for a key that is not in the namespace where it looked.

        If a request names a namespace, no other namespace is searched.

        Args:
            request: The request.
            idempotency: The request's idempotency key.
            first: The first reply: a refusal, or a reply that there was nothing.

        Raises:
            Refusal: ``MEMORY_NOT_FOUND``: No namespace has the key, or the refusal names its places.
        """
        if getattr(request, "namespace", None) is not None:
            return await self._suggest(request, first)
        is_read = type(request) is keyvalue_requests.GetMemory
        if is_read and request.session_id is None and request.version is None:
            try:
                return await self._carry_out(request, user_namespace(self._principal), None)
            except Refusal as refusal:
                if refusal.code != "MEMORY_NOT_FOUND":
                    raise
        forgotten = type(request) is requests.ListVersions
        query = PlacesOfKey(key=request.key, forgotten=forgotten)
        found = await self._runtime.query(query, principal=self._principal)
        namespace = other_namespace(request, found, self._principal)
        if namespace is None:
            tool = self._tools[type(request)]
            named = lies_elsewhere(tool, request, found, self._principal)
            if named is not None:
                raise named
            if found.places:  # the key exists, so something else is missing
                if isinstance(first, Refusal):
                    raise first
                return first
            return await self._suggest(request, first)
        answer = await self._carry_out(request, namespace, idempotency)
        others = dict.fromkeys(place.namespace for place in found.places if place.namespace != namespace)
        if type(request) is keyvalue_requests.GetMemory and others:
            answer = msgspec.structs.replace(answer, also_in=list(others))
        return answer

    async def _suggest(self, request: Any, first: Refusal | MemoryDeleted) -> MemoryDeleted:
        """Return or raise the first reply, with keys similar to the missing one."""
        named = getattr(request, "namespace", None)
        own = (agent_namespace(self._principal), user_namespace(self._principal))
        keys: list[str] = []
        for root in dict.fromkeys(own if named is None else (named,)):
            look = requests.FindNearKeys(key=request.key, namespace=named)
            with suppress(GreenroomError):  # the reply is true without a hint
                keys += await self._runtime.ask(memory_address(root), look, principal=self._principal)
        reply = did_you_mean(first, list(dict.fromkeys(keys))[:NEAR_KEYS])
        if isinstance(reply, Refusal):
            raise reply
        return reply

    async def _carry_out(self, request: Any, namespace: str, idempotency: Idempotency | None) -> Any:
        if idempotency is not None:  # the first reply is stored under the scope itself
            idempotency = idempotency._replace(scope=f"{idempotency.scope} elsewhere")
        return await self._runtime.ask(
            memory_address(namespace),
            msgspec.structs.replace(request, namespace=namespace),
            principal=self._principal,
            idempotency=idempotency,
        )
