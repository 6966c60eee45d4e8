"""Empty answers: each says why it is empty, with one of the codes of one table."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol, get_args

import msgspec
import pytest
from support.agents import FAST

from greenroom.actors import API_REQUESTS, Agent, Principal, Reach, ask_corpus, is_write, open_greenroom
from greenroom.actors.core.auth.scopes import tools_of
from greenroom.actors.core.replies.replies import ListReply
from greenroom.actors.knowledge.corpora.requests.workspace import KeepWorkspace
from greenroom.actors.knowledge.workspaces.index_lease import open_workspaces
from greenroom.runtime import Refusal
from greenroom.testing import McpClient, mcp_client
from greenroom.transports import TOOLS, Tool

NO_LISTS: Final = {
    "get_session": "it reads one session, whose messages are beside it",
    "get_session_context": "it reads one session",
    "get_memory": "it reads one memory, or refuses",
    "list_memory_versions": "a memory has versions, or there is none, which is refused",
    "read_file": "it reads files that are named, or refuses",
    "memory_stats": "it counts",
    "get_stats": "it counts",
    "health_check": "it names every part there is",
    "compress_text": "it answers a text",
    "export_memories": "it writes a file",
    "export_session": "it writes a file",
}
"""Tools that change nothing, and neither search nor list, and why not."""
LISTS: Final = {name: tool for name, tool in TOOLS.items() if issubclass(tool.answer, ListReply)}
NEEDED: Final[dict[str, Any]] = {
    "query": "zebra",
    "content": "zebra",
    "task": "zebra",
    "session_id": "plan",
    "sender": "tester",
    "start_time": "2020-01-01",
    "end_time": "2020-01-02",
    "start_date": "2020-01-01",
    "symbol": "zebra",
    "target": "zebra",
    "path": "empty.py",
    "pattern": "function zebra",
    "vendor_filter": "zebra",
    "chunk_ids": [1 << 40],
    "time_expr": "yesterday",
}
"""What is given for a parameter that has to be."""
OF_A_SESSION: Final = {"GetMessages", "SearchContext", "SearchBySender", "SearchByTimerange"}
"""Requests that are of the current session unless they name one."""
NOTHING: Final = "nothing_stored"
SAID_OF_NOTHING: Final = {
    # There is no corpus to be empty, and another one must not be looked into.
    **dict.fromkeys(("semantic_search", "suggest_entities"), "CORPUS_NOT_FOUND"),
    **dict.fromkeys(("find_vendor_info", "find_entity"), "CORPUS_NOT_FOUND"),
    "list_sessions": None,  # there is the one that others need
    "similar_files": "not_indexed",  # a file that is there, for else it is refused
    **dict.fromkeys(("get_workflow_patterns", "suggest_next_action"), "learning_off"),
    "get_audit_log": None,  # it knows of the session, and of who looks
}
"""What tools say on an empty store instead of that nothing is stored."""


class AgentFor(Protocol):
    """Returns an agent of a user, who may have other rights than everything."""

    def __call__(self, name: str, user: str = "ann", **identity: Any) -> Agent: ...


@asynccontextmanager
async def house(folder: Path, *files: str) -> AsyncIterator[AgentFor]:
    """Open a store, and a workspace of some files and an empty one."""
    code = (folder / "code").resolve()
    code.mkdir(parents=True)
    (code / "empty.py").touch()
    for name in files:
        (code / name).parent.mkdir(exist_ok=True)
        (code / name).write_text(f"def {Path(name).stem}(depth):\n    return 'harbour'\n")
    own = (str(folder / "data"), str(folder / "secrets"))
    reach = Reach(workspaces=(str(code),))
    async with (
        open_greenroom(own[0], secrets=own[1], embedder="none", options=FAST) as runtime,
        open_workspaces(runtime) as kept,
    ):

        def agent_for(name: str, user: str = "ann", **identity: Any) -> Agent:
            return Agent(
                runtime, Principal(agent_id=name, user=user, **identity), reach=reach, workspaces=kept
            )

        yield agent_for


@asynccontextmanager
async def served(folder: Path, *files: str) -> AsyncIterator[McpClient]:
    """Serve all tools on such a store."""
    async with house(folder, *files) as agent_for, mcp_client(agent_for, profiles=("all",)) as client:
        await client.initialize()
        yield client


async def ask(agent: Agent, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a call, or a refusal."""
    try:
        answer = await agent.ask(tool.parse(msgspec.json.encode(arguments)))
    except Refusal as refusal:
        return {"success": False, "code": refusal.code, "error": refusal.sentence}
    found: dict[str, Any] = msgspec.to_builtins(answer)
    return found


