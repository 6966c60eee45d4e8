"""Stories of a memory layer's client: the SDK's own, over stdio, each visit at a process of its own."""

from __future__ import annotations

import base64
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from support.sdk_clients import answer, served

pytestmark = [pytest.mark.slow, pytest.mark.promise("memory.stories")]


@asynccontextmanager
async def visit(home: Path) -> AsyncIterator[Client]:
    """Connect a client that starts its server, as AI tools do."""
    async with served(home, "stdio", "--tools", "universal-memory") as connect, connect("legacy") as client:
        yield client


async def test_a_memory_is_got_back_by_its_key(tmp_path: Path) -> None:
    about = {"tags": ["port"], "importance": 0.8}
    async with visit(tmp_path) as client:
        stored = await answer(
            client, "omn_store_memory", content="The gateway listens on 8080.", key="port", metadata=about
        )
        assert (stored["version"], stored["compressed"], stored["compression_ratio"]) == (1, False, 1.0)
    async with visit(tmp_path) as client:
        found = await answer(client, "omn_retrieve_memory", key="port")
    (memory,) = found["memories"]
    assert memory["memory_id"] == stored["memory_id"]
    assert memory["content"] == "The gateway listens on 8080."
    assert {name: memory[name] for name in about} == about
    assert found["total_found"] == 1


@pytest.mark.quick
async def test_of_three_memories_the_right_one_is_found_by_its_meaning(tmp_path: Path) -> None:
    async with visit(tmp_path) as client:
        for key, content in (
            ("database", "We chose PostgreSQL for the orders, because of its transactions."),
            ("coffee", "The espresso machine in the kitchen needs descaling each month."),
            ("holiday", "Nobody deploys in the last week of December."),
        ):
            await answer(client, "store_memory", content=content, key=key)
        for question, key in (
            ("which SQL server stores purchases?", "database"),
            ("how do I clean the cappuccino maker?", "coffee"),
            ("may I release software at Christmas?", "holiday"),
        ):
            found = (await answer(client, "retrieve_memory", query=question))["memories"]
            assert found[0]["key"] == key, (question, [memory["key"] for memory in found])
            assert found[0]["relevance_score"] == max(memory["relevance_score"] for memory in found)


async def test_a_long_memory_is_stored_compressed_and_read_whole(tmp_path: Path) -> None:
    long = "\n".join(
        f"{hour:05} the harbour is open, and the wind comes from the west" for hour in range(400)
    )
    async with visit(tmp_path) as client:
        stored = await answer(client, "store_memory", content=long, key="log")
        assert stored["compressed"]
        assert stored["size_bytes"] < len(long) / 4
        assert stored["compression_ratio"] == pytest.approx(stored["size_bytes"] / len(long), abs=0.0001)
        told = await answer(client, "memory_stats")
        assert (told["bytes"], told["stored_bytes"]) == (len(long), stored["size_bytes"])
    async with visit(tmp_path) as client:
        (whole,) = (await answer(client, "retrieve_memory", key="log"))["memories"]
        assert whole["content"] == long
        (packed,) = (await answer(client, "retrieve_memory", key="log", decompress=False))["memories"]
    form = packed["compressed"]
    assert "content" not in packed
    assert (form["format"], form["member"]) == ("zlib", "content")
    data = base64.b64decode(form["data"])
    assert len(data) == stored["size_bytes"]
    assert zlib.decompress(data).decode() == long
