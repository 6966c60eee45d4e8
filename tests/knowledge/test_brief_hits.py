"""Hits of searches: what ten of them cost, and that they say nothing that is null or empty."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from harness import server_process
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.core.replies.paging import estimate_tokens
from greenroom.actors.knowledge.corpora.requests.code_filters import cut_excerpt
from greenroom.testing import McpClient

pytestmark = pytest.mark.slow

MOST_TOKENS = 1_000
QUESTIONS = [
    "retry after a failed commit",
    "where are expired rows removed",
    "StoreTooNewError",
    "how does an attached process learn that the owner died",
    "scan page snapshot",
]
HITS = ("results", "matches", "definitions", "references", "memories", "chunks", "entities", "relationships")


@asynccontextmanager
async def served(home: Path, tree: Path, profile: str) -> AsyncIterator[McpClient]:
    flags = ("--embedder", "none", "--workspace", str(tree), "--tools", profile)
    async with server_process(home, *flags) as server:
        await server.client.initialize()
        yield server.client


async def indexed(client: McpClient) -> None:
    """Wait until the workspace is indexed."""
    while (await client.call("search_code_semantic", query="x"))["freshness"]["state"] != "watching":
        pass


@pytest.mark.promise("code.brief")
async def test_ten_results_of_a_real_tree_cost_less_than_a_thousand_tokens(tmp_path: Path) -> None:
    tree = (tmp_path / "tree").resolve()
    shutil.copytree(Path(__file__).parents[2] / "runtime", tree, ignore=shutil.ignore_patterns("__pycache__"))
    async with served(tmp_path / "home", tree, "all") as client:
        await indexed(client)
        for query in QUESTIONS:
            found = await client.call("search_code_semantic", query=query)
            assert len(found["results"]) == 10
            assert estimate_tokens(msgspec.json.encode(found)) < MOST_TOKENS, query
            assert all(each["excerpt"] for each in found["results"])
        for tool, arguments, hits in (
            ("code_search", {"pattern": "function *o*"}, "matches"),
            ("symbol_search", {"symbol": "*s*"}, "definitions"),
        ):
            found = await client.call(tool, **arguments, limit=10)
            assert len(found[hits]) == 10
            brief = {**found, "references": []}
            assert estimate_tokens(msgspec.json.encode(brief)) < MOST_TOKENS, tool


@pytest.mark.quick
@pytest.mark.promise("code.brief", "knowledge.disclosure")
@pytest.mark.parametrize("profile", ["all", "core", "code", "shared-context"])
async def test_hits_have_nothing_that_is_null_or_empty(tmp_path: Path, profile: str) -> None:
    async with served(tmp_path / "home", small_tree(tmp_path), profile) as client:
        seen = {place async for place, hit in hits_of(client) if is_empty_in(hit)}
    assert seen == set()


@pytest.mark.promise("knowledge.disclosure")
async def test_the_profile_of_a_system_has_the_members_that_it_names_also_where_they_are_empty(
    tmp_path: Path,
) -> None:
    tree = small_tree(tmp_path)
    async with served(tmp_path / "one", tree, "knowledge") as client:
        seen = {place: is_empty_in(hit) async for place, hit in hits_of(client) if is_empty_in(hit)}
        assert seen == {
            "semantic_search results": ["entity_id", "entity_type", "vendor_names"],
            "semantic_search metadata results": ["entity_id", "entity_type"],
            "get_full_content chunks": ["entity_id", "entity_type", "vendor_names"],
            "find_vendor_info entities": ["description", "source_chunks"],
        }
    async with served(tmp_path / "services", tree, "services") as client:
        seen = {place: is_empty_in(hit) async for place, hit in hits_of(client) if is_empty_in(hit)}
        assert seen == {"memory_search memories": ["metadata"]}
    for profile in ("memory-search", "universal-memory"):
        async with served(tmp_path / profile, tree, profile) as client:
            seen = {place: is_empty_in(hit) async for place, hit in hits_of(client) if is_empty_in(hit)}
            assert seen == {"memory_search memories": ["expires_at", "tags"]}


@given(st.text('ab \n\t"é漢😀\\', max_size=2_000), st.text("ab ", max_size=20), st.integers(20, 400))
def test_an_excerpt_has_room_and_lines_of_its_text(text: str, query: str, room: int) -> None:
    shown = cut_excerpt(text, query, room)
    assert len(msgspec.json.encode(shown)) <= room
    lines = [line.strip() for line in text.expandtabs(4).splitlines()]
    assert all(any(each.strip() in line for line in lines) for each in shown.splitlines())
    assert bool(shown) == bool(text.strip())


def test_an_excerpt_begins_where_most_words_of_the_query_are() -> None:
    text = "class Ship:\n\n    def sail(self):\n\n    def drop_anchor(self, depth):\n        # anchor\n"
    assert cut_excerpt(text, "anchor depth", 60) == "def drop_anchor(self, depth):\n    # anchor"
    assert cut_excerpt(text, "nothing of it", 40) == "class Ship:\n    def sail(self):"


def small_tree(tmp_path: Path) -> Path:
    """Return a workspace whose files have no summary, and uses at the top of a file."""
    tree = (tmp_path / "code").resolve()
    tree.mkdir()
    (tree / "ship.py").write_text("def sail():\n    pass\n")
    (tree / "run.py").write_text("from ship import sail\nsail()\n")
    return tree


async def hits_of(client: McpClient) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the hits of each search, and of what."""
    await indexed(client)
    await client.call("ingest_documents", texts=[{"path": "a.md", "text": "boats at anchor"}])
    await client.call("define_entities", entities=[{"name": "Acme", "type": "vendor"}])
    await client.call("store_memory", content="boats at anchor", key="boats")
    for tool, arguments in (
        ("search_code_semantic", {"query": "sail"}),
        ("symbol_search", {"symbol": "sail"}),
        ("code_search", {"pattern": "function sail"}),
        ("code_search", {"pattern": "calls sail"}),
        ("semantic_search", {"query": "anchor"}),
        ("semantic_search", {"query": "anchor", "detail_level": "metadata"}),
        ("find_vendor_info", {"vendor_filter": "Acme"}),
        ("memory_search", {"query": "anchor"}),
    ):
        found = await client.call(tool, **arguments)
        assert any(found.get(each) for each in HITS), (tool, found)
        for place, hit in within(found):
            detail = f" {level}" if (level := arguments.get("detail_level")) else ""
            yield f"{tool}{detail} {place}", hit
            if tool == "semantic_search":
                read = await client.call("get_full_content", chunk_ids=[hit["chunk_id"]])
                for _, chunk in within(read):
                    yield "get_full_content chunks", chunk


def within(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((place, hit) for place in HITS for hit in found.get(place, ()))


def is_empty_in(hit: dict[str, Any]) -> list[str]:
    """Return the members of a hit that are null or empty."""
    return sorted(name for name, value in hit.items() if value is None or value in ("", [], {}))
