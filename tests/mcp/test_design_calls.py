"""The calls of the five systems whose clients Greenroom serves: each is taken, and answered as there."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from harness import principal
from support.designs import DESIGNS, RESOURCES, UNIVERSAL_MEMORY

from greenroom.actors import (
    Agent,
    MemoryService,
    Reach,
    SearchService,
    SessionService,
    open_greenroom,
    open_workspaces,
)
from greenroom.actors.core.auth.tool_profiles import TOOL_PROFILES
from greenroom.testing import McpClient, mcp_client
from greenroom.transports import TOOLS

MISSING: Final = object()


@asynccontextmanager
async def client_of(tmp_path: Path, profile: str) -> AsyncIterator[McpClient]:
    folder = (tmp_path / "code").resolve()
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src/anchor.py").write_text(
        "def drop_anchor(depth):\n    return depth\n\n\ndef haul():\n    pass\n"
    )
    (folder / "src/ship.py").write_text("from src.anchor import drop_anchor\n\ndrop_anchor(1)\n")
    own = (str(tmp_path / "data"), str(tmp_path / "secrets"))
    reach = Reach(closed=own, workspaces=(str(folder),))
    async with (
        open_greenroom(own[0], secrets=own[1], embedder="none") as runtime,
        open_workspaces(runtime) as kept,
        mcp_client(
            lambda name: Agent(runtime, principal(name), reach=reach, workspaces=kept),
            profiles=(profile,),
        ) as client,
    ):
        await client.initialize()
        while (await client.call("search_code_semantic", query="x"))["freshness"]["state"] != "watching":
            pass
        yield client


def missing(answer: Any, has: Sequence[str]) -> list[str]:
    return [path for path in has if member(answer, path, MISSING) is MISSING]


def member(answer: Any, path: str, default: Any = None) -> Any:
    for name in path.split("."):
        try:
            answer = answer[int(name)] if isinstance(answer, list) else answer[name]
        except (KeyError, IndexError, TypeError):
            return default
    return answer


def filled(given: Any, kept: Mapping[str, Any]) -> Any:
    if isinstance(given, Mapping):
        return {name: filled(value, kept) for name, value in given.items()}
    if isinstance(given, list):
        return [filled(value, kept) for value in given]
    return kept[given[1:]] if isinstance(given, str) and given.startswith("$") else given


@pytest.mark.slow
@pytest.mark.promise("mcp.designs")
@pytest.mark.parametrize("profile", DESIGNS)
async def test_each_call_is_taken_and_answered_as_its_system_has_it(tmp_path: Path, profile: str) -> None:
    faults: list[str] = []
    kept: dict[str, Any] = {"workspace": str((tmp_path / "code").resolve())}
    async with client_of(tmp_path, profile) as client:
        for call in DESIGNS[profile]:
            arguments = filled(call.arguments, kept)
            answer = await client.call(call.tool, **arguments)
            if answer["success"] is not True or (lacks := missing(answer, call.has)):
                faults.append(
                    f"{call.tool} {json.dumps(arguments)}: {lacks if answer['success'] else ''} {answer}"
                )
            kept |= {name: member(answer, path) for name, path in call.keeps.items()}
        for uri, has in RESOURCES.get(profile, {}).items():
            begin, _, named = uri.partition("$")
            read = await client.request("resources/read", {"uri": begin + (kept[named] if named else "")})
            body = json.loads(read["result"]["contents"][0]["text"]) if "result" in read else read
            if lacks := missing(body, has):
                faults.append(f"{uri}: {lacks} {body}")
    assert not faults, "\n".join(faults)


PYTHON: Final[Mapping[type[Any], Mapping[str, str]]] = {
    SessionService: {
        "create_session": "session_id app_name user_id project_id initial_state",
        "get_session": "session_id",
        "append_event": "session_id event state_delta",
        "update_status": "session_id status",
        "get_state": "session_id key",
        "set_state": "session_id key value",
    },
    MemoryService: {
        "add_memory": "namespace key value memory_type created_by task_id metadata",
        "get_memory": "namespace key version",
        "update_memory": "namespace key value updated_by task_id",
        "delete_memory": "namespace key deleted_by task_id",
        "list_versions": "namespace key",
        "search_memories": "namespace_prefix memory_type limit",
    },
    SearchService: {
        "search_memories": "query mode time_expr after before tags quality_boost limit include_debug",
        "retrieve_memory": "query n_results",
        "recall_memory": "query time_expr n_results",
        "recall_by_timeframe": "start_date end_date n_results",
        "retrieve_with_quality_boost": "query quality_weight n_results",
        "exact_match_retrieve": "content",
        "debug_retrieve": "query n_results",
    },
}


@pytest.mark.promise("mcp.designs")
def test_each_method_of_the_services_takes_its_parameters_in_the_order_of_the_designs() -> None:
    for service, methods in PYTHON.items():
        for name, parameters in methods.items():
            takes = inspect.signature(getattr(service, name)).parameters.values()
            by_place = [each.name for each in takes if each.kind is not each.KEYWORD_ONLY]
            assert by_place == ["self", *parameters.split()], (service, name)


def test_each_tool_of_the_memory_layer_is_called_by_the_names_of_its_clients_too() -> None:
    called = {call.tool for call in UNIVERSAL_MEMORY if not call.tool.startswith("omn")}
    assert {f"omn_{name}" for name in called - {"memory_search", "record_context"}} <= set(TOOLS)


@pytest.mark.slow
@pytest.mark.promise("mcp.said-once", "recall.aliases")
@pytest.mark.parametrize("path", ["ours", "sdk"])
async def test_an_older_name_is_answered_as_its_system_does_under_every_profile(
    tmp_path: Path, path: str
) -> None:
    more = {"task": None} if path == "sdk" else {}  # a member that the SDK passes over
    for profile in TOOL_PROFILES:
        async with client_of(tmp_path, profile) as client:
            await client.call("store_memory", content="the zebra", key="zebra")

            async def found(tool: str, **arguments: Any) -> Any:
                params = {"name": tool, "arguments": {"query": "zebra", **arguments}, **more}
                result = (await client.request("tools/call", params))["result"]
                assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
                return result["structuredContent"]

            named = await found("omn_retrieve_memory")
            assert (named["total_found"], len(named["memories"])) == (1, 1)
            assert named["memories"][0]["relevance_score"] == named["memories"][0]["score"]
            today = await found("retrieve_memory", limit=10)
            has_older = profile in {"memory-search", "universal-memory"}
            assert ("total_found" in today) is has_older
            refused = await client.call("omn_retrieve_memory", query="zebra", filters={"scope": "team"})
            assert (refused["code"], refused["details"]["field"]) == ("VALIDATION_ERROR", "filters.scope")
            assert "'private', 'shared' or 'public'" in refused["error"]


@pytest.mark.slow
@pytest.mark.promise("mcp.designs")
async def test_what_one_system_alone_takes_no_other_profile_lists(tmp_path: Path) -> None:
    prompts: dict[str, list[str]] = {}
    for profile in TOOL_PROFILES:
        async with client_of(tmp_path, profile) as client:
            tools = (await client.request("tools/list"))["result"]["tools"]
            takes = {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in tools}
            own = profile == "universal-memory"
            assert ("target" in takes.get("omn1_read", set())) is own
            assert "overview" not in takes.get("read_file", set()) | takes.get("omn1_read", set())
            described = {tool["name"]: tool["description"] for tool in tools}
            has_examples = '"mode": "exact"' in described.get("memory_search", "")
            assert has_examples is (profile in {"universal-memory", "memory-search"})
            listed = (await client.request("prompts/list"))["result"]["prompts"]
            prompts[profile] = [each["name"] for each in listed[0]["arguments"]]
            got = await client.request(
                "prompts/get",
                {
                    "name": "explain-code",
                    "arguments": {
                        "file_path": "src/anchor.py",
                        "code_snippet": "return depth",
                        "detail_level": "expert",
                    },
                },
            )
            assert "return depth" in got["result"]["messages"][0]["content"]["text"]
    older = prompts.pop("universal-memory")
    assert older == ["file_path", "symbol", "code_snippet", "detail_level", "max_tokens"]
    assert {tuple(each) for each in prompts.values()} == {("path", "symbol", "detail", "max_tokens")}


@pytest.mark.slow
async def test_what_a_target_leaves_open_is_refused_in_words(tmp_path: Path) -> None:
    async with client_of(tmp_path, "universal-memory") as client:
        for given, field in (
            ({"target": "overview", "symbol": "haul"}, None),
            ({"target": "haul", "symbol": "drop_anchor"}, "target"),
            ({"target": ""}, None),  # as if it were left out
            ({"target": "nothing_like_it"}, "symbol"),
        ):
            answer = await client.call("omn1_read", path="src/anchor.py", **given)
            assert answer.get("details", {}).get("field") == field, answer
        wrong: dict[str, list[Any]] = {
            "files_accessed": ["x" * 1_025],
            "recent_searches": [{"what": "ship"}],
            "decisions": [7],
        }
        for name, values in wrong.items():
            refused = await client.call("record_context", **{name: values})
            assert refused["details"]["field"].startswith(name), refused
