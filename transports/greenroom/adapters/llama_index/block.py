"""A memory block of LlamaIndex's `Memory`, over the memories of a user."""

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
from greenroom.adapters.base.memories import MemoryRequests, encoded
from greenroom.runtime import Refusal

with needs("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage, ContentBlock, MessageRole, TextBlock
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.utils import count_tokens
    from pydantic import Field, SkipValidation

MOST_ASKED = 10_000
"""Characters of a search."""


class GreenroomMemoryBlock(BaseMemoryBlock[list[ContentBlock]]):
    """A block for ``Memory.from_defaults(memory_blocks=[…])`` that keeps and finds a user's memories.

    What leaves the short-term memory is kept as memories in the namespace of the principal's user, or of the
    agent where there is no user. What is put into the model's context is what helps with the newest message
    of the user, out of all memories there: of this chat, of earlier ones, and what MCP clients stored.

    Each message with a text is one memory. The same text of the same role in the same chat is kept once, so
    a flush that is repeated doubles nothing.

    Attributes:
        database: An open database.
        principal: Whose memories they are.
        max_tokens: How much is recalled at most, in tokens by an estimate (bytes of UTF-8 by 4). What
            says where a memory is counts, too: some 80 tokens each.
        priority: LlamaIndex's: 0 is never cut. By default it is cut when the context gets too long.
    """

    name: str = "Greenroom"
    priority: int = 1
    database: SkipValidation[Database] = Field(exclude=True)
    principal: SkipValidation[Principal] = Field(exclude=True)
    max_tokens: int = Field(default=1_000, ge=1, le=1_000_000)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, **_block_kwargs: Any
    ) -> list[ContentBlock]:
        """Return what helps with the newest message of the user, the best first, a block each.

        Raises:
            Refusal: Greenroom cannot tell now.
        """
        task = _newest_of_user(messages or [])
        if not task:
            return []
        recalled = await self._memories().query(RecallContext, task=task, max_tokens=self.max_tokens)
        return [TextBlock(text=_said(memory)) for memory in recalled.memories]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep each message that has a text, as a memory of its own.

        Raises:
            Refusal: Greenroom does not take it: it is too large, or the store is full. What was kept before
                is kept, and the same messages again double nothing.
        """
        memories = self._memories()
        for message in messages:
            if not (message.content or "").strip():
                continue
            session = message.additional_kwargs.get("session_id")
            try:
                await memories.ask(StoreMemory, **_memory(message, session))
            except Refusal as refusal:
                if refusal.code != "VERSION_CONFLICT":  # which it is when the message is there already
                    raise

    async def atruncate(
        self, content: list[ContentBlock], tokens_to_truncate: int
    ) -> list[ContentBlock] | None:
        """Return what is left when the last, which help least, are gone; None when none is.

        Args:
            content: What the block gave.
            tokens_to_truncate: How many tokens are to go at least, by LlamaIndex's tokenizer.
        """
        kept = list(content)
        while kept and tokens_to_truncate > 0:
            last = kept.pop()
            tokens_to_truncate -= count_tokens(last.text) if isinstance(last, TextBlock) else 0
        return kept or None

    def _memories(self) -> MemoryRequests:
        return MemoryRequests(self.database, self.principal, user_namespace(self.principal))


def _newest_of_user(messages: list[ChatMessage]) -> str:
    """Return the end of what the user said last; of a chat without a user, of what was said last."""
    said = [message for message in messages if message.content]
    of_user = [message for message in said if message.role == MessageRole.USER] or said
    return ((of_user[-1].content or "") if of_user else "").strip()[-MOST_ASKED:]


def _memory(message: ChatMessage, session: str | None) -> dict[str, Any]:
    """Return the arguments that keep a message, unless it is there."""
    named = encoded([session, message.role.value, message.content])
    return {
        "key": f"llama-index-{blake2b(named, digest_size=20).hexdigest()}",
        "content": f"{message.role.value}: {message.content}",
        "kind": "episodic",
        "tags": ["conversation"],
        "conversation_id": session and session[:255],
        "expected_version": 0,
    }


def _said(memory: RecalledMemory) -> str:
    """Return a memory as the model reads it: when it was stored, and what it says."""
    value = "" if isinstance(memory.value, UnsetType) else bytes(memory.value).decode()
    return f"[{memory.created_at:%Y-%m-%d}] {value if memory.content is None else memory.content}"
