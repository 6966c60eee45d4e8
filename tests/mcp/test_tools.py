"""The tools as a model sees them: what the listing costs, and that it says the truth."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import jsonschema  # type: ignore[import-untyped]  # mcp brings it without types
import msgspec
import pytest
from harness import greenroom, principal
from support import samples
from support.corpora import document_of
from support.listed import LISTED

from greenroom.actors import REQUESTS, PutDocument, ask_corpus, open_greenroom
from greenroom.actors.app.requests import TOOL_SCOPES as SCOPES
from greenroom.actors.core.auth.tool_profiles import TOOL_PROFILES
from greenroom.actors.core.replies.empty_reasons import EmptyBecause
from greenroom.actors.core.replies.replies import ListReply
from greenroom.runtime import Message, reply_type
from greenroom.testing import MODERN_META, McpClient
from greenroom.transports import TOOLS, Tool
from greenroom.transports.mcp.tools.schema import input_schema, output_schema

INPUT_BUDGET = 12_330
WHOLE_BUDGET = 22_970
ANNOTATIONS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


def tokens(value: Any) -> float:
    return len(msgspec.json.encode(value).decode()) / 4


async def listed(client: McpClient) -> list[dict[str, Any]]:
    await client.initialize()
    tools: list[dict[str, Any]] = (await client.request("tools/list"))["result"]["tools"]
    return tools


@pytest.mark.promise("mcp.tools")
async def test_the_listing_costs_no_more_than_promised(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=("all",)) as client:
        tools = await listed(client)
    assert tokens(tools) <= WHOLE_BUDGET
    for tool in tools:
        del tool["outputSchema"]
    assert tokens(tools) <= INPUT_BUDGET


@pytest.mark.slow
@pytest.mark.promise("mcp.tools")
async def test_every_tool_has_what_a_model_chooses_by(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=("all",)) as client:
        tools = await listed(client)
    assert {tool["name"] for tool in tools} == LISTED
    assert set(SCOPES) == set(REQUESTS)
    assert len({tool["description"] for tool in tools}) == len(tools)
    for tool in tools:
        assert tool["title"]
        assert len(tool["description"]) >= 50
        assert set(tool["annotations"]) == {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        assert tool["annotations"]["openWorldHint"] is False
        # These are done once because of what they hold.
        by_content = {"import_memories", "ingest_documents", "define_entities"}
        writes = "idempotency_key" in tool["inputSchema"]["properties"] or tool["name"] in by_content
        assert tool["annotations"]["readOnlyHint"] is not writes
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert "$ref" not in json.dumps(schema)
            assert "(?" not in json.dumps(schema)


@pytest.mark.promise("mcp.tools", "mcp.eras")
@pytest.mark.parametrize("profile", TOOL_PROFILES)
@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.promise("mcp.tools", "mcp.eras", "mcp.said-once")
async def test_every_answer_is_what_its_schema_says(tmp_path: Path, era: str, profile: str) -> None:
    validators: dict[str, jsonschema.Draft202012Validator] = {}
    objects: dict[str, Any] = {"tags": ["sea"], "importance": 0.7, "scope": "shared", "expiry": "2999-01-01"}
    answered: set[str] = set()

    await fill_corpus(tmp_path)
    async with greenroom(tmp_path, profiles=(profile,)) as client:
        if era == "handshake":
            await client.initialize()
        else:
            client.meta = MODERN_META
        for tool in (await client.request("tools/list"))["result"]["tools"]:
            validators[tool["name"]] = validator_of(tool["outputSchema"], TOOLS[tool["name"]])

        async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
            input_validator(name).validate(arguments)
            answer = await client.request("tools/call", {"name": name, "arguments": arguments})
            result = answer["result"]
            assert not result.get("isError"), result
            validators.get(name, output_validator(name)).validate(result["structuredContent"])
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
            assert result["structuredContent"]["success"] is True
            answered.add(name)
            content: dict[str, Any] = result["structuredContent"]
            return content

        plan = (await call("create_session", purpose="plan", metadata={"a": [1, None]}))["session_id"]
        await call(
            "create_session", purpose="plan", session_id="mine", project_id="p", initial_state={"x": 1.5}
        )
        message = await call("add_message", session_id=plan, content="the naïve plan", metadata={"tag": "x"})
        for visibility in ("private", "agent_only"):
            await call(
                "add_message",
                session_id=plan,
                content="re: plan",
                visibility=visibility,
                parent_message_id=message["message_id"],
            )
        await call("get_session", session_id=plan)
        await call("list_sessions", limit=1)
        await call("list_sessions", status="active", project_id="p")
        await call("get_messages", session_id=plan, limit=1)
        await call(
            "get_messages", session_id=plan, since_id=message["message_id"], visibility_filter="private"
        )
        await call("search_context", session_id=plan, query="plan")
        await call("search_context", session_id=plan, query="plan", recent_hours=None, max_rows_scanned=None)
        await call("search_by_sender", session_id=plan, sender="tester")
        times = {"start_time": "2020-01-01T00:00:00Z", "end_time": "2999-01-01T00:00:00+02:00"}
        await call("search_by_timerange", session_id=plan, **times)
        values: tuple[Any, ...] = (None, "123", 123, [1.5, {"a": True}], {})
        for value in values:
            await call("set_memory", key="k", value=value)
            assert (await call("get_memory", key="k"))["value"] == value
        await call("set_memory", key="k", value=1, session_id=plan, expires_in=60, metadata={"m": 1})
        await call("get_memory", key="k", session_id=plan)
        await call("list_memory", session_id="all", prefix="k", limit=1)
        await call("list_memory")
        await call("delete_memory", key="k")
        await call("delete_memory", key="k", session_id=plan)
        assert not (await call("delete_memory", key="k"))["existed"]
        await call("update_session", session_id=plan, status="paused", metadata={"b": 2}, state={"c": 3})
        await call("update_session", session_id=plan, status="terminated")
        await call("get_session", session_id=plan)
        await call_memory_tools(call, objects)
        await call_others(call, answered)
    assert answered == LISTED


@cache
def input_validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(input_schema(TOOLS[name].request))


@cache
def output_validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(TOOLS[name].listing()["outputSchema"])


def validator_of(listed: dict[str, Any], tool: Tool) -> jsonschema.Draft202012Validator:
    """Return what checks an answer in every part, and for anything else, also where no parts are listed."""
    schema = listed if "properties" in listed else tool.listing()["outputSchema"]
    if issubclass(tool.answer, ListReply):  # which is not listed with each: it says itself what it is
        because = {"empty_because": output_schema(EmptyBecause)}
        schema = {**schema, "properties": schema["properties"] | because}
    return jsonschema.Draft202012Validator({"allOf": [listed, with_nothing_else(schema)]})


def with_nothing_else(schema: Any) -> Any:
    """Return a schema that admits no member which it does not name."""
    if isinstance(schema, list):
        return [with_nothing_else(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: with_nothing_else(value) for key, value in schema.items()}
    return {"additionalProperties": False, **inner} if "properties" in schema else inner


async def fill_corpus(folder: Path) -> None:
    """Make a corpus of the user's whose name is ``docs``."""
    document = document_of("bay.md", [(["The bay"], "boats at anchor"), ([], "and gulls")])
    async with open_greenroom(folder) as runtime:
        put = PutDocument(corpus="docs", document=document)
        await ask_corpus(runtime, principal("tester"), put, make=True)


