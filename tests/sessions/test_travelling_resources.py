"""What travels with a user between tools, as resources: on each transport, in both eras, over the relay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
from mcp import MCPError
from mcp_types import ResourceTemplateReference
from support.commands import run_on_store
from support.sdk_clients import ERAS, TRANSPORTS, Mode, Transport, answer, read, served
from support.several import tool_clients

# The SDK's client over HTTP leaves streams that it has read enough of to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")

SCHEMES = ("greenroom", "omnimemory")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.promise(
    "resources.protocol",
    "resources.preferences",
    "resources.current",
    "resources.project",
    "resources.conversation",
)
async def test_they_are_listed_completed_and_read_under_both_schemes(
    tmp_path: Path, transport: Transport, mode: Mode
) -> None:
    async with served(tmp_path, transport, "--user", "ann", "--no-index") as connect, connect(mode) as client:
        for scheme in SCHEMES:
            with pytest.raises(MCPError, match="you work in no session"):
                await client.read_resource(f"{scheme}://session/current")
            with pytest.raises(MCPError, match="no resource"):
                await client.read_resource(f"{scheme}://user/bob/preferences")
        started = await answer(client, "start_session", purpose="sail", workspace_path="/home/ann/app")
        session, project = started["session_id"], started["project_id"]
        await answer(client, "add_message", session_id=session, content="hello")
        await answer(client, "record_context", decisions=[{"what": "we sail"}])
        await answer(client, "set_preferences", preferences={"theme": "dark"})

        paths = {
            "user/ann/preferences": ("preferences", {"theme": "dark"}),
            "user/preferences": ("user_id", "ann"),
            "session/current": ("conversation", f"greenroom://conversation/{session}"),
            f"project/{project}": ("project_id", project),
            f"conversation/{session}": ("session_id", session),
        }
        for path, (member, expected) in paths.items():
            for scheme in SCHEMES:
                assert (await read(client, f"{scheme}://{path}"))[member] == expected
        listed = {each.uri for each in (await client.list_resources()).resources}
        assert {f"greenroom://{path}" for path in paths if path != "user/preferences"} <= listed
        templates = {
            each.uri_template for each in (await client.list_resource_templates()).resource_templates
        }
        for name, path, value in (
            ("user_id", "user/{user_id}/preferences", "ann"),
            ("project_id", "project/{project_id}", project),
            ("session_id", "conversation/{session_id}", session),
        ):
            for scheme in SCHEMES:
                assert f"{scheme}://{path}" in templates
                reference = ResourceTemplateReference(uri=f"{scheme}://{path}")
                completed = await client.complete(reference, {"name": name, "value": value[:2]})
                assert completed.completion.values == [value]


@pytest.mark.quick
@pytest.mark.promise("resources.protocol", "resources.heard", "sharing.together")
@pytest.mark.parametrize("modern", ["", "bob"])
async def test_attached_processes_read_write_and_hear_of_the_same_ones(tmp_path: Path, modern: str) -> None:
    async with tool_clients(tmp_path, "ann", "bob", modern=modern) as (owner, attached):
        uri = "omnimemory://user/preferences"
        await attached.watch(uri)
        await owner.call("set_preferences", preferences={"theme": "dark"})
        assert (await attached.notice())["params"]["uri"] == uri
        assert '"theme":"dark"' in str(await attached.request("resources/read", uri=uri)).replace("\\", "")
        late = await attached.call("set_preferences", preferences={"theme": "light"}, expected_version=0)
        assert (late["code"], late["details"]["current_version"]) == ("VERSION_CONFLICT", 1)

        session = (await owner.call("create_session", purpose="p", project_id="atlas"))["session_id"]
        for path in (f"conversation/{session}", "project/atlas", "session/current"):
            await attached.watch(f"greenroom://{path}")
        await owner.call("add_message", session_id=session, content="hello")
        assert (await attached.notice())["params"]["uri"] == f"greenroom://conversation/{session}"
        await owner.call("record_context", session_id=session, decisions=[{"what": "we sail"}])
        heard = {(await attached.notice())["params"]["uri"] for _ in range(2)}
        assert heard == {f"greenroom://conversation/{session}", "greenroom://project/atlas"}
        assert "we sail" in str(await attached.request("resources/read", uri="greenroom://project/atlas"))
        await attached.call("restore_session", session_id=session)
        heard = set()
        while "greenroom://session/current" not in heard:
            heard.add((await attached.notice())["params"]["uri"])
        current = await attached.request("resources/read", uri="greenroom://session/current")
        assert session in str(current)


@pytest.mark.promise("resources.preferences-written")
async def test_they_are_changed_from_the_command_line_beside_a_running_server(tmp_path: Path) -> None:
    async with tool_clients(tmp_path, "ann") as (ann,):
        user = re.search(r'"user_id":"([^"]*)"', str(await ann.request(
            "resources/read", uri="greenroom://user/preferences")).replace("\\", ""))  # fmt: skip
        assert user is not None
        await ann.watch("greenroom://user/preferences")
        who = ("--user", user[1])
        change = ("preferences", "set", "search_defaults.max_results", "20")
        said = await trio.to_thread.run_sync(run_on_store, tmp_path, *change, *who)
        assert (said.returncode, said.stdout.strip()) == (0, "the preferences are at version 1")
        assert (await ann.notice())["params"]["uri"] == "greenroom://user/preferences"
        shown = await ann.call("set_preferences", preferences={})
        assert shown["preferences"] == {"search_defaults": {"max_results": 20}}