def arguments_of(tool: Tool) -> dict[str, Any]:
    """Return the least that a tool takes."""
    required = tool.listing()["inputSchema"].get("required", [])
    given = {name: NEEDED[name] for name in required}
    assert tool.asks is not None, "it is one of ours"
    if "session_id" in tool.request.__struct_fields__ and tool.asks.__name__ in OF_A_SESSION:
        given["session_id"] = NEEDED["session_id"]
    if tool.asks.__name__ == "MemorySearch" and not given:
        given = {"query": "zebra"} if "query" in tool.listing()["inputSchema"]["properties"] else given
    return given


def test_every_tool_that_searches_or_lists_can_say_why_it_is_empty() -> None:
    reads = {name for name, tool in TOOLS.items() if tool.alias is None and not is_write(tool.request)}
    assert reads - LISTS.keys() == NO_LISTS.keys()


CONSOLE: Final[dict[str, dict[str, Any]]] = {
    "find_sessions": {"agent": "testre"},
    "browse_corpora": {},
    "list_documents": {"path": "harbor.md"},
    "list_entities": {"holding": "Rediss"},
    "list_workspaces": {},
    "list_workspace_files": {"holding": "src/baots.py"},
}
"""Listings that only people's console asks, each with a value that leaves nothing."""


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("emptiness.reasons", "emptiness.meant")
async def test_listings_of_the_console_say_so_too(tmp_path: Path) -> None:
    said: dict[str, Any] = {}
    async with house(tmp_path / "full", "src/boats.py") as agent_for:
        async with mcp_client(agent_for, profiles=("all",)) as client:
            await client.initialize()
            await fill(client)
            code = (await client.call("list_corpora"))["corpora"]
        named = {"list_workspace_files": {"corpus": next(each["corpus"] for each in code if "root" in each)}}
        for name, given in CONSOLE.items():
            request = API_REQUESTS[name](**given, **named.get(name, {}))
            found = msgspec.to_builtins(await agent_for("tester").ask(request))
            said[name] = found.get("empty_because", {}).get("sentence", "").partition("did you mean ")[2]
    assert said == {
        "find_sessions": "'tester'?",
        "browse_corpora": "",
        "list_documents": "'harbour.md'?",
        "list_entities": "'Redis'?",
        "list_workspaces": "",
        "list_workspace_files": "'src/boats.py'?",
    }
    async with house(tmp_path / "empty") as agent_for:
        for name in ("find_sessions", "browse_corpora", "list_workspaces"):
            found = msgspec.to_builtins(await agent_for("tester").ask(API_REQUESTS[name]()))
            assert found["empty_because"]["code"] == NOTHING


