"""LlamaIndex's memory with a block whose memories are in Greenroom."""

from __future__ import annotations

from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage
from support.adapters import CHECKS, Case, Check

from greenroom.actors import Database, Principal
from greenroom.adapters.llama_index import GreenroomMemoryBlock

ALICE = Principal(agent_id="helper", user="alice")


def block(opened: Database, principal: Principal = ALICE, max_tokens: int = 1_000) -> GreenroomMemoryBlock:
    return GreenroomMemoryBlock(database=opened, principal=principal, max_tokens=max_tokens)


async def write(opened: Database, text: str) -> None:
    await block(opened).aput([ChatMessage(text)], from_short_term_memory=True, session_id="chat")


async def read(opened: Database) -> list[str]:
    found = await opened.memory.search_memories("user:alice", limit=100)
    return [memory.value["content"].removeprefix("user: ") for memory in found]


@pytest.mark.promise("adapters.llama-index-contract")
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: Check, tmp_path: Path) -> None:
    check(Case(write, read), tmp_path)
