"""What a session keeps of the work done in it, and how tools hand it to each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from harness import greenroom, server_process
from sockets.test_http_process import call, guests_at
from sockets.test_http_process import server as http_server
from support.briefings import lines_of
from support.https import Guest, told

from greenroom.actors import (
    AddMessage,
    Agent,
    ContextRecorded,
    DecisionMade,
    EndSession,
    FileUse,
    GetSessionContext,
    MemorySearch,
    MigrateSession,
    Principal,
    RecordContext,
    RestoreSession,
    SearchContext,
    SessionContext,
    StartSession,
    StoreMemory,
    WorkflowState,
    open_greenroom,
)
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.sessions.requests import current_session, session_context
from greenroom.actors.sessions.storage.migrations import ADAPTERS, client_tool
from greenroom.runtime import Refusal
from greenroom.testing import McpClient
from greenroom.transports.mcp.clients import roots as mcp_roots

HOME = "/home/user/greenroom"


def agent(runtime: Any, name: str, *, user: str | None = "user", **more: Any) -> Agent:
    return Agent(runtime, Principal(agent_id=name, user=user, **more), client=name)


@pytest.mark.promise("passport.context")
async def test_a_session_gathers_what_its_agent_searches_and_stores(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        await claude.ask(MemorySearch(query="before the session"))
        started = await claude.ask(StartSession(workspace_path=HOME))
        assert started.session_id is not None
        stored = await claude.ask(StoreMemory(content="LMDB it is", key="store"))
        await claude.ask(MemorySearch(query="which store"))
        await claude.ask(SearchContext(session_id=started.session_id, query="LMDB"))
        await claude.ask(MemorySearch(query="which store"))
        read = await claude.ask(GetSessionContext())
    assert [search.query for search in read.context.recent_searches] == ["which store", "LMDB"]
    assert [memory.memory_id for memory in read.context.memories] == [stored.memory_id]
    assert read.session_id == started.session_id
    assert (read.tool, read.original_tool, read.workspace_path) == ("claude-code", "claude-code", HOME)


@pytest.mark.promise("passport.context")
async def test_what_is_recorded_is_read_most_important_and_newest_first(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        await claude.ask(StartSession(workspace_path=HOME))
        await claude.ask(
            RecordContext(files_accessed=[FileUse(path="a.py"), FileUse(path="b.py", importance=0.9)])
        )
        await claude.ask(
            RecordContext(files_accessed=[FileUse(path="a.py"), FileUse(path="c.py", note="new")])
        )
        await claude.ask(RecordContext(decisions=[DecisionMade(what="first"), DecisionMade(what="second")]))
        work = WorkflowState(task="build it", step="tests", next=["docs"], blockers=["a key"])
        recorded = await claude.ask(RecordContext(workflow_state=work))
        read = await claude.ask(GetSessionContext(tool_id="Visual Studio Code"))
    assert (recorded.files_accessed, recorded.decisions) == (3, 2)
    files = [(file.path, file.importance, file.uses) for file in read.context.files_accessed]
    assert files == [("b.py", 0.9, 1), ("a.py", 0.51, 2), ("c.py", 0.3, 1)]
    assert [made.what for made in read.context.decisions] == ["second", "first"]
    assert read.context.workflow_state is not None
    assert read.context.workflow_state.step == "tests"
    assert lines_of(read.briefing) == [
        "Session: Work in Claude Code",
        "Task (active): build it, at: tests",
        "Next: docs",
        "Waits for: a key",
        "Decided: second",
        "Decided: first",
        "Files: #file:b.py #file:a.py #file:c.py",
    ]


@pytest.mark.quick
@pytest.mark.promise("passport.context")
async def test_recording_nothing_is_refused(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        await claude.ask(StartSession())
        for asked in (RecordContext(), RecordContext(files_accessed=[], idempotency_key="k")):
            with pytest.raises(Refusal, match="there is nothing to record; give files_accessed") as refused:
                await claude.ask(asked)
            assert refused.value.code == "VALIDATION_ERROR"
        assert (await claude.ask(GetSessionContext())).context == SessionContext()


def test_answers_that_were_kept_under_the_names_of_before_are_read() -> None:
    """What an idempotent request was answered is kept for a day, also by the program before this one."""
    kept = (
        '{"success":true,"session_id":"s","files":3,"searches":2,"decisions":1,'
        '"recorded_at":"2026-01-01T00:00:00Z"}'
    )
    recorded = msgspec.json.decode(kept, type=ContextRecorded)
    assert (recorded.files_accessed, recorded.recent_searches, recorded.decisions) == (3, 2, 1)
    assert "files" not in msgspec.json.decode(msgspec.json.encode(recorded))
    used = {"path": "a.py", "importance": 0.3, "uses": 1, "last_used": "2026-01-01T00:00:00Z"}
    context = msgspec.json.decode(json.dumps({"files": [used], "workflow": None}), type=SessionContext)
    assert [file.path for file in context.files_accessed] == ["a.py"]
    assert set(msgspec.to_builtins(context)) == set(msgspec.to_builtins(SessionContext()))


@pytest.mark.promise("passport.context-private")
async def test_another_user_sees_the_decisions_and_not_what_was_searched(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        alice = agent(runtime, "claude-code", user="alice")
        bob = agent(runtime, "cursor", user="bob")
        started = await alice.ask(StartSession())
        work = RecordContext(
            files_accessed=[FileUse(path="secret.py")],
            recent_searches=["salaries"],
            decisions=[DecisionMade(what="we ship", why="it works")],
        )
        await alice.ask(work)
        await alice.ask(StoreMemory(content="alice's own"))
        read = await bob.ask(GetSessionContext(session_id=started.session_id))
        assert (read.context.files_accessed, read.context.recent_searches, read.context.memories) == (
            [],
            [],
            [],
        )
        assert [(made.what, made.by) for made in read.context.decisions] == [("we ship", "claude-code")]
        assert "salaries" not in read.briefing


@pytest.mark.promise("passport.context-private")
async def test_a_session_of_another_project_takes_and_tells_nothing(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        alice = agent(runtime, "a", projects=frozenset({"atlas"}))
        bob = agent(runtime, "b", projects=frozenset({"boreas"}))
        started = await alice.ask(StartSession())
        assert started.project_id == "atlas"
        assert started.memory_passport is not None
        for asked in (
            GetSessionContext(session_id=started.session_id),
            RecordContext(session_id=started.session_id, recent_searches=["x"]),
            EndSession(session_id=started.session_id),
            RestoreSession(session_id=started.session_id),
            RestoreSession(passport=started.memory_passport.claim),
            MigrateSession(session_id=started.session_id, to_tool="zed"),
        ):
            with pytest.raises(Refusal) as refused:
                await bob.ask(asked)
            assert refused.value.code == "SESSION_NOT_FOUND"
        with pytest.raises(Refusal, match="not a member of 'atlas'"):
            await bob.ask(StartSession(project_id="atlas"))
        both = agent(runtime, "c", projects=frozenset({"atlas", "boreas"}))
        with pytest.raises(Refusal, match="say which: atlas, boreas"):
            await both.ask(StartSession(workspace_path=HOME))


@pytest.mark.promise("passport.offered")
async def test_the_next_tool_is_offered_the_session_and_takes_it_up(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude, cursor = agent(runtime, "claude-code"), agent(runtime, "cursor-vscode")
        started = await claude.ask(StartSession(workspace_path=HOME, purpose="release"))
        await claude.ask(RecordContext(files_accessed=[FileUse(path="a.py")]))
        elsewhere = await cursor.ask(StartSession(workspace_path="/home/user/other"))
        assert elsewhere.offered == []
        offered = await cursor.ask(StartSession(workspace_path=HOME + "/"))
        assert [(each.session_id, each.purpose, each.tool) for each in offered.offered] == [
            (started.session_id, "release", "claude-code")
        ]
        stranger = agent(runtime, "zed", user="mallory")
        assert (await stranger.ask(StartSession(workspace_path=HOME))).offered == []
        await cursor.ask(EndSession())
        taken = await cursor.ask(StartSession(workspace_path=HOME, restore_from="latest"))
        assert (taken.session_id, taken.restored) == (started.session_id, True)
        assert [file.path for file in taken.context.files_accessed] == ["a.py"]
        assert lines_of(taken.briefing)[-1] == "Files: @a.py"
        read = await cursor.ask(GetSessionContext())
        assert (read.tool, read.original_tool) == ("cursor", "claude-code")
        assert [(move.from_tool, move.to_tool, move.outcome) for move in read.migrations] == [
            (None, "claude-code", "started"),
            ("claude-code", "cursor", "resumed"),
        ]


@pytest.mark.quick
@pytest.mark.promise("passport.migrate")
async def test_a_handed_over_session_is_taken_up_by_its_claim(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude, zed = agent(runtime, "claude-code"), agent(runtime, "Zed")
        await claude.ask(StartSession(workspace_path=HOME))
        handed = await claude.ask(MigrateSession(to_tool="Zed", note="go on with the tests"))
        assert "In Zed, call start_session with restore_from" in handed.instructions
        restored = await zed.ask(RestoreSession(passport=handed.claim))
        assert (restored.session_id, restored.tool, restored.original_tool) == (
            handed.session_id,
            "zed",
            "claude-code",
        )
        read = await zed.ask(GetSessionContext())
        steps = [(move.from_tool, move.to_tool, move.outcome, move.note) for move in read.migrations]
        assert steps[1:] == [
            ("claude-code", "zed", "handed_over", "go on with the tests"),
            ("claude-code", "zed", "resumed", None),
        ]
        twisted = handed.claim[:-3] + ("AAA" if not handed.claim.endswith("AAA") else "BBB")
        with pytest.raises(Refusal) as refused:
            await zed.ask(RestoreSession(passport=twisted))
        assert refused.value.code == "PASSPORT_INVALID"


@pytest.mark.quick
@pytest.mark.promise("passport.end")
async def test_an_ended_session_takes_nothing_more_and_is_not_offered(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        started = await claude.ask(StartSession(workspace_path=HOME))
        ended = await claude.ask(EndSession(summary="all done"))
        assert (ended.session_id, ended.status, ended.decisions) == (started.session_id, "terminated", 1)
        await claude.ask(MemorySearch(query="afterwards"))
        read = await claude.ask(GetSessionContext())
        assert read.context.recent_searches == []
        with pytest.raises(Refusal) as refused:
            await claude.ask(RecordContext(recent_searches=["more"]))
        assert refused.value.code == "SESSION_CLOSED"
        assert (await claude.ask(StartSession(workspace_path=HOME))).offered == []


async def test_without_a_session_the_caller_is_told_to_start_one(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        for asked in (GetSessionContext(), RecordContext(), EndSession(), MigrateSession(to_tool="zed")):
            with pytest.raises(Refusal, match="start or restore a session first"):
                await claude.ask(asked)
        with pytest.raises(Refusal, match="give a session_id or a passport"):
            await claude.ask(RestoreSession())
        with pytest.raises(Refusal, match="it must be your own"):
            await claude.ask(StartSession(user_id="mallory"))


@pytest.mark.promise("passport.context")
async def test_a_context_is_bounded_and_survives_the_server(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        started = await claude.ask(StartSession(workspace_path=HOME))
        await claude.ask(RecordContext(files_accessed=[FileUse(path="kept.py", importance=1.0)]))
        for batch in range(4):
            files = [FileUse(path=f"{batch}-{number}.py") for number in range(100)]
            searches = [f"query {batch} {number}" for number in range(100)]
            decisions = [DecisionMade(what=f"decision {batch} {number}") for number in range(100)]
            await claude.ask(
                RecordContext(files_accessed=files, recent_searches=searches, decisions=decisions)
            )
        await claude.ask(RecordContext(files_accessed=[FileUse(path="new.py", importance=0.0)]))
        before = await claude.ask(GetSessionContext())
    assert len(before.context.files_accessed) == session_context.MOST_FILES
    assert before.context.files_accessed[-1].path == "new.py", "what is recorded last is not what goes"
    assert before.context.files_accessed[0].path == "kept.py"
    assert len(before.context.recent_searches) == session_context.MOST_SEARCHES
    assert before.context.recent_searches[0].query == "query 3 99"
    assert len(before.context.decisions) == session_context.MOST_DECISIONS
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        after = await agent(runtime, "claude-code").ask(GetSessionContext(session_id=started.session_id))
    assert after.context == before.context
    assert after.migrations == before.migrations


@pytest.mark.quick
@pytest.mark.promise("passport.start-once")
async def test_a_repeated_start_gets_the_first_session(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude = agent(runtime, "claude-code")
        first = await claude.ask(StartSession(workspace_path=HOME, idempotency_key="k"))
        again = await claude.ask(StartSession(workspace_path=HOME, idempotency_key="k"))
        assert again.session_id == first.session_id
        assert again.created_at == first.created_at
        await claude.ask(RecordContext(recent_searches=["an empty session is never the latest"]))
        for restore_from in ("latest", first.session_id):
            request = StartSession(
                workspace_path=HOME, restore_from=restore_from, idempotency_key=restore_from
            )
            assert (await claude.ask(request)).session_id == first.session_id
            before = await claude.ask(GetSessionContext())
            assert (await claude.ask(request)).session_id == first.session_id
            assert await claude.ask(GetSessionContext()) == before  # its way has no step more
        latest = StartSession(workspace_path="/another", restore_from="latest", idempotency_key="l")
        begun = await claude.ask(latest)
        assert not begun.restored
        assert (await claude.ask(latest)).session_id == begun.session_id


@pytest.mark.quick
@pytest.mark.promise("passport.adapters")
@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("claude-ai", "claude-desktop"),
        ("Claude Desktop", "claude-desktop"),
        ("claude-code", "claude-code"),
        ("claude-code (via mcp-remote 0.1.29)", "claude-code"),
        ("claude-code-via-mcp-remote-0.1.29", "claude-code"),
        ("cursor-vscode", "cursor"),
        ("Cursor 1.7.2", "cursor"),
        ("Visual Studio Code", "vscode"),
        ("Visual-Studio-Code-Insiders", "vscode"),
        ("windsurf-client", "windsurf"),
        ("Zed", "zed"),
        ("continue-cli-client", "continue"),
        ("Cline", "cline"),
        ("codex-mcp-client", "codex"),
        ("My Own Tool!", "my-own-tool"),
        ("   ", "unknown"),
        ("…", "unknown"),
        (None, "unknown"),
    ],
)
def test_tools_are_recognised_by_what_they_call_themselves(name: str | None, tool: str) -> None:
    assert client_tool(name).tool_id == tool


def test_no_name_belongs_to_two_tools() -> None:
    names = [name for adapter in ADAPTERS for name in {adapter.tool_id, *adapter.names}]
    assert len(names) == len(set(names))
    assert all(adapter.mention.count("{}") == 1 for adapter in ADAPTERS)


def test_a_folder_tells_its_project() -> None:
    assert project_of_path("/home/ann/app") == project_of_path("/home/ann/app/")
    assert project_of_path("/home/ann/app") != project_of_path("/home/bob/app")
    assert project_of_path("C:\\work\\my app").startswith("my-app-")
    assert project_of_path("/").startswith("workspace-")
    assert len(project_of_path("/" + "x" * 4_000)) <= 128


async def test_a_session_goes_from_tool_to_tool_over_mcp(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await client.initialize("cursor-vscode")
        started = await client.call("omn_create_session", workspace_path=HOME)
        assert started["success"], started
        assert started["tool"] == "cursor"
        session = started["session_id"]
        assert (await client.call("record_context", files_accessed=[{"path": "a.py"}]))["files_accessed"] == 1
        await client.call("store_memory", content="something")
        await client.call("memory_search", query="anything")
        read = await client.call("get_session_context")
        assert [each["query"] for each in read["context"]["recent_searches"]] == ["anything"]
        assert len(read["context"]["memories"]) == 1
        exported = await client.call("export_session", qr=True)
        assert exported["success"], exported
        restored = await client.call("restore_session", passport=exported["passport"])
        assert restored["success"], restored
        assert restored["session_id"] == session
        assert (await client.call("end_session"))["session_id"] == session


async def shake_hands_with_roots(client: McpClient) -> None:
    info = {"name": "claude-code", "version": "1"}
    greeting = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": info,
    }
    await client.request("initialize", greeting)
    await client.send({"method": "notifications/initialized"})


@pytest.mark.promise("passport.roots")
async def test_a_client_that_has_roots_is_asked_where_it_works(tmp_path: Path) -> None:
    roots = [
        {"uri": "https://example.org/"},
        {"uri": "file://elsewhere/home/user/theirs"},
        {"uri": "file:///home/user/my%20work", "name": "w"},
    ]
    async with greenroom(tmp_path) as client:
        await shake_hands_with_roots(client)
        call = await client.send_call("start_session", {})
        asked = await client.receive()
        assert asked["method"] == "roots/list"
        await client.send({"id": asked["id"], "result": {"roots": roots}})
        started = await client.receive()
        assert started["id"] == call
        content = started["result"]["structuredContent"]
        assert content["project_id"] == project_of_path("/home/user/my work")
        read = await client.call("get_session_context")
        assert read["workspace_path"] == "/home/user/my work"
        # Who says where it works is not asked, and late answers are for nobody.
        await client.send({"id": asked["id"], "result": {"roots": []}})
        assert (await client.call("start_session", workspace_path=HOME))["offered"] == []


@pytest.mark.quick
@pytest.mark.promise("passport.roots")
@pytest.mark.parametrize(
    "response",
    [
        None,
        {"error": {"code": -32601, "message": "none"}},
        {"result": {"roots": []}},
        {"result": {"roots": "odd"}},
        {"result": {"roots": [7, {"uri": 7}, {"uri": "file:///%ff"}, {"uri": "file:///" + "x" * 5_000}]}},
        {"result": None},
    ],
)
async def test_a_client_that_does_not_say_where_it_works_starts_a_session_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, response: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(mcp_roots, "PATIENCE_SECONDS", 0.01 if response is None else 300)
    async with greenroom(tmp_path) as client:
        await shake_hands_with_roots(client)
        await client.send_call("start_session", {})
        asked = await client.receive()
        if response is not None:
            await client.send({"id": asked["id"], **response})
        started = await client.receive()
        assert started["result"]["structuredContent"]["project_id"] is None


@pytest.mark.promise("passport.roots")
async def test_a_client_that_introduces_itself_again_without_roots_is_not_asked(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await shake_hands_with_roots(client)
        await client.send_call("start_session", {})
        asked = await client.receive()
        await client.send({"id": asked["id"], "result": {"roots": []}})
        assert "result" in await client.receive()
        await client.initialize("claude-code")
        assert (await client.call("start_session"))["project_id"] is None


@pytest.mark.promise("passport.roots")
async def test_a_start_that_is_taken_back_while_its_client_is_asked_starts_nothing(tmp_path: Path) -> None:
    async with greenroom(tmp_path) as client:
        await shake_hands_with_roots(client)
        call = await client.send_call("start_session", {})
        asked = await client.receive()
        await client.send({"method": "notifications/cancelled", "params": {"requestId": call}})
        await client.send({"id": asked["id"], "result": {"roots": []}})
        assert (await client.call("list_sessions"))["count"] == 0


@pytest.mark.promise("passport.exported")
async def test_a_session_leaves_one_process_and_comes_back_in_another(tmp_path: Path) -> None:
    async with server_process(tmp_path / "one") as server:
        client = server.client
        await client.initialize("claude-code")
        started = await client.call("start_session", workspace_path=HOME)
        session = started["session_id"]
        await client.call("add_message", session_id=session, content="hello")
        await client.call("record_context", decisions=[{"what": "to go on elsewhere"}])
        answer = await client.request("tools/call", {"name": "export_session", "arguments": {"qr": True}})
        kinds = [block["type"] for block in answer["result"]["content"]]
        assert kinds == ["text", "resource_link", "image"]
        uri = answer["result"]["content"][1]["uri"]
        read = await client.request("resources/read", {"uri": uri})
        passport = read["result"]["contents"][0]["text"]
        signer = answer["result"]["structuredContent"]["signer"]
    async with server_process(tmp_path / "two") as server:
        client = server.client
        await client.initialize("cursor-vscode")
        refused = await client.call("restore_session", passport=passport)
        assert refused["code"] == "PASSPORT_UNTRUSTED"
        assert signer in refused["error"]
    async with server_process(tmp_path / "two", "--trust-signer", signer) as server:
        client = server.client
        await client.initialize("cursor-vscode")
        restored = await client.call("restore_session", passport=passport)
        assert restored["session_id"] == session
        assert restored["original_tool"] == "claude-code"
        assert restored["context"]["decisions"][0]["what"] == "to go on elsewhere"
        messages = await client.call("get_messages", session_id=session)
        assert [message["content"] for message in messages["messages"]] == ["hello"]


@pytest.mark.quick
@pytest.mark.promise("passport.exported")
async def test_a_message_of_a_stranger_to_the_session_stays_out_of_the_context(tmp_path: Path) -> None:
    async with open_greenroom(tmp_path, embedder="none") as runtime:
        claude, other = agent(runtime, "claude-code"), agent(runtime, "other")
        started = await claude.ask(StartSession())
        assert started.session_id is not None
        hidden = AddMessage(session_id=started.session_id, content="psst", visibility="private")
        await other.ask(hidden)
        assert (await claude.ask(GetSessionContext())).status == "created"


@pytest.mark.quick
@pytest.mark.promise("passport.alone")
async def test_who_has_no_connection_works_in_the_session_that_was_taken_up(tmp_path: Path) -> None:
    async with http_server(tmp_path) as (_program, port), guests_at(port, 2) as (one, two):
        claude = {"greenroom_agent": "claude"}
        started = await alone(one, "start_session", claude, workspace_path="/home/user/atlas")
        await alone(two, "memory_search", claude, query="seen from there")  # over another connection
        await alone(one, "store_memory", claude, content="a fact", key="fact")
        read = await alone(two, "get_session_context", claude)
        assert read["session_id"] == started["session_id"]
        assert [search["query"] for search in read["context"]["recent_searches"]] == ["seen from there"]
        assert [memory["key"] for memory in read["context"]["memories"]] == ["fact"]
        for other in ({"greenroom_agent": "zed"}, {"greenroom_agent": "claude", "greenroom_project": "p"}):
            await alone(one, "memory_search", other, query="of another")
            refusal = await alone(one, "get_session_context", other)
            assert (refusal["code"], "start or restore" in str(refusal)) == ("VALIDATION_ERROR", True)
        # A connection of the same caller begins with nothing.
        await one.initialize(**claude)
        assert (await call(one, "get_session_context"))["code"] == "VALIDATION_ERROR"
        second = await alone(two, "start_session", claude, workspace_path="/home/user/other")
        assert (await alone(two, "get_session_context", claude))["session_id"] == second["session_id"]
        first = await alone(two, "get_session_context", claude, session_id=started["session_id"])
        assert len(first["context"]["recent_searches"]) == 1


async def alone(guest: Guest, tool: str, who: dict[str, str], **arguments: Any) -> Any:
    """Return what a tool answers to a request of the era without connections."""
    await guest.modern("tools/call", {"name": tool, "arguments": arguments}, **who)
    return told((await guest.answer()).json())


def test_of_too_many_callers_the_first_is_forgotten() -> None:
    locator = current_session.SessionLocator()
    for number in range(current_session.MAX_CALLERS + 1):
        locator.record(str(number), f"s{number}", None)
    assert locator.find("0") is None
    assert locator.find("1") == ("s1", None)
    locator.record("1", "other", "p")
    assert locator.find("1") == ("other", "p")
