"""Tool profiles: which tools are listed, who chooses, and what older names bring back into answers."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from harness import PATIENCE, clean_environment, greenroom, server_process
from support.agents import begin
from support.desk import Desk, NoteTool
from support.forking import forked_program
from support.https import told as http_told
from support.keyed import Premises, bearer, create_key, premises
from support.listed import CORE, LISTED
from support.websockets import Peer, told

from greenroom.actors import UpdateSession
from greenroom.actors.core.auth.grants import Grant, KeyRecord
from greenroom.actors.core.auth.tool_profiles import SCHEMA_FORMS, TOOL_PROFILES, SchemaForm
from greenroom.runtime.actor.message import EncodedReply, decode_reply
from greenroom.testing import MODERN_META, McpClient, mcp_client
from greenroom.transports import TOOLS
from greenroom.transports.mcp.tools.aliases import ALIASES, META_KEY
from greenroom.transports.mcp.tools.tool_profiles import PROFILES

if TYPE_CHECKING:
    from pathlib import Path

    from support.agents import Enter
    from support.https import Answer, Guest

pytestmark = pytest.mark.promise("mcp.profiles")

KNOWLEDGE = [
    *("semantic_search", "get_full_content", "list_corpora", "ingest_documents"),
    *("find_vendor_info", "find_entity", "suggest_entities", "define_entities"),
]
CODE = [
    "search_code_semantic",
    "symbol_search",
    "outline",
    "dependency_search",
    "similar_files",
    "code_search",
    "read_file",
]
WORKFLOW = ["record_workflow_step", "get_workflow_patterns", "suggest_next_action", "workflow_checkpoint"]
SHARED_CONTEXT = [
    "create_session", "get_session", "list_sessions", "add_message", "update_session", "get_messages",
    "search_context", "search_by_sender", "search_by_timerange", "set_memory", "get_memory", "list_memory",
    "delete_memory",
]  # fmt: skip
SERVICES = [
    "create_session", "get_session", "update_session", "add_message", "get_messages", "store_memory",
    "retrieve_memory", "update_memory", "forget_memory", "list_memory_versions", "list_memories",
]  # fmt: skip
MEMORY_SEARCH = [
    "memory_search", "retrieve_memory", "recall_memory", "recall_by_timeframe",
    "retrieve_with_quality_boost", "exact_match_retrieve", "debug_retrieve", "store_memory",
]  # fmt: skip
UNIVERSAL_MEMORY = [
    "store_memory", "retrieve_memory", "update_memory", "forget_memory", "list_memories", "export_memories",
    "import_memories", "memory_stats", "set_preferences", "memory_search", "start_session", "restore_session",
    "get_session_context", "migrate_session", "export_session", "end_session", "record_context",
    "reopen_session", *CODE,
    *WORKFLOW,
    "compress_text", "get_stats", "health_check",
]  # fmt: skip
OMN = [alias.name for alias in ALIASES if alias.name.startswith("omn")]
PATHS = {"ours": {}, "sdk": {"task": None}}
"""A member that no request has makes it one for the SDK, which passes it over."""


def names(result: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in result["tools"]]


async def listed(client: McpClient, **more: Any) -> list[str]:
    return names((await client.request("tools/list", more))["result"])


# -- what is listed ----------------------------------------------------------------------------------


def test_the_table_names_profiles_tools_and_members_that_are_there() -> None:
    assert tuple(PROFILES) == TOOL_PROFILES
    for profile in PROFILES.values():
        assert set(profile.tools or ()) | set(profile.defaults) | set(profile.descriptions) <= set(TOOLS)
        assert len(set(profile.tools or ())) == len(profile.tools or ())
        for struct, older in profile.older.items():
            today = {name for name in older.values() if isinstance(name, str)}
            assert today <= set(struct.__struct_fields__)
            assert not today & {old for old, now in older.items() if isinstance(now, str)}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_each_profile_lists_what_its_users_call(tmp_path: Path, era: str, path: str) -> None:
    found: dict[str, list[str]] = {}
    for profile in TOOL_PROFILES:
        async with greenroom(tmp_path, profiles=(profile,)) as client:
            if era == "modern":
                client.meta = MODERN_META
            else:
                await client.initialize()
            found[profile] = await listed(client, **PATHS[path])
    today = [name for name, tool in TOOLS.items() if name in LISTED and tool.alias is None]
    assert {name: tools for name, tools in found.items() if name != "universal-memory"} == {
        "core": CORE,
        "all": today,
        "knowledge": KNOWLEDGE,
        "code": CODE,
        "shared-context": SHARED_CONTEXT,
        "services": SERVICES,
        "memory-search": MEMORY_SEARCH,
    }
    assert found["universal-memory"][: len(UNIVERSAL_MEMORY)] == UNIVERSAL_MEMORY
    assert sorted(found["universal-memory"][len(UNIVERSAL_MEMORY) :]) == sorted(OMN)


async def test_several_profiles_are_listed_one_after_the_other(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=("services", "core")) as client:
        await client.initialize()
        both = await listed(client)
    assert both == list(dict.fromkeys([*SERVICES, *CORE]))


async def test_the_flag_chooses_for_a_process(tmp_path: Path) -> None:
    for flags, wanted in (((), CORE), (("--tools", "services, memory-search"), [*SERVICES, *MEMORY_SEARCH])):
        async with server_process(tmp_path, *flags) as server:
            await server.client.initialize()
            assert await listed(server.client) == list(dict.fromkeys(wanted))
            assert (await server.client.call("list_memory"))["success"] is True
            await server.client.end_input()
            await server.process.wait()


@pytest.mark.parametrize(
    "command",
    [("serve", "--tools", "core,unheard"), ("keys", "create", "--tools", "core,unheard")],
    ids=["serve", "keys"],
)
def test_a_command_line_that_names_an_unknown_profile_is_told_which_there_are(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [*forked_program(), *command, "--data", str(tmp_path / "store")],
        capture_output=True,
        env=clean_environment(tmp_path),
        timeout=PATIENCE,
        check=False,
        text=True,
    )
    assert done.returncode == 2
    assert (
        "core, all, knowledge, code, shared-context, services, memory-search or universal-memory"
        in done.stderr
    )


async def test_a_model_reads_of_listed_tools_alone(tmp_path: Path) -> None:
    for profiles, wanted in ((("core",), False), (("all",), True)):
        async with greenroom(tmp_path, profiles=profiles) as client:
            told = [(await client.initialize())["instructions"]]
        async with greenroom(tmp_path, profiles=profiles) as client:
            client.meta = MODERN_META
            found = [(await client.request("server/discover", more))["result"] for more in PATHS.values()]
            told += [each["instructions"] for each in found]
        for text in told:
            assert ("set_memory" in text) is wanted
            assert "start_session" in text


# -- who chooses -------------------------------------------------------------------------------------


async def over_websocket(here: Premises, target: str = "/", **headers: str | None) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    peer: Peer = await (await (await here.peer()).open(target, **named)).initialize()
    await peer.request("tools/list")
    return told_result(await peer.receive())


async def over_http(here: Premises, path: str = "/mcp", **headers: Any) -> dict[str, Any]:
    """Ask as one request of the later era."""
    guest = await here.guest()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": MODERN_META}}
    routed = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    await guest.send("POST", path, routed | named, json.dumps(body).encode())
    return told_result((await guest.answer()).json())


def told_result(answer: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = answer["result"]
    return result


async def test_a_connection_chooses_in_its_url_or_in_a_header(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        for wanted, chosen in ((MEMORY_SEARCH, "memory-search"), ([*CORE, *SERVICES], "core,services")):
            tools = list(dict.fromkeys(wanted))
            for way in (over_websocket, over_http):
                path = "/" if way is over_websocket else "/mcp"
                assert names(await way(here, f"{path}?tools={chosen}")) == tools
                assert names(await way(here, path, greenroom_tools=chosen)) == tools
                assert names(await way(here, path)) == CORE


async def test_a_name_that_is_none_is_refused_with_the_choices(enter: Enter) -> None:
    choices = "core, all, knowledge, code, shared-context, services, memory-search or universal-memory"
    async with enter() as at, premises(at) as here:
        refused = (await (await here.peer()).ask("/?tools=core,unheard")).decode()
        assert refused.startswith("HTTP/1.1 400 ")
        assert f"tools is 'unheard', but {choices} is allowed" in refused
        guest = await here.guest()
        for headers in ({"greenroom_tools": "unheard"}, {"greenroom_tools": ""}):
            answer = await guest.ask("POST", **headers)
            assert (answer.status, choices in answer.body.decode()) == (400, True)


async def test_a_url_goes_before_a_key_and_a_key_before_the_server(enter: Enter) -> None:
    async with enter() as at, premises(at, tools=("services",)) as here:
        assert names(await over_websocket(here)) == SERVICES
        own = await create_key(at, "*", tools=["memory-search", "memory-search"])
        plain = await create_key(at, "*")
        assert (own.key.tools, plain.key.tools) == (["memory-search"], [])
        await here.settled()
        for way, path in ((over_websocket, "/"), (over_http, "/mcp")):
            assert names(await way(here, path, **bearer(plain))) == SERVICES
            assert names(await way(here, path, **bearer(own))) == MEMORY_SEARCH
            assert names(await way(here, f"{path}?tools=core", **bearer(own))) == CORE


async def test_a_session_of_http_keeps_what_it_was_opened_with(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        guest = await here.session(None, greenroom_tools="services")
        for later in ("services", "all", None):
            await guest.request("tools/list", greenroom_tools=later)
            assert names((await guest.answer()).json()["result"]) == SERVICES


async def test_scopes_narrow_what_a_profile_lists(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        reads = await create_key(at, "sessions:read", tools=["shared-context"])
        chief = await create_key(at, "*", "admin")
        await here.settled()
        seen = await over_http(here, **bearer(reads))
        assert names(seen) == [
            "get_session", "list_sessions", "get_messages", "search_context", "search_by_sender",
            "search_by_timerange",
        ]  # fmt: skip
        for profile, tools in (("core", CORE), ("shared-context", SHARED_CONTEXT)):
            administers = names(await over_http(here, f"/mcp?tools={profile}", **bearer(chief)))
            assert administers[: len(tools)] == tools
            assert {"create_api_key", "revoke_api_key"} <= set(administers[len(tools) :])


async def test_only_what_everybody_gets_may_be_kept_for_everybody(enter: Enter) -> None:
    async with enter() as at, premises(at, tools=("core", "memory-search")) as here:
        public, private = (3_600_000, "public"), (0, "private")
        for path, kept in (
            ("/mcp", public),
            ("/mcp?tools=core,memory-search", public),
            ("/mcp?tools=all", private),
            ("/mcp?schemas=plain", public),
            ("/mcp?schemas=nullable", private),
            ("/mcp?tools=memory-search,core", private),  # as many tools
        ):
            result = await over_http(here, path)
            assert (result["ttlMs"], result["cacheScope"]) == kept


# -- the form of schemas -----------------------------------------------------------------------------


def form(result: dict[str, Any]) -> str:
    """Return the form of the schemas in a listing."""
    return (
        "nullable" if '"null"' in json.dumps([each["inputSchema"] for each in result["tools"]]) else "plain"
    )


@pytest.mark.promise("mcp.schemas")
async def test_a_url_a_key_and_the_server_choose_the_form_of_schemas_in_this_order(enter: Enter) -> None:
    async with enter() as at, premises(at, schemas="nullable") as here, premises(at) as plain_here:
        wants_null = await create_key(at, "*", schemas="nullable")
        wants_plain = await create_key(at, "*", schemas="plain")
        says_nothing = await create_key(at, "*")
        assert [each.key.schemas for each in (wants_null, wants_plain, says_nothing)] == [
            "nullable", "plain", None,
        ]  # fmt: skip
        await here.settled()
        await plain_here.settled()
        for way, path in ((over_websocket, "/"), (over_http, "/mcp")):
            assert form(await way(here, path, **bearer(says_nothing))) == "nullable"
            assert form(await way(plain_here, path, **bearer(says_nothing))) == "plain"
            assert form(await way(plain_here, path, **bearer(wants_null))) == "nullable"
            assert form(await way(here, path, **bearer(wants_plain))) == "plain"
            assert form(await way(here, f"{path}?schemas=plain", **bearer(wants_null))) == "plain"
            assert (
                form(await way(plain_here, path, greenroom_schemas="nullable", **bearer(wants_plain)))
                == "nullable"
            )
            both = await way(plain_here, f"{path}?tools=services&schemas=nullable", **bearer(wants_plain))
            assert (names(both), form(both)) == (SERVICES, "nullable")


@pytest.mark.promise("mcp.schemas")
async def test_a_form_that_is_none_is_refused_with_the_choices(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        refused = (await (await here.peer()).ask("/?schemas=strict")).decode()
        assert refused.startswith("HTTP/1.1 400 ")
        assert "schemas is 'strict', but plain or nullable is allowed" in refused
        refused = (await (await here.peer()).ask("/?schemas=plain&schemas=nullable")).decode()
        assert "schemas is given 2 times" in refused


@pytest.mark.promise("mcp.schemas")
async def test_a_listing_is_made_once_for_each_form() -> None:
    listed: list[str] = []

    class Counted(NoteTool, frozen=True, kw_only=True):
        def listing(self, schemas: SchemaForm = "plain") -> dict[str, Any]:
            listed.append(schemas)
            return NoteTool.listing(self, schemas)

    tools = {"echo": Counted(name="echo", title="", description="")}
    for chosen in SCHEMA_FORMS:
        async with mcp_client(lambda _: Desk(), tools, schemas=chosen) as client:
            await client.initialize()
            for _ in range(3):
                assert [each["name"] for each in (await client.request("tools/list"))["result"]["tools"]] == [
                    "echo"
                ]
    assert listed == list(SCHEMA_FORMS)


# -- calls -------------------------------------------------------------------------------------------


async def test_what_is_not_listed_is_called_all_the_same(tmp_path: Path) -> None:
    async with greenroom(tmp_path, profiles=("memory-search",)) as client:
        await client.initialize()
        session = (await client.call("create_session", purpose="p"))["session_id"]
        assert (await client.call("omn_end_session", session_id=session))["success"] is True
        near = await client.request("tools/call", {"name": "create_sesion", "arguments": {}})
    assert "did you mean create_session" in near["error"]["message"]


@pytest.mark.parametrize("path", PATHS)
async def test_the_first_profile_decides_what_a_call_means_by_default(tmp_path: Path, path: str) -> None:
    async def recalled(client: McpClient, **arguments: Any) -> tuple[int, bool]:
        params = {"name": "retrieve_memory", "arguments": arguments, **PATHS[path]}
        result = (await client.request("tools/call", params))["result"]
        return len(result["structuredContent"]["memories"]), META_KEY in result.get("_meta", {})

    async with greenroom(tmp_path) as client:
        await client.initialize()
        for number in range(12):
            await client.call("store_memory", content=f"the harbour opens at {number}", key=f"k{number}")
        assert await recalled(client, query="harbour") == (10, False)
    for profiles, wanted in (
        (("memory-search",), (5, True)),
        (("memory-search", "universal-memory"), (5, True)),
        (("universal-memory", "memory-search"), (10, False)),
        (("all", "memory-search"), (10, False)),
    ):
        async with greenroom(tmp_path, profiles=profiles) as client:
            await client.initialize()
            assert await recalled(client, query="harbour") == wanted
            assert await recalled(client, query="harbour", n_results=7) == (7, True)
            assert await recalled(client, query="harbour", limit=8) == (8, False)
            assert await recalled(client, key="k3") == (1, False)
            listing = (await client.request("tools/list"))["result"]["tools"]
        (entry,) = (tool for tool in listing if tool["name"] == "retrieve_memory")
        assert ("n_results" in entry["inputSchema"]["properties"]) is wanted[1]


# -- answers -----------------------------------------------------------------------------------------


async def conversation(client: McpClient, path: str) -> dict[str, Any]:
    """Return what the tools answer that have older names in their answers."""

    async def call(tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments, **PATHS[path]}
        result = (await client.request("tools/call", params))["result"]
        assert not result["isError"], result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    if not (await call("list_sessions"))["sessions"]:
        await call("create_session", purpose="plan", session_id="s")
        await call("add_message", session_id="s", content="the plan")
        for number in range(3):
            await call("store_memory", content=f"the harbour opens at {number}", key=f"k{number}")
    read = await client.request("resources/read", {"uri": "session://s", **PATHS[path]})
    return {
        "get": await call("get_session", session_id="s"),
        "list": await call("list_sessions"),
        "update": await call("update_session", session_id="s", status="active"),
        "page": await call("get_messages", session_id="s"),
        "search": await call("search_context", session_id="s", query="plan"),
        "set": [await call("set_memory", key="k", value=1, session_id=scope) for scope in (None, "s")],
        "found": await call("memory_search", query="harbour", mode="exact", limit=2),
        "resource": json.loads(read["result"]["contents"][0]["text"]),
    }


@pytest.mark.promise("mcp.said-once")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_older_names_are_in_answers_under_their_profile_alone(
    tmp_path: Path, era: str, path: str
) -> None:
    answers: dict[str, dict[str, Any]] = {}
    for profile in TOOL_PROFILES:
        async with greenroom(tmp_path, profiles=(profile,)) as client:
            if era == "modern":
                client.meta = MODERN_META
            else:
                await client.initialize()
            answers[profile] = await conversation(client, path)
    for profile, said in answers.items():
        shared, search, universal = (
            profile == name for name in ("shared-context", "memory-search", "universal-memory")
        )
        messages = [
            *said["get"]["messages"],
            *said["page"]["messages"],
            *(hit["message"] for hit in said["search"]["results"]),
            *said["resource"]["messages"],
        ]
        assert len(messages) == 4
        sessions = [
            said["get"]["session"],
            *said["list"]["sessions"],
            said["update"]["session"],
            said["resource"]["session"],
        ]
        assert [each.get("id") for each in messages] == [
            each["message_id"] if shared else None for each in messages
        ]
        services = profile == "services"
        assert [each.get("id") for each in sessions] == ["s" if shared or services else None] * 4
        assert [each.get("last_update_time") for each in sessions] == [
            each.get("updated_at", each.get("last_activity")) if services else None for each in sessions
        ]
        counted = [said["get"]["statistics"], said["resource"]["statistics"]]
        assert [each["message_count"] for each in counted] == [1, 1]
        assert [each.get("visible_message_count") for each in counted] == [1 if shared else None] * 2
        assert said["get"].get("message_count") == (1 if shared else None)
        note = said["search"].get("performance_note")
        assert note is None if not shared else note.startswith("RapidFuzz enabled")
        assert [each.get("session_scoped") for each in said["set"]] == (
            [False, True] if shared else [None, None]
        )
        found = said["found"]
        assert found["total"] == (2 if search else 3)
        assert found.get("total_found") == (3 if search or universal else None)
        for memory in found["memories"]:
            assert memory.get("id") == (memory["memory_id"] if search or universal else None)
            assert memory.get("relevance_score") == (memory["score"] if search or universal else None)


@pytest.mark.promise("mcp.said-once")
async def test_of_several_profiles_all_bring_their_names_and_the_first_decides(tmp_path: Path) -> None:
    for profiles, total in ((("memory-search", "universal-memory"), 2), (("core", "memory-search"), 3)):
        async with greenroom(tmp_path, profiles=(*profiles, "shared-context")) as client:
            await client.initialize()
            said = await conversation(client, "ours")
        assert said["found"]["total"] == total
        assert said["found"]["total_found"] == 3
        assert all(memory["id"] == memory["memory_id"] for memory in said["found"]["memories"])
        assert said["get"]["session"]["id"] == "s"


async def test_older_names_come_over_every_transport(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        call = {"name": "get_session", "arguments": {"session_id": "s"}}
        peer = await (await (await here.peer()).open("/?tools=shared-context")).initialize()
        await peer.request("tools/call", call)
        session = await here.session(None, greenroom_tools="shared-context")
        await session.request("tools/call", call)
        modern: Guest = await here.guest()
        await modern.modern("tools/call", call, greenroom_tools="shared-context")
        over_session: Answer = await session.answer()
        for said in (
            told(await peer.receive()),
            http_told(over_session.json()),
            http_told((await modern.answer()).json()),
        ):
            assert said["session"]["id"] == said["session"]["session_id"] == "s"


# -- what an older program left ----------------------------------------------------------------------


def test_answers_and_keys_that_an_older_program_stored_are_read() -> None:
    stored = {
        "success": True,
        "session": {
            "session_id": "s",
            "id": "s",
            "purpose": "p",
            "status": "active",
            "created_at": "2026-01-01T00:00:00Z",
            "created_by": "a",
            "updated_at": "2026-01-01T00:00:00Z",
            "terminated_at": None,
            "app_name": None,
            "user_id": None,
            "project_id": None,
            "metadata": {},
            "state": {},
        },
    }
    answer = decode_reply(UpdateSession, EncodedReply(json.dumps(stored).encode()))
    assert answer.session.session_id == "s"
    record = {
        "key_id": "a" * 12,
        "digest": b"d",
        "grant": {"name": "n", "scopes": ["*"]},
        "created": 1,
        "created_by": None,
        "expires": 2,
    }
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=KeyRecord)
    assert read.grant == Grant(name="n", scopes=frozenset({"*"}))