async def call_others(call: Callable[..., Awaitable[dict[str, Any]]], answered: set[str]) -> None:
    """Call every tool that is listed and has not answered yet."""
    for session in (samples.SESSION, samples.ENDED):
        await call("create_session", purpose="plan", session_id=session)
    await call("end_session", session_id=samples.ENDED)
    for name in samples.in_order():
        if name in LISTED - answered:
            await call(name, **samples.arguments(name))


async def call_document_tools(call: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    """Call every tool of page C in several ways."""
    for detail in ("full", "metadata"):
        await call("semantic_search", query="boats at ankor", corpus="docs", detail_level=detail)
    best = (await call("semantic_search", query="boats", corpus="docs"))["results"][0]["chunk_id"]
    await call("get_full_content", chunk_ids=[best, best + 99], around=1)
    await call("list_corpora")
    texts = [{"path": "notes/bay.md", "text": "# The bay\n\nseals"}, {"path": "x.pdf", "text": "no PDF"}]
    await call("ingest_documents", texts=texts, corpus="docs")
    stripe = {"name": "Gulls", "type": "vendor", "relations": [{"to": "Boat", "type": "follow"}]}
    boat = {"name": "Boat", "type": "service", "aliases": ["gull"], "version": "2"}
    files = [{"name": "go.mod", "text": "require a.b/c v1"}, {"name": "x.yaml", "text": "-"}]
    await call("define_entities", entities=[stripe, boat], files=files, manifests=True, corpus="docs")
    await call("define_entities", remove=["c"], corpus="docs")
    for detail in ("full", "metadata"):
        await call("find_vendor_info", vendor_filter="*", detail_level=detail, corpus="docs")
        await call("semantic_search", query="boats", corpus="docs", detail_level=detail)
    await call("find_entity", vendor_filter="boat", corpus="docs")
    await call("suggest_entities", min_count=1, corpus="docs")


async def call_code_tools(call: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    """Call every tool for code in several ways."""
    await call("search_code_semantic", query="def document_of", limit=2, filters={"file_types": ["py"]})
    for _ in range(2):
        await call("read_file", path="corpora.py", lines="1-3")
    await call("symbol_search", symbol="document_of")
    await call("outline")
    for pattern in ("function document_of", "regex document_of"):
        await call("code_search", pattern=pattern)
    await call("dependency_search", target="document_of")
    await call("similar_files", path="corpora.py")
    await call("read_file", paths=["corpora.py", "gone.py", "/etc/passwd"])


async def call_utility_tools(call: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    """Call every tool that is about nothing that is stored."""
    await call("compress_text", text="The first of all is here. The second one, of 7, is not.", max_tokens=8)
    await call("get_stats", whose="all", days=3)
    await call("health_check")


async def call_workflow_tools(call: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    """Call every tool of workflows in several ways."""
    await call("suggest_next_action")
    for _ in range(2):
        await call("record_workflow_step", command="git pull")
        await call("record_workflow_step", command="make all", success=False, duration_ms=1.5)
        await call("record_workflow_step", command="git push", duration_ms=2)
    await call("get_workflow_patterns", context=["git pull"], limit=1)
    await call("get_workflow_patterns")
    await call("suggest_next_action", context=["git pull", "make it"], limit=2)
    await call("workflow_checkpoint", name="pier", state={"at": [1, None]})
    await call("workflow_checkpoint", name="pier")


async def call_memory_tools(call: Callable[..., Awaitable[dict[str, Any]]], metadata: dict[str, Any]) -> None:
    """Call every tool of pages C, D and E in several ways."""
    await call_document_tools(call)
    await call_code_tools(call)
    await call_utility_tools(call)
    await call_workflow_tools(call)
    await call("set_preferences", preferences={})
    await call("set_preferences", preferences='{"theme": "dark"}', expected_version=0)
    for value in (None, "123", [1.5, {"a": True}]):
        await call("store_memory", key="value", value=value, namespace="project:atlas:ui")
    await call("store_memory", content="the harbour opens at six", key="harbour", metadata=metadata)
    first = await call("store_memory", content="the harbour opens at six o'clock", kind="episodic")
    assert first["similar"]
    newer = await call(
        "store_memory", content="it opens at five", supersedes=first["memory_id"], author="mate",
        conversation_id="log", position=3,
    )  # fmt: skip
    await call("store_memory", content="the harbour " * 2_000, key="long")
    await call("update_memory", memory_id=newer["memory_id"], metadata={"mood": "calm"})
    await call("rate_memory", key="harbour", rating=-0.5, note="late")
    for arguments in (
        {"query": "harbour", "include_debug": True},
        {"query": "harbour", "mode": "hybrid", "include_debug": True, "time_expr": "today"},
        {"query": "opens at", "mode": "exact", "max_tokens": 100},
        {"tags": ["sea"], "limit": 1},
    ):
        await call("memory_search", **arguments)
    await call("retrieve_memory", query="harbour", filters={"tags": ["sea"]}, decompress=False)
    await call("retrieve_memory", key="long")
    await call("retrieve_memory", key="long", decompress=False)
    await call("recall_context", task="enter the harbour", max_tokens=300)
    await call("list_memories", limit=1)
    await call("list_memories", filters={"superseded": True}, max_tokens=200)
    await call("list_memory_versions", key="harbour")
    await call("memory_stats")
    await call("memory_stats", namespace="project:atlas")
    line = json.dumps({"key": "imported", "content": "the pier is closed"})
    await call("import_memories", source=line, dry_run=True)
    await call("import_memories", source=line)
    await call("export_memories")
    started = await call("start_session", workspace_path="/home/user/harbour", purpose="survey")
    await call("record_context", files_accessed=[{"path": "chart.py"}], workflow_state={"task": "survey"})
    await call("get_session_context")
    handed = await call("migrate_session", to_tool="zed")
    await call("restore_session", passport=handed["claim"])
    await call("start_session", restore_from=started["session_id"], tool_id="zed")
    exported = await call("export_session", include_memories=True)
    await call("restore_session", passport=exported["claim"])
    await call("end_session", summary="surveyed")
    await call("reopen_session", session_id=started["session_id"])
    await call("start_session", workspace_path="/home/user/harbour", new=True)
    await call("record_context", decisions=[{"what": "two of them now"}])
    await call("start_session", workspace_path="/home/user/harbour")
    await call("forget_memory", filters={"tags": ["sea"]})
    await call("forget_memory", filters={})
    await call("forget_memory", key="long", purge=True)


@pytest.mark.promise("mcp.eras")
async def test_both_eras_get_the_same_answers(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        session = (await client.call("create_session", purpose="eras"))["session_id"]
        for content in ("one plan", "another plan"):
            await client.call("add_message", session_id=session, content=content)
        await client.call("set_memory", key="k", value={"a": 1.0})
    questions: list[tuple[str, dict[str, Any]]] = [
        ("get_session", {"session_id": session}),
        ("get_session", {"session_id": "nobody"}),
        ("list_sessions", {}),
        ("get_messages", {"session_id": session, "limit": 1}),
        ("get_messages", {"session_id": session, "limit": 0}),
        ("search_context", {"session_id": session, "query": "plan"}),
        ("get_memory", {"key": "k"}),
        ("list_memory", {"prefix": 1}),
        ("get_rich", {}),
        ("memory_search", {}),
        ("recall_memory", {}),
        ("memory_stats", {}),
    ]
    answers: dict[str, list[Any]] = {"handshake": [], "modern": []}
    for era, heard in answers.items():
        async with greenroom(tmp_path) as client:
            if era == "modern":
                client.meta = MODERN_META
            else:
                await client.initialize()
            for tool, arguments in questions:
                answer = await client.request("tools/call", {"name": tool, "arguments": arguments})
                result = answer.get("result", {})
                kept = [result.get(part) for part in ("isError", "content", "structuredContent")]
                heard.append((kept, answer.get("error")))
    assert answers["handshake"] == answers["modern"]


@pytest.mark.promise("mcp.limits")
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("create_session", {"purpose": "p" * 501}, ("purpose", "500", "501")),
        ("create_session", {"purpose": ""}, ("purpose", "1", "0")),
        ("search_by_sender", {"session_id": "s", "sender": "x", "limit": 101}, ("limit", "100", "101")),
        ("set_memory", {"key": "k" * 256, "value": 1}, ("key", "255", "256")),
        ("set_memory", {"key": "k", "value": "x" * 1_048_577}, ("value", "1,048,576", "1,048,579")),
    ],
    ids=["long", "empty", "number", "key", "value"],
)
async def test_a_violated_limit_is_named(
    tmp_path: Path, tool: str, arguments: dict[str, Any], words: tuple[str, ...]
) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize()
        failure = await client.call(tool, **arguments)
    assert failure["code"] == "VALIDATION_ERROR"
    assert all(word in failure["error"] for word in words), failure["error"]


class Inner(msgspec.Struct):
    """A programmer's words."""

    value: msgspec.Raw
    times: list[int] = []


class Reply(msgspec.Struct):
    """A programmer's words."""

    inner: Inner | None
    every: list[Inner]
    kind: str = "x"


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """A programmer's words."""

    name: str
    inner: Inner
    limit: int | None = 24
    note: str | None = None


def test_a_schema_is_written_without_references_and_words_for_programmers() -> None:
    inner = {
        "type": "object",
        "properties": {"value": {}, "times": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
    }
    assert output_schema(Reply) == {
        "type": "object",
        "properties": {
            "inner": {**inner, "type": ["object", "null"]},
            "every": {"type": "array", "items": inner},
            "kind": {"type": "string"},
        },
        "required": ["inner", "every"],
    }
    assert "programmer" not in json.dumps(input_schema(Request))
    assert input_schema(Request)["properties"]["limit"] == {"type": ["integer", "null"], "default": 24}
    assert input_schema(Request)["properties"]["note"] == {"type": ["string", "null"]}


def test_a_request_must_say_what_it_is_answered_with() -> None:
    with pytest.raises(TypeError, match="Reply"):
        reply_type(Reply)


def test_every_answer_can_be_read_by_another_process() -> None:
    answers = [reply_type(message) for message in messages(Message) if is_answered(message)]
    assert len(answers) > 100
    for answer in answers:
        for variant in get_args(answer) if get_origin(answer) is UnionType else (answer,):
            msgspec.json.Decoder(variant)


def messages(kind: type[Any]) -> Iterator[type[Any]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from messages(derived)


def is_answered(message: type[Any]) -> bool:
    """Return whether a class is a message of Greenroom's, and no base of others."""
    try:
        reply_type(message)
    except TypeError:
        return False
    return message.__module__.startswith("greenroom.")
