"""Schemas of parameters: plain, as every provider takes them, and with null for OpenAI's strict mode."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from harness import greenroom
from support.provider_rules import OPENAI_STRICT, PROVIDERS, Provider, Rule, faults

from greenroom.actors.core.auth.tool_profiles import TOOL_PROFILES, SchemaForm
from greenroom.transports import TOOLS
from greenroom.transports.auth.caller import ToolChoice
from greenroom.transports.mcp.tools.offered_tools import ToolOffer, ToolOffers

if TYPE_CHECKING:
    from pathlib import Path

OFFERS = ToolOffers(TOOLS, ("core",))
RULES = [
    pytest.param(provider, rule, id=f"{name}: {rule.name}")
    for name, provider in {**PROVIDERS, "OpenAI, strict": OPENAI_STRICT}.items()
    for rule in provider.rules
]


def offered(profile: str, form: SchemaForm) -> tuple[ToolOffer, list[dict[str, Any]]]:
    """Return all that a profile lists to the holder of every scope."""
    offer = OFFERS.of(ToolChoice((profile,), form))
    return offer, offer.listing_of(offer.listed)


def strict(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool whose parameters OpenAI Agents have made strict."""
    from agents.strict_schema import ensure_strict_json_schema  # noqa: PLC0415 - it takes two seconds

    return {**tool, "inputSchema": ensure_strict_json_schema(copy.deepcopy(tool["inputSchema"]))}


# -- the table ---------------------------------------------------------------------------------------


