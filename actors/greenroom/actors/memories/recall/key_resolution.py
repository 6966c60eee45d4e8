"""The second look-up of a key that is not where a tool looks first: which place is meant.

What comes of it is decided by pure functions of the request, of what the first look answered, and of where
the key was found.

1. A read takes what the caller's agent or user has before what others share.
2. A change is carried out where exactly one namespace that the caller may write has the key.
3. Nothing is removed elsewhere: a removal that is repeated would go on to the next memory of that key.
4. What the caller may only read, and what `set_memory` bound to a session, is named and never taken.
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
from greenroom.actors.memories.recall.roots import roots_below
from greenroom.actors.memories.recall.scatter_gather import ask_each
from greenroom.actors.memories.requests import requests as memories
from greenroom.actors.memories.requests.replies import KeyPlace
from greenroom.actors.memories.requests.requests import LocateKey
from greenroom.actors.schemas import keyvalue as memory
from greenroom.runtime import GreenroomError, Idempotency, Procedure, ProcedureContext, Refusal, RuntimeClient

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
    """Return whether a request named a key, and what it was answered first says that there is none."""
    if isinstance(first, Refusal):
        return first.code == "MEMORY_NOT_FOUND" and request.key is not None
    return isinstance(first, MemoryDeleted) and not first.existed and may_miss(request)


def may_miss(request: object) -> bool:
    """Return whether a reply that is no refusal may say that a key is not there."""
    return isinstance(request, memory.DeleteMemory) and request.session_id is None and request.key is not None


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


def lies_elsewhere(tool: str, request: Any, found: PlacesFound, principal: Principal) -> Refusal | None:
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


def did_you_mean(first: Refusal | MemoryDeleted, keys: list[str]) -> Refusal | MemoryDeleted:
    """Return what was answered first, with keys that may have been meant."""
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


def _session(request: Any) -> str | None:
    return getattr(request, "session_id", None)


class PlacesOfKey(Procedure[PlacesFound], frozen=True, kw_only=True):
    """Find where a key has memories that the caller may see; internal.

    Attributes:
        key: The key itself.
        forgotten: As `LocateKey` has it.
    """

    key: types.MemoryKey
    forgotten: bool = False

    async def run(self, context: ProcedureContext) -> PlacesFound:
        """Ask every owner; the caller's own places come first, then its user's, then by name."""
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


class FallbackLookup:
    """Looks for keys in the name of one principal."""

    def __init__(self, runtime: RuntimeClient, principal: Principal, tools: dict[type[Any], str]) -> None:
        self._runtime = runtime
        self._principal = principal
        self._tools = tools

    async def answer(self, request: Any, idempotency: Idempotency | None, first: Any) -> Any:
        """Return the answer to a request that named a key which is not where it looked first.

        One that named the namespace, too, is for that alone.

        Args:
            request: As it came.
            idempotency: What marks a repeat of it.
            first: The refusal that it was answered, or the reply that there was nothing.

        Raises:
            Refusal: ``MEMORY_NOT_FOUND``: it is nowhere, or it says where.
        """
        if getattr(request, "namespace", None) is not None:
            return await self._missing(request, first)
        if type(request) is memory.GetMemory and request.session_id is None and request.version is None:
            try:
                return await self._carried_out(request, user_namespace(self._principal), None)
            except Refusal as refusal:
                if refusal.code != "MEMORY_NOT_FOUND":
                    raise
        forgotten = type(request) is memories.ListVersions
        query = PlacesOfKey(key=request.key, forgotten=forgotten)
        found = await self._runtime.query(query, principal=self._principal)
        namespace = other_namespace(request, found, self._principal)
        if namespace is None:
            tool = self._tools[type(request)]
            named = lies_elsewhere(tool, request, found, self._principal)
            if named is not None:
                raise named
            if found.places:  # it lacks something else
                if isinstance(first, Refusal):
                    raise first
                return first
            return await self._missing(request, first)
        answer = await self._carried_out(request, namespace, idempotency)
        if type(request) is memory.GetMemory and (others := other_namespaces(found, namespace)):
            answer = msgspec.structs.replace(answer, also_in=others)
        return answer

    async def _missing(self, request: Any, first: Refusal | MemoryDeleted) -> MemoryDeleted:
        """Return what was answered first, with keys that look like the one that is nowhere; or raise it."""
        named = getattr(request, "namespace", None)
        own = (agent_namespace(self._principal), user_namespace(self._principal))
        keys: list[str] = []
        for root in dict.fromkeys(own if named is None else (named,)):
            look = memories.FindNearKeys(key=request.key, namespace=named)
            with suppress(GreenroomError):  # without a hint the answer is as true
                keys += await self._runtime.ask(memory_address(root), look, principal=self._principal)
        told = did_you_mean(first, list(dict.fromkeys(keys))[:NEAR_KEYS])
        if isinstance(told, Refusal):
            raise told
        return told

    async def _carried_out(self, request: Any, namespace: str, idempotency: Idempotency | None) -> Any:
        if idempotency is not None:  # under its own name what was answered first is kept
            idempotency = idempotency._replace(scope=f"{idempotency.scope} elsewhere")
        return await self._runtime.ask(
            memory_address(namespace),
            msgspec.structs.replace(request, namespace=namespace),
            principal=self._principal,
            idempotency=idempotency,
        )
