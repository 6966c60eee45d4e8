"""Tools by which a Pydantic AI agent stores, finds and corrects memories."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import UnsetType

from greenroom.actors import (
    Database,
    ForgetMemory,
    MemoryHit,
    MemorySearch,
    Principal,
    StoreMemory,
    UpdateMemory,
    user_namespace,
)
from greenroom.adapters.base.extras import needs
from greenroom.adapters.base.memories import MemoryRequests
from greenroom.runtime import Refusal

with needs("pydantic-ai"):
    from pydantic_ai import FunctionToolset, ModelRetry, RunContext
    from pydantic_ai.tools import AgentDepsT

R = TypeVar("R")

MOST_FOUND = 20


def memory_toolset(
    database: Database,
    principal: Principal | Callable[[RunContext[AgentDepsT]], Principal],
) -> FunctionToolset[AgentDepsT]:
    """Return the tools ``remember``, ``recall``, ``update_memory`` and ``forget`` for an agent.

    The tools use the memories in the namespace of the principal's user, or of the agent without a user. MCP
    clients of the same user see these, too. A refusal, as of an unknown id or long text, raises `ModelRetry`.

    Args:
        database: An open database.
        principal: The owner of the memories, or a function that returns it for a run, from its ``deps``.
    """

    def memories(ctx: RunContext[AgentDepsT]) -> MemoryRequests:
        owner = principal if isinstance(principal, Principal) else principal(ctx)
        return MemoryRequests(database, owner, user_namespace(owner))

    async def remember(ctx: RunContext[AgentDepsT], content: str) -> str:
        """Keep something worth knowing in later conversations: one fact or preference, in a sentence.

        Args:
            ctx: The run.
            content: What to keep, understandable by itself.
        """
        saved = await _result(memories(ctx).ask(StoreMemory, content=content))
        return f"Kept as memory {saved.memory_id}."

    async def recall(ctx: RunContext[AgentDepsT], query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Find what was kept in earlier conversations, the best first.

        Args:
            ctx: The run.
            query: What it is about.
            limit: How many at most, 1-20.
        """
        search = memories(ctx).query(MemorySearch, query=query, limit=min(limit, MOST_FOUND))
        return [
            {"memory_id": hit.memory_id, "content": _content(hit), "updated_at": hit.updated_at.isoformat()}
            for hit in (await _result(search)).memories
        ]

    async def update_memory(ctx: RunContext[AgentDepsT], memory_id: str, content: str) -> str:
        """Replace what a memory says, where it is no longer right.

        Args:
            ctx: The run.
            memory_id: The memory's id, from `recall` or `remember`.
            content: What it says from now on.
        """
        update = memories(ctx).ask(UpdateMemory, memory_id=memory_id, content=content)
        saved = await _result(update)
        return f"Memory {saved.memory_id} has version {saved.version} now."

    async def forget(ctx: RunContext[AgentDepsT], memory_id: str) -> str:
        """Forget a memory, such as when the user asks for it.

        Args:
            ctx: The run.
            memory_id: The memory's id, from `recall` or `remember`.
        """
        forgotten = await _result(memories(ctx).ask(ForgetMemory, memory_id=memory_id))
        if forgotten.forgotten == 0:
            raise ModelRetry(f"There is no memory {memory_id!r}; recall returns the ids of those there are.")
        return f"Memory {memory_id} is forgotten."

    return FunctionToolset(
        [remember, recall, update_memory, forget],
        id="greenroom-memories",
        require_parameter_descriptions=True,
    )


async def _result(request: Awaitable[R]) -> R:
    try:
        return await request
    except Refusal as refusal:
        raise ModelRetry(refusal.sentence) from refusal


def _content(hit: MemoryHit) -> Any:
    if isinstance(hit.content, str):
        return hit.content
    return "(too large for a list)" if isinstance(hit.value, UnsetType) else json.loads(bytes(hit.value))