@pytest.mark.promise("mcp.schemas")
@pytest.mark.parametrize("profile", TOOL_PROFILES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_takes_every_tool(provider: str, profile: str) -> None:
    _, tools = offered(profile, "plain")
    assert tools
    assert {tool["name"]: said for tool in tools if (said := faults(PROVIDERS[provider], tool))} == {}


@pytest.mark.promise("mcp.schemas")
def test_every_tool_that_is_listed_under_no_profile_is_taken_as_well() -> None:
    for tool in TOOLS.values():
        entry = tool.listing()
        for name, provider in PROVIDERS.items():
            assert faults(provider, entry) == [], (name, tool.name)


@pytest.mark.slow
@pytest.mark.promise("mcp.strict")
@pytest.mark.parametrize("profile", TOOL_PROFILES)
def test_openais_strict_mode_takes_every_tool_that_is_listed_with_null(profile: str) -> None:
    _, tools = offered(profile, "nullable")
    assert {tool["name"]: said for tool in tools if (said := faults(OPENAI_STRICT, strict(tool)))} == {}


@pytest.mark.promise("mcp.strict")
@pytest.mark.parametrize("profile", TOOL_PROFILES)
def test_strict_mode_takes_objects_of_which_a_client_changes_the_outermost_alone(profile: str) -> None:
    _, tools = offered(profile, "nullable")
    for tool in tools:
        schema = tool["inputSchema"]
        changed = {**schema, "required": list(schema["properties"])}
        assert faults(OPENAI_STRICT, {**tool, "inputSchema": changed}) == [], tool["name"]
        untyped = {name for name, field in schema["properties"].items() if "type" not in field}
        assert not untyped, (tool["name"], "smolagents makes texts of these")


@pytest.mark.parametrize(("provider", "rule"), RULES)
def test_the_table_sees_what_breaks_a_rule(provider: Provider, rule: Rule) -> None:
    tool = {"name": "tool", "description": "A tool.", "inputSchema": rule.example}
    assert rule.name in faults(provider, tool)


# -- what may be left out ----------------------------------------------------------------------------


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a value of a schema, without what may be left out."""
    if "enum" in schema:
        return schema["enum"][0]
    types = schema["type"]
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    match types if isinstance(types, str) else types[0]:
        case "object":
            return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [sample(schema["items"])]
        case kind:
            return {"string": "a" * 12, "integer": 1, "number": 1.0, "boolean": True}[kind]


def members(schema: Mapping[str, Any], *holders: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the members of an object that may be left out, those within its objects as well."""
    for name, field in schema["properties"].items():
        place = (*holders, name)
        if name not in schema.get("required", ()):
            yield place, field
        if field.get("type") in (
            "object",
            ["object", "null"],
        ):  # what may also be text has no parameters within
            yield from members(field, *place)


def filled(schema: Mapping[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return arguments, all that is required and at this place the value; ``...`` leaves it out."""
    arguments = inside = sample(schema)
    for holder in place[:-1]:
        schema = schema["properties"][holder]
        inside = inside.setdefault(holder, sample(schema))
    if value is not ...:
        inside[place[-1]] = value
    return arguments  # type: ignore[no-any-return]


MEANS_ALL = {"recent_hours", "max_rows_scanned"}
"""Null is a value of theirs; left out, they have another one."""


@pytest.mark.promise("mcp.strict")
@pytest.mark.parametrize("profile", TOOL_PROFILES)
def test_under_null_every_optional_argument_can_be_left_out(profile: str) -> None:
    offer, tools = offered(profile, "nullable")
    seen = 0
    for tool in tools:
        parse = offer.tools[tool["name"]].parse
        schema = tool["inputSchema"]
        for place, field in members(schema):
            absent = parse(json.dumps(filled(schema, place, ...)).encode())
            value = default_of(field) if place[-1] in MEANS_ALL else left_out(field)
            given = parse(json.dumps(filled(schema, place, value)).encode())
            assert what_is_given(given) == what_is_given(absent), (tool["name"], place, value)
            seen += 1
    assert seen


def what_is_given(request: Any) -> Any:
    """Return a request without what is null in it, or was not given."""
    return without_null(msgspec.json.decode(msgspec.json.encode(request)))


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return value


def default_of(field: Mapping[str, Any]) -> Any:
    """Return the default that a description tells; an array without one is empty."""
    if field["type"] == "array":
        return []
    told = field["description"].rpartition("default ")[2]
    if field["type"] == "string":
        return told.strip('"')
    return json.loads(told)


@pytest.mark.slow
@pytest.mark.promise("mcp.strict")
async def test_a_client_that_can_leave_nothing_out_stores_and_updates_as_others_do(tmp_path: Path) -> None:
    async with greenroom(tmp_path, schemas="nullable") as client:
        await client.initialize()
        listed = {each["name"]: each for each in (await client.request("tools/list"))["result"]["tools"]}

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            schema = strict(listed[tool])["inputSchema"]
            assert schema["required"] == list(schema["properties"])
            parameters = listed[tool]["inputSchema"]
            optional = parameters["properties"].keys() - set(parameters.get("required", ()))
            whole = {name: left_out(parameters["properties"][name]) for name in optional}
            answer: dict[str, Any] = await client.call(tool, **whole | arguments)
            assert answer["success"] is True, answer
            return answer

        await call("store_memory", key="k", content="We deploy on Thursdays.", tags=["ops"], importance=0.9)
        await call("update_memory", key="k", kind="procedural")
        await call("update_memory", key="k", tags=["release"])
        assert (await call("get_memory", key="k"))["value"] == "We deploy on Thursdays."
        await call("update_memory", key="k", content="We deploy on Fridays.")
        [memory] = (await call("list_memories"))["memories"]
        assert (memory["tags"], memory["kind"], memory["importance"]) == (["release"], "procedural", 0.9)
        assert (await call("get_memory", key="k"))["value"] == "We deploy on Fridays."
        await call("store_memory", key="j", value={"a": None})
        assert (await call("get_memory", key="j"))["value"] == {"a": None}
        await call("start_session", purpose="plan")
        sent = await call("add_message", content="done")
        found = await call("search_context", query="done")
        assert [each["message"]["message_id"] for each in found["results"]] == [sent["message_id"]]


def left_out(field: Mapping[str, Any]) -> Any:
    """Return what a client gives for an argument that it would leave out."""
    return None if "null" in field["type"] else default_of(field)
