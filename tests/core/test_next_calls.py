"""Calls that leave out what is plain, or name it as another tool does; what is said of what is missing."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.agents import begin, json, refused, wire
from support.api import posted
from support.exchanges import line, text
from support.keyed import bearer, create_key, premises

from greenroom.actors import (
    REQUESTS,
    AddMessage,
    Agent,
    CreateSession,
    DeleteMemory,
    EndSession,
    ForgetMemory,
    GetMemory,
    GetMessages,
    GetSession,
    GetSessionContext,
    ImportMemories,
    ListMemory,
    Principal,
    RetrieveMemory,
    SearchBySender,
    SearchByTimerange,
    SearchContext,
    SessionLocator,
    SetMemory,
    StartSession,
    StoreMemory,
    UpdateMemory,
    parse_request,
)
from greenroom.actors.app.requests import TOOL_SCOPES as SCOPES
from greenroom.actors.core.auth.scopes import allows
from greenroom.testing import mcp_client
from greenroom.transports.base.tool_names import tools_in, with_tools
from greenroom.transports.mcp.tools.tool_profiles import PROFILES

if TYPE_CHECKING:
    from support.agents import Enter, House

LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
FAR_AHEAD = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
ANN: dict[str, Any] = {"user": "ann"}


# -- the session that is meant -------------------------------------------------------------------------


@pytest.mark.promise("resources.left-out")
async def test_who_names_no_session_means_the_one_that_it_works_in(enter: Enter) -> None:
    async with enter() as at:
        ann, other = at.agent("a", **ANN), at.agent("b", user="bob")
        for request in (GetSession(), GetMessages(), AddMessage(content="x"), SearchContext(query="x")):
            with refused("VALIDATION_ERROR", field="session_id"):
                await ann.ask(request)
        started = await ann.ask(StartSession(purpose="the work"))
        await other.ask(StartSession(purpose="another work"))
        await ann.ask(AddMessage(content="boats", idempotency_key="k"))
        await ann.ask(AddMessage(content="boats", idempotency_key="k"))
        assert (await ann.ask(GetSession())).session.session_id == started.session_id
        listings: list[Any] = [
            GetMessages(),
            SearchBySender(sender="a"),
            SearchByTimerange(start_time=LONG_AGO, end_time=FAR_AHEAD),
        ]
        said = [(await ann.ask(listing)).messages for listing in listings]
        said.append([hit.message for hit in (await ann.ask(SearchContext(query="boats"))).results])
        assert [[message.content for message in each] for each in said] == [["boats"]] * 4
        assert (await ann.ask(GetSessionContext())).session_id == started.session_id
        assert (await other.ask(GetMessages())).messages == []


@pytest.mark.promise("resources.left-out")
async def test_without_a_connection_a_message_goes_nowhere_by_itself(enter: Enter) -> None:
    """Nothing tells two windows of one caller apart, and a message cannot be taken back."""
    async with enter() as at:
        locator = SessionLocator()

        def window() -> Agent:
            return Agent(at.runtime, Principal(agent_id="a", user="ann"), locator=locator)

        started = await window().ask(StartSession(purpose="the work"))
        assert (await window().ask(GetMessages())).messages == []
        with refused("VALIDATION_ERROR", field="session_id") as caught:
            await window().ask(AddMessage(content="x"))
        assert repr(started.session_id) in str(caught.value)
        assert (await window().ask(GetMessages())).messages == []
        await window().ask(AddMessage(session_id=started.session_id, content="x"))


@pytest.mark.promise("resources.left-out")
async def test_without_a_session_ones_own_memory_is_the_global_one(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("a", **ANN)
        started = await ann.ask(StartSession(purpose="the work"))
        await ann.ask(SetMemory(key="bound", value=json("1"), session_id=started.session_id))
        assert (await ann.ask(SetMemory(key="k", value=json("1")))).scope == "global"
        assert [each.key for each in (await ann.ask(ListMemory())).entries] == ["k"]
        with refused("MEMORY_NOT_FOUND"):
            await ann.ask(GetMemory(key="bound"))
        with refused("MEMORY_NOT_FOUND"):
            await ann.ask(DeleteMemory(key="bound"))


# -- memories by their ids, and keys that are nearly right --------------------------------------------------


@pytest.mark.promise("memory.by-id")
async def test_an_id_opens_and_deletes_memories_of_both_families(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", **ANN), at.agent("b", user="bob")
        stored = await ann.ask(StoreMemory(content="boats", key="k", namespace="project:p"))
        await ann.ask(SetMemory(key="own", value=json("[1]")))
        own = (await ann.ask(RetrieveMemory(key="own"))).memories[0]
        read = await ann.ask(GetMemory(memory_id=stored.memory_id))
        assert (read.key, bytes(read.value), read.namespace) == ("k", b'"boats"', "project:p")
        assert bytes((await ann.ask(GetMemory(memory_id=own.memory_id))).value) == b"[1]"
        (found,) = (await ann.ask(RetrieveMemory(memory_id=stored.memory_id))).memories
        assert (found.memory_id, found.content) == (stored.memory_id, "boats")
        private = await ann.ask(StoreMemory(content="mine", key="mine"))
        for request in (GetMemory, RetrieveMemory, DeleteMemory):
            with refused("MEMORY_NOT_FOUND"):
                await bob.ask(request(memory_id=private.memory_id))
            with refused("VALIDATION_ERROR", field="memory_id"):
                await ann.ask(request(memory_id=stored.memory_id, key="k"))
        for request in (GetMemory, DeleteMemory):
            with refused("VALIDATION_ERROR", field="memory_id"):
                await ann.ask(request())
        for memory_id in (stored.memory_id, own.memory_id):
            gone = await ann.ask(DeleteMemory(memory_id=memory_id))
            assert gone.existed
            with refused("MEMORY_NOT_FOUND"):
                await ann.ask(GetMemory(memory_id=memory_id))


@pytest.mark.promise("memory.by-id")
async def test_who_may_only_read_a_memory_deletes_it_by_no_id(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", **ANN), at.agent("b", user="bob")
        shown = await ann.ask(StoreMemory(content="boats", key="k", scope="public"))
        assert (await bob.ask(GetMemory(memory_id=shown.memory_id))).key == "k"
        with refused("PERMISSION_DENIED"):
            await bob.ask(DeleteMemory(memory_id=shown.memory_id))
        assert (await ann.ask(GetMemory(memory_id=shown.memory_id))).key == "k"


@pytest.mark.promise("memory.did-you-mean")
async def test_a_missing_key_is_answered_with_those_that_look_like_it(enter: Enter) -> None:
    async with enter() as at:
        ann, bob = at.agent("a", **ANN), at.agent("b", user="bob")
        await ann.ask(StoreMemory(content="boats", key="release-day"))
        await ann.ask(SetMemory(key="release-date", value=json("1")))
        await ann.ask(StoreMemory(content="boats", key="release-day", namespace="team:x", scope="private"))
        missing: dict[str, Any] = {"key": "Relese-day"}
        for request in (GetMemory(**missing), UpdateMemory(**missing, content="x"), ForgetMemory(**missing)):
            with refused("MEMORY_NOT_FOUND", did_you_mean=["release-date", "release-day"]) as caught:
                await ann.ask(request)
            assert "did you mean 'release-date' or 'release-day'?" in str(caught.value)
        deleted = await ann.ask(DeleteMemory(**missing))
        assert (deleted.existed, deleted.did_you_mean) == (False, ["release-date", "release-day"])
        for namespace in (None, "team:x", "user:ann"):
            with refused("MEMORY_NOT_FOUND") as caught:
                await bob.ask(GetMemory(**missing, namespace=namespace))
            assert "did you mean" not in str(caught.value)
        with refused("MEMORY_NOT_FOUND", did_you_mean=["release-day"]):
            await ann.ask(GetMemory(**missing, namespace="team:x"))
        with refused("MEMORY_NOT_FOUND") as caught:
            await ann.ask(GetMemory(key="release-day", version=9))
        assert "did you mean" not in str(caught.value)


async def test_get_memory_says_what_the_source_of_an_import_says(enter: Enter) -> None:
    async with enter() as at:
        ann = at.agent("a", user="ann", scopes=frozenset({"memory:read", "memory:write"}))
        await ann.ask(ImportMemories(source=text(line("k", "boats", created_by="somebody"))))
        read = await ann.ask(GetMemory(key="k"))
        assert msgspec.to_builtins(read.imported) == {"created_by": "somebody"}
        claims = line("own", "boats", namespace="agent:a", created_by="somebody")
        await ann.ask(ImportMemories(source=text(claims)))
        own = await ann.ask(GetMemory(key="own"))
        assert (own.namespace, own.imported) == (msgspec.UNSET, read.imported)
        await ann.ask(StoreMemory(content="x", key="plain"))
        assert "imported" not in wire(await ann.ask(GetMemory(key="plain")))


# -- names of paths ----------------------------------------------------------------------------------------


@pytest.mark.promise("mcp.paths")
@pytest.mark.parametrize(
    ("tool", "given", "meant"),
    [
        ("read_file", {"file_path": "a"}, {"path": "a"}),
        ("outline", {"file_path": "a"}, {"path": "a"}),
        ("similar_files", {"file_path": "a", "limit": 2}, {"path": "a", "limit": 2}),
        ("dependency_search", {"file_path": "a"}, {"target": "a"}),
        ("dependency_search", {"path": "a"}, {"target": "a"}),
        ("ingest_documents", {"path": "a"}, {"paths": ["a"]}),
        ("ingest_documents", {"file_path": ["a"]}, {"paths": ["a"]}),
        (
            "ingest_documents",
            {"texts": [{"file_path": "a.md", "text": "x"}, {"path": "b.md", "text": "y"}]},
            {"texts": [{"path": "a.md", "text": "x"}, {"path": "b.md", "text": "y"}]},
        ),
        (
            "record_context",
            {"files_accessed": [{"path": "a"}, {"file_path": "b"}, {"file_path": "c", "note": "n"}]},
            {"files_accessed": [{"path": "a"}, {"path": "b"}, {"path": "c", "note": "n"}]},
        ),
    ],
)
def test_a_path_is_taken_under_either_name(tool: str, given: Any, meant: Any) -> None:
    assert _parsed(tool, given) == _parsed(tool, meant)


@pytest.mark.promise("mcp.paths")
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("read_file", {"path": "a", "file_path": "b"}),
        ("get_memory", {"key": "k", "path": "a"}),
        ("outline", {"file_paths": "a"}),
    ],
)
def test_two_paths_and_paths_of_no_use_are_refused(tool: str, given: Any) -> None:
    with refused("VALIDATION_ERROR"):
        _parsed(tool, given)


def _parsed(tool: str, given: Any) -> Any:
    return parse_request(REQUESTS[tool], msgspec.json.encode(given))


# -- tools in sentences --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("nothing; list_api_keys shows them", "nothing"),
        ("one; list_api_keys does; get_memory, too", "one; get_memory, too"),
        ("one. Call list_api_keys. Then rest.", "one. Then rest."),
        ("one; get_memory. list_api_keys.", "one; get_memory."),
        ("no key 'list_api_keys; x'; look", "no key 'list_api_keys; x'; look"),
        ("another's list_api_keys; user's", "another's a tool that is closed to you; user's"),
        ("my_list_api_keys; `list_api_keys`", "my_list_api_keys; `list_api_keys`"),
    ],
)
def test_clauses_that_name_what_is_closed_are_left_out(sentence: str, said: str) -> None:
    assert with_tools(sentence, lambda tool: None if tool == "list_api_keys" else tool) == said


async def _failure(at: House, tool: str, scopes: set[str], *profiles: str, **arguments: Any) -> str:
    who = Principal(agent_id="a", user="ann", scopes=frozenset(scopes))
    options: dict[str, Any] = {"profiles": profiles} if profiles else {}
    async with mcp_client(lambda _: Agent(at.runtime, who), **options) as client:
        await client.initialize()
        answer = await client.call(tool, **arguments)
        assert not answer["success"]
        return str(answer["error"])


@pytest.mark.promise("mcp.named-tools")
async def test_a_sentence_names_no_tool_that_is_closed_and_explains_what_is_not_listed(enter: Enter) -> None:
    async with enter() as at:
        await begin(at)
        writes = await _failure(at, "add_message", {"sessions:write"}, session_id="none", content="x")
        assert writes == "there is no session 'none' that you may see"
        both = {"sessions:read", "sessions:write"}
        listed = await _failure(at, "add_message", both, session_id="none", content="x")
        assert listed.endswith("; list_sessions shows those")
        unlisted = await _failure(at, "get_session", both, "services", session_id="none")
        assert unlisted.endswith(
            "list_sessions shows those (list_sessions is not listed here: call it by name, or connect with "
            "the tool profile shared-context)"
        )
        await at.agent("alice").ask(CreateSession(purpose="p", session_id="e"))
        await at.agent("alice").ask(EndSession(session_id="e"))
        closed = await _failure(at, "add_message", both, session_id="e", content="x")
        assert "reopen_session is not listed here: call it by name" in closed
        await at.agent("a", user="ann").ask(StoreMemory(content="x", key="k"))
        elsewhere = await _failure(at, "delete_memory", {"memory:*"}, "shared-context", key="k")
        assert "(forget_memory with namespace 'user:ann')" in elsewhere
        assert "forget_memory is not listed here" in elsewhere
        assert "delete_memory is" not in elsewhere


@pytest.mark.promise("mcp.named-tools")
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("scopes", [{"*"}, {"memory:read"}, {"sessions:write"}, {"*:read"}])
async def test_what_is_listed_points_at_nothing_that_is_not(
    enter: Enter, profile: str, scopes: set[str]
) -> None:
    who = Principal(agent_id="a", user="ann", scopes=frozenset(scopes))
    async with (
        enter() as at,
        mcp_client(lambda _: Agent(at.runtime, who), profiles=(profile,)) as client,
    ):
        await client.initialize()
        tools = (await client.request("tools/list"))["result"]["tools"]
        templates = (await client.request("resources/templates/list")).get("result", {})
    listed = {tool["name"] for tool in tools}
    for tool in tools:
        assert set(tools_in(tool["description"])) <= listed, tool
        parameters = msgspec.json.encode(tool["inputSchema"]).decode().replace('"', " ")
        assert all(allows(scopes, SCOPES[name]) for name in tools_in(parameters)), tool
        assert "closed to you" not in tool["description"]
    assert tools_in(str(templates).replace("'", " ")) == []


@pytest.mark.promise("mcp.named-tools")
async def test_over_http_a_sentence_names_no_tool_that_is_closed_either(enter: Enter) -> None:
    async with enter() as at, premises(at) as here:
        await begin(at)
        said: dict[str, Any] = {"session_id": "none", "content": "x"}
        details = {}
        for scopes in ("sessions:write", "sessions:*"):
            key = await create_key(at, scopes, agent="bot", user="ann")
            await here.settled()
            answer = await posted(await here.guest(), "add_message", said, bearer(key))
            details[scopes] = answer.json()["detail"]
        assert details == {
            "sessions:write": "there is no session 'none' that you may see",
            "sessions:*": "there is no session 'none' that you may see; list_sessions shows those",
        }
