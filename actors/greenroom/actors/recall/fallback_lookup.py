"""The second look-up of a key that is not where a tool looks first; `key_hints` decides what comes of it."""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.actors.auth.namespaces import agent_namespace, memory_address, user_namespace
from greenroom.actors.auth.principal import Principal
from greenroom.actors.recall import key_hints
from greenroom.actors.recall.replies import PlacesFound
from greenroom.actors.recall.roots import roots_below
from greenroom.actors.recall.scatter_gather import ask_each
from greenroom.actors.schemas import keyvalue as memory
from greenroom.actors.schemas import memories, types
from greenroom.actors.schemas.memories import LocateKey
from greenroom.runtime import Idempotency, Procedure, ProcedureContext, Refusal, RuntimeClient


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
    """Looks for keys in the name of one principal.

    Args:
        runtime: Where the actors are.
        principal: Who looks.
        tools: What requests are called.
    """

    def __init__(self, runtime: RuntimeClient, principal: Principal, tools: dict[type[Any], str]) -> None:
        self._runtime = runtime
        self._principal = principal
        self._tools = tools

    async def answer(self, request: Any, idempotency: Idempotency | None, first: object) -> Any:
        """Return the answer to a request that named a key which is not where it looked first.

        Args:
            request: As it came.
            idempotency: What marks a repeat of it.
            first: The refusal that it was answered, or the reply that there was nothing.

        Raises:
            Refusal: ``MEMORY_NOT_FOUND``: it is nowhere, or it says where.
        """
        if type(request) is memory.GetMemory and request.session_id is None and request.version is None:
            try:
                return await self._carried_out(request, user_namespace(self._principal), None)
            except Refusal as refusal:
                if refusal.code != "MEMORY_NOT_FOUND":
                    raise
        forgotten = type(request) is memories.ListVersions
        query = PlacesOfKey(key=request.key, forgotten=forgotten)
        found = await self._runtime.query(query, principal=self._principal)
        namespace = key_hints.other_namespace(request, found, self._principal)
        if namespace is None:
            tool = self._tools[type(request)]
            named = key_hints.refusal(tool, request, found, self._principal)
            if named is not None:
                raise named
            if isinstance(first, Refusal):
                raise first
            return first
        answer = await self._carried_out(request, namespace, idempotency)
        if type(request) is memory.GetMemory and (others := key_hints.other_namespaces(found, namespace)):
            answer = msgspec.structs.replace(answer, also_in=others)
        return answer

    async def _carried_out(self, request: Any, namespace: str, idempotency: Idempotency | None) -> Any:
        if idempotency is not None:  # under its own name what was answered first is kept
            idempotency = idempotency._replace(scope=f"{idempotency.scope} elsewhere")
        return await self._runtime.ask(
            memory_address(namespace),
            msgspec.structs.replace(request, namespace=namespace),
            principal=self._principal,
            idempotency=idempotency,
        )