NO_FILTERS: Final = {
    "memory_id",
    *(
        "query",
        "content",
        "task",
        "symbol",
        "target",
        "path",
        "pattern",
        "vendor_filter",
    ),  # what is looked for
    *("query_embedding", "embedding_space", "chunk_ids"),
    *("limit", "n_results", "top_k", "cursor", "offset", "max_tokens"),  # how much of it
    *("mode", "strategy", "quality_boost", "quality_weight", "depth", "around", "detail_level"),  # how
    *("decompress", "include_debug", "include_relationships", "search_metadata", "timezone", "tag_match"),
    *("filters.tag_match", "filters.superseded", "filters.recency_weight", "direction"),
    *("by_preferences", "unreviewed", "unasked_for", "older", "place"),  # no parameters
    "session_id",  # the session that is looked in: another one is refused
    "suggest_next_action.context",  # it says what comes next, and of another one what is frequent
}
"""Parameters that leave nothing out."""
MISSED: Final[dict[str, tuple[Any, str]]] = {
    "status": ("archived", ""),
    "project_id": ("atlsa", "atlas"),
    "visibility_filter": ("private", ""),
    "since_id": ((1 << 53) - 1, ""),
    "sender": ("testre", "tester"),
    "start_time": ("2998-01-01", ""),
    "end_time": ("2020-01-02", ""),
    "fuzzy_threshold": (100, ""),
    "search_scope": ("private", ""),
    "recent_hours": (1e-9, ""),
    "max_rows_scanned": (1, ""),
    "list_memory.session_id": ("plam", "plan"),
    "prefix": ("graeting", "greeting"),
    "key": ("harbuor", "harbour"),
    "key_prefix": ("harbuor", "harbour"),
    "namespace": ("project:atlsa", "project:atlas"),
    "time_expr": ("in 1990", ""),
    "after": ("2999-01-01", ""),
    "before": ("2001-01-01", ""),
    "start_date": ("2999-01-01", ""),
    "end_date": ("2020-01-01", ""),
    "tags": (["harbor"], "harbour"),
    "kind": ("procedural", ""),
    "author": ("testre", "tester"),
    "scope": ("public", ""),
    "conversation_id": ("tlak", "talk"),
    "min_importance": (1, ""),
    "max_age_days": (1e-9, ""),
    "min_relevance": (1, ""),
    "filters.session_id": ("plam", "plan"),
    "unreviewed": (True, ""),
    "min_score": (1, ""),
    "corpus": ("defualt", "default"),
    "entity_type": ("framework", ""),
    "min_count": (1_000, ""),
    "symbol_search.kind": ("enum", ""),
    "search_code_semantic.scope": ("scr", "src"),
    "similar_files.scope": ("scr", "src"),
    "code_search.scope": ("scr", "src"),
    "file_types": (["pyy"], "py"),
    "exclude_paths": (["*"], ""),
    "context": (["zebra"], ""),
    "action": ("crate_session", "create_session"),
    "outcome": ("failed", ""),
    "agent": ("testre", "tester"),
    "user": ("anne", "ann"),
    "key_id": ("nobodys", ""),
    "get_audit_log.session_id": ("plam", "plan"),
    "include_ended": (False, ""),
}
"""Values that leave nothing, by parameter, and what was meant."""
FOUND: Final[dict[str, Any]] = NEEDED | {
    "query": "harbour",
    "content": "harbour",
    "task": "harbour",
    "sender": "tester",
    "start_time": "2020-01-01",
    "end_time": "2999-01-01",
    "symbol": "boats",
    "target": "src/boats.py",
    "path": "src/boats.py",
    "pattern": "function boats",
    "vendor_filter": "redis",
    "time_expr": "today",
    "search_context.query": "harbur",
}
"""What finds something."""


def structs_in(hint: Any) -> list[Any]:
    """Return the structs that a type may be."""
    if hasattr(hint, "__struct_fields__"):
        return [hint]
    return [struct for each in get_args(hint) for struct in structs_in(each)]


def filters_of(tool: Tool) -> list[str]:
    """Return the parameters of a tool by which it leaves things out."""
    found: list[str] = []
    for field in msgspec.structs.fields(tool.request if tool.parameters is None else tool.parameters.request):
        inner = structs_in(field.type)
        found += [f"{field.name}.{each}" for each in inner[0].__struct_fields__] if inner else [field.name]
    return [
        each for each in found if not {each, named(tool, each)} & NO_FILTERS or named(tool, each) in MISSED
    ]


def meant(tool: Tool, parameter: str) -> str:
    """Return what `MISSED` calls a parameter."""
    inner = parameter.rpartition(".")[2]
    return next((each for each in (named(tool, parameter), parameter) if each in MISSED), inner)


def named(tool: Tool, parameter: str) -> str:
    """Return a parameter with its tool."""
    return f"{tool.name if tool.alias is None else tool.alias.successor}.{parameter}"


FILTERS: Final = [(name, each) for name, tool in LISTS.items() for each in filters_of(tool)]


