"""mem0's `AsyncMemory` and `Memory`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import aclosing
from operator import attrgetter
from typing import Any, Never, TypeVar
from uuid import uuid4

import anyio.to_thread
import msgspec

from greenroom.actors import (
    Database,
    ForgetMemory,
    ListVersions,
    MemoryHit,
    MemorySearch,
    MemoryView,
    Principal,
    ReadMemory,
    RootOfMemory,
    ServiceError,
    StoreMemory,
    UpdateMemory,
    VersionView,
    parse_request,
)
from greenroom.adapters.base.blocking import blocking, call_whole
from greenroom.adapters.base.memories import MemoryRequests, encode
from greenroom.adapters.mem0 import filters as given_filters
from greenroom.adapters.mem0 import messages as given_messages
from greenroom.adapters.mem0.filters import IDENTITIES
from greenroom.adapters.mem0.items import FIXED, Item, expiration, history, item, metadata_of
from greenroom.adapters.mem0.messages import Extractor, Kept, ValidationError
from greenroom.adapters.mem0.scopes import OWN_AGENT, Scope, scope_at, scope_of
from greenroom.runtime import Refusal

R = TypeVar("R")
PROCEDURAL = "procedural_memory"
MOST_FOUND = 100
"""The most hits of one search, before filters by agent and metadata apply."""
UNSET: Any = object()


class AsyncMemory:
    """mem0's ``AsyncMemory``, with its methods, over the memories of a database.

    Memories with a ``user_id`` are in ``user:ID:mem0``; only this user sees them. Memories of an agent
    without a user are in ``agent:ID:mem0``; memories of a run alone in ``agent:mem0:mem0``. Errors are a
    `ValidationError` like mem0's, or a ``ValueError``.

    Args:
        database: An open database, on any event loop.
        extractor: Makes memories of messages if ``infer`` is true, in a thread of its own. Without it, the
            text of each message is stored unchanged: no language model is called.
    """

    def __init__(self, database: Database, *, extractor: Extractor | None = None) -> None:
        self._database = database
        self._extractor = extractor

    async def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,  # noqa: ARG002  no model is prompted
        llm: Any = None,  # noqa: ARG002  no model is called
    ) -> dict[str, Any]:
        """Store each text as one memory; one of the ids is required.

        Args:
            messages: A text, a message with ``role`` and ``content``, or a list of messages.
            user_id: The user.
            agent_id: The agent.
            run_id: The run.
            metadata: Stored with each memory.
            timestamp: Must be None; only mem0's platform accepts it.
            expiration_date: The last day, ``YYYY-MM-DD``, on which searches and lists return the memories.
            infer: Whether the extractor is called, if there is one.
            memory_type: ``procedural_memory``, or None.
            prompt: Has no effect.
            llm: Has no effect.

        Returns:
            ``{"results": [{"id": …, "memory": …, "event": "ADD"}]}``.
        """
        if timestamp is not None:
            raise ValueError("timestamp is not supported: a memory is of the time when it is added")
        until = expiration(expiration_date)
        identities = _identities(user_id, agent_id, run_id)
        if not identities:
            raise ValidationError(
                "At least one of 'user_id', 'agent_id', or 'run_id' must be provided.",
                "VALIDATION_001",
                {"provided_ids": {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}},
                "Please provide at least one identifier to scope the memory operation.",
            )
        if memory_type not in {None, PROCEDURAL}:
            raise ValidationError(
                f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.",
                "VALIDATION_002",
                {"provided_type": memory_type, "valid_type": PROCEDURAL},
                f"Use '{PROCEDURAL}' to create procedural memories.",
            )
        kept = given_messages.read(messages)
        if infer and self._extractor is not None:
            # It may take long and call this memory, so a thread runs it; event loop and database go on.
            kept = await anyio.to_thread.run_sync(given_messages.extract, self._extractor, kept)
        payload = {name: value for name, value in (metadata or {}).items() if name not in FIXED} | identities
        if until is not None:
            payload["expiration_date"] = until
        kind = "semantic" if memory_type is None else "procedural"
        scope = scope_of(identities)

        async def store() -> list[dict[str, Any]]:
            results = []
            for each in kept:
                memory_id = await self._store(scope, each, payload, kind)
                result = {"id": memory_id, "memory": each.text, "event": "ADD"}
                results.append(result if infer else {**result, "actor_id": each.name, "role": each.role})
            return results

        # A cancelled call must not store only some of the texts.
        return {"results": await call_whole(self._database, store)}

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return the memory with an id, or None."""
        found = await self._find(memory_id)
        if found is None:
            return None
        return {**found[1].to_mem0(), "score": None}

    async def get_all(
        self,
        /,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **others: Never,
    ) -> dict[str, Any]:
        """Return the memories that match filters, newest update first.

        The filters contain ``user_id``, ``agent_id`` or ``run_id``, and may have conditions on the metadata.
        """
        given_filters.check_numbers(top_k)
        wanted = given_filters.check(filters, others, self.get_all)
        found = [each.to_mem0() for each in await self._list(wanted, top_k, show_expired=show_expired)]
        return {"results": found}

    async def search(
        self,
        /,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,  # noqa: ARG002  there is no second model that ranks
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **others: Never,
    ) -> dict[str, Any]:
        """Return the memories that match a query, best first.

        Args:
            query: The query.
            top_k: The most memories, 100 at most.
            filters: As in `get_all`; filters by agent and metadata apply to the user's 100 best.
            threshold: The least score. The best hit has 1, others a part of it.
            rerank: Has no effect.
            explain: Whether each hit shows the parts of its score.
            reference_date: Must be None; only mem0's platform accepts it.
            show_expired: Include memories after their ``expiration_date``.
            others: These are refused.
        """
        if reference_date is not None:
            raise ValueError("reference_date is not supported: words such as yesterday are of now")
        given_filters.check_numbers(top_k, threshold)
        if not isinstance(query, str):
            raise ValueError("Invalid query: must be a non-empty string.")  # noqa: TRY004  as mem0 does
        if not query.strip():
            raise ValueError("Invalid query: cannot be empty or whitespace-only.")
        wanted = given_filters.check(filters, others, self.search)
        scope = scope_of(wanted)
        arguments = {
            "query": query.strip(),
            "limit": MOST_FOUND,
            "include_debug": explain,
            **({} if wanted.get("run_id") is None else {"conversation_id": wanted["run_id"]}),
        }
        found = await self._result(self._requests(scope).query(MemorySearch, **arguments))
        results: list[dict[str, Any]] = []
        for hit in found.memories if top_k else ():
            score = hit.score / (found.memories[0].score or 1.0)
            each = await self._whole(hit)
            if score < (threshold or 0) or each is None or not _is_wanted(each, wanted, show_expired):
                continue
            debug = found.debug
            details = {} if debug is msgspec.UNSET else {"score_details": debug.scores.get(hit.memory_id, {})}
            results.append({**each.to_mem0(), "score": round(score, 4), **details})
            if len(results) == top_k:
                break
        return {"results": results}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Give a memory a new text, more metadata, or a new last day.

        Members of the metadata are replaced by name, and the owner does not change. ``expiration_date=None``
        removes the last day. ``data`` is an older name of ``text``. Older versions stay in the history.
        """
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")
        changes = {name: value for name, value in (metadata or {}).items() if name not in FIXED}
        if expiration_date is not UNSET:
            changes["expiration_date"] = expiration(expiration_date)
        scope, _ = await self._require(memory_id, ". Please provide a valid 'memory_id'")
        given: dict[str, Any] = {} if text is None else {"content": text}
        if text is not None or changes:
            request = self._requests(scope).ask(
                UpdateMemory, memory_id=memory_id, metadata=metadata_of(changes), **given
            )
            await self._result(request)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; its history stays."""
        scope, _ = await self._require(memory_id, "")
        await self._result(self._requests(scope).ask(ForgetMemory, memory_id=memory_id))
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories with these ids, one by one."""
        wanted = _identities(user_id, agent_id, run_id)
        if not wanted:
            raise ValueError(
                "At least one filter is required to delete all memories. If you want to delete all memories, "
                "use the `reset()` method."
            )
        await call_whole(self._database, self._forget_all, wanted)
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the history of a memory, oldest first: ``ADD``, each ``UPDATE``, and ``DELETE``.

        The texts of a deleted memory are lost, so they are None.
        """
        scope = await self._scope_by(memory_id)
        if scope is None:
            return []
        requests = self._requests(scope)
        versions: list[VersionView] = []
        cursor: str | None = None
        while True:
            listing = requests.ask(ListVersions, memory_id=memory_id, limit=1_000, cursor=cursor)
            page = await self._if_there(listing)
            if page is None:
                return []
            versions += page.versions
            cursor = page.next_cursor
            if cursor is None:
                break
        found = await self._find(memory_id)
        texts = [await self._text_of(requests, memory_id, each.version) for each in versions]
        return history(versions, texts, {} if found is None else found[1].payload)

    async def reset(self) -> None:
        """Refuse, and name other methods to call: others store memories in the same database."""
        raise NotImplementedError(
            "a database of Greenroom is not mem0's alone: forget a user's memories by delete_all(user_id=…), "
            "or all data about a person by the request EraseUser"
        )

    # -- internal -------------------------------------------------------

    def _requests(self, scope: Scope) -> MemoryRequests:
        return MemoryRequests(self._database, scope.principal, scope.namespace)

    async def _result(self, request: Awaitable[R]) -> R:
        """Return a reply; a refusal becomes a `ServiceError`, which is a ``ValueError``."""
        try:
            return await request
        except Refusal as refusal:
            raise ServiceError.of(refusal) from None

    async def _if_there(self, request: Awaitable[R]) -> R | None:
        """Return a reply; None if the memory does not exist."""
        try:
            return await self._result(request)
        except ServiceError as error:
            if error.code != "MEMORY_NOT_FOUND":
                raise
            return None

    async def _store(self, scope: Scope, kept: Kept, payload: Mapping[str, Any], kind: str) -> str:
        speaker = {"role": kept.role, "actor_id": kept.name}
        whole = {**payload, **{name: value for name, value in speaker.items() if value is not None}}
        request = self._requests(scope).ask(
            StoreMemory,
            namespace=scope.namespace,
            key=str(uuid4()),
            content=kept.text,
            metadata=metadata_of(whole),
            kind=kind,
            conversation_id=payload.get("run_id"),
        )
        return (await self._result(request)).memory_id

    async def _list(self, wanted: Mapping[str, Any], most: int | None, *, show_expired: bool) -> list[Item]:
        scope = scope_of(wanted)
        found: list[Item] = []
        if most == 0:
            return found
        run = {} if wanted.get("run_id") is None else {"conversation_id": wanted["run_id"]}
        async with aclosing(self._requests(scope).listed(**run)) as views:
            async for view in views:
                each = await self._whole(view)
                if each is not None and _is_wanted(each, wanted, show_expired):
                    found.append(each)
                    if len(found) == most:
                        break
        return found

    async def _forget_all(self, wanted: Mapping[str, Any]) -> None:
        requests = self._requests(scope_of(wanted))
        for each in await self._list(wanted, None, show_expired=True):
            await self._if_there(requests.ask(ForgetMemory, memory_id=each.id))

    async def _scope_by(self, memory_id: str) -> Scope | None:
        """Return the scope of a memory by its id alone."""
        try:
            query = parse_request(RootOfMemory, encode({"memory_id": memory_id}))
        except Refusal:
            return None
        root = await self._database.query(query, principal=Principal(agent_id=OWN_AGENT))
        return None if root is None else scope_at(root)

    async def _find(self, memory_id: str) -> tuple[Scope, Item] | None:
        scope = await self._scope_by(memory_id)
        if scope is None:
            return None
        reply = await self._if_there(self._requests(scope).ask(ReadMemory, memory_id=memory_id))
        if reply is None or reply.memory.namespace != scope.namespace:
            return None
        return scope, item(reply.memory)

    async def _whole(self, memory: MemoryView | MemoryHit) -> Item | None:
        """Return a memory with its whole text; None if it no longer exists."""
        if memory.withheld is not True:
            return item(memory)
        found = await self._find(memory.memory_id)
        return None if found is None else found[1]

    async def _require(self, memory_id: str, advice: str) -> tuple[Scope, Item]:
        found = await self._find(memory_id)
        if found is None:
            raise ValueError(f"Memory with id {memory_id} not found{advice}")
        return found

    async def _text_of(self, requests: MemoryRequests, memory_id: str, version: int) -> str | None:
        reply = await self._if_there(requests.ask(ReadMemory, memory_id=memory_id, version=version))
        return None if reply is None else item(reply.memory).text


