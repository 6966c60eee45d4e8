"""The SDK's own client, in both protocol eras, over each transport, against a server process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trio
from conformance.fixture import HELD, HOLD
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    LoggingMessageNotificationParams,
    PromptReference,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    TextContent,
)
from support.listed import CORE
from support.sdk_clients import (
    ERAS,
    MODES,
    TRANSPORTS,
    Connect,
    Mode,
    Transport,
    answer,
    fixture_at,
    fixture_at_pipes,
    fixture_for_many,
    fixture_served,
    read,
    served,
)

from greenroom.actors import TEMPLATES

# The SDK's client over HTTP leaves streams that it has read enough of to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

everywhere = pytest.mark.parametrize("transport", TRANSPORTS)
in_both_eras = pytest.mark.parametrize("mode", ERAS)
in_all_modes = pytest.mark.parametrize("mode", MODES)
MEMORY = "agent://sdk-client/memory"
AT_ONCE = 100

Served = Callable[[Transport], Connect]


@pytest.fixture(scope="module")
def listening() -> Iterator[Callable[[Transport], str]]:
    """Give where a fixture listens that all tests share; it keeps nothing but what it counts."""
    with ExitStack() as stack:
        yield cache(lambda transport: stack.enter_context(fixture_for_many(transport)))


@pytest.fixture
def fixture_by(tmp_path: Path, listening: Callable[[Transport], str]) -> Served:
    """Give what connects clients to the fixture of the conformance suite over a transport."""

    def connect(transport: Transport) -> Connect:
        return fixture_at_pipes(tmp_path) if transport == "stdio" else fixture_at(listening(transport))

    return connect


@everywhere
@in_all_modes
@pytest.mark.promise("mcp.eras", "conformance.sdk-client")
async def test_the_main_job(tmp_path: Path, transport: Transport, mode: Mode) -> None:
    async with served(tmp_path, transport) as connect:
        async with connect(mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            if mode != "2026-07-28":  # pinned to a version, the client asks the server nothing about itself
                assert client.server_info is not None
                assert client.server_info.name == "greenroom"
                assert client.server_info.version
                assert client.instructions
            assert {tool.name for tool in (await client.list_tools()).tools} == set(CORE)

            session = (await answer(client, "create_session", purpose="both eras"))["session_id"]
            await answer(client, "add_message", session_id=session, content="the émigré's\nplan")
            found = await answer(client, "search_context", session_id=session, query="plan")
            assert [hit["message"]["content"] for hit in found["results"]] == ["the émigré's\nplan"]
            assert found["results"][0]["message"]["sender"] == "sdk-client"
            big = {"n": [1, None, "123"], "x": "x" * 1_000_000}
            await answer(client, "set_memory", key="k", value=big)
            assert (await answer(client, "get_memory", key="k"))["value"] == big

        async with connect(mode) as client:
            assert (await answer(client, "get_memory", key="k"))["value"] == big


@pytest.mark.quick
@everywhere
@in_both_eras
@pytest.mark.promise("mcp.errors", "conformance.sdk-client")
async def test_a_refusal_is_a_tool_error_and_an_unknown_tool_is_not(
    tmp_path: Path, transport: Transport, mode: Mode
) -> None:
    async with served(tmp_path, transport) as connect, connect(mode) as client:
        result = await client.call_tool("get_session", {"session_id": "nobody"})
        assert result.is_error
        assert "SESSION_NOT_FOUND" in str(result.content)
        with pytest.raises(MCPError, match="get_sesion"):
            await client.call_tool("get_sesion", {})
        for uri in ("agent://other/memory", "session://nobody"):
            with pytest.raises(MCPError, match=f"no resource '{uri}'"):
                await client.read_resource(uri)


@everywhere
@in_both_eras
@pytest.mark.promise("sessions.visibility", "memory.private")
async def test_agents_share_sessions_and_keep_their_memory(
    tmp_path: Path, transport: Transport, mode: Mode
) -> None:
    async with served(tmp_path, transport) as connect:
        async with connect(mode, "alice") as alice:
            session = (await answer(alice, "create_session", purpose="shared"))["session_id"]
            await answer(alice, "add_message", session_id=session, content="for all")
            await answer(alice, "add_message", session_id=session, content="secret", visibility="private")
            await answer(alice, "set_memory", key="k", value=1)
        async with connect(mode, "bob") as bob:
            seen = (await answer(bob, "get_messages", session_id=session))["messages"]
            assert [(message["sender"], message["content"]) for message in seen] == [("alice", "for all")]
            assert (await bob.call_tool("get_memory", {"key": "k"})).is_error
            await answer(bob, "add_message", session_id=session, content="from bob")
        async with connect(mode, "alice") as alice:
            seen = (await answer(alice, "get_messages", session_id=session))["messages"]
            assert [message["sender"] for message in seen] == ["alice", "alice", "bob"]


@in_both_eras
async def test_what_the_server_is_told_of_its_agent_counts_more_than_the_clients_name(
    tmp_path: Path, mode: Mode
) -> None:
    async with served(tmp_path, "stdio", "--agent", "bob") as connect, connect(mode, "ignored") as client:
        assert (await answer(client, "create_session", purpose="whose"))["created_by"] == "bob"


@everywhere
@in_all_modes
@pytest.mark.promise("resources.protocol", "conformance.sdk-client")
async def test_resources_are_listed_read_and_completed(
    tmp_path: Path, transport: Transport, mode: Mode
) -> None:
    async with served(tmp_path, transport) as connect, connect(mode) as client:
        session = (await answer(client, "create_session", purpose="a purpose"))["session_id"]
        await answer(client, "add_message", session_id=session, content="grüße 𝄞")
        await answer(client, "set_memory", key="k", value=1)
        if mode != "2026-07-28":  # as in the test above
            said = client.server_capabilities
            assert said is not None
            assert said.model_dump(by_alias=True, exclude_none=True) == {
                "completions": {},
                "prompts": {"listChanged": False},
                "resources": {"listChanged": False, "subscribe": True},
                "tools": {"listChanged": False},
            }
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [each.uri_template for each in TEMPLATES]
        listed = (await client.list_resources()).resources
        assert [each.uri for each in listed[:2]] == [MEMORY, f"session://{session}"]
        assert [each.name for each in listed[2:]] == ["preferences", "savings"]
        assert listed[1].title == "a purpose"
        held = [await read(client, each.uri) for each in listed]
        assert list(held[0]["memory"]["global"]) == ["k"]
        assert held[1]["messages"][0]["content"] == "grüße 𝄞"
        reference = ResourceTemplateReference(uri="session://{session_id}")
        begun = {"name": "session_id", "value": session[:10]}
        assert (await client.complete(reference, begun)).completion.values == [session]


@everywhere
@in_both_eras
@pytest.mark.promise("conformance.sdk-client")
async def test_a_hundred_calls_at_once(tmp_path: Path, transport: Transport, mode: Mode) -> None:
    async with served(tmp_path, transport) as connect, connect(mode) as client:
        session = (await answer(client, "create_session", purpose="many"))["session_id"]
        answered: dict[str, int] = {}

        async def add(content: str) -> None:
            added = await answer(client, "add_message", session_id=session, content=content)
            answered[content] = added["message_id"]

        async with trio.open_nursery() as nursery:
            for number in range(AT_ONCE):
                nursery.start_soon(add, str(number))
        messages = (await answer(client, "get_messages", session_id=session, limit=AT_ONCE))["messages"]
        assert {each["content"]: each["message_id"] for each in messages} == answered
        assert len(answered) == AT_ONCE


@everywhere
@in_both_eras
@pytest.mark.promise("resources.protocol", "conformance.sdk-client")
async def test_a_subscriber_hears_of_changes(tmp_path: Path, transport: Transport, mode: Mode) -> None:
    heard, news = trio.open_memory_channel[str](100)

    async def note(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await heard.send(str(message.params.uri))

    handler = note if mode == "legacy" else None
    async with served(tmp_path, transport) as connect, connect(mode, message_handler=handler) as client:
        session = (await answer(client, "create_session", purpose="watched"))["session_id"]
        uri = f"session://{session}"
        if mode == "legacy":
            for each in (uri, MEMORY):
                with pytest.warns(MCPDeprecationWarning):
                    await client.subscribe_resource(each)
            await answer(client, "add_message", session_id=session, content="first")
            assert await news.receive() == uri
            with pytest.warns(MCPDeprecationWarning):
                await client.unsubscribe_resource(uri)
            await answer(client, "add_message", session_id=session, content="unheard")
            await answer(client, "set_memory", key="k", value=1)
            assert await news.receive() == MEMORY
            return
        async with client.listen(resource_subscriptions=[uri, MEMORY]) as stream:
            await answer(client, "add_message", session_id=session, content="first")
            assert await anext(stream) == ResourceUpdated(uri)
            await answer(client, "set_memory", key="k", value=1)
            assert await anext(stream) == ResourceUpdated(MEMORY)


@everywhere
@in_both_eras
@pytest.mark.promise("conformance.sdk-client")
async def test_a_cancelled_call_is_called_off_at_the_server(
    tmp_path: Path, transport: Transport, mode: Mode
) -> None:
    async with fixture_served(tmp_path, transport) as connect, connect(mode) as client:

        async def held(**expected: int) -> None:
            while not expected.items() <= (await answer(client, HELD)).items():
                pass

        for number in range(1, 4):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.call_tool, HOLD, {})
                await held(begun=number, called_off=number - 1)
                nursery.cancel_scope.cancel()
            await held(begun=number, called_off=number)


@everywhere
@in_both_eras
@pytest.mark.promise("conformance.sdk-client")
async def test_a_tool_tells_of_its_progress_while_it_works(
    fixture_by: Served, transport: Transport, mode: Mode
) -> None:
    told: dict[int, list[float]] = {number: [] for number in range(3)}

    async with fixture_by(transport)(mode) as client:

        async def call(number: int) -> None:
            async def note(progress: float, total: float | None, message: str | None) -> None:
                assert (total, message) == (100, f"Completed step {progress:g} of 100")
                told[number].append(progress)

            result = await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
            assert not result.is_error

        async with trio.open_nursery() as nursery:
            for number in told:
                nursery.start_soon(call, number)
    assert list(told.values()) == [[0, 50, 100]] * 3


@everywhere
@in_both_eras
@pytest.mark.promise("conformance.sdk-client")
async def test_a_tool_logs_to_those_who_want_it(fixture_by: Served, transport: Transport, mode: Mode) -> None:
    logged: list[Any] = []

    async def note(params: LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    connect = fixture_by(transport)
    async with connect(mode, logging_callback=note, log_level="info") as client:
        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level("info")
        await client.call_tool("test_tool_with_logging", {})
    assert logged == ["Tool execution started", "Tool processing data", "Tool execution completed"]
    if mode != "legacy":
        async with connect(mode, logging_callback=note) as client:
            await client.call_tool("test_tool_with_logging", {})
        assert len(logged) == 3


@everywhere
@in_both_eras
@pytest.mark.promise("conformance.sdk-client")
async def test_a_tool_asks_the_client_and_goes_on_with_the_answer(
    fixture_by: Served, transport: Transport, mode: Mode
) -> None:
    async def fill_in(
        _context: ClientRequestContext, params: ElicitRequestFormParams | ElicitRequestURLParams
    ) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        filled_in = {"name": "Ann", "color": "blue", "username": "ann", "email": "ann@example.org"}
        wanted = {field: filled_in[field] for field in params.requested_schema["properties"]}
        return ElicitResult(action="accept", content={**wanted})

    async def sample(
        _context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        (asked,) = params.messages
        assert isinstance(asked.content, TextContent)
        return CreateMessageResult(
            role="assistant", model="none", content=TextContent(text=f"You said: {asked.content.text}")
        )

    connect = fixture_by(transport)
    async with connect(mode, elicitation_callback=fill_in, sampling_callback=sample) as client:

        async def said(tool: str, **arguments: str) -> str:
            (block,) = (await client.call_tool(tool, arguments)).content
            assert isinstance(block, TextContent)
            return block.text

        if mode == "legacy":
            expected = 'User response: action=accept, content={"username": "ann", "email": "ann@example.org"}'
            assert await said("test_elicitation", message="Who?") == expected
            assert await said("test_sampling", prompt="Hm?") == "LLM response: You said: Hm?"
        else:
            assert await said("test_input_required_result_elicitation") == "Hello, Ann!"
            assert await said("test_input_required_result_multi_round") == "Ann likes blue"
            expected = "You said: What is the capital of France?"
            assert await said("test_input_required_result_sampling") == expected


@everywhere
@in_both_eras
async def test_what_greenroom_has_none_of_can_be_added(
    fixture_by: Served, transport: Transport, mode: Mode
) -> None:
    async with fixture_by(transport)(mode) as client:
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert "test_prompt_with_arguments" in prompts
        given = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        assert "arg1='a', arg2='b'" in str(given.messages[0].content)
        with pytest.raises(MCPError, match="arg2"):
            await client.get_prompt("test_prompt_with_arguments", {"arg1": "a"})
        reference = PromptReference(name="test_prompt_with_arguments")
        completed = await client.complete(reference, {"name": "arg1", "value": "par"})
        assert completed.completion.values == ["paris", "park", "party"]
