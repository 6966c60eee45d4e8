"""Arguments of the memory tools, as models give them: where they belong, and what a wrong one is told."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import pytest
from harness import greenroom
from support import agents
from support.agents import FAST, refused, value_of

from greenroom.actors import REQUESTS, ListMemories, RateMemory, StoreMemory, UpdateMemory
from greenroom.actors.core.validation.parse import parse_request
from greenroom.runtime import Actor, Address, Context, InlineCommitter, Message, handles, open_runtime
from greenroom.transports import TOOLS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.agents import Enter

    from greenroom.actors import Agent
    from greenroom.testing import McpClient

VALUE_TYPES = {"string", "number", "boolean", "object", "array", "null"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[McpClient]:
    async with greenroom(tmp_path / "data", "alice") as client:
        await client.initialize()
        yield client


async def error(client: McpClient, tool: str, **arguments: Any) -> tuple[str, str]:
    """Return the field and the sentence of a wrong argument."""
    answer = await client.call(tool, **arguments)
    assert (answer["success"], answer["code"]) == (False, "VALIDATION_ERROR"), answer
    return answer["details"]["field"], answer["error"]


async def shown(client: McpClient, key: str) -> dict[str, Any]:
    memories: list[dict[str, Any]] = (await client.call("list_memories", filters={"key": key}))["memories"]
    return memories[0]


# -- what metadata knows -----------------------------------------------------------------------------

FIELDS: dict[str, Any] = {
    "tags": ["a", "b"],
    "importance": 0.75,
    "scope": "shared",
    "expiry": "2999-01-31T12:00:00Z",
}
SHOWN = {**FIELDS, "expires_at": FIELDS["expiry"]}
del SHOWN["expiry"]


@pytest.mark.promise("memory.beside-metadata")
@pytest.mark.parametrize("tool", ["store_memory", "update_memory"])
async def test_what_metadata_knows_may_stand_beside_it(client: McpClient, tool: str) -> None:
    for key, arguments in (
        ("beside", FIELDS),
        ("within", {"metadata": FIELDS}),
        ("both", {**FIELDS, "metadata": FIELDS}),
    ):
        await client.call("store_memory", key=key, content="x")
        assert (await client.call(tool, key=key, content="y", **arguments))["version"] == 2
        memory = await shown(client, key)
        assert {name: memory[name] for name in SHOWN} == SHOWN
        assert "metadata" not in memory


@pytest.mark.promise("memory.beside-metadata")
async def test_null_beside_metadata_is_not_given_and_within_takes_away(client: McpClient) -> None:
    await client.call("store_memory", key="k", content="x", metadata={"mood": "calm"}, **FIELDS)
    nothing = dict.fromkeys(FIELDS)
    await client.call("update_memory", key="k", content="y", **nothing)
    assert (await shown(client, "k"))["tags"] == ["a", "b"]
    await client.call("update_memory", key="k", metadata={"expiry": None, "mood": None}, tags=[])
    memory = await shown(client, "k")
    assert {"expires_at", "tags", "metadata"}.isdisjoint(memory)
    assert memory["importance"] == 0.75


@pytest.mark.promise("memory.beside-metadata")
@pytest.mark.parametrize("name", FIELDS)
async def test_two_that_differ_are_refused(client: McpClient, name: str) -> None:
    other = {"tags": ["c"], "importance": 0.5, "scope": "public", "expiry": "2998-01-31"}[name]
    given = {name: FIELDS[name], "metadata": {name: other}}
    field, sentence = await error(client, "store_memory", key="k", content="x", **given)
    assert field == name
    assert f"metadata.{name}" in sentence


@pytest.mark.promise("memory.beside-metadata")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tags", ["x" * 201]),
        ("importance", 1.5),
        ("scope", "all"),
        ("expiry", "soon"),
        ("expiry", "2000-01-01"),
    ],
)
async def test_the_limits_are_those_of_metadata(client: McpClient, name: str, value: Any) -> None:
    field, _ = await error(client, "store_memory", content="x", **{name: value})
    within, _ = await error(client, "store_memory", content="x", metadata={name: value})
    assert within == f"metadata.{field}"


# -- wrong arguments ---------------------------------------------------------------------------------


@pytest.mark.promise("recall.tools")
@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "retrieve_memory",
            {"query": "x", "tags": ["a"]},
            "tags: unknown here; it belongs into filters.tags",
        ),
        ("list_memories", {"min_importance": 1}, "unknown here; it belongs into filters.min_importance"),
        ("retrieve_memory", {"filters": {"limit": 1}}, "unknown here; it belongs beside filters, as limit"),
        ("store_memory", {"contnet": "x"}, "contnet: unknown; did you mean content?"),
        ("store_memory", {"text": "x"}, "text: unknown; the arguments are content, value, key"),
        (
            "list_memories",
            {"limit": "500"},
            "limit: it takes a whole number from 1 to 200 and got 500",
        ),
        ("list_memories", {"limit": "five"}, 'got "five", a string; send a number without quotes'),
        ("forget_memory", {"key": "k", "confirm": "yes"}, "a string; send true or false without quotes"),
        ("store_memory", {"content": "x", "importance": "half"}, "a string; send a number without quotes"),
    ],
)
async def test_a_wrong_argument_is_told_what_to_send(
    client: McpClient, tool: str, arguments: dict[str, Any], told: str
) -> None:
    _, sentence = await error(client, tool, **arguments)
    assert told in sentence


IN_THE_REFERENCE_ALONE = {
    "store_memory": {"unreviewed"},
    "update_memory": {"unreviewed"},
    "memory_search": {"min_score", "min_relevance"},
    "retrieve_memory": {"min_score", "min_relevance"},
    "semantic_search": {"min_relevance"},
    "search_code_semantic": {"min_score"},
}
"""Arguments that models seldom need: they are documented and not listed."""


@pytest.mark.parametrize("tool", sorted(REQUESTS))
def test_the_refusal_of_an_unknown_argument_names_those_that_are_listed(tool: str) -> None:
    with refused("VALIDATION_ERROR") as caught:
        parse_request(REQUESTS[tool], b'{"no_such_name": 1}')
    if caught.value.details["field"] == "no_such_name":
        listed = set(TOOLS[tool].listing()["inputSchema"]["properties"])
        assert set(caught.value.details["known"]) - listed <= IN_THE_REFERENCE_ALONE.get(tool, set())
        assert caught.value.sentence.endswith(f"the arguments are {', '.join(caught.value.details['known'])}")


@pytest.mark.promise("recall.tools")
async def test_an_update_that_changes_nothing_is_refused(client: McpClient) -> None:
    await client.call("store_memory", key="k", content="x")
    wanted: list[dict[str, Any]] = [
        {},
        {"metadata": {}},
        {"metadata": None},
        {"tags": None},
        {"value": None},
        {"value": None, "content": None, "metadata": {}, "importance": None},
        optional_nulls("update_memory"),
        {"expected_version": 1},
    ]
    for nothing in wanted:
        field, sentence = await error(client, "update_memory", key="k", **nothing)
        assert field == "content"
        assert "nothing to change" in sentence
    unchanged = await shown(client, "k")
    assert (unchanged["version"], unchanged["content"]) == (1, "x")
    for tool in ("store_memory", "set_memory"):
        await client.call(tool, key="k", value=None)
        assert (await client.call("get_memory", key="k"))["value"] is None


def optional_nulls(tool: str) -> dict[str, None]:
    """Return the arguments that a client sends which can leave none out."""
    schema = TOOLS[tool].listing("nullable")["inputSchema"]["properties"]
    nullable = (name for name, each in schema.items() if "null" in json.dumps(each.get("type", each)))
    return {name: None for name in nullable if name != "key"}


# -- schemas -----------------------------------------------------------------------------------------


@pytest.mark.promise("mcp.tools")
@pytest.mark.parametrize("tool", ["set_memory", "store_memory", "update_memory"])
def test_a_value_has_a_type(tool: str) -> None:
    schema = TOOLS[tool].listing()["inputSchema"]["properties"]
    assert schema["value"]["type"] == "string"
    nullable = TOOLS[tool].listing("nullable")["inputSchema"]["properties"]
    assert set(nullable["value"]["type"]) == VALUE_TYPES
    if tool != "set_memory":
        assert set(FIELDS) <= set(schema)


@pytest.mark.promise("memory.json")
async def test_whatever_its_type_a_value_comes_back_byte_for_byte(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        for raw in ("42", "42.0", '"42"', "true", '{ "a": 1.50 }', "[1 ,2]", "null", "[]", "{}"):
            await ann.ask(StoreMemory(key="k", value=agents.json(raw)))
            assert await value_of(ann, "k") == raw
            if raw != "null":  # which says that nothing is given
                await ann.ask(UpdateMemory(key="k", value=agents.json(raw)))
            assert await value_of(ann, "k") == raw


@pytest.mark.promise("mcp.tools")
def test_the_schema_of_forgetting_says_what_happens() -> None:
    schema = TOOLS["forget_memory"].listing()["inputSchema"]["properties"]
    assert "else they are only listed" in schema["confirm"]["description"]
    assert "history too" in schema["purge"]["description"]


# -- ratings -----------------------------------------------------------------------------------------


async def rate(agent: Agent, rating: float) -> tuple[float, int]:
    rated = await agent.ask(RateMemory(key="k", rating=rating))
    return rated.rating, rated.ratings


@pytest.mark.promise("memory.ratings")
async def test_two_agents_of_one_user_are_two_raters(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        editor, terminal = (at.agent(name, user="ann") for name in ("editor", "terminal"))
        await editor.ask(StoreMemory(key="k", content="x"))
        assert await rate(editor, 1) == (1.0, 1)
        assert await rate(terminal, 0) == (0.5, 2)
        assert await rate(terminal, -1) == (0.0, 2)
        [memory] = (await editor.ask(ListMemories())).memories
        assert (memory.rating, memory.ratings) == (0.0, 2)


class Write(Message[None], frozen=True, kw_only=True):
    """Write the rating of the user Ann for the memory that comes first."""


class OldMemory(Actor):
    """Writes as the program before did: all agents of a user were one rater."""

    kind = "memory"

    @handles(Write)
    def write(self, _: Write, context: Context) -> None:
        first = (1).to_bytes(8)
        digest = blake2b(b":ann", digest_size=16).digest()
        context.put(b"r" + first + digest, (context.now, ":ann", 1.0, None))
        context.put(b"q" + first, (0, None, 1.0, 1))


@pytest.mark.promise("memory.ratings", "memory.upgrade")
async def test_a_rating_of_an_older_program_counts_until_an_agent_of_its_user_rates_anew(
    folder: Path, enter: Enter, clock: Any
) -> None:
    async with open_runtime(
        folder, actors=[OldMemory], clock=clock, committer=InlineCommitter(), options=FAST
    ) as runtime:
        await runtime.ask(Address("memory", "user:ann"), Write())
    async with enter(embedder="none") as at:
        editor, terminal = (at.agent(name, user="ann") for name in ("editor", "terminal"))
        await editor.ask(StoreMemory(key="k", content="x"))
        [memory] = (await editor.ask(ListMemories())).memories
        assert (memory.rating, memory.ratings) == (1.0, 1)
        assert await rate(terminal, -1) == (-1.0, 1)
        assert await rate(editor, 1) == (0.0, 2)


async def test_fields_beside_metadata_are_part_of_what_is_repeated(enter: Enter) -> None:
    async with enter(embedder="none") as at:
        ann = at.agent("alice", user="ann")
        await ann.ask(StoreMemory(key="k", content="x", tags=["a"], idempotency_key="once"))
        repeated = StoreMemory(key="k", content="x", tags=["a"], idempotency_key="once")
        assert (await ann.ask(repeated)).version == 1
        with refused("VERSION_CONFLICT", current_version=1):
            await ann.ask(UpdateMemory(key="k", tags=["b"], expected_version=2))
        assert json.loads(await value_of(ann, "k")) == "x"