_twin = attrgetter("_memory")


class Memory:
    """mem0's ``Memory``: the methods of `AsyncMemory`, which block.

    Args:
        database: A database, opened by a plain ``with`` block.
        extractor: As in `AsyncMemory`.
    """

    def __init__(self, database: Database, *, extractor: Extractor | None = None) -> None:
        self._database = database
        self._memory = AsyncMemory(database, extractor=extractor)

    add = blocking(AsyncMemory.add, _twin)
    get = blocking(AsyncMemory.get, _twin)
    get_all = blocking(AsyncMemory.get_all, _twin)
    search = blocking(AsyncMemory.search, _twin)
    update = blocking(AsyncMemory.update, _twin)
    delete = blocking(AsyncMemory.delete, _twin)
    delete_all = blocking(AsyncMemory.delete_all, _twin)
    history = blocking(AsyncMemory.history, _twin)
    reset = blocking(AsyncMemory.reset, _twin)


def _identities(user_id: Any, agent_id: Any, run_id: Any) -> dict[str, str]:
    given = zip(IDENTITIES, (user_id, agent_id, run_id), strict=True)
    trimmed = {name: given_filters.identity(value, name) for name, value in given}
    return {name: value for name, value in trimmed.items() if value is not None}


def _is_wanted(each: Item, wanted: Mapping[str, Any], show_expired: bool) -> bool:  # noqa: FBT001
    return given_filters.fits(each.payload, wanted) and (show_expired or not each.is_expired)
