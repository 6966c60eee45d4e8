"""mem0's `Memory`: what `AsyncMemory` does, for threads without an event loop."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Never

from greenroom.actors import Database
from greenroom.adapters.base.blocking import call_blocking
from greenroom.adapters.mem0.async_memory import UNSET, AsyncMemory
from greenroom.adapters.mem0.messages import Extractor


class Memory:
    """mem0's ``Memory``, whose methods block: those of `AsyncMemory`, which says what they do.

    Args:
        database: A database, opened by a plain ``with`` block.
        extractor: As in `AsyncMemory`.
    """

    def __init__(self, database: Database, *, extractor: Extractor | None = None) -> None:
        self._database = database
        self._memory = AsyncMemory(database, extractor=extractor)

    def add(
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
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Keep texts, a memory each; one of the ids is needed."""
        adding = partial(
            self._memory.add,
            messages,
            user_id=user_id,
            agent_id=agent_id,
            run_id=run_id,
            metadata=metadata,
            timestamp=timestamp,
            expiration_date=expiration_date,
            infer=infer,
            memory_type=memory_type,
            prompt=prompt,
        )
        return call_blocking(self._database, adding)

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory, or None where there is none with this id."""
        return call_blocking(self._database, self._memory.get, memory_id)

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **others: Never,
    ) -> dict[str, Any]:
        """Return the memories that filters fit, newest update first."""
        listing = partial(
            self._memory.get_all, filters=filters, top_k=top_k, show_expired=show_expired, **others
        )
        return call_blocking(self._database, listing)

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **others: Never,
    ) -> dict[str, Any]:
        """Return the memories that say what is looked for, best first."""
        searching = partial(
            self._memory.search,
            query,
            top_k=top_k,
            filters=filters,
            threshold=threshold,
            rerank=rerank,
            explain=explain,
            reference_date=reference_date,
            show_expired=show_expired,
            **others,
        )
        return call_blocking(self._database, searching)

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = UNSET,
        data: str | None = None,
    ) -> dict[str, str]:
        """Give a memory another text, more metadata, or another last day."""
        return call_blocking(
            self._database, self._memory.update, memory_id, text, metadata, expiration_date, data
        )

    def delete(self, memory_id: str) -> dict[str, str]:
        """Forget a memory; that it was there stays in its history."""
        return call_blocking(self._database, self._memory.delete, memory_id)

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Forget all memories that have these ids, one after the other."""
        return call_blocking(self._database, self._memory.delete_all, user_id, agent_id, run_id)

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what became of a memory, oldest first."""
        return call_blocking(self._database, self._memory.history, memory_id)

    def reset(self) -> None:
        """Raise ``NotImplementedError``, as `AsyncMemory.reset` does."""
        call_blocking(self._database, self._memory.reset)
