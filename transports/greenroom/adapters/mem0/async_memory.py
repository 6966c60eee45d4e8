"""mem0's `AsyncMemory`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import aclosing
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
from greenroom.adapters.base.cancelling import call_whole
from greenroom.adapters.base.memories import MemoryRequests, encoded
from greenroom.adapters.mem0 import filters as given_filters
from greenroom.adapters.mem0 import messages as given_messages
from greenroom.adapters.mem0.errors import ValidationError
from greenroom.adapters.mem0.filters import IDENTITIES
from greenroom.adapters.mem0.histories import history
from greenroom.adapters.mem0.items import FIXED, Item, expiration, item, metadata_of
from greenroom.adapters.mem0.messages import Extractor, Kept
from greenroom.adapters.mem0.scopes import OWN_AGENT, Scope, scope_at, scope_of
from greenroom.runtime import Refusal

R = TypeVar("R")
PROCEDURAL = "procedural_memory"
MOST_FOUND = 100
"""Of one search, before filters by agent and metadata."""
UNSET: Any = object()


class AsyncMemory:
    """mem0's ``AsyncMemory``, with its methods, over the memories of a database.

    Memories with a ``user_id`` lie in ``user:ID:mem0`` and are listed and found for this user alone; those
    of an agent without a user in ``agent:ID:mem0``; those of a run alone in ``agent:mem0:mem0``. Errors are
    mem0's: a `ValidationError`, or a ``ValueError``.

    Args:
        database: An open database, on any event loop.
        extractor: What makes memories of messages where ``infer`` is true, called in a thread of its own.
            Without one each message's text is kept as it is: no language model is asked.
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
        prompt: str | None = None,  # noqa: ARG002  nobody is prompted
        llm: Any = None,  # noqa: ARG002  nor asked
    ) -> dict[str, Any]:
        """Keep texts, a memory each; one of the ids is needed.

        Args:
            messages: A text, a message with ``role`` and ``content``, or a list of messages.
            user_id: Whose they are.
            agent_id: Of which agent.
            run_id: Of which run.
            metadata: A dictionary that is kept with each.
            timestamp: Nothing; mem0's platform alone takes it.
            expiration_date: The last day, ``YYYY-MM-DD``, on which searches and lists show them.
            infer: Whether the extractor is asked, if there is one.
            memory_type: ``procedural_memory``, or nothing.
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
            # It may take its time, and ask this memory: neither the event loop nor the database waits for it.
            kept = await anyio.to_thread.run_sync(given_messages.extracted, self._extractor, kept)
        payload = {name: value for name, value in (metadata or {}).items() if name not in FIXED} | identities
        if until is not None:
            payload["expiration_date"] = until
        kind = "semantic" if memory_type is None else "procedural"
        scope = scope_of(identities)

        async def store() -> list[dict[str, Any]]:
            results = []
            for each in kept:
                memory_id = await self._store(scope, each, payload, kind)
                shown = {"id": memory_id, "memory": each.text, "event": "ADD"}
                results.append(shown if infer else {**shown, "actor_id": each.name, "role": each.role})
            return results

        # Who is cancelled does not leave a part.
        return {"results": await call_whole(self._database, store)}

    async def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory, or None where there is none with this id."""
        found = await self._find(memory_id)
        if found is None:
            return None
        return {**found[1].shown(), "score": None}

    async def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **others: Never,
    ) -> dict[str, Any]:
        """Return the memories that filters fit, newest update first.

        Args:
            filters: With ``user_id``, ``agent_id`` or ``run_id``, and what else the metadata must be like.
            top_k: How many at most.
            show_expired: Also those whose ``expiration_date`` is over.
            others: None.
        """
        given_filters.check_numbers(top_k)
        wanted = given_filters.checked(filters, others, self.get_all)
        found = [each.shown() for each in await self._list(wanted, top_k, show_expired=show_expired)]
        return {"results": found}

    async def search(
        self,
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
        """Return the memories that say what is looked for, best first.

        Args:
            query: What to look for.
            top_k: How many at most; 100 is the most that a search finds.
            filters: As of `get_all`; by agent and metadata the 100 best of the user are filtered.
            threshold: The least score. The best has the score 1, and others parts of it; where none can be
                an answer nothing is found.
            rerank: Has no effect.
            explain: Whether each says of what its score is made.
            reference_date: Nothing; mem0's platform alone takes it.
            show_expired: Also those whose ``expiration_date`` is over.
            others: None.
        """
        if reference_date is not None:
            raise ValueError("reference_date is not supported: words such as yesterday are of now")
        given_filters.check_numbers(top_k, threshold)
        if not isinstance(query, str):
            raise ValueError("Invalid query: must be a non-empty string.")  # noqa: TRY004  as mem0 does
        if not query.strip():
            raise ValueError("Invalid query: cannot be empty or whitespace-only.")
        wanted = given_filters.checked(filters, others, self.search)
        scope = scope_of(wanted)
        asked = {
            "query": query.strip(),
            "limit": MOST_FOUND,
            "include_debug": explain,
            **({} if wanted.get("run_id") is None else {"conversation_id": wanted["run_id"]}),
        }
        found = await self._said(self._requests(scope).query(MemorySearch, **asked))
        results: list[dict[str, Any]] = []
        for hit in found.memories if top_k else ():
            score = hit.score / (found.memories[0].score or 1.0)
            each = await self._whole(hit)
            if score < (threshold or 0) or each is None or not _is_shown(each, wanted, show_expired):
                continue
            debug = found.debug
            details = {} if debug is msgspec.UNSET else {"score_details": debug.scores.get(hit.memory_id, {})}
            results.append({**each.shown(), "score": round(score, 4), **details})
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
        """Give a memory another text, more metadata, or another last day; older versions stay in its history.

        Args:
            memory_id: Which.
            text: The new text.
            metadata: Replaces members of the same names; whose it is does not change.
            expiration_date: As in `add`; None: no last day.
            data: An older name of ``text``.
        """
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is UNSET:
            raise ValueError("At least one of text, metadata, or expiration_date must be provided.")
        changes = {name: value for name, value in (metadata or {}).items() if name not in FIXED}
        if expiration_date is not UNSET:
            changes["expiration_date"] = expiration(expiration_date)
        scope, _ = await self._found(memory_id, ". Please provide a valid 'memory_id'")
        given: dict[str, Any] = {} if text is None else {"content": text}
        if text is not None or changes:
            asking = self._requests(scope).ask(
                UpdateMemory, memory_id=memory_id, metadata=metadata_of(changes), **given
            )
            await self._said(asking)
        return {"message": "Memory updated successfully!"}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; that it was there stays in its history."""
        scope, _ = await self._found(memory_id, "")
        await self._said(self._requests(scope).ask(ForgetMemory, memory_id=memory_id))
        return {"message": "Memory deleted successfully!"}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories that have these ids, one after the other."""
        wanted = _identities(user_id, agent_id, run_id)
        if not wanted:
            raise ValueError(
                "At least one filter is required to delete all memories. If you want to delete all memories, "
                "use the `reset()` method."
            )
        await call_whole(self._database, self._forget_all, wanted)
        return {"message": "Memories deleted successfully!"}

    async def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what became of a memory, oldest first: ``ADD``, each ``UPDATE``, and ``DELETE``.

        The texts of a memory that was deleted are gone, and None here.
        """
        scope = await self._scope_by(memory_id)
        if scope is None:
            return []
        requests = self._requests(scope)
        versions: list[VersionView] = []
        cursor: str | None = None
        while True:
            try:
                page = await requests.ask(ListVersions, memory_id=memory_id, limit=1_000, cursor=cursor)
            except Refusal as refusal:
                if refusal.code == "MEMORY_NOT_FOUND":
                    return []
                raise ServiceError.of(refusal) from None
            versions += page.versions
            cursor = page.next_cursor
            if cursor is None:
                break
        found = await self._find(memory_id)
        texts = [await self._text_of(requests, memory_id, each.version) for each in versions]
        return history(versions, texts, {} if found is None else found[1].payload)

    async def reset(self) -> None:
        """Do nothing but say what to call: others keep what they know in the same database.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "a database of Greenroom is not mem0's alone: forget a user's memories by delete_all(user_id=…), "
            "or all that is known of somebody by the request EraseUser"
        )

    # -- by themselves -------------------------------------------------------

    def _requests(self, scope: Scope) -> MemoryRequests:
        return MemoryRequests(self._database, scope.principal, scope.namespace)

    async def _said(self, asking: Awaitable[R]) -> R:
        """Return an answer; a "no" is a `ServiceError`, which is a ``ValueError``."""
        try:
            return await asking
        except Refusal as refusal:
            raise ServiceError.of(refusal) from None

    async def _store(self, scope: Scope, kept: Kept, payload: Mapping[str, Any], kind: str) -> str:
        told = {"role": kept.role, "actor_id": kept.name}
        whole = {**payload, **{name: value for name, value in told.items() if value is not None}}
        asking = self._requests(scope).ask(
            StoreMemory,
            namespace=scope.namespace,
            key=str(uuid4()),
            content=kept.text,
            metadata=metadata_of(whole),
            kind=kind,
            conversation_id=payload.get("run_id"),
        )
        return (await self._said(asking)).memory_id

    async def _list(self, wanted: Mapping[str, Any], most: int | None, *, show_expired: bool) -> list[Item]:
        scope = scope_of(wanted)
        found: list[Item] = []
        if most == 0:
            return found
        run = {} if wanted.get("run_id") is None else {"conversation_id": wanted["run_id"]}
        async with aclosing(self._requests(scope).listed(**run)) as views:
            async for view in views:
                each = await self._whole(view)
                if each is not None and _is_shown(each, wanted, show_expired):
                    found.append(each)
                    if len(found) == most:
                        break
        return found

    async def _forget_all(self, wanted: Mapping[str, Any]) -> None:
        requests = self._requests(scope_of(wanted))
        for each in await self._list(wanted, None, show_expired=True):
            try:
                await self._said(requests.ask(ForgetMemory, memory_id=each.id))
            except ServiceError as error:
                if error.code != "MEMORY_NOT_FOUND":  # another one has forgotten it meanwhile
                    raise

    async def _scope_by(self, memory_id: str) -> Scope | None:
        """Return where a memory lies, by its id alone."""
        try:
            asked = parse_request(RootOfMemory, encoded({"memory_id": memory_id}))
        except Refusal:
            return None
        root = await self._database.query(asked, principal=Principal(agent_id=OWN_AGENT))
        return None if root is None else scope_at(root)

    async def _find(self, memory_id: str) -> tuple[Scope, Item] | None:
        scope = await self._scope_by(memory_id)
        if scope is None:
            return None
        try:
            shown = await self._requests(scope).ask(ReadMemory, memory_id=memory_id)
        except Refusal as refusal:
            if refusal.code == "MEMORY_NOT_FOUND":
                return None
            raise ServiceError.of(refusal) from None
        return None if shown.memory.namespace != scope.namespace else (scope, item(shown.memory))

    async def _whole(self, memory: MemoryView | MemoryHit) -> Item | None:
        """Return a memory of a list or a search with its text, however long that is; None when it is gone."""
        if memory.withheld is not True:
            return item(memory)
        found = await self._find(memory.memory_id)
        return None if found is None else found[1]

    async def _found(self, memory_id: str, advice: str) -> tuple[Scope, Item]:
        found = await self._find(memory_id)
        if found is None:
            raise ValueError(f"Memory with id {memory_id} not found{advice}")
        return found

    async def _text_of(self, requests: MemoryRequests, memory_id: str, version: int) -> str | None:
        try:
            shown = await requests.ask(ReadMemory, memory_id=memory_id, version=version)
        except Refusal as refusal:
            if refusal.code == "MEMORY_NOT_FOUND":
                return None
            raise ServiceError.of(refusal) from None
        return item(shown.memory).text


def _identities(user_id: Any, agent_id: Any, run_id: Any) -> dict[str, str]:
    given = zip(IDENTITIES, (user_id, agent_id, run_id), strict=True)
    trimmed = {name: given_filters.identity(value, name) for name, value in given}
    return {name: value for name, value in trimmed.items() if value is not None}


def _is_shown(each: Item, wanted: Mapping[str, Any], show_expired: bool) -> bool:  # noqa: FBT001
    return given_filters.fits(each.payload, wanted) and (show_expired or not each.is_expired)
