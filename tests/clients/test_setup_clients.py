"""Real clients, each started on the file that `greenroom setup` wrote for it, or reading it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import trio
from conformance import node
from harness import PROGRAM, clean_environment
from mcp import Client, StdioServerParameters
from mcp_types import Implementation
from support.client_homes import ClientHome, entry_in
from support.sdk_clients import Mode, answer

from greenroom.actors.core.git.project_names import project_of_path

pytestmark = [pytest.mark.slow, pytest.mark.promise("cli.setup-clients")]

TYPESCRIPT = Path(__file__).parent.parent / "conformance" / "typescript_client.cjs"
FASTMCP = """
import asyncio, json, sys
from fastmcp import Client

async def main():
    async with Client(json.load(open(sys.argv[1]))) as client:
        print(len(await client.list_tools()))

asyncio.run(main())
"""


@pytest.mark.promise("cli.setup-own-command")
def test_claude_code_adds_the_server_itself_connects_and_takes_it_out(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, {"claude": "claude-code"}, CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere"))
    path = tmp_path / "elsewhere" / ".claude.json"
    path.parent.mkdir()
    mine = {"type": "stdio", "command": "/bin/mine", "args": []}
    other = {
        "type": "stdio",
        "command": "/bin/sh",
        "args": ["-c", f"env > '{tmp_path}/told'"],
        "env": {"KEY": "s3cr3t"},
    }
    before = {"numStartups": 7, "mcpServers": {"other": other, "greenroom": mine}}
    path.write_text(json.dumps(before))
    done = home.setup("claude-code", "--yes")
    assert "with its own command, `claude mcp add-json --scope user greenroom …`" in done
    assert "s3cr3t" not in done
    assert json.loads(path.read_text())["machineID"], "it was not Claude Code that wrote"
    seen = home.run("claude", "mcp", "get", "greenroom")
    assert "Scope: User config" in seen
    assert "Connected" in seen
    home.run("claude", "mcp", "get", "other")
    assert f"CLAUDE_PROJECT_DIR={home.work}" in (tmp_path / "told").read_text().split("\n")
    (checked,) = json.loads(home.setup("claude-code", "--check", "--json"))
    assert (checked["configured"], checked["version"], checked["wrong"]) == (True, "2.1.316", [])
    home.setup("--undo", "--yes")
    after = json.loads(path.read_text())
    assert {name: after[name] for name in before} == before
    assert after["machineID"]  # which is Claude Code's own and not ours to take


def test_claude_code_finds_the_file_of_a_project_and_asks_for_approval(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, {"claude": "claude-code"})
    home.setup("claude-code-project", "--yes")
    seen = home.run("claude", "mcp", "get", "greenroom")
    assert "Scope: Project config" in seen
    assert "Pending approval" in seen


def test_codex_lists_the_server_where_its_variable_says(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, {"codex": "codex"}, CODEX_HOME=str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    home.setup("codex", "--yes")
    entry = entry_in(tmp_path / "elsewhere" / "config.toml", "mcp_servers")
    listed = home.run("codex", "mcp", "list", "--json")
    (server,) = json.loads(listed[listed.index("[") : listed.rindex("]") + 1])
    assert (server["name"], server["enabled"]) == ("greenroom", True)
    assert {name: server["transport"][name] for name in entry} == entry


def test_gemini_connects_where_its_variable_says(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    trusted = {"GEMINI_CLI_HOME": str(elsewhere), "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    home = ClientHome(tmp_path, {"gemini": "gemini"}, **trusted)
    home.setup("gemini", "--yes")
    assert (elsewhere / ".gemini" / "settings.json").exists()
    listed = home.run("gemini", "mcp", "list")
    assert "greenroom" in listed
    assert "Connected" in listed


def test_cline_lists_the_server_where_its_variable_says(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, {"cline": "cline"}, CLINE_DATA_DIR=str(tmp_path / "elsewhere"))
    path = tmp_path / "elsewhere" / "settings" / "cline_mcp_settings.json"
    path.parent.mkdir(parents=True)
    (path.parent / "global-settings.json").write_text('{"autoUpdateEnabled": false, "telemetryOptOut": true}')
    home.setup("cline", "--yes")
    listed = home.run("cline", "config", "mcp", "--json")
    (server,) = json.loads(listed[listed.index("[") : listed.rindex("]") + 1])
    assert (server["name"], server["transportType"], server["disabled"]) == ("greenroom", "stdio", False)
    assert server["path"] == str(path)


def test_the_inspector_and_fastmcp_start_what_the_file_says(tmp_path: Path) -> None:
    home = ClientHome(tmp_path)
    home.setup("claude-desktop", "--yes")
    path = tmp_path / ".config" / "Claude" / "claude_desktop_config.json"
    options = ["--cli", "--config", str(path), "--server", "greenroom", "--method", "tools/list"]
    listed = home.run(*node.command("inspector"), *options, "--format", "json", "-q")
    assert len(json.loads(listed)["result"]["tools"]) == 15
    assert home.run(sys.executable, "-c", FASTMCP, str(path)).split() == ["15"]


@pytest.mark.quick
@pytest.mark.promise("passport.client-folder")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_session_is_in_the_project_that_claude_code_tells_the_process(
    tmp_path: Path, mode: Mode
) -> None:
    told = str(tmp_path / "atlas")
    server = StdioServerParameters(
        command=PROGRAM[0],
        args=[*PROGRAM[1:], "serve"],
        env=clean_environment(tmp_path, CLAUDE_PROJECT_DIR=told),
    )
    async with Client(server, mode=mode) as client:  # it offers no roots
        began = await answer(client, "start_session")
        assert began["project_id"] == project_of_path(told)
        elsewhere = await answer(client, "start_session", workspace_path="/b", new=True)
        assert elsewhere["project_id"] == project_of_path("/b")


@pytest.mark.promise("passport.client-folder")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_session_is_in_the_project_where_codex_starts_the_server(tmp_path: Path, mode: Mode) -> None:
    server = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "serve"], env=clean_environment(tmp_path), cwd=tmp_path
    )
    for name, project in (("codex-mcp-client", project_of_path(str(tmp_path))), ("windsurf-client", None)):
        info = Implementation(name=name, version="1")
        async with Client(server, mode=mode, client_info=info) as client:
            began = await answer(client, "start_session", new=True)
            assert began["project_id"] == project


@pytest.mark.promise("cli.setup-shared")
async def test_what_one_client_stores_another_one_finds(tmp_path: Path) -> None:
    home = ClientHome(tmp_path)
    home.setup("codex", "cursor", "--yes")
    first = entry_in(tmp_path / ".codex" / "config.toml", "mcp_servers")
    server = StdioServerParameters(command=first["command"], args=first["args"], env=home.environment)
    async with Client(server) as client:
        stored = await client.call_tool("store_memory", {"content": "releases are tagged by hand"})
        assert not stored.is_error
    second = entry_in(tmp_path / ".cursor" / "mcp.json")
    typescript = node.script("typescript-client", TYPESCRIPT)
    done = await trio.run_process(
        [*typescript, "cursor", second["command"], *second["args"]],
        env=home.environment,
        stdin=json.dumps(["memory_search", {"query": "how are releases tagged?"}]).encode() + b"\n",
        capture_stdout=True,
    )
    assert b"releases are tagged by hand" in done.stdout, done.stdout
    (cursor,) = json.loads(home.setup("cursor", "--check", "--json"))
    assert cursor["last_seen"] is not None
