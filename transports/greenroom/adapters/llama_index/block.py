"""A memory block for LlamaIndex's `Memory`, over the memories of a user."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from msgspec import UnsetType

from greenroom.actors import (
    Database,
    Principal,
    RecallContext,
    RecalledMemory,
    StoreMemory,
    user_namespace,
)
from greenroom.adapters.base.extras import needs
from greenroom.adapters.base.memories import MemoryRequests, encode
from greenroom.runtime import Refusal

with needs("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage, ContentBlock, MessageRole, TextBlock
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.utils import count_tokens
    from pydantic import Field, SkipValidation

MOST_ASKED = 10_000
"""The most characters of a query."""


class GreenroomMemoryBlock(BaseMemoryBlock[list[ContentBlock]]):
    """A block for ``Memory.from_defaults(memory_blocks=[…])`` that stores and recalls a user's memories.

    Messages that leave the short-term memory become memories in the namespace of the principal's user, or of
    the agent without a user. The model's context gets the memories there that help with the user's newest
    message: from this chat, from earlier chats, and from MCP clients.

    Each message with a text is one memory. The same text of the same role in the same chat is stored once, so
    a repeated flush adds nothing.

    Attributes:
        database: An open database.
        principal: The owner of the memories.
        max_tokens: The token budget of a recall; four bytes of UTF-8 are a token. The source of each memory
            counts, too: some 80 tokens.
        priority: LlamaIndex's. With 0 the block is never cut; by default a too long context cuts it.
    """

    name: str = "Greenroom"
    priority: int = 1
    database: SkipValidation[Database] = Field(exclude=True)
    principal: SkipValidation[Principal] = Field(exclude=True)
    max_tokens: int = Field(default=1_000, ge=1, le=1_000_000)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, **_block_kwargs: Any
    ) -> list[ContentBlock]:
        """Return the memories that help with the user's newest message, best first, one block each."""
        task = _newest_of_user(messages or [])
        if not task:
            return []
        recalled = await self._memories().query(RecallContext, task=task, max_tokens=self.max_tokens)
        return [TextBlock(text=_render(memory)) for memory in recalled.memories]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store each message with a text; after a refusal, a second call adds the rest."""
        memories = self._memories()
        for message in messages:
            if not (message.content or "").strip():
                continue
            session = message.additional_kwargs.get("session_id")
            try:
                await memories.ask(StoreMemory, **_memory(message, session))
            except Refusal as refusal:
                if refusal.code != "VERSION_CONFLICT":  # a conflict: the message is stored already
                    raise

    async def atruncate(
        self, content: list[ContentBlock], tokens_to_truncate: int
    ) -> list[ContentBlock] | None:
        """Drop the last blocks, which help least; return None if none is left."""
        kept = list(content)
        while kept and tokens_to_truncate > 0:
            last = kept.pop()
            tokens_to_truncate -= count_tokens(last.text) if isinstance(last, TextBlock) else 0
        return kept or None

    def _memories(self) -> MemoryRequests:
        return MemoryRequests(self.database, self.principal, user_namespace(self.principal))


def _newest_of_user(messages: list[ChatMessage]) -> str:
    """Return the end of the user's last message, else of the last message."""
    with_text = [message for message in messages if message.content]
    of_user = [message for message in with_text if message.role == MessageRole.USER] or with_text
    return ((of_user[-1].content or "") if of_user else "").strip()[-MOST_ASKED:]


def _memory(message: ChatMessage, session: str | None) -> dict[str, Any]:
    """Return the arguments that store a message once."""
    name = encode([session, message.role.value, message.content])
    return {
        "key": f"llama-index-{blake2b(name, digest_size=20).hexdigest()}",
        "content": f"{message.role.value}: {message.content}",
        "kind": "episodic",
        "tags": ["conversation"],
        "conversation_id": session and session[:255],
        "expected_version": 0,
    }


def _render(memory: RecalledMemory) -> str:
    """Render a memory for the model: the date of storage, and its content."""
    value = "" if isinstance(memory.value, UnsetType) else bytes(memory.value).decode()
    return f"[{memory.created_at:%Y-%m-%d}] {value if memory.content is None else memory.content}"