async def fill(client: McpClient) -> None:
    """Store something of everything."""

    async def done(name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = await client.call(name, **arguments)
        assert answer["success"], answer
        return answer

    await done("create_session", session_id="plan", purpose="plan", project_id="atlas")
    await done("add_message", session_id="plan", content="the harbour opens")
    await done("add_message", session_id="plan", content="later")
    await done("set_memory", key="greeting", value=1)
    await done("set_memory", key="bound", value=1, session_id="plan")
    for namespace in ("user:ann", "project:atlas"):
        stored = {"key": "harbour", "tags": ["harbour"], "conversation_id": "talk", "namespace": namespace}
        await done("store_memory", content="The harbour opens at six.", **stored)
    text = "Redis keeps the harbour. Here Redis is asked, and there Redis. See Postgres, Postgres, Postgres."
    await done("ingest_documents", texts=[{"path": "harbour.md", "text": text}])
    await done("define_entities", entities=[{"name": "Redis", "type": "service"}])
    key = await done("create_api_key", name="x", scopes=["*:read"])
    await done("revoke_api_key", key_id=key["key"]["key_id"])
    for command in ("make", "pytest", "make", "pytest", "make", "pytest"):
        await done("record_workflow_step", command=command)
    while (await client.call("search_code_semantic", query="x"))["freshness"]["state"] != "watching":
        pass


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("emptiness.reasons", "emptiness.remedies")
@pytest.mark.parametrize("scopes", ["*", "*:read"])
async def test_on_an_empty_store_it_is_said_that_nothing_is_stored(tmp_path: Path, scopes: str) -> None:
    async with house(tmp_path) as agent_for:
        await ask(agent_for("tester"), TOOLS["create_session"], {"session_id": "plan", "purpose": "plan"})
        agent = agent_for("tester", scopes=frozenset({scopes}))
        for name, tool in LISTS.items():
            today = name if tool.alias is None else tool.alias.successor
            if today not in tools_of(frozenset({scopes})):
                continue
            answer = await ask(agent, tool, arguments_of(tool))
            said = answer.get("empty_because", answer)
            assert said.get("code") == SAID_OF_NOTHING.get(today, NOTHING), (name, said)
            for other in TOOLS.keys() - tools_of(frozenset({scopes})):
                assert not re.search(rf"\b{other}\b", f"{said}"), (name, other)


@pytest.mark.slow
@pytest.mark.promise("emptiness.reasons", "emptiness.meant")
async def test_a_filter_that_leaves_nothing_is_named_with_what_was_meant(tmp_path: Path) -> None:
    async with served(tmp_path, "src/boats.py", "src/anchors.py") as client:
        await fill(client)
        (chunk,) = (await client.call("semantic_search", query="harbour"))["results"]
        for name, parameter in FILTERS:
            tool = LISTS[name]
            found = {each: FOUND.get(f"{name}.{each}", FOUND[each]) for each in arguments_of(tool)}
            if "query" in tool.listing()["inputSchema"]["properties"]:
                found.setdefault("query", FOUND["query"])
            if "chunk_ids" in found:
                found["chunk_ids"] = [chunk["chunk_id"]]
            answer = await client.call(name, **found)
            assert "empty_because" not in answer, (name, answer)
            value, near = MISSED[meant(tool, parameter)]
            outer, _, inner = parameter.partition(".")
            answer = await client.call(name, **found | {outer: {inner: value} if inner else value})
            said = answer["empty_because"] if answer["success"] else answer
            sentence = said["sentence"] if answer["success"] else answer["error"]
            codes = {"corpus": "CORPUS_NOT_FOUND", "since_id": "nothing_new"}
            assert said["code"] == codes.get(parameter, "filter_matches_nothing"), (name, parameter, said)
            assert parameter in codes or f" {parameter} " in sentence, (name, parameter, sentence)
            assert ("did you mean" in sentence) is bool(near), (name, parameter, sentence)
            assert repr(near) in sentence or not near, (name, parameter, sentence)


@pytest.mark.slow
@pytest.mark.promise("emptiness.reasons")
async def test_what_is_nowhere_is_said_to_be_so(tmp_path: Path) -> None:
    async with served(tmp_path, "src/boats.py", "src/anchors.py") as client:
        await fill(client)
        found: dict[str, str] = {}
        for name, tool in LISTS.items():
            arguments = arguments_of(tool)
            if {"query", "content", "task", "symbol", "target", "pattern"} & arguments.keys():
                found[name] = (await client.call(name, **arguments))["empty_because"]["code"]
        for name in ("find_vendor_info", "find_entity", "get_full_content", "similar_files"):
            arguments = arguments_of(LISTS[name]) | (
                {"chunk_ids": [1 << 40]} if name == "get_full_content" else {}
            )
            found[name] = (await client.call(name, **arguments))["empty_because"]["code"]
        nothing = {"nothing_relevant", "no_embedder", "no_such_text"}
        nothing |= {"not_declared", "unknown_ids", "not_indexed"}
        assert set(found.values()) == nothing | {"filter_matches_nothing"}, found
        assert {name for name, code in found.items() if code not in nothing} == {
            "dependency_search",
            "omn_dependency_search",
        }
        mistyped = await client.call("dependency_search", target="baots")
        assert "did you mean 'boats'?" in mistyped["empty_because"]["sentence"]


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.promise("emptiness.hidden")
async def test_what_may_not_be_seen_reads_as_if_it_were_not_there(tmp_path: Path) -> None:
    said: list[dict[str, Any]] = []
    for folder, is_filled in ((tmp_path / "full", True), (tmp_path / "empty", False)):
        async with house(folder) as agent_for:
            if is_filled:
                async with mcp_client(agent_for, profiles=("all",)) as client:
                    await client.initialize()
                    await fill(client)
            ben = agent_for("ben", "ben", projects=frozenset(), scopes=frozenset({"*:read", "*:write"}))
            answers: dict[str, Any] = {}
            for name, tool in LISTS.items():
                for parameter in ("", *filters_of(tool)):
                    outer, _, inner = parameter.partition(".")
                    given = arguments_of(tool)
                    if parameter:
                        value, _ = MISSED[meant(tool, parameter)]
                        given |= {outer: {inner: value} if inner else value}
                    answer = await ask(ben, tool, given)
                    answers[f"{name} {parameter}"] = answer.get("empty_because") or answer.get("error")
            said.append(answers)
    assert said[0] == said[1]
    assert all(said[0].values())


@pytest.mark.slow
@pytest.mark.promise("emptiness.reasons")
async def test_an_answer_that_is_empty_for_another_reason_says_that(tmp_path: Path) -> None:
    async with served(tmp_path, "src/boats.py") as client:
        await fill(client)

        async def code(name: str, **arguments: Any) -> str:
            said: str = (await client.call(name, **arguments))["empty_because"]["code"]
            return said

        assert await code("get_messages", session_id="plan", offset=10) == "no_more"
        assert await code("list_memories", max_tokens=1) == "over_budget"
        assert await code("memory_search", query="harbour", max_tokens=1) == "over_budget"
        assert await code("dependency_search", target="src/boats.py") == "stands_alone"
        await client.call("create_session", session_id="alone", purpose="plan", project_id="other")
        assert await code("get_messages", session_id="alone", visibility_filter="private") == NOTHING
        await client.call("record_workflow_step", command="make", session_id="alone")
        assert await code("get_workflow_patterns", session_id="alone") == "nothing_repeated"
        together = await client.call("list_memories", filters={"tags": ["harbour"], "kind": "procedural"})
        assert together["empty_because"]["sentence"].endswith("none fits filters.kind 'procedural'")
        await client.call("define_entities", entities=[{"name": "Postgres", "type": "service"}])
        assert await code("suggest_entities", min_count=1) == "all_declared"


@pytest.mark.promise("emptiness.reasons")
async def test_of_code_it_is_said_how_far_the_index_is(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    reach = Reach(workspaces=(str((tmp_path / "code").resolve()),))
    async with open_greenroom(tmp_path / "data", embedder="none", options=FAST) as runtime:
        ann = Principal(agent_id="tester", user="ann")
        agent = Agent(runtime, ann, reach=reach)
        nobody = await ask(agent, TOOLS["symbol_search"], {"symbol": "boats"})
        assert nobody["empty_because"]["code"] == "index_off"
        (corpus,) = (await ask(agent, TOOLS["list_corpora"], {}))["corpora"]
        keeping = KeepWorkspace(corpus=corpus["corpus"], keeper="another", state="indexing", of=282)
        await ask_corpus(runtime, ann, keeping)
        begun = await ask(agent, TOOLS["symbol_search"], {"symbol": "boats"})
        assert (
            begun["empty_because"]["sentence"]
            == "the index has 0 of 282 files so far and goes on; ask again in a moment"
        )
